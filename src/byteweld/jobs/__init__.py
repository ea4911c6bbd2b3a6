"""Jobs: work over a corpus as tasks that a runner runs, with the result of one process."""

from byteweld.jobs.runners import RUNNERS, Failure, LocalRunner, RankRunner, Runner, open_runner

__all__ = ["RUNNERS", "Failure", "LocalRunner", "RankRunner", "Runner", "open_runner"]
