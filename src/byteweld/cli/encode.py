"""`byteweld encode`: text -> ids, one line per document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import byteweld
from byteweld._text import batches
from byteweld.cli import _errors, _input, _output
from byteweld.cli import _options as options
from byteweld.cli._options import SpecialText
from byteweld.render import spans, to_ansi

EXAMPLES = """
byteweld encode --tokenizer tokenizer.json --text 'hello world'
byteweld encode --tokenizer tokenizer.json book.txt > ids.txt
cat lines.txt | byteweld encode --tokenizer tokenizer.json --lines --json
byteweld encode --tokenizer tokenizer.json --show --text 'Where do the tokens end?'
byteweld encode --tokenizer cl100k_base --special-text text README.md
"""

_IDS_AT_ONCE = 1 << 16
_FEW_BYTES = 1 << 20  # below this, encode to lists: importing numpy would take longer


def run(
    source: list[str] | None = None,
    *,
    text: str | None = None,
    lines: bool = False,
    special_text: SpecialText = "fail",
    add_bos: bool = False,
    add_eos: bool = False,
    show: bool = False,
    json: bool = False,
    threads: options.Positive | None = None,
    tokenizer: str = options.DEFAULT_TOKENIZER,
    loading: options.Loading,
) -> None:
    """Turn text into ids: one line of ids per document.

    The text comes from files, from standard input (- or no SOURCE), or from --text. It is encoded
    byte for byte, final newline included, and need not be UTF-8. Each file is one document, unless
    --lines is given.

    Args:
        source (SOURCE...): Files, or - for standard input (the default).
        lines: Make each line a document, including its line ending.
        add_bos: Add the bos token before each document.
        add_eos: Add the eos token after each document.
        show: Show the tokens in color instead of the ids.
        json: Write the ids of each document as a JSON list.
    """
    sources = _input.sources("encode", source, text)
    if show and json:
        raise _errors.UsageError("encode takes --show or --json, not both")
    tok = options.load_tokenizer(tokenizer, **loading)
    arguments = options.special_arguments(special_text)
    before = tok.encode("", add_bos=True) if add_bos else []
    after = tok.encode("", add_eos=True) if add_eos else []
    total = None
    if text is None and _input.STDIN not in sources:
        total = sum(Path(name).stat().st_size for name in sources)
    done = 0
    with _output.progress("encoding", total, "bytes", beside_data=True) as advance:
        for batch in batches(_documents(sources, text, lines), _input.BATCH_BYTES):
            for document, ids in zip(batch, _encode(tok, batch, threads, arguments), strict=True):
                parts = [before, ids, after]
                count = sum(map(len, parts))
                for written in _show(tok, parts) if show else _write(parts, json=json):
                    advance(done + len(document) * written // count)
                done += len(document)


def _documents(sources: Sequence[str], text: str | None, lines: bool) -> Iterator[bytes]:
    if text is not None:
        yield from _input.split(_input.argument_bytes(text), {"lines": lines})
    for source in sources:
        with _input.stream(source) as file:
            yield from file if lines else [file.read()]


def _encode(
    tok: byteweld.Tokenizer, batch: list[bytes], threads: int | None, arguments: Any
) -> Iterable[Any]:
    """The ids of each document, as lists for small batches, else as arrays."""
    if sum(map(len, batch)) < _FEW_BYTES:
        return tok.encode_batch(batch, num_threads=threads, **arguments)
    ids, offsets = tok.encode_ragged(batch, num_threads=threads, **arguments)
    return (ids[start:end] for start, end in pairwise(offsets.tolist()))


def _show(tok: byteweld.Tokenizer, parts: list[Any]) -> Iterator[int]:
    ids = [token_id for part in parts for token_id in _as_list(part)]
    _output.lines(to_ansi(spans(tok.vocab, ids), _output.has_color()).split("\n"))
    yield from [len(ids)] if ids else []


def _write(parts: list[Any], *, json: bool) -> Iterator[int]:
    """Write the ids of one document; yields the number written so far.

    Arrays are converted block by block, since Python integers take much more memory.
    """
    opening, joint, end = ("[", ", ", "]\n") if json else ("", " ", "\n")
    count = 0
    _output.text(opening)
    for part in parts:
        for start in range(0, len(part), _IDS_AT_ONCE):
            numbers = _as_list(part[start : start + _IDS_AT_ONCE])
            _output.text((joint if count else "") + joint.join(map(str, numbers)))
            count += len(numbers)
            yield count
    _output.text(end)


def _as_list(ids: Any) -> list[int]:
    return ids if isinstance(ids, list) else ids.tolist()
