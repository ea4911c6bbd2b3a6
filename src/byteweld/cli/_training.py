"""What verbs that train share: options of output and progress, progress bars, what was learned."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import byteweld
from byteweld.cli import _corpus, _output
from byteweld.render import visible
from byteweld.sources import Counted
from byteweld.sources import Sources as OpenSources

_SHOWN = 5  # tokens


def prepare(arguments: list[str]) -> list[str]:
    """Detect --progress json before parsing, so that usage errors are JSON lines as well."""
    pairs = itertools.pairwise(arguments)
    _output.progress_as_json("--progress=json" in arguments or ("--progress", "json") in pairs)
    return arguments


class Display(_corpus.Bars):
    """Shows the progress of training, one bar per stage, and what was counted."""

    counted: Counted

    def __init__(
        self,
        sources: OpenSources,
        checkpoint: str | None = None,
        *,
        estimated_size: int | None = None,
        is_quiet: bool = False,
    ) -> None:
        super().__init__(sources)
        self._is_quiet = is_quiet
        self._checkpoint = checkpoint
        self._estimated_size = estimated_size  # of the vocabulary; None: no estimate is shown

    def on_counted(self, counted: Counted) -> None:
        """Keep the counts, which are reported when merging starts."""
        self.counted = counted

    def on_event(self, event: byteweld.TrainingEvent) -> None:
        """Show the progress of a stage."""
        if event.kind == "start":
            self._say_counted(event.merges_completed)
        if event.stage == "count":
            self.count(event.done, event.total)
        else:
            self.show("merging", event.done, event.total, "merges")

    def _say_counted(self, merges: int) -> None:
        self.close()
        if self.counted.is_resumed:
            _output.say(
                f"resuming from {self._checkpoint}: the corpus is counted, "
                f"{_output.amount(merges, 'merge')} learned"
            )
        if not self._is_quiet:
            self.say_counted(self.counted)
        if self._estimated_size is not None:
            most = self.counted.counts.training_bytes(self._estimated_size)
            _output.say(f"learning the merges, on this machine, takes at most {_output.size(most)}")


def corpus_report(training: byteweld.Training) -> dict[str, int]:
    """Return what was counted, as in the JSON reports."""
    return {
        "files": training.files or 0,
        "bytes": training.file_bytes or 0,
        "pretokens": training.total_pretokens,
        "distinct_pretokens": training.distinct_pretokens,
        "skipped_documents": training.skipped_documents,
    }


def seconds(tok: byteweld.Tokenizer, write: float) -> dict[str, float]:
    """Return the time of each phase of a training run."""
    training = tok.training
    assert training is not None  # it was just trained
    return {
        "count": training.count_seconds,
        "layout": training.layout_seconds,
        "merge": training.merge_seconds,
        "write": write,
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
