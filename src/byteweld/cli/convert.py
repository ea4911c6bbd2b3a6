"""`byteweld convert`: a tokenizer in another format, with the proof that it is the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import byteweld
from byteweld.cli import DONE, NO, _corpus, _errors, _output, _probe, _targets
from byteweld.cli import _options as options
from byteweld.cli._command import Argument, Option

EXAMPLES = """
byteweld convert tokenizer.json ranks.tiktoken
byteweld convert gpt2/ tokenizer.json --pattern gpt2 --special '<|endoftext|>=50256'
byteweld convert tokenizer.json export/ --format ck
byteweld convert tokenizer.json model.bpe1 --corpus books/
"""

In = Annotated[
    str,
    Argument(metavar="IN", help="A file or folder of any format, or the name of an encoding."),
]
Out = Annotated[str, Argument(metavar="OUT", help="What to write.")]
OutFormat = Annotated[
    str | None,
    Option(
        "--format",
        metavar="NAME",
        help=f"The format of OUT, where its name should not decide: {', '.join(byteweld.FORMATS)}.",
    ),
]
From = Annotated[
    str | None,
    Option(
        "--from",
        metavar="NAME",
        help="The format of IN, where its content should not decide.",
    ),
]
CorpusSources = Annotated[
    list[str] | None,
    Option(
        "--corpus",
        metavar="SOURCE",
        help="A file, folder or glob whose ids are compared as well. May be repeated.",
    ),
]


def run(
    in_path: In,
    out: Out,
    format: OutFormat = None,
    from_format: From = None,
    corpus: CorpusSources = None,
    force: options.Force = False,
    json: options.Json = False,
    pattern: options.LoadPattern = None,
    special: options.LoadSpecial = None,
    no_special: options.NoSpecial = False,
    ext: options.Ext = None,
    lines: options.Lines = False,
    field: options.Field = None,
    separator: options.Separator = None,
    on_error: options.OnError = "fail",
) -> int:
    """Write a tokenizer in another format, and prove that it is still the same tokenizer.

    What was written is read back and compared: tokens, merges, special tokens, pattern and roles,
    and the ids of every token, of a list of hard texts and of your corpus. If anything differs,
    nothing is kept and the exit code is 1. What a format cannot hold is refused by name.
    """
    tok = options.load_tokenizer(
        in_path, format=from_format, pattern=pattern, special=special, no_special=no_special
    )
    target = _targets.Target(out, format)
    reading = options.Reading(ext, lines, field, separator, on_error)
    # The proof is made on a copy: a file that fails it never stands in the place of another.
    with _targets.saved_aside(tok, target, force=force) as (copy, files):
        outcome = _probe.prove(tok, _reload(copy), _documents(corpus or [], reading))
        if isinstance(outcome, _probe.Difference):
            _output.say(f"byteweld: {out} would not be the same tokenizer: {outcome.what}")
            _output.say("nothing was written")
            if json:
                _output.report({"out": out, "same": False, "difference": outcome.what})
            return NO
        _targets.save(tok, target, force=force)
        _check_placed(Path(copy.path).parent, files)
    _output.say(
        f"proved: the same {outcome.tokens} tokens, merges, special tokens, pattern and roles; "
        f"the same ids for {_output.amount(outcome.texts, 'text')}, {_output.size(outcome.bytes)}"
        + ("" if corpus else " (add your own with --corpus)")
    )
    _output.say(f"wrote {out}: {_output.amount(len(tok), 'token')}")
    if json:
        _output.report(_report(tok, out, outcome))
    return DONE


def _reload(target: _targets.Target) -> byteweld.Tokenizer:
    return byteweld.load(target.path, format=target.format)


def _documents(sources: Sequence[str], reading: options.Reading) -> Iterator[bytes]:
    for _, documents in _corpus.documents_by_file(sources, reading):
        yield from documents


def _check_placed(proved: Path, files: Sequence[Path]) -> None:
    """The files in place must be those that were proved, byte for byte."""
    copies = sorted(path for path in proved.rglob("*") if path.is_file())
    for copy, file in zip(copies, sorted(files), strict=True):
        if file.read_bytes() != copy.read_bytes():
            raise _errors.UsageError(f"{file} is not what was proved; something else wrote to it")


def _report(tok: byteweld.Tokenizer, out: str, proof: _probe.Proof) -> dict[str, Any]:
    return {
        "out": out,
        "same": True,
        "tokens": proof.tokens,
        "texts_compared": proof.texts,
        "bytes_compared": proof.bytes,
        "fingerprint": tok.vocab.fingerprint,
    }
