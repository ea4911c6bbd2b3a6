"""`byteweld verify`: checks the files, ids and text of a dataset."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterator
from typing import Annotated

import byteweld
from byteweld.cli import DONE, NO, _errors, _output
from byteweld.cli import _options as options
from byteweld.dataset.verification import DEFAULT_SAMPLE, Sample

EXAMPLES = """
byteweld verify data/
byteweld verify data/ --tokenizer tokenizer.json
byteweld verify data/ --tokenizer tokenizer.json --source books/ --sample all
byteweld verify data/ --json
"""


def _sample(text: str) -> Sample:
    if text == "all":
        return "all"
    if not re.fullmatch("[0-9]{1,18}", text):
        raise ValueError("expected a whole number, or all")
    return int(text)


def run(
    dataset: str,
    *,
    tokenizer: str | None = None,
    source: list[str] | None = None,
    sample: Annotated[Sample, _sample] = DEFAULT_SAMPLE,
    ext: str | None = None,
    json: bool = False,
    loading: options.Loading,
) -> int:
    """Check a dataset: its files, by size and SHA-256, its counts, ids and end-of-text tokens.

    With --tokenizer, documents are decoded and encoded again; with --source, they are compared with
    the corpus. All problems are listed, up to a limit, with the file and, if known, the shard and
    the document. The exit code is 1 if there are any.

    Args:
        dataset: The folder of a dataset, or its manifest.json.
        tokenizer (-t PATH): The tokenizer that made the dataset: check its fingerprint, and that
            documents, decoded, encode to the same ids again.
        source (SOURCE): The files, folders or globs that were tokenized, in the same order: check
            their size and digest and, with --tokenizer, compare their documents. May be repeated.
        sample (N): Number of documents to decode, always the same ones, or all.
    """
    if ext is not None and source is None:
        raise _errors.UsageError("--ext needs --source, whose folders it applies to")
    if tokenizer is None and loading:
        raise _errors.UsageError("the options of a tokenizer need --tokenizer")
    tok = None if tokenizer is None else options.load_tokenizer(tokenizer, **loading)
    with contextlib.ExitStack() as stack:
        show = functools.cache(  # its total is known when the manifest has been read
            lambda total: stack.enter_context(_output.progress("verifying", total, "bytes"))
        )
        found = byteweld.verify(
            dataset,
            source,
            tokenizer=tok,
            sample=sample,
            ext=ext,
            progress=lambda done, total: show(total)(done),
        )
    with _output.until_closed():
        if json:
            _output.report(found.to_dict())
        else:
            _output.lines(_lines(dataset, found))
    return DONE if found.is_good else NO


def _lines(dataset: str, found: byteweld.Verification) -> Iterator[str]:
    amount = _output.amount
    if found.is_good:
        yield _output.bold(f"{dataset} is good")
    else:
        yield _output.bold(f"{dataset} has {amount(found.num_problems, 'problem')}")
        yield from (f"  {problem}" for problem in found.problems)
        more = found.num_problems - len(found.problems)
        if more:
            yield f"  ... and {more:,} more"
        yield "checked"
    ids = f"{amount(found.documents, 'document')}, {amount(found.tokens, 'token')}"
    yield f"  {amount(found.files, 'file')}, {_output.size(found.bytes)}: size and SHA-256"
    yield f"  {ids}: counts, range of ids, end-of-text tokens"
    for count, what, how in (
        (found.encoded, "document", " decoded and encoded again"),
        (found.sources, "source", ": size and digest"),
        (found.compared, "document", " compared with the corpus"),
    ):
        if count:
            yield f"  {amount(count, what)}{how}"
    yield from (f"note: {note}" for note in found.notes)
