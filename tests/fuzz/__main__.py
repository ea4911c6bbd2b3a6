"""`make fuzz-encode`: fuzz all vocabularies for some seconds, and print what was done.

Exits 0 if everything was equal, 1 at the first mismatch, 2 if a name matches no vocabulary.
"""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from tests.harness.run import Run, parser

from .oracles import missing_peers
from .rounds import Mismatch, Rounds
from .subjects import SMALL, Subject, real
from .texts import TESTS, own_samples, shared_samples

SHARED = TESTS.parents[1] / "shared" / "data"
# Of two long answers, how many ids are shown around the first difference.
SHOWN_IDS = 40


def main(arguments: Sequence[str] | None = None) -> int:
    made = parser("fuzz-encode", __doc__)
    add = made.add_argument
    add("--rounds", type=int, help="rounds for each vocabulary, instead of --seconds")
    add("--vocab", action="append", metavar="NAME", help="a vocabulary, or a pattern: 'hf/*'")
    add("--shared", type=Path, default=SHARED, help="where the real vocabularies are")
    add("--list", action="store_true", help="only list the vocabularies")
    given = made.parse_args(arguments)
    every: dict[str, Callable[[], Subject]] = dict(SMALL)
    samples = own_samples()
    if given.shared.is_dir():
        every |= real(given.shared)
        samples += shared_samples(given.shared)
    else:
        print(f"skipped: real vocabularies and corpora ({given.shared} does not exist)")
    for peer in missing_peers():
        print(f"skipped: comparison with {peer} (not installed)")
    wanted = given.vocab or ["*"]
    names = [name for name in every if any(fnmatchcase(name, pattern) for pattern in wanted)]
    if not names:
        print(f"no vocabulary matches {wanted}; see --list", file=sys.stderr)
        return 2
    if given.list:
        print("\n".join(names))
        return 0
    run = Run.of("fuzz-encode", given)
    for number, name in enumerate(names):
        if given.rounds is None and run.is_over:
            print(f"no time left for {', '.join(names[number:])}; increase --seconds")
            break
        share = (run.seconds - run.elapsed) / (len(names) - number)
        seconds = share if given.rounds is None else math.inf
        mismatch = fuzz(run, name, every[name], samples, seconds, given.rounds)
        if mismatch is not None:
            run.find(name, reproduction(mismatch, run.seed))
            break
    return run.finish()


def fuzz(
    run: Run,
    name: str,
    opener: Callable[[], Subject],
    samples: Sequence[str],
    seconds: float,
    most: int | None,
) -> Mismatch | None:
    """Fuzz one subject for a time or a number of rounds, up to the first mismatch."""
    end = time.monotonic() + seconds
    try:
        subject = opener()
    except ValueError as error:  # byteweld cannot read this file, and says why
        print(f"skipped: {name}: {error}")
        return None
    if not subject.oracles:
        print(f"skipped: {name}: none of its oracles is installed")
        return None
    rounds = Rounds(subject, samples, run.seed)
    said = time.monotonic()
    mismatch = None
    for mismatch in islice(rounds.run(), most):
        now = time.monotonic()
        if mismatch is not None or now >= end:
            break
        if now >= said + 10:
            print(f"          {name}: {in_words(rounds.tally)}", flush=True)
            said = now
    print(f"{run.elapsed:6.0f} s  {name}: {in_words(rounds.tally)}", flush=True)
    run.count(name, rounds.tally["executions"])
    return mismatch


def in_words(tally: Counter[str]) -> str:
    unchecked = f" ({tally['unchecked']:,} that no oracle could encode)"
    return (
        f"{tally['executions']:,} executions, {tally['texts']:,} strings"
        f"{unchecked if tally['unchecked'] else ''}, {tally['characters']:,} characters"
    )


def reproduction(mismatch: Mismatch, seed: int) -> str:
    """All that is needed to reproduce a mismatch."""
    case = mismatch.case
    found, expected = around_the_difference(mismatch.found, mismatch.expected)
    again = f"--seed {seed} --vocab {mismatch.subject} --rounds {case.round + 1}"
    lines = [
        f"MISMATCH in {case.path}, state {case.state}, round {case.round}",
        f"allowed special tokens: {sorted(case.allowed)[:SHOWN_IDS]}",
        f"text: {mismatch.text!a}",
        f"found:    {found}",
        f"expected: {expected}",
        f'reproduce: make fuzz-encode ARGS="{again}"',
    ]
    if not mismatch.repeats:
        lines.append("it did not happen again, so the text is not shrunk")
    return "\n  ".join(lines)


def around_the_difference(found: object, expected: object) -> tuple[object, object]:
    """Both answers; of long lists, only the part around the first difference."""
    if not (isinstance(found, list) and isinstance(expected, list)):
        return found, expected
    pairs = enumerate(zip(found, expected, strict=False))
    shorter = min(len(found), len(expected))
    at = next((n for n, (one, other) in pairs if one != other), shorter)
    some = slice(max(0, at - 4), at + SHOWN_IDS)
    return found[some], expected[some]


if __name__ == "__main__":
    raise SystemExit(main())
