"""`byteweld count`: counts pre-tokens, and shows or saves the counts."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import byteweld
from byteweld.cli import _corpus, _output
from byteweld.cli import _options as options
from byteweld.cli._command import Option
from byteweld.render import visible

EXAMPLES = """
byteweld count books/ --top 50
byteweld count shard-1.jsonl --special '<|endoftext|>' --out counts-1
byteweld count counts-1 counts-2 --special '<|endoftext|>' --out all --memory 2GB
byteweld train counts-1 counts-2 --special '<|endoftext|>' --vocab-size 32768
"""

Out = Annotated[
    str | None,
    Option(
        "--out",
        metavar="DIR",
        help="Save the counts in this folder instead of showing the most common pre-tokens.",
    ),
]
Top = Annotated[
    int,
    Option(
        "--top",
        metavar="N",
        read=options.whole_number("--top", 0),
        help="Number of pre-tokens to show. Default: 20.",
    ),
]


def run(
    source: options.Sources,
    recipe: options.RecipeName = "modern",
    pattern: options.PatternText = None,
    special: options.Special = None,
    specials_file: options.SpecialsFile = None,
    ascii_only: options.AsciiOnly = False,
    reading: options.Reading = options.Reading(),
    out: Out = None,
    top: Top = 20,
    prune: options.Prune = None,
    threads: options.Threads = None,
    memory: options.Memory = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Count the pre-tokens of a corpus: show the most common, or save all counts for training.

    To count tokens, use `byteweld tokens`. Counts are additive, so a corpus can be counted in
    parts, on any number of machines. A folder of saved counts is also a SOURCE; the counts of all
    sources are added up.
    """
    chosen = options.make_recipe(
        recipe,
        pattern=pattern,
        special=special,
        specials_file=specials_file,
        ascii_only=ascii_only,
    )
    if out is not None:
        _check_out(out, force=force)
    sources = _corpus.open_all(source, chosen, reading)
    with _corpus.Bars(sources) as bars:
        counted = sources.count(chosen, num_threads=threads, memory=memory, progress=bars.count)
    counts = counted.counts if prune is None else counted.counts.prune(prune, memory=memory)
    pruned = counted._replace(counts=counts)
    _output.say(_corpus.count_sentence(pruned, is_compressed=bars.is_compressed))
    if out is not None:
        counts.save(out, overwrite=force)
        _output.say(f"wrote {out}: {_output.amount(len(counts), 'distinct pre-token')}")
    if json:
        _output.report(
            {
                "out": out,
                "pattern": counts.pattern,
                "files": counted.files or 0,
                "bytes": counted.file_bytes or 0,
                "pretokens": counts.total,
                "distinct_pretokens": len(counts),
                "skipped_documents": counts.skipped_documents,
                "pruning": None if counts.pruning is None else dataclasses.asdict(counts.pruning),
                "most_common": [
                    {"bytes": pretoken.hex(), "text": visible(pretoken), "count": count}
                    for pretoken, count in counts.most_common(top)
                ],
            }
        )
    elif out is None:
        rows = counts.most_common(top)
        width = max((len(f"{count:,}") for _, count in rows), default=0)
        for pretoken, count in rows:
            _output.lines([f"{count:>{width},}  {_output.shortened(visible(pretoken[:400]))}"])


def _check_out(out: str, *, force: bool) -> None:
    """Raise before counting, not after, if the counts cannot be saved."""
    if byteweld.Counts.is_saved_at(out) and not force:
        raise FileExistsError(f"{out} already contains counts; pass --force to replace them")
    # This imports pyarrow, so that the memory limit accounts for it.
    byteweld.Counts.check_saving(out, overwrite=force)
