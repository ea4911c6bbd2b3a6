"""`byteweld count`: counts pre-tokens, and shows or saves the counts."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import byteweld
from byteweld.cli import _corpus, _errors, _output
from byteweld.cli import _options as options
from byteweld.cli._runner import RankOptions, RunnerOptions, say_rank
from byteweld.corpus import Corpus
from byteweld.jobs.counting import count_share, count_sources, counted, saved_counts
from byteweld.render import visible
from byteweld.sources import Sources

EXAMPLES = """
byteweld count books/ --top 50
byteweld count shard-1.jsonl --special '<|endoftext|>' --out counts-1
byteweld count counts-1 counts-2 --special '<|endoftext|>' --out all --memory 2GB
byteweld train counts-1 counts-2 --special '<|endoftext|>' --vocab-size 32768
byteweld count 's3://bucket/crawl/*.jsonl' --out counts --runner ray --address auto --work /shared
byteweld count crawl/ --out counts --rank $SLURM_ARRAY_TASK_ID --world-size 64
"""


def run(
    source: list[str],
    *,
    recipe: options.RecipeName = "modern",
    changes: options.SplitChanges,
    specials_file: str | None = None,
    ascii_only: bool = False,
    reading: options.Reading,
    out: str | None = None,
    top: options.Natural = 20,
    prune: options.Positive | None = None,
    threads: options.Positive | None = None,
    memory: str | None = None,
    runner: RunnerOptions,
    ranks: RankOptions,
    force: bool = False,
    json: bool = False,
) -> None:
    """Count the pre-tokens of a corpus: show the most common, or save all counts for training.

    To count tokens, use `byteweld tokens`. Counts are additive, so a corpus can be counted in
    parts, on any number of machines. A folder of saved counts is also a SOURCE; the counts of all
    sources are added up.

    Args:
        out (DIR): Save the counts in this folder instead of showing the most common pre-tokens.
        top: Number of pre-tokens to show.
    """
    chosen = options.make_recipe(
        recipe, changes, specials_file=specials_file, ascii_only=ascii_only
    )
    if out is not None:  # imports pyarrow, so that the memory limit accounts for it
        byteweld.Counts.check_saving(out, overwrite=force)
    runner.check(source, threads)
    rank = ranks.open(runner, source, threads)
    if rank is not None and out is None:
        raise _errors.UsageError("--rank needs --out, next to which the ranks put their counts")
    sources = _corpus.open_all(source, chosen, reading)
    bars = _corpus.Bars(sources)
    how: dict[str, Any] = {"memory": memory, "progress": bars.count}
    if rank is not None and out is not None:
        with bars:
            count_share(rank, _only_files(sources), chosen, out, **how)
        say_rank(rank, out)
        return
    with runner.open() as running, bars:
        if running is not None and out is not None and prune is None and not json:
            # Tasks write the counts: they are not loaded here.
            started = time.perf_counter()
            corpus = _only_files(sources)
            with counted(running, corpus, chosen, near=out, overwrite=force, **how) as merged:
                merged.publish(Path(out), overwrite=force)
            bars.close()
            say_saved(out, time.perf_counter() - started)
            return
        found = count_sources(sources, chosen, runner=running, near=out, num_threads=threads, **how)
    counts = found.counts if prune is None else found.counts.prune(prune, memory=memory)
    pruned = found._replace(counts=counts)
    bars.say_counted(pruned)
    if out is not None:
        counts.save(out, overwrite=force)
        _output.say(f"wrote {out}: {_output.amount(len(counts), 'distinct pre-token')}")
    if json:
        _output.report(
            {
                "out": out,
                "pattern": counts.pattern,
                "files": found.files or 0,
                "bytes": found.file_bytes or 0,
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


def say_saved(out: str, seconds: float) -> None:
    """Say what was saved by tasks."""
    saved = saved_counts(out)
    _output.say(
        f"counted {_output.amount(saved.total, 'pre-token')}, {saved.distinct:,} distinct "
        f"({_output.seconds(seconds)})"
    )
    if saved.skipped_documents:
        _output.say(f"skipped {_output.amount(saved.skipped_documents, 'document')}")
    _output.say(f"wrote {out}: {_output.amount(saved.distinct, 'distinct pre-token')}")


def _only_files(sources: Sources) -> Corpus:
    if sources.corpus is None or sources.tables:
        raise _errors.UsageError("tasks count files; leave saved counts out")
    return sources.corpus
