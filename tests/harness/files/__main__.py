"""`make fuzz-files`: load mutated files of every format, and use what loads.

Each kind of file has its share of --seconds, or a number of --cases. A finding is kept as files in
tests/data/findings, which a test loads again; `--case N` with its kind and seed draws it again.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

from tests.harness.files.bases import TESTS, Files
from tests.harness.files.kind import Kind, write
from tests.harness.files.kinds import KINDS, fingerprint
from tests.harness.files.use import is_allowed, signature
from tests.harness.run import Run, parser, shrink
from tests.harness.watch import Event, Limits, Watch

FINDINGS = TESTS / "data" / "findings"
MAX_KEPT_BYTES = 20_000
KEPT_OF_A_SIGNATURE = 2
SHRINK_TRIES = 60
ACCEPTED, REFUSED, FAILED = range(3)


def draw(kind: Kind, seed: int, number: int) -> Files:
    return kind.make(Random(f"{seed}/{kind.name}/{number}"))


def run_case(
    kind: Kind, files: Files, folder: Path, number: int
) -> tuple[int, tuple[str, str] | None]:
    """Run a case in this process; returns how it ended, and what is wrong."""
    try:
        return (ACCEPTED if kind.run(files, folder, number) else REFUSED), None
    except BaseException as error:
        if is_allowed(error):
            return REFUSED, None
        if isinstance(error, KeyboardInterrupt):
            raise
        return FAILED, (f"{type(error).__name__}: {str(error)[:400]}", signature(error))


class Fuzz:
    """One run over kinds."""

    def __init__(self, run: Run, scratch: Path, keep: Path, limits: Limits | None = None) -> None:
        self._run = run
        self._scratch = scratch
        self._keep = keep
        self._limits = limits
        self._seen: Counter[str] = Counter()

    def fuzz(self, kind: Kind, start: int, stop: int, deadline: float) -> str:
        """Run cases of one kind; returns a line about them."""
        folder = self._scratch / kind.name
        folder.mkdir()

        def case(number: int) -> tuple[int, tuple[str, str] | None]:
            return run_case(kind, draw(kind, self._run.seed, number), folder, number)

        watch = Watch(case, limits=self._limits)
        began = time.monotonic()
        deaths = 0
        for event in watch.run(start, stop, deadline):
            deaths += event.is_death
            self._found(kind, event)
        seconds = time.monotonic() - began
        done = watch.done + deaths
        self._run.count(kind.name, done)
        share = watch.counter(ACCEPTED) / max(1, done)
        return (
            f"{kind.name}: {done:,} files, {share:.0%} accepted, "
            f"{watch.counter(REFUSED):,} refused, "
            f"{watch.counter(FAILED) + deaths:,} failed, {done / max(seconds, 1e-9):,.0f} files/s"
        )

    def _found(self, kind: Kind, event: Event) -> None:
        key = f"{kind.name} {event.signature}"
        self._seen[key] += 1
        if self._seen[key] > KEPT_OF_A_SIGNATURE:
            return
        files = self._shrunk(kind, event)
        again = f"--kind {kind.name} --seed {self._run.seed} --case {event.number}"
        name = fingerprint(files)
        if sum(map(len, files.values())) <= MAX_KEPT_BYTES:
            target = self._keep / kind.name / name
            target.mkdir(parents=True, exist_ok=True)
            write(files, target)
        self._run.find(
            kind.name, f"{event.what}\n    kept as {kind.name}/{name}; fuzz-files {again}"
        )

    def _shrunk(self, kind: Kind, event: Event) -> Files:
        """Fewer bytes that fail in the same way; the whole case if that takes too many tries."""
        files = draw(kind, self._run.seed, event.number)
        folder = self._scratch / "shrink"
        for name in sorted(files):

            def fails(data: bytes, files: Files = files, name: str = name) -> bool:
                return self._fails_alike(kind, files | {name: data}, folder, event)

            tries = SHRINK_TRIES // len(files)
            files = files | {name: shrink(files[name], fails, tries, smallest=9)}
        return files

    def _fails_alike(self, kind: Kind, files: Files, folder: Path, event: Event) -> bool:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        watch = Watch(lambda number: run_case(kind, files, folder, number), limits=self._limits)
        found = list(watch.run(event.number, event.number + 1))
        return any(other.signature == event.signature for other in found)

    def summary(self) -> None:
        for key, number in self._seen.most_common():
            print(f"  {number:,} times: {key}")


def main(arguments: Sequence[str] | None = None) -> int:
    made = parser("fuzz-files", __doc__)
    made.add_argument("--kind", action="append", choices=KINDS, help="only this kind; repeatable")
    made.add_argument("--cases", type=int, help="cases of each kind, instead of --seconds")
    made.add_argument("--case", type=int, help="only the case of this number")
    made.add_argument("--keep", type=Path, default=FINDINGS, help="where findings are kept")
    given = made.parse_args(arguments)
    run = Run.of("fuzz-files", given)
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as scratch:
        fuzz = Fuzz(run, Path(scratch), given.keep)
        names = given.kind or list(KINDS)
        for name in names:
            KINDS[name].make(Random(0))  # all bases are made before the clock starts
        run.started = time.monotonic()
        for number, name in enumerate(names):
            if given.case is not None:
                start, stop, deadline = given.case, given.case + 1, float("inf")
            elif given.cases is not None:
                start, stop, deadline = 0, given.cases, float("inf")
            else:
                share = (given.seconds - run.elapsed) / (len(names) - number)
                start, stop, deadline = 0, sys.maxsize, time.monotonic() + share
            print(fuzz.fuzz(KINDS[name], start, stop, deadline), flush=True)
        fuzz.summary()
    return run.finish()


if __name__ == "__main__":
    raise SystemExit(main())
