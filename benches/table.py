"""Writes the tables of README.md and docs/benchmarks.md from the latest recorded runs.

Each page has a pair of markers; what is between them is replaced.

    python benches/table.py
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from recording import last_runs, newest_record
from worker import SHORT_STRINGS

HERE = Path(__file__).resolve().parent
README = HERE.parent / "README.md"
PAGE = HERE.parent / "docs" / "benchmarks.md"
# The site does not contain the records.
REPOSITORY = "https://github.com/byteweld/byteweld/blob/main/"
START, END = "<!-- bench:start -->", "<!-- bench:end -->"

Row = Mapping[str, str]
Rows = Sequence[Row]
Runs = Mapping[str, Rows]  # by definition


# ---------------------------------------------------------------------- cells


def cost(rows: Rows) -> str:
    """Median wall time and peak memory."""
    memory = max(int(row["peak_rss_bytes"]) for row in rows) / 2**20
    return f"{_median(rows, 'wall_seconds'):.2f} s, {memory:.0f} MiB"


def speed(rows: Rows) -> str:
    """MB of text per second of CPU time."""
    return f"{_megabytes(rows) / _median(rows, 'cpu_seconds'):.0f}"


def wall_speed(rows: Rows) -> str:
    """MB of text per second of wall time."""
    return f"{_megabytes(rows) / _median(rows, 'wall_seconds'):.0f}"


def speed_with_unit(rows: Rows) -> str:
    """The same as `speed`, for a table that has other units as well."""
    return f"{speed(rows)} MB/s"


def milliseconds(rows: Rows) -> str:
    """Median CPU time."""
    return f"{_median(rows, 'cpu_seconds') * 1000:.0f} ms"


def calls(rows: Rows) -> str:
    """Thousand short strings per second of CPU time."""
    return f"{SHORT_STRINGS / 1000 / _median(rows, 'cpu_seconds'):.0f}"


def memory(rows: Rows) -> str:
    """Peak memory."""
    return f"{max(int(row['peak_rss_bytes']) for row in rows) / 2**20:.0f} MiB"


def _median(rows: Rows, clock: str) -> float:
    return max(statistics.median(float(row[clock]) for row in rows), 1e-9)


def _megabytes(rows: Rows) -> float:
    return int(rows[0]["text_bytes"]) / 1e6


# ---------------------------------------------------------------------- tables


class Line(NamedTuple):
    """A row of a table: its title, its definition, and what its cells show."""

    title: str
    definition: str
    show: Callable[[Rows], str]


class Table(NamedTuple):
    """One table: the text above it, its rows, and the engines that are its columns."""

    above: str
    lines: list[Line]
    engines: tuple[str, ...]


TRAINERS = ("byteweld", "gigatoken", "rustbpe", "tokenizers")
ENCODERS = ("byteweld", "fastokens", "gigatoken", "splintr", "quicktok", "tiktoken")
TIERS = ("byteweld", "byteweld:avx2", *ENCODERS[1:])
LIST_ENCODERS = (*ENCODERS, "rs_bpe", "wordchipper", "tokenizers")
ALL_ENCODERS = (*LIST_ENCODERS, "tokie", "iree")
TEXTS = {
    "prose": "prose-10MB",
    "code": "code-10MB",
    "chat": "chat-8MB",
    "many languages": "multi-10MB",
    "Chinese, Japanese": "zh-ja-3MB",
    "Thai, Khmer": "th-km-1.6MB",
}
VOCABS = ("cl100k_base", "o200k_base")
MAIN_TEXTS = ("prose", "code", "many languages")
LONG_TEXTS = {
    "one letter": "one-letter-1MB",
    "random letters": "random-word-1MB",
    "spaces": "spaces-1MB",
    "newlines": "newlines-1MB",
    "digits": "digits-1MB",
}
PATTERNS = {
    "nanochat's": "nanochat",
    "cl100k's without contractions, each digit alone": "cl100k-plain",
    "GPT-2's with groups of three digits": "gpt2-digits",
    "o200k's with marks and without case": "o200k-marks",
    "words with hyphens": "own",
    "identifiers": "identifiers",
}


def _documents(measure: str, text: str, which: str = "first", vocab: str = "cl100k_base") -> str:
    return f"{measure}/{TEXTS[text]}/{vocab}/documents/1-thread/{which}"


def _train(corpus: str, size: int, ties: str, threads: str) -> str:
    return f"train/{corpus}/{size}/{ties}/{threads}"


_GB_TRAINING = [
    Line(
        "1 GB mixed, 32k, 2 threads",
        _train("mixed-1000MB", 32000, "smallest-ids", "2-threads"),
        cost,
    ),
    Line(
        "the same, Hugging Face's ties",
        _train("mixed-1000MB", 32000, "huggingface", "2-threads"),
        cost,
    ),
]
_MB_TRAINING = [
    Line(
        f"100 MB {shown}, {size // 1000}k, {threads.replace('-', ' ')}",
        _train(corpus, size, "smallest-ids", threads),
        cost,
    )
    for shown, corpus in (("of books", "prose-100MB"), ("mixed", "mixed-100MB"))
    for size, threads in ((10_000, "1-thread"), (32_000, "1-thread"), (32_000, "2-threads"))
]

README_TABLE = Table(
    "",
    [
        *(line._replace(title=f"train: {line.title}") for line in _GB_TRAINING),
        *(
            Line(f"encode: {text}, 1 core", _documents("array_out", text), speed_with_unit)
            for text in MAIN_TEXTS
        ),
    ],
    ("byteweld", "fastokens", "gigatoken", "rustbpe", "tiktoken", "tokenizers"),
)

TRAINING = Table(
    "### Training\n\nWith the GPT-2 pattern: wall time, peak memory.",
    [
        *_MB_TRAINING,
        *_GB_TRAINING,
        Line(
            "2 GB of stories, 10k, 2 threads",
            _train("stories-2000MB", 10_000, "smallest-ids", "2-threads"),
            cost,
        ),
    ],
    TRAINERS,
)
COUNTING = Table(
    "Counting alone, the part that grows with the corpus: wall time, peak memory.",
    [
        Line("100 MB of books, 2 threads", "count/prose-100MB/2-threads", cost),
        Line("39 MB of code, 2 threads", "count/code-40MB/2-threads", cost),
        Line("39 MB in many languages, 2 threads", "count/multi-40MB/2-threads", cost),
        Line("1 GB mixed, 2 threads", "count/mixed-1000MB/2-threads", cost),
    ],
    TRAINERS,
)
ENCODING = [
    Table(
        "### Encoding\n\nDocuments of about 4 KB, one call each, first pass over new text, 1 core "
        "(MB/s). To arrays:\n\n![Encoding speed by kind of text](pictures/encoding-speed.svg)",
        [
            *(Line(f"cl100k_base, {text}", _documents("array_out", text), speed) for text in TEXTS),
            Line(
                "o200k_base, prose",
                _documents("array_out", "prose", vocab="o200k_base"),
                speed,
            ),
        ],
        TIERS,
    ),
    Table(
        "The same text again, when caches are warm:",
        [
            Line(f"cl100k_base, {text}", _documents("array_out", text, "warm"), speed)
            for text in TEXTS
        ],
        TIERS,
    ),
    Table(
        "To Python lists:",
        [Line(f"cl100k_base, {text}", _documents("list_out", text), speed) for text in MAIN_TEXTS],
        LIST_ENCODERS,
    ),
    Table(
        "Strings of 1 to 200 bytes, one call of `encode` each, when caches are warm, thousand "
        "calls per second:",
        [
            Line(
                f"{vocab}, {text}",
                f"encode/{corpus}-2MB/{vocab}/short/1-thread/warm",
                calls,
            )
            for vocab in VOCABS
            for text, corpus in (("prose", "prose"), ("many languages", "multi"))
        ],
        ALL_ENCODERS,
    ),
    Table(
        "All documents in one call, two threads, to arrays, MB/s of wall time:",
        [
            Line(
                f"cl100k_base, {text}",
                f"array_out/{TEXTS[text]}/cl100k_base/batch/2-threads/first",
                wall_speed,
            )
            for text in MAIN_TEXTS
        ],
        ("byteweld", "fastokens", "gigatoken"),
    ),
    Table(
        "1 MB of one kind of character, in one call, cl100k_base, MB/s:",
        [
            Line(shown, f"array_out/{corpus}/cl100k_base/string/1-thread/first", speed)
            for shown, corpus in LONG_TEXTS.items()
        ],
        ENCODERS,
    ),
    Table(
        "Prose with the tokens of cl100k_base and another pattern, MB/s:",
        [
            Line(shown, f"array_out/prose-10MB/cl100k_base/{name}/documents/1-thread/first", speed)
            for shown, name in PATTERNS.items()
        ],
        ("byteweld", "fastokens", "splintr", "tiktoken"),
    ),
    Table(
        "Decoding lists of ids, MB/s of text:",
        [
            Line(f"cl100k_base, {text}", _documents("decode_list", text), speed)
            for text in MAIN_TEXTS
        ],
        LIST_ENCODERS,
    ),
    Table(
        "A new process that has imported the library loads cl100k_base and encodes documents to "
        "arrays; both are timed (CPU time):",
        [
            Line(
                f"{size}, {text}",
                f"array_out/{corpus}-{megabytes}MB/cl100k_base/documents/fresh/1-thread/total",
                milliseconds,
            )
            for size, megabytes in (("150 KB", "0.15"), ("1 MB", "1"), ("10 MB", "10"))
            for text, corpus in (("prose", "prose"), ("code", "code"), ("many languages", "multi"))
        ],
        ENCODERS,
    ),
    Table(
        "From a started interpreter to the first ids: import, load, encode one line (CPU time). "
        "byteweld loads with a cache, tokie from its own format; splintr, quicktok and rs_bpe have "
        "the vocabulary built in:",
        [
            Line(vocab, f"first_ids/prose-1MB/{vocab}/1-thread/start", milliseconds)
            for vocab in VOCABS
        ],
        ALL_ENCODERS,
    ),
]
MEMORY = Table(
    "### Memory\n\nWhat encoding 10 MB adds to the interpreter and the text: library, vocabulary, "
    "caches, arrays of ids.",
    [Line(f"cl100k_base, {text}", _documents("array_out", text), memory) for text in MAIN_TEXTS],
    ENCODERS,
)
DATASETS = Table(
    "### Datasets\n\nFrom a corpus to token files on disk, two threads: wall time, peak memory of "
    "all processes.",
    [
        *(
            Line(f"1.05 GB of {shown}, {vocab}", f"dataset/{name}-1050MB/{vocab}/2-threads", cost)
            for vocab in ("gpt2", "o200k")
            for shown, name in (
                ("JSON lines", "jsonl"),
                ("JSON lines, zstd", "jsonl.zst"),
                ("Parquet", "parquet"),
            )
        ),
        Line("213 MB of JSON lines, gpt2", "dataset/jsonl-213MB/gpt2/2-threads", cost),
        Line("52 MB of JSON lines, zstd, gpt2", "dataset/jsonl.zst-52MB/gpt2/2-threads", cost),
        Line("52 MB of Parquet, gpt2", "dataset/parquet-52MB/gpt2/2-threads", cost),
    ],
    ("byteweld", "gigatoken", "datasets", "datatrove"),
)


def markdown(table: Table, runs: Runs) -> list[str]:
    """One Markdown table, with the text above it; rows and columns without figures are left out."""
    right = {
        (line, engine): [
            row
            for row in runs.get(line.definition, ())
            if row["engine"] == engine and row["ok"] == "yes"
        ]
        for line in table.lines
        for engine in table.engines
    }
    lines = [line for line in table.lines if any(right[line, e] for e in table.engines)]
    engines = [engine for engine in table.engines if any(right[line, engine] for line in lines)]
    if not lines:
        return []
    heads = [_head(engine, (right[line, engine] for line in lines)) for engine in engines]
    out = [*table.above.splitlines(), ""] if table.above else []
    out += ["| | " + " | ".join(heads) + " |", "|---|" + "---:|" * len(engines)]
    for line in lines:
        cells = [line.show(found) if (found := right[line, e]) else "" for e in engines]
        out.append(f"| {line.title} | " + " | ".join(cells) + " |")
    return [*out, ""]


def _head(engine: str, found: Iterable[Rows]) -> str:
    """The name of an engine with its version."""
    return f"{engine} {max((row for rows in found for row in rows), key=_date)['version']}"


def _date(row: Row) -> str:
    return row["date"]


# ---------------------------------------------------------------------- pages


def readme_part(runs: Runs, folder: str) -> list[str]:
    """The README's one table."""
    return [
        f"Medians of interleaved runs on an {_machine(runs, [README_TABLE])}; every answer was "
        f"checked in the same run ({_records(runs, [README_TABLE], folder)}, "
        "[method and all results](docs/benchmarks.md)). Training with the GPT-2 pattern: wall time "
        "and peak memory. Encoding with cl100k_base: documents of about 4 KB, first pass over new "
        "text, to arrays.",
        "",
        *markdown(README_TABLE, runs)[:-1],
    ]


def page_part(runs: Runs, folder: str) -> list[str]:
    """All tables, for docs/benchmarks.md."""
    speeds = [TRAINING, COUNTING, *ENCODING, MEMORY]
    lines = [
        f"Medians of interleaved runs on an {_machine(runs, speeds)}: "
        f"{_records(runs, speeds, folder)}. An empty cell was not measured, or the answer was "
        "wrong.",
        "",
    ]
    for table in speeds:
        lines += markdown(table, runs)
    datasets = markdown(DATASETS, runs)
    if datasets:
        lines += [
            *datasets,
            f"Measured on an {_machine(runs, [DATASETS])}: "
            f"{_records(runs, [DATASETS], folder, '-dataset')}.",
            "",
        ]
    return lines[:-1]


def _machine(runs: Runs, tables: Sequence[Table]) -> str:
    return " and ".join(dict.fromkeys(row["cpu"] for row in _rows(runs, tables)))


def _records(runs: Runs, tables: Sequence[Table], folder: str, suffix: str = "") -> str:
    """Links to the records of all days on which the rows of some tables were measured."""
    days = sorted({row["date"][:10] for row in _rows(runs, tables)})
    links = [f"[{day}]({folder}/{day}{suffix}.md)" for day in days]
    return f"{'record' if len(links) == 1 else 'records'} of {', '.join(links)}"


def _rows(runs: Runs, tables: Sequence[Table]) -> list[Row]:
    """The rows behind some tables."""
    return [
        row
        for table in tables
        for line in table.lines
        for row in runs.get(line.definition, ())
        if row["engine"] in table.engines and row["ok"] == "yes"
    ]


def replaced(text: str, lines: Sequence[str]) -> str:
    """A page with these lines between its markers."""
    before, rest = text.split(START)
    return before + "\n".join([START, *lines, END]) + rest.split(END)[1]


def main() -> None:
    """Rewrite the generated part of both pages."""
    path = newest_record(HERE / "record")
    if path is None:
        sys.exit("no record yet: run `make bench` first")
    runs = last_runs(path, compared=True)
    folder = path.parent.relative_to(HERE.parent).as_posix()
    README.write_text(replaced(README.read_text(), readme_part(runs, folder)))
    PAGE.write_text(replaced(PAGE.read_text(), page_part(runs, REPOSITORY + folder)))
    print(f"wrote README.md and docs/benchmarks.md from {folder}")


if __name__ == "__main__":
    main()
