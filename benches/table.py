"""Writes the README's tables between its markers, from the latest recorded runs.

python benches/table.py
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from recording import last_runs, newest_record

HERE = Path(__file__).resolve().parent
README = HERE.parent / "README.md"
START, END = "<!-- bench:start -->", "<!-- bench:end -->"

# (row title, definition)
TRAINING = [
    ("100 MB of books, 10k, 1 thread", "train/prose-100MB/10000/smallest-ids/1-thread"),
    ("100 MB of books, 32k, 1 thread", "train/prose-100MB/32000/smallest-ids/1-thread"),
    ("100 MB of books, 32k, 2 threads", "train/prose-100MB/32000/smallest-ids/2-threads"),
    ("the same, Hugging Face's ties", "train/prose-100MB/32000/huggingface/2-threads"),
    ("1 GB mixed, 32k, 2 threads", "train/mixed-1000MB/32000/smallest-ids/2-threads"),
    ("the same, Hugging Face's ties", "train/mixed-1000MB/32000/huggingface/2-threads"),
]
TRAINERS = ("byteweld", "gigatoken", "rustbpe", "tokenizers")
TEXTS = {
    "prose": "prose-10MB",
    "code": "code-10MB",
    "many languages": "multi-10MB",
    "Chinese, Japanese": "zh-ja-3MB",
    "Thai, Khmer": "th-km-1.6MB",
}
VOCABS = ("r50k_base", "cl100k_base", "o200k_base", "llama3", "qwen")
ARRAYS = [
    (f"{vocab}, {text}", f"array_out/{corpus}/{vocab}/documents/1-thread/first")
    for vocab in VOCABS
    for text, corpus in TEXTS.items()
]
LISTS = [
    (f"{vocab}, {text}", f"list_out/{corpus}/{vocab}/documents/1-thread/first")
    for vocab in VOCABS
    for text, corpus in list(TEXTS.items())[:3]
]
ENCODERS = ("byteweld", "fastokens", "gigatoken", "tiktoken")


def cell(rows: Sequence[dict[str, str]], definition: str, engine: str, clock: str) -> str:
    """The median, in seconds for training and MB/s for encoding; empty if not measured."""
    found = [
        row
        for row in rows
        if row["definition"] == definition and row["engine"] == engine and row["ok"] != "inexact"
    ]
    if not found:
        return ""
    seconds = statistics.median(float(row[clock]) for row in found)
    if clock == "wall_seconds":
        memory = max(int(row["peak_rss_bytes"]) for row in found) / 2**20
        return f"{seconds:.2f} s, {memory:.0f} MiB"
    return f"{int(found[0]['text_bytes']) / 1e6 / seconds:.0f}"


def table(
    rows: Sequence[dict[str, str]],
    measures: Sequence[tuple[str, str]],
    engines: Sequence[str],
    clock: str,
) -> list[str]:
    """One Markdown table."""
    versions = {row["engine"]: row["version"] for row in rows}
    heads = [f"{engine} {versions.get(engine, '')}".strip() for engine in engines]
    lines = ["| | " + " | ".join(heads) + " |", "|---|" + "---|" * len(engines)]
    for name, definition in measures:
        cells = [cell(rows, definition, engine, clock) for engine in engines]
        if any(cells):
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    """Rewrite the generated part of the README."""
    path = newest_record(HERE / "record")
    if path is None:
        sys.exit("no record yet: run `make bench` first")
    wanted = {definition for _, definition in (*TRAINING, *ARRAYS, *LISTS)}
    rows = [row for name, run in last_runs(path).items() if name in wanted for row in run]
    rows.sort(key=lambda row: row["date"])
    cpu, day = rows[-1]["cpu"], rows[-1]["date"][:10]
    link = path.with_suffix(".md").relative_to(HERE.parent).as_posix()
    lines = [
        START,
        f"Medians of interleaved runs on {cpu}, {day}; every answer was checked in the same run "
        f"([full record]({link}), [method](benches/README.md)).",
        "",
        "Training with the GPT-2 pattern (wall time, peak memory):",
        "",
        *table(rows, TRAINING, TRAINERS, "wall_seconds"),
        "",
        "Encoding documents of about 4 KB, first pass over new text, one core (MB/s). To arrays:",
        "",
        "![Encoding speed by kind of text](docs/pictures/encoding-speed.svg)",
        "",
        *table(rows, ARRAYS, ENCODERS, "cpu_seconds"),
        "",
        "To Python lists:",
        "",
        *table(rows, LISTS, ENCODERS, "cpu_seconds"),
        END,
    ]
    text = README.read_text()
    before, rest = text.split(START)
    README.write_text(before + "\n".join(lines) + rest.split(END)[1])
    print(f"wrote README.md from {path.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
