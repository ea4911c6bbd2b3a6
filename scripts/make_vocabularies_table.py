"""Writes docs/reference/vocabularies.md: each vocabulary of ../shared/data and its golden result.

`python scripts/make_vocabularies_table.py` writes the page; with --check it writes nothing, and the
exit code is 1 if the page is not up to date.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import byteweld
from byteweld.evaluation import pattern_engine
from byteweld.patterns import pattern_name

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "data"
PAGE = ROOT / "docs" / "reference" / "vocabularies.md"

_PROSE = """\
# Vocabularies

The well-known vocabularies that byteweld is tested with: how each splits text, and whether its ids
equal those of the library that it comes from. `scripts/make_vocabularies_table.py` generates this
page from real files and stored answers (`make vocabularies`, with the test data next to the clone);
do not edit it.

- **engine**: what runs the pattern. *scanner*: the pattern belongs to a known family. *automaton*:
  it does not, but compiles to one automaton. *backtracking*: neither. *whole*: there is no pattern.
  The engine affects the speed, never the ids.
- **pattern**: its name in byteweld, or the first vocabulary that has it (the patterns are listed
  below). `→` separates the steps of a chain. By default, each match of a step is a separate
  pre-token; otherwise the step says what happens to matches.
- **special**, **added**: the number of special tokens, and of other added tokens, which are found
  in any text. A star means that some have flags (`lstrip`, `rstrip`, `single_word`, `normalized`).
- **golden**: the number of test strings whose ids equal the reference's, with special tokens as
  special tokens and as plain text. Nothing is added around a string (in Hugging Face:
  `add_special_tokens=False`).
- **reference**: the library that produced the golden ids, and its version.
"""

_HEADS = (
    "vocabulary",
    "format",
    "tokens",
    "engine",
    "pattern",
    "special",
    "added",
    "normalizer",
    "golden: special",
    "golden: plain",
    "reference",
)
_INLINE_PATTERN = 32  # characters; longer patterns are listed below the table


class Source(NamedTuple):
    """A vocabulary to load, and the golden file with its ids."""

    name: str
    kind: str
    files: dict[str, str]  # packed file of the shared data -> name to unpack it to
    options: dict[str, Any]
    golden: str


class Golden(NamedTuple):
    """For how many snippets the ids are equal, and which library gave them."""

    special: str
    plain: str
    reference: str


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="only check whether the page is up to date"
    )
    arguments = parser.parse_args()
    if not SHARED.is_dir():
        sys.stderr.write(f"no test data at {SHARED}\n")
        return 2
    text = page()
    if arguments.check:
        if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
            return 0
        sys.stderr.write(f"{PAGE} is not up to date; run {Path(__file__).name}\n")
        return 1
    PAGE.write_text(text, encoding="utf-8")
    sys.stderr.write(f"wrote {PAGE}\n")
    return 0


def page() -> str:
    """Return the whole page."""
    snippets, patterns = _snippets(), Patterns()
    rows, refused = [], []
    for source in sources():
        sys.stderr.write(f"{source.name}\n")
        row = _row(source, snippets, patterns)
        if isinstance(row, str):
            refused.append(f"- **{source.name}** ({source.kind}): {row}\n")
        else:
            rows.append(row)
    parts = [_PROSE, "\n", *_table(rows)]
    parts += [f"\n{len(snippets)} test strings; byteweld {byteweld.__version__}.\n"]
    if refused:
        parts += [
            "\n## Refused\n\n",
            "Vocabularies that cannot be represented exactly are refused:\n\n",
            *refused,
        ]
    return "".join([*parts, *patterns.section()])


class Patterns:
    """Patterns too long for the table, each named after the first vocabulary that has it."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def words(self, pattern: str, vocabulary: str) -> str:
        """Return a pattern in a few words."""
        known = pattern_name(pattern)
        if known is None and len(pattern) <= _INLINE_PATTERN:
            return _code(pattern)
        if pattern not in self._names:
            taken = [name for name in self._names.values() if name.split(" ")[0] == vocabulary]
            own = f"{vocabulary} {len(taken) + 1}" if taken else vocabulary
            self._names[pattern] = own if known is None else known
        return self._names[pattern]

    def section(self) -> Iterator[str]:
        """Yield the section that lists them."""
        yield "\n## Patterns\n"
        for pattern, name in self._names.items():
            yield f"\n{name}:\n\n```text\n{_printable(pattern)}\n```\n"


def sources() -> Iterator[Source]:
    """Yield every vocabulary of the index; GPT-2's two files are one."""
    index = json.loads((SHARED / "vocabs" / "index.json").read_bytes())
    pair = {}
    for entry in index["vocabs"]:
        name, kind, file = entry["name"], entry["kind"], entry["file"]
        unpacked = Path(file).name.removesuffix(".gz")
        if kind == "raw":
            pair[file] = unpacked
            continue
        options = {}
        if kind == "tiktoken":
            options = {"pattern": entry["pat_str"], "special_tokens": entry["special_tokens"]}
        golden = f"hf_{name}" if kind == "hf" else name
        yield Source(name, kind, {file: unpacked}, options, golden)
    specials = {"<|endoftext|>": 50256}
    options = {"pattern": "gpt2", "special_tokens": specials}
    yield Source("gpt2, OpenAI's own two files", "raw", pair, options, "hf_gpt2")


def _row(source: Source, snippets: dict[str, str], patterns: Patterns) -> tuple[str, ...] | str:
    """Return a row of the table, or why the vocabulary is refused."""
    with tempfile.TemporaryDirectory() as folder:
        for packed, name in source.files.items():
            content = gzip.decompress((SHARED / "vocabs" / packed).read_bytes())
            Path(folder, name).write_bytes(content)
        path = Path(folder, name) if len(source.files) == 1 else Path(folder)
        try:
            tok = byteweld.load(path, **source.options)
            kind = byteweld.recognize(path)
        except Exception as error:  # the page shows any error
            return _reason(error, path)
    golden = _golden(source, tok, snippets)
    vocab = tok.vocab
    specials = [added for added in vocab.added_tokens if added.special]
    others = [added for added in vocab.added_tokens if not added.special]
    return (
        source.name,
        kind,
        str(len(vocab)),
        pattern_engine(tok),
        _pattern_words(vocab, lambda pattern: patterns.words(pattern, source.name)),
        _added_words(specials),
        _added_words(others),
        _normalizer_words(vocab),
        golden.special,
        golden.plain,
        golden.reference,
    )


def _reason(error: Exception, path: Path) -> str:
    words = " ".join(str(error).replace(f"{path}: ", "").replace(str(path), path.name).split())
    known = isinstance(error, byteweld.ByteweldError)
    return words if known else f"an error: {type(error).__name__}: {words}"


def _table(rows: list[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(_HEADS)} |\n"
    yield f"|{'---|' * len(_HEADS)}\n"
    for row in rows:
        yield f"| {' | '.join(row)} |\n"


# ---------------------------------------------------------------------------- cells


def _pattern_words(vocab: byteweld.Vocabulary, words_of: Callable[[str], str]) -> str:
    def step_words(step: Any) -> str:
        if isinstance(step, str):
            return step.replace("-", " ")
        words = words_of(step.pattern)
        if step.behavior != "isolated":
            words += f" {step.behavior.replace('_', ' ')}"
        return words + (" (inverted)" if step.invert else "")

    if vocab.steps:
        return " → ".join(map(step_words, vocab.steps))
    return "none" if vocab.pattern is None else words_of(vocab.pattern)


def _code(text: str) -> str:
    """Return code for a cell of the table."""
    shown = _printable(text)
    marks = "``" if "`" in shown else "`"
    return f"{marks}{shown}{marks}".replace("|", "\\|")


def _printable(text: str) -> str:
    escapes = {"\r": r"\r", "\n": r"\n", "\t": r"\t"}
    return "".join(c if c.isprintable() else escapes.get(c, f"\\x{{{ord(c):X}}}") for c in text)


def _added_words(added: list[Any]) -> str:
    flagged = any(t.single_word or t.lstrip or t.rstrip or t.normalized for t in added)
    return f"{len(added)}{'*' if flagged else ''}" if added else "–"


def _normalizer_words(vocab: byteweld.Vocabulary) -> str:
    steps = [
        step if isinstance(step, str) else f"{_code(step.pattern)} to {_code(step.content)}"
        for step in vocab.normalizer
    ]
    return " → ".join(steps) or "–"


# ---------------------------------------------------------------------------- golden ids


def _snippets() -> dict[str, str]:
    lines = (SHARED / "golden" / "snippets.jsonl").read_text("utf-8").split("\n")
    return {snippet["id"]: snippet["text"] for snippet in map(json.loads, filter(None, lines))}


def _golden(source: Source, tok: byteweld.Tokenizer, snippets: dict[str, str]) -> Golden:
    packed = (SHARED / "golden" / f"{source.golden}.jsonl.gz").read_bytes()
    meta, *answers = map(json.loads, filter(None, gzip.decompress(packed).decode().split("\n")))

    def equal(encode: Callable[[str], list[int]], ids: Callable[[Any], list[int]]) -> str:
        same = sum(_or_none(encode, snippets[a["id"]]) == ids(a) for a in answers)
        return f"{same} / {len(answers)}"

    def encode_all(text: str) -> list[int]:
        return tok.encode(text, allowed_special="all")

    # In `ids`, special tokens are special for tokenizer.json files and plain text for others.
    hf = source.golden.startswith("hf_")
    special = equal(encode_all, lambda a: a["ids"] if hf else a.get("ids_special", a["ids"]))
    plain = equal(tok.encode_ordinary, lambda a: a.get("ids_plain", a["ids"]) if hf else a["ids"])
    if source.kind == "tekken":  # mistral-common never finds special tokens in text
        special = "–"
    return Golden(special, plain, meta["_meta"]["reference"])


def _or_none(encode: Callable[[str], list[int]], text: str) -> list[int] | None:
    try:
        return encode(text)
    except byteweld.ByteweldError:
        return None


if __name__ == "__main__":
    sys.exit(main())
