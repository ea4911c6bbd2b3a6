"""Writes docs/vocabularies.md: every vocabulary of ../shared/data, what cuts it, its golden result.

`python scripts/make_vocabularies_table.py` writes the page; with --check it only says, by the exit
code 1, that the page is not up to date.
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
from byteweld.patterns import pattern_name

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "data"
PAGE = ROOT / "docs" / "vocabularies.md"

_PROSE = """\
# Vocabularies

Which of the field's vocabularies byteweld loads, what cuts their text, and whether its ids are
those of the library that each vocabulary comes from. Written by
`scripts/make_vocabularies_table.py` from real files and frozen answers; do not edit. To make it
again, where the test data lies beside the clone: `make vocabularies`.

- **cut by**: what runs the pattern. *scanner*: it was recognized as one of the families of the
  field, or as a variation of one. *automaton*: it was not, but could be made one table.
  *backtracking*: neither. *whole*: there is no pattern. The ids are the same with each; the speed
  is not.
- **pattern**: by our name, or by the first vocabulary that has it (all are written out below). In
  a chain, `→` is "and then"; what becomes of a match is named where it is not a pre-token of its
  own.
- **special**, **added**: special tokens, and other tokens that are found in every text. A star:
  some have flags (`lstrip`, `rstrip`, `single_word`, `normalized`).
- **golden**: on how many snippets the ids are equal to the reference's, with special tokens
  recognized, and with special tokens as plain text. Nothing is put around a text (in Hugging
  Face: `add_special_tokens=False`).
- **reference**: the library that gave the golden ids, and its version.
"""

_HEADS = (
    "vocabulary",
    "format",
    "tokens",
    "cut by",
    "pattern",
    "special",
    "added",
    "normaliser",
    "golden: special",
    "golden: plain",
    "reference",
)
_INLINE_PATTERN = 32  # characters; a longer one is written out below the table


class Source(NamedTuple):
    """A vocabulary to load, and the golden file that holds its ids."""

    name: str
    kind: str
    files: dict[str, str]  # packed file of the shared data -> name to unpack it to
    options: dict[str, Any]
    golden: str


class Golden(NamedTuple):
    """On how many snippets the ids are equal, and whose ids they are."""

    special: str
    plain: str
    reference: str


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="only say whether it is up to date")
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
    """The whole page."""
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
    parts += [f"\n{len(snippets)} snippets; byteweld {byteweld.__version__}.\n"]
    if refused:
        parts += ["\n## Refused\n\n", "What cannot be encoded exactly is refused:\n\n", *refused]
    return "".join([*parts, *patterns.section()])


class Patterns:
    """The patterns that have no short form, each under the vocabulary that had it first."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def words(self, pattern: str, vocabulary: str) -> str:
        """A pattern in few words."""
        known = pattern_name(pattern)
        if known is None and len(pattern) <= _INLINE_PATTERN:
            return _code(pattern)
        if pattern not in self._names:
            taken = [name for name in self._names.values() if name.split(" ")[0] == vocabulary]
            own = f"{vocabulary} {len(taken) + 1}" if taken else vocabulary
            self._names[pattern] = own if known is None else known
        return self._names[pattern]

    def section(self) -> Iterator[str]:
        """All of them, written out."""
        yield "\n## Patterns\n"
        for pattern, name in self._names.items():
            yield f"\n{name}:\n\n```text\n{_printable(pattern)}\n```\n"


def sources() -> Iterator[Source]:
    """Every vocabulary of the index; GPT-2's two files are one."""
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
    """A row of the table, or why there is none."""
    with tempfile.TemporaryDirectory() as folder:
        for packed, name in source.files.items():
            content = gzip.decompress((SHARED / "vocabs" / packed).read_bytes())
            Path(folder, name).write_bytes(content)
        path = Path(folder, name) if len(source.files) == 1 else Path(folder)
        try:
            tok = byteweld.load(path, **source.options)
            kind = byteweld.recognize(path)
        except Exception as error:  # the page says what happened, whatever it is
            return _reason(error, path)
    golden = _golden(source, tok, snippets)
    vocab = tok.vocab
    specials = [added for added in vocab.added_tokens if added.special]
    others = [added for added in vocab.added_tokens if not added.special]
    return (
        source.name,
        kind,
        str(len(vocab)),
        tok.pattern_engine,
        _cut_words(vocab, lambda pattern: patterns.words(pattern, source.name)),
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


# ---------------------------------------------------------------------------- what it is


def _cut_words(vocab: byteweld.Vocabulary, pattern_words: Callable[[str], str]) -> str:
    def step_words(step: Any) -> str:
        if isinstance(step, str):
            return step.replace("-", " ")
        words = pattern_words(step.pattern)
        if step.behavior != "isolated":
            words += f" {step.behavior.replace('_', ' ')}"
        return words + (" (inverted)" if step.invert else "")

    if vocab.steps:
        return " → ".join(map(step_words, vocab.steps))
    return "none" if vocab.pattern is None else pattern_words(vocab.pattern)


def _code(text: str) -> str:
    """Code in a table's cell."""
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

    # For tokenizer.json files `ids` has special tokens recognized, for the others it has not.
    hf = source.golden.startswith("hf_")
    special = equal(encode_all, lambda a: a["ids"] if hf else a.get("ids_special", a["ids"]))
    plain = equal(tok.encode_ordinary, lambda a: a.get("ids_plain", a["ids"]) if hf else a["ids"])
    if source.kind == "tekken":  # mistral-common never recognizes special tokens in a text
        special = "–"
    return Golden(special, plain, meta["_meta"]["reference"])


def _or_none(encode: Callable[[str], list[int]], text: str) -> list[int] | None:
    try:
        return encode(text)
    except byteweld.ByteweldError:
        return None


if __name__ == "__main__":
    sys.exit(main())
