"""`make fuzz-cost`: measure hostile input of sizes n, 2n and 4n; superlinear growth fails.

There are many more combinations than a run measures. Each run draws its cases by the seed: half of
them encode or decode, the others load, train, count and save. `--case NAME` measures one again.
"""

from __future__ import annotations

import itertools
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from tests.harness.cost import measure, subjects
from tests.harness.cost.cases import every_name, find, on_text, others
from tests.harness.run import Run, parser
from tests.harness.watch import Limits, Watch

MOST = 100_000  # cases of a run
LIMITS = Limits(cpu_seconds=60.0, wall_seconds=1200.0, memory_bytes=3 << 30)
LINEAR, SUPERLINEAR, CHEAP, REFUSED = range(4)


def drawn(run: Run) -> Iterator[str]:
    """Names in the order in which they are measured: on text and others by turns."""
    rng = run.random("cases")
    rest = list(others())
    rng.shuffle(rest)
    texts = on_text(rng)
    for name in rest:
        yield next(texts)
        yield name
    yield from texts


def run_cases(
    run: Run,
    names: Sequence[str],
    prepare_of: Callable[[str, Path], measure.Prepare],
    *,
    limits: Limits = LIMITS,
    verbose: bool = False,
) -> None:
    """Measure cases in watched children until the time is over."""
    with tempfile.TemporaryDirectory() as scratch:

        def case(number: int) -> tuple[int, tuple[str, str] | None]:
            name = names[number]
            folder = Path(scratch) / str(number)
            folder.mkdir()
            found = measure.measure(prepare_of(name, folder))
            shutil.rmtree(folder)
            if verbose:
                print(f"{name}: {found}", flush=True)
            if found.n == 0:
                return REFUSED, None
            if found.problem is None:
                return (CHEAP if found.growth == 1.0 else LINEAR), None
            return SUPERLINEAR, (f"{found.problem} ({found.seconds:.3f} s at n)", name)

        watch = Watch(case, limits=limits)
        deadline = time.monotonic() + run.seconds - run.elapsed
        deaths = 0
        for event in watch.run(0, len(names), deadline):
            deaths += event.is_death
            name = names[event.number]
            run.find("cost", f"{name}: {event.what}\n    fuzz-cost --case '{name}'")
        run.count("linear", watch.counter(LINEAR))
        run.count("too cheap to measure", watch.counter(CHEAP))
        run.count("refused", watch.counter(REFUSED))
        run.count("superlinear or dead", watch.counter(SUPERLINEAR) + deaths)


def main(arguments: Sequence[str] | None = None) -> int:
    made = parser("fuzz-cost", __doc__)
    made.add_argument("--cases", type=int, help="number of cases, instead of --seconds")
    made.add_argument(
        "--case", action="append", metavar="NAME", help="a case, or a pattern: 'load/*'"
    )
    made.add_argument("--list", action="store_true", help="only list the cases")
    made.add_argument("--verbose", action="store_true", help="print every measurement")
    given = made.parse_args(arguments)
    if given.list:
        print("\n".join(every_name()))
        return 0
    run = Run.of("fuzz-cost", given)
    if given.case:
        names = [one for one in every_name() if any(fnmatchcase(one, some) for some in given.case)]
    else:
        names = list(itertools.islice(drawn(run), given.cases or MOST))
    if not names:
        print(f"no case matches {given.case}; see --list", file=sys.stderr)
        return 2
    if given.cases is not None:
        run.seconds = float("inf")
    used = {name.split("/")[1] for name in names}
    for name in ("gpt2", "cl100k", "o200k", "whole", "words"):
        if name in used or len(used) > 20:
            subjects.FIXED[name]()  # before the children are made, which then share them
    run_cases(
        run, names, lambda name, folder: lambda n: find(name)(n, folder), verbose=given.verbose
    )
    return run.finish()


if __name__ == "__main__":
    raise SystemExit(main())
