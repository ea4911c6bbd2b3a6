"""`byteweld convert`: write a tokenizer in another format, and verify that it is the same."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import byteweld
from byteweld import formats
from byteweld.cli import DONE, NO, _errors, _output, _probe, _targets
from byteweld.cli import _options as options
from byteweld.cli._documents import CorpusDocuments
from byteweld.corpus import ReadingOptions
from byteweld.formats import dropping
from byteweld.formats._beside import config_path
from byteweld.formats._json import MAX_BESIDE_BYTES, read_file

EXAMPLES = """
byteweld convert tokenizer.json ranks.tiktoken
byteweld convert gpt2/ tokenizer.json --pattern gpt2 --special '<|endoftext|>=50256'
byteweld convert tokenizer.json export/ --format ck
byteweld convert tokenizer.json ranks.tiktoken --drop normalizer --corpus books/
"""

WORDS = {
    "droppable": ", ".join(
        f"{dropping.key_of(name)} ({what})" for name, what in dropping.DROPPABLE.items()
    )
}


def run(
    in_path: str,
    out: str,
    *,
    format: str | None = None,
    from_format: str | None = None,
    drop: list[str] | None = None,
    corpus: list[str] | None = None,
    force: bool = False,
    json: bool = False,
    lacking: options.Lacking,
    reading: options.Reading,
) -> int:
    """Write a tokenizer in another format, and verify that it is still the same tokenizer.

    The new file is read back and compared with the original: tokens, merges, special tokens,
    pattern and roles, and the ids of every token, of a list of difficult strings and of your
    corpus. If anything differs, nothing is written and the exit code is 1. A feature that the new
    format cannot represent is an error, unless you --drop it. ck's binary export has no pattern and
    implies that of ck's runtime; if the original has another one, a message says so.

    Args:
        in_path (IN): A file or folder in any format, or the name of a vocabulary (see
            `byteweld list`).
        out: The file or folder to write.
        format (NAME): The format of OUT: {formats}. Default: by its name.
        from_format (--from NAME): The format of IN. Default: detected from its content.
        drop (KEY): Drop a feature that OUT cannot represent; may be repeated. KEY is one of:
            {droppable}.
        corpus (SOURCE): A file, folder or glob of documents whose ids to compare as well. May be
            repeated.
    """
    if format in formats.EXPORTS:
        raise _errors.UsageError(
            f"the format {format!r} is never read, so it cannot be verified; write it from Python: "
            f"byteweld.load({in_path!r}).save({out!r}, format={format!r})"
        )
    original = options.load_tokenizer(in_path, format=from_format, **lacking)
    target = _targets.Target(out, format)
    tok = byteweld.Tokenizer(dropping.drop(original.vocab, drop or []))  # without its training
    _check(tok, target, force=force)
    held = formats.held(tok.vocab, target.path, target.format)
    expected = tok if held is tok.vocab else byteweld.Tokenizer(held)
    # A temporary copy is verified first, so a bad file never replaces a good one.
    with _saved_aside(tok, target, force=force) as copy:
        written = byteweld.load(copy.path, format=copy.format)
        outcome = _probe.prove(expected, written, _documents(corpus or [], reading))
        if isinstance(outcome, str):
            _output.say(f"byteweld: {out} would not be the same tokenizer: {outcome}")
            _output.say("nothing was written")
            if json:
                _output.report({"out": out, "same": False, "difference": outcome})
            return NO
        _targets.save(tok, target, force=force)
        _check_written(Path(copy.path).parent, _targets.named_path(target).parent)
    if drop:
        changes = original.vocab.fingerprint != tok.vocab.fingerprint
        _output.say(f"dropped: {', '.join(drop)}{'; some text may get different ids' * changes}")
    lost = _targets.lost_pattern(tok.vocab, target)
    if lost is not None:
        _output.say(f"lost: {lost}")
    traits = "special tokens, pattern and roles" if lost is None else "special tokens and roles"
    how = "" if lost is None else f" with pattern {options.pattern_words(held.pattern)}"
    own = "" if corpus else " (use --corpus to add your own)"
    _output.say(
        f"verified: the same {outcome.tokens:,} tokens, merges, {traits}; the same ids{how} for "
        f"{_output.amount(outcome.texts, 'string')}, {_output.size(outcome.bytes)}{own}"
    )
    _output.say(f"wrote {out}: {_output.amount(len(tok), 'token')}")
    if json:
        _output.report(
            {
                "out": out,
                "same": True,
                "tokens": outcome.tokens,
                "texts_compared": outcome.texts,
                "bytes_compared": outcome.bytes,
                "fingerprint": expected.vocab.fingerprint,
                "dropped": drop or [],
                "lost": lost,
            }
        )
    return DONE


def _documents(sources: Sequence[str], reading: ReadingOptions) -> Iterator[bytes]:
    files = CorpusDocuments(sources, reading)
    for _, documents in files:
        yield from documents
    files.say_skipped()


def _check(tok: byteweld.Tokenizer, target: _targets.Target, *, force: bool) -> None:
    """Raise if the target cannot be written; suggest what to drop if that would help."""
    try:
        _targets.check(tok.vocab, target, force=force)
    except byteweld.UnsupportedError as error:
        drops = dropping.find_drops(tok.vocab, target.path, target.format)
        if not drops:
            raise
        keys = " ".join(f"--drop {dropping.key_of(name)}" for name in drops)
        raise byteweld.UnsupportedError(f"{error}; to convert without it, pass {keys}") from None


@contextlib.contextmanager
def _saved_aside(
    tok: byteweld.Tokenizer, target: _targets.Target, *, force: bool
) -> Iterator[_targets.Target]:
    """Write a target into a temporary folder, with a copy of the config that it is merged into."""
    path = _targets.named_path(target)
    with tempfile.TemporaryDirectory(prefix="byteweld-") as folder:
        config = config_path(path)
        if config is not None and config.is_file():
            Path(folder, config.name).write_bytes(read_file(config, MAX_BESIDE_BYTES))
        copy = target._replace(path=str(Path(folder, path.name)))
        _targets.save(tok, copy, force=force)
        yield copy


def _check_written(verified: Path, folder: Path) -> None:
    """Compare the files written with those that were verified, byte for byte."""
    for copy in verified.rglob("*"):
        file = folder / copy.relative_to(verified)
        if copy.is_file() and read_file(file) != read_file(copy):
            raise _errors.UsageError(
                f"{file} is not the file that was verified; another process wrote to it"
            )
