"""`make fuzz-encode`: fuzz all vocabularies for some seconds, and print what was done.

Exits 0 if everything was equal, 1 at the first mismatch, 2 if a name matches no vocabulary.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from .oracles import missing_peers
from .rounds import Mismatch, Rounds, Tally
from .subjects import SMALL, Subject, named, real
from .texts import TESTS, own_samples, shared_samples

SHARED = TESTS.parents[1] / "shared" / "data"
# Of two long answers, how many ids are shown around the first difference.
SHOWN_IDS = 40


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fuzz-encode", description=__doc__)
    add = parser.add_argument
    add("--seconds", type=float, default=60.0, help="total running time (60)")
    add("--rounds", type=int, help="rounds for each vocabulary, instead of --seconds")
    add("--seed", type=int, default=0, help="the same seed draws the same strings (0)")
    add(
        "--vocab",
        action="append",
        metavar="NAME",
        help="a vocabulary, or several with a pattern: 'hf/*'",
    )
    add("--shared", type=Path, default=SHARED, help="where the real vocabularies are")
    add("--list", action="store_true", help="only list the vocabularies")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    given = parse(arguments)
    every: dict[str, Callable[[], Subject]] = dict(SMALL)
    samples = own_samples()
    if given.shared.is_dir():
        every |= real(given.shared)
        samples += shared_samples(given.shared)
    else:
        print(f"skipped: real vocabularies and corpora ({given.shared} does not exist)")
    for peer in missing_peers():
        print(f"skipped: comparison with {peer} (not installed)")
    names = list(named(given.vocab or ["*"], every))
    if not names:
        print(f"no vocabulary matches {given.vocab}; see --list", file=sys.stderr)
        return 2
    if given.list:
        print("\n".join(names))
        return 0
    return fuzz({name: every[name] for name in names}, samples, given)


def fuzz(
    openers: dict[str, Callable[[], Subject]], samples: Sequence[str], given: argparse.Namespace
) -> int:
    """Fuzz each subject in turn for its share of the time."""
    started = time.monotonic()
    total = Tally()
    mismatch = None
    for number, (name, opener) in enumerate(openers.items()):
        left = given.seconds - (time.monotonic() - started)
        if given.rounds is None and left <= 0:
            print(f"no time left for {', '.join(list(openers)[number:])}; increase --seconds")
            break
        share = left / (len(openers) - number) if given.rounds is None else math.inf
        tally, mismatch = run_subject(name, opener, samples, given, share)
        total.add(tally)
        print(f"{time.monotonic() - started:6.0f} s  {name}: {in_words(tally)}", flush=True)
        if mismatch is not None:
            print(reproduction(mismatch, given.seed))
            break
    elapsed = time.monotonic() - started
    print(
        f"{in_words(total)}, {1 if mismatch else 0} mismatches, "
        f"{total.executions / elapsed:,.0f} executions/s in {elapsed:,.0f} s"
    )
    return 1 if mismatch else 0


def run_subject(
    name: str,
    opener: Callable[[], Subject],
    samples: Sequence[str],
    given: argparse.Namespace,
    seconds: float,
) -> tuple[Tally, Mismatch | None]:
    end = time.monotonic() + seconds
    try:
        subject = opener()
    except ValueError as error:  # byteweld cannot read this file, and says why
        print(f"skipped: {name}: {error}")
        return Tally(), None
    if not subject.oracles:
        print(f"skipped: {name}: none of its oracles is installed")
        return Tally(), None
    rounds = Rounds(subject, samples, given.seed)
    said = time.monotonic()
    for mismatch in islice(rounds.run(), given.rounds):
        now = time.monotonic()
        if mismatch is not None or now >= end:
            return rounds.tally, mismatch
        if now >= said + 10:
            print(f"          {name}: {in_words(rounds.tally)}", flush=True)
            said = now
    return rounds.tally, None


def in_words(tally: Tally) -> str:
    unchecked = f" ({tally.unchecked:,} that no oracle could encode)" if tally.unchecked else ""
    return (
        f"{tally.executions:,} executions, {tally.texts:,} strings{unchecked}, "
        f"{tally.characters:,} characters"
    )


def reproduction(mismatch: Mismatch, seed: int) -> str:
    """All that is needed to reproduce a mismatch."""
    case = mismatch.case
    found, expected = around_the_difference(mismatch.found, mismatch.expected)
    again = f"--seed {seed} --vocab {mismatch.subject} --rounds {case.round + 1}"
    return "\n".join(
        [
            "",
            f"MISMATCH in {case.path}, state {case.state}",
            f"  vocabulary: {mismatch.subject}",
            f"  seed: {seed}, round {case.round}",
            f"  allowed special tokens: {sorted(case.allowed)[:SHOWN_IDS]}",
            f"  text: {mismatch.text!a}",
            f"  found:    {found}",
            f"  expected: {expected}",
            f'  reproduce: make fuzz-encode ARGS="{again}"',
            *(
                ["  it did not happen again, so the text is not shrunk"]
                if not mismatch.repeats
                else []
            ),
        ]
    )


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
