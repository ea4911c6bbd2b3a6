"""`byteweld merge`: makes the result of what several ranks have counted or encoded."""

from __future__ import annotations

import time

from byteweld.cli import _errors, count, tokenize
from byteweld.cli import _options as options
from byteweld.cli._runner import RunnerOptions
from byteweld.dataset import make as dataset
from byteweld.jobs import LocalRunner, counting
from byteweld.sources import Sources

EXAMPLES = """
byteweld merge counts
byteweld merge data
byteweld merge data --runner ray --address auto
"""


def run(
    out: str,
    *,
    threads: options.Positive | None = None,
    memory: str | None = None,
    runner: RunnerOptions,
    force: bool = False,
) -> None:
    """Combine what the ranks of `byteweld count` or `byteweld tokenize` have written.

    Every rank must be done; the error says what is missing. The result is the same, byte for byte,
    as that of one process. If it is interrupted, run the same command again.

    Args:
        out (DIR): The --out of the ranks: of `count`, or of `tokenize`.
    """
    started = time.perf_counter()
    is_dataset = dataset.has_ranks(out)
    if not is_dataset and not counting.has_ranks(out):
        raise _errors.UsageError(
            f"nothing to merge for {out}: neither {out}.unfinished of `byteweld count` nor "
            f"{out}/.unfinished of `byteweld tokenize`, with --rank"
        )
    with runner.open() as found:
        running = LocalRunner(num_threads=threads) if found is None else found
        if is_dataset and force:
            raise _errors.UsageError(
                "--force is for counts; a dataset is only made where none is, so leave it out"
            )
        if not is_dataset:
            counting.merge_ranks(out, running, memory=memory, overwrite=force)
            count.say_saved(out, time.perf_counter() - started)
            return
        with tokenize.TokenizeBars(Sources()) as bars:
            result = dataset.merge_ranks(out, running, progress=bars.on_progress)
    tokenize.show(result, out, time.perf_counter() - started)
