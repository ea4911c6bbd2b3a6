"""What verbs that train share: options of output and progress, progress bars, what was learned."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import byteweld
from byteweld.cli import _corpus, _output, _targets
from byteweld.render import visible
from byteweld.sources import Counted, Sources

_SHOWN = 5  # tokens


def prepare(arguments: list[str]) -> list[str]:
    """Detect --progress json before parsing, so that usage errors are JSON lines as well."""
    pairs = itertools.pairwise(arguments)
    _output.progress_as_json("--progress=json" in arguments or ("--progress", "json") in pairs)
    return arguments


def learn(
    sources: Sources,
    *,
    checkpoint: str | None = None,
    estimated_size: int | None = None,
    is_quiet: bool = False,
    **arguments: Any,
) -> tuple[byteweld.Tokenizer, Counted]:
    """Train a tokenizer; show the progress, one bar per stage, and what was counted.

    Also show how much memory it takes to learn a vocabulary of the estimated size, if there is one.
    """
    found: list[Counted] = []

    def say_counted(merges: int) -> None:
        bars.close()
        (counted,) = found
        if counted.is_resumed:
            _output.say(
                f"resuming from {checkpoint}: the corpus is counted, "
                f"{_output.amount(merges, 'merge')} learned"
            )
        if not is_quiet:
            bars.say_counted(counted)
        if estimated_size is not None:
            most = counted.counts.training_bytes(estimated_size)
            _output.say(f"learning the merges, on this machine, takes at most {_output.size(most)}")

    def on_event(event: byteweld.TrainingEvent) -> None:
        if event.kind == "start":
            say_counted(event.merges_completed)
        if event.stage == "count":
            bars.count(event.done, event.total)
        else:
            bars.show("merging", event.done, event.total, "merges")

    with _corpus.Bars(sources) as bars:
        tok = byteweld.train(
            sources,
            checkpoint=checkpoint,
            progress=on_event,
            on_counted=found.append,
            **arguments,
        )
    return tok, found[0]


def save(
    made: Sequence[tuple[byteweld.Tokenizer, Sequence[_targets.Target]]],
    *,
    files: Sequence[Path],
    force: bool,
) -> dict[str, float]:
    """Write tokenizers of one training, with its report next to the first target of each.

    `files` lists all files to write. If one cannot be written, the new ones are removed again.
    Returns the time of each phase of the training.
    """
    started = time.perf_counter()
    new = [file for file in files if not os.path.lexists(file)]
    with _output.progress("writing", len(files), "files") as advance:
        try:
            for tok, (first, *others) in made:
                _targets.save(tok, first, force=force)
                for target in others:
                    _targets.save(byteweld.Tokenizer(tok.vocab), target, force=force)
        except BaseException:
            for file in new:
                file.unlink(missing_ok=True)
            raise
        advance(len(files))
    training = made[0][0].training
    assert training is not None  # it was just trained
    return {
        "count": training.count_seconds,
        "layout": training.layout_seconds,
        "merge": training.merge_seconds,
        "write": time.perf_counter() - started,
    }


def corpus_report(training: byteweld.Training) -> dict[str, int]:
    """Return what was counted, as in the JSON reports."""
    return {
        "files": training.files or 0,
        "bytes": training.file_bytes or 0,
        "pretokens": training.total_pretokens,
        "distinct_pretokens": training.distinct_pretokens,
        "skipped_documents": training.skipped_documents,
    }


def say_learned(training: byteweld.Training) -> None:
    """Say how many merges were learned, and why no more if fewer than planned."""
    if training.stop == "size":
        summary = f"learned {_output.amount(training.merges_learned, 'merge')}"
    else:
        summary = str(training)
    _output.say(f"{summary} ({_output.seconds(training.merge_seconds)})")


def longest(tokens: Iterable[tuple[int, bytes]]) -> list[bytes]:
    """Return the longest of these tokens by id, longest first; none of a single byte."""
    found = sorted(tokens, key=lambda item: (-len(item[1]), item[0]))[:_SHOWN]
    return [token for _, token in found if len(token) > 1]


def shown(tokens: Iterable[bytes]) -> str:
    """Return the first few tokens on a line."""
    some = itertools.islice(tokens, _SHOWN)
    return "  ".join(_output.shortened(visible(token[:200]), 40) for token in some)
