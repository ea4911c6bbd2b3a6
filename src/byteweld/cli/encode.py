"""`byteweld encode`: text -> ids, a line for each document."""

from __future__ import annotations

import io
from collections.abc import Iterable
from itertools import pairwise
from typing import Annotated, Any

import byteweld
from byteweld.cli import _errors, _input, _output
from byteweld.cli import _options as options
from byteweld.cli._command import Argument, Option
from byteweld.render import spans, to_ansi

EXAMPLES = """
byteweld encode --tokenizer tokenizer.json --text 'hello world'
byteweld encode --tokenizer tokenizer.json book.txt > ids.txt
cat lines.txt | byteweld encode --tokenizer tokenizer.json --lines --json
byteweld encode --tokenizer tokenizer.json --show --text 'Where do the tokens end?'
byteweld encode --tokenizer cl100k.tiktoken --pattern cl100k --special '<|endoftext|>=100257' a.txt
"""

_IDS_AT_ONCE = 1 << 16

File = Annotated[
    str | None,
    Argument(metavar="FILE", help="The text; - or nothing for standard input."),
]
Text = Annotated[
    str | None, Option("--text", metavar="TEXT", help="The text itself, instead of a file.")
]
Lines = Annotated[
    bool, Option("--lines", help="Every line is a document; it keeps its line ending.")
]
AddBos = Annotated[bool, Option("--add-bos", help="Begin each document with the bos token.")]
AddEos = Annotated[bool, Option("--add-eos", help="End each document with the eos token.")]
Show = Annotated[bool, Option("--show", help="Show the tokens in colour instead of the ids.")]
Json = Annotated[bool, Option("--json", help="Write each document's ids as a JSON list.")]


def run(
    file: File = None,
    text: Text = None,
    lines: Lines = False,
    allowed_special: options.AllowedSpecial = None,
    plain: options.Plain = False,
    add_bos: AddBos = False,
    add_eos: AddEos = False,
    show: Show = False,
    json: Json = False,
    threads: options.Threads = None,
    tokenizer: options.TokenizerPath = "tokenizer.json",
    format: options.Format = None,
    pattern: options.LoadPattern = None,
    special: options.LoadSpecial = None,
    no_special: options.NoSpecial = False,
) -> None:
    """Turn text into ids: one line of ids for each document.

    The text is taken as it is, line ending at the end included, and need not be UTF-8. A special
    token in it is an error unless --allowed-special or --plain says what it is.
    """
    if file is not None and text is not None:
        raise _errors.UsageError("encode takes FILE or --text, not both")
    if show and json:
        raise _errors.UsageError("encode takes --show or --json, not both")
    tok = options.load_tokenizer(
        tokenizer, format=format, pattern=pattern, special=special, no_special=no_special
    )
    specials = options.special_arguments(tok, allowed_special, plain)
    before = tok.encode("", add_bos=True) if add_bos else []
    after = tok.encode("", add_eos=True) if add_eos else []
    source = _input.STDIN if file is None else file
    for batch in _input.batches(_documents(source, text, lines)):
        ids, offsets = tok.encode_ragged(batch, num_threads=threads, **specials)
        for start, end in pairwise(offsets.tolist()):
            _write(tok, before, ids[start:end], after, show=show, json=json)


def _documents(file: str, text: str | None, lines: bool) -> Iterable[bytes]:
    if text is not None:
        whole = _input.argument_bytes(text)
        return io.BytesIO(whole) if lines else [whole]
    return _input.read_lines(file) if lines else [_input.read(file)]


def _write(
    tok: byteweld.Tokenizer,
    before: list[int],
    ids: Any,
    after: list[int],
    *,
    show: bool,
    json: bool,
) -> None:
    """Write one document's ids; those of a long one are never all Python integers at once."""
    if show:
        every = [*before, *ids.tolist(), *after]
        _output.lines([to_ansi(spans(tok.vocab, every), _output.has_color())])
        return
    joint = ", " if json else " "
    blocks = [before, *(ids[n : n + _IDS_AT_ONCE] for n in range(0, len(ids), _IDS_AT_ONCE)), after]
    is_first = True
    _output.text("[" if json else "")
    for block in blocks:
        if len(block):
            numbers = block if isinstance(block, list) else block.tolist()
            _output.text(("" if is_first else joint) + joint.join(map(str, numbers)))
            is_first = False
    _output.text("]\n" if json else "\n")
