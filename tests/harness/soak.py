"""`make soak`: 64 threads on shared tokenizers, forks meanwhile; the memory of millions of calls.

Half of the time, threads call every method on shared tokenizers and compare the answers, while the
process forks and tokenizers are loaded and dropped. The other half makes short calls on one thread
and fits a line to the memory of the process: it must not grow.
"""

from __future__ import annotations

import faulthandler
import mmap
import pickle
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import byteweld
import byteweld.tiktoken
from byteweld import Tokenizer, Vocabulary
from byteweld.vocab import AddedToken, Replace, Split
from tests.fuzz.texts import documents
from tests.harness.files.bases import trained
from tests.harness.run import Run, in_child, parser
from tests.helpers.strategies import NASTY
from tests.helpers.streams import decoded, pieces, streamed
from tests.helpers.vocabularies import with_added, with_traits

NUM_THREADS = 64
FORK_EVERY_SECONDS = 0.25
FORK_SECONDS = 60.0  # a child that takes longer hangs
HANG_SECONDS = 300.0  # beyond the time of the run
SAMPLES = 200
# A leak grows with the calls; what is allocated once does not. Smaller growth is noise.
MAX_BYTES_PER_CALL = 1.0
NOISE_BYTES = 1 << 20

PLAIN: dict[str, Any] = {"disallowed_special": ()}
ALL: dict[str, Any] = {"allowed_special": "all"}


# ---------------------------------------------------------------------- subjects


def vocabularies() -> dict[str, Vocabulary]:
    """One of each kind that runs other code."""
    specials = ("<|end|>", *(f"<|{number}|>" for number in range(200)))

    def learned(pattern: str | None, special_tokens: Sequence[str] = ("<|end|>",)) -> Vocabulary:
        options = {"pattern": pattern, "special_tokens": special_tokens, "min_frequency": 1}
        return trained("modern", 1200, **options).vocab

    plain, words = learned("o200k"), learned(r"\s+|\S+")
    the = AddedToken("the", max(words.tokens) + 1, special=False, lstrip=True, normalized=True)
    return {
        "plain": plain,
        "gpt2": learned("gpt2"),
        "whole": learned(None),
        "specials": learned("cl100k", specials),
        "normalizer": with_traits(words, normalizer=("nfkc", Replace("  +", " "), "lowercase")),
        "steps": with_traits(words, pattern=None, steps=[Split("[0-9]"), Split(r"\s+|\S+")]),
        "flags": with_added(words, the),
        "backtracking": with_traits(plain, pattern=r"(?<=a)b+|(\S)\1|\S+?(?=[ \n])|\s+|\S"),
        "ranks": Vocabulary(plain.tokens, **(plain.traits() | {"ranking": "ranks"})),
        "lookup": with_traits(plain, ignore_merges=True),
    }


def texts() -> list[str]:
    whole = "".join(documents())
    rng = Random(0)
    cuts = [rng.randrange(len(whole) - 100) for _ in range(60)]
    return [
        *(whole[at : at + rng.randint(1, 100)] for at in cuts),
        *(text[:300] for text in NASTY if "\ud800" not in text),
        *["<|end|> the <|7|>", "", "a", "hello world", "x" * 200, "<|end|>" * 9],
    ]


# ---------------------------------------------------------------------- operations


def _ragged(tok: Tokenizer, text: str) -> object:
    ids, ends = tok.encode_ragged([text, "ab", text], num_threads=1, **PLAIN)
    return ids.tolist(), ends.tolist()


Operation = Callable[[Tokenizer, str], object]

OPERATIONS: dict[str, Operation] = {
    "encode": lambda tok, text: tok.encode(text, **PLAIN),
    "encode-all": lambda tok, text: tok.encode(text, **ALL),
    "encode_ordinary": lambda tok, text: tok.encode_ordinary(text),
    "encode_to_numpy": lambda tok, text: tok.encode_to_numpy(text, **PLAIN).tolist(),
    "encode_batch": lambda tok, text: tok.encode_batch([text, "ab", text], num_threads=1, **ALL),
    "encode_ragged": _ragged,
    "encode_spans": lambda tok, text: tok.encode_spans([(text, False), ("<|end|>", True)]),
    "encode_with_offsets": lambda tok, text: tok.encode_with_offsets(text, **PLAIN),
    "encode_stream": lambda tok, text: list(streamed(tok, pieces(text, 9), **PLAIN)),
    "count": lambda tok, text: tok.count(text, **PLAIN),
    "count to a limit": lambda tok, text: tok.count(text, limit=5, **PLAIN),
    "truncate": lambda tok, text: tok.truncate(text, 3, **PLAIN),
    "pretokenize": lambda tok, text: tok.pretokenize(text),
    "decode": lambda tok, text: tok.decode(tok.encode(text, **PLAIN)),
    "decode_stream": lambda tok, text: decoded(tok, tok.encode(text, **PLAIN)),
    "refused": lambda tok, text: _refusal(lambda: tok.encode(text)),
    "unknown id": lambda tok, text: _refusal(lambda: tok.decode([10**9])),
}
LARGE: dict[str, Operation] = {
    # Long enough for the engine to start threads.
    "encode_batch on 3": lambda tok, text: tok.encode_batch(
        [(text + " ") * 900] * 3, num_threads=3, **PLAIN
    ),
    "pickle": lambda tok, text: pickle.loads(pickle.dumps(tok)).encode(text, **PLAIN),
    "build": lambda tok, text: Tokenizer(tok.vocab).encode(text, **PLAIN),
    "tiktoken": lambda tok, text: byteweld.tiktoken.Encoding.from_tokenizer(tok).encode(
        text, **PLAIN
    ),
}


def _refusal(call: Callable[[], object]) -> object:
    try:
        return call()
    except byteweld.ByteweldError as error:
        return type(error).__name__


class Call(NamedTuple):
    """A call and its right answer, which another tokenizer gave on one thread."""

    name: str
    operation: Operation
    tok: Tokenizer
    text: str
    answer: object

    def is_right(self) -> bool:
        return self.operation(self.tok, self.text) == self.answer


def calls(given: dict[str, Vocabulary], operations: dict[str, Operation], each: int) -> list[Call]:
    every = texts()
    made = []
    for subject, vocab in given.items():
        shared, other = Tokenizer(vocab), Tokenizer(vocab)
        for name, operation in operations.items():
            for text in Random(f"{subject} {name}").sample(every, min(each, len(every))):
                made.append(
                    Call(f"{name}/{subject}", operation, shared, text, operation(other, text))
                )
    return made


# ---------------------------------------------------------------------- threads and forks


class Threads:
    """Threads that call until a deadline; what they find is a list of strings."""

    def __init__(self, small: list[Call], large: list[Call], files: Sequence[Path]) -> None:
        self._small, self._large, self._files = small, large, files
        self.findings: list[str] = []
        self.counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def run(self, seconds: float, seed: int, number: int = NUM_THREADS) -> None:
        deadline = time.monotonic() + seconds
        threads = [
            threading.Thread(target=self._live, args=(f"{seed} {index}", deadline))
            for index in range(number)
        ]
        for thread in threads:
            thread.start()
        rng = Random(f"{seed} forks")
        while time.monotonic() < deadline:
            time.sleep(FORK_EVERY_SECONDS)
            problem = fork_and_check(partial(self._some_are_right, rng.random()))
            self.counts["forks"] += 1
            if problem is not None:
                self.findings.append(f"a forked child {problem}")
        for thread in threads:
            thread.join(HANG_SECONDS)
            if thread.is_alive():
                self.findings.append("a thread hangs")

    def _live(self, seed: str, deadline: float) -> None:
        rng = Random(seed)
        done: Counter[str] = Counter()
        while time.monotonic() < deadline and len(self.findings) < 20:
            draw = rng.random()
            try:
                if draw < 0.002:
                    byteweld.load(rng.choice(self._files)).encode("the cat", **PLAIN)
                    done["load and drop"] += 1
                    continue
                call = rng.choice(self._large if draw < 0.01 else self._small)
                done[call.name.split("/")[0]] += 1
                if not call.is_right():
                    self._report(f"{call.name} gives a wrong answer for {call.text!a}")
            except BaseException as error:
                self._report(f"a thread raised {error!r}")
        with self._lock:
            self.counts += done

    def _report(self, what: str) -> None:
        with self._lock:
            self.findings.append(what)

    def _some_are_right(self, seed: float) -> bool:
        rng = Random(seed)
        chosen = rng.sample(self._small, min(60, len(self._small)))
        chosen += rng.sample(self._large, min(2, len(self._large)))
        return all(call.is_right() for call in chosen)


def fork_and_check(check: Callable[[], bool], seconds: float = FORK_SECONDS) -> str | None:
    """Run a check in a forked child; returns what is wrong with it."""
    code, said = in_child(check, seconds)
    if code == 0:
        return None if said == "True" else "gives a wrong answer"
    return "hangs" if code is None else f"raises {said}" if said else f"ends with {code}"


# ---------------------------------------------------------------------- memory


def memory_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * mmap.PAGESIZE


class Slope(NamedTuple):
    """How memory grew over the second half of the calls."""

    calls: int
    bytes_per_call: float
    grown_bytes: float  # in the third or the last quarter, whichever grew less

    @property
    def is_leak(self) -> bool:
        """Whether memory grew in both quarters: a table that grows once does so in one of them."""
        return self.bytes_per_call > MAX_BYTES_PER_CALL and self.grown_bytes > NOISE_BYTES


def slope(call: Callable[[], object], seconds: float) -> Slope:
    """Call for some seconds, and fit a line to the memory over the second half."""
    began = time.monotonic()
    points: list[tuple[int, int]] = []
    made = 0
    for number in range(1, SAMPLES + 1):
        while True:
            for _ in range(20):
                call()
            made += 20
            if time.monotonic() - began >= number * seconds / SAMPLES:
                break
        points.append((made, memory_bytes()))
    quarter = SAMPLES // 4
    late, last = points[2 * quarter : 3 * quarter], points[3 * quarter :]
    grown = [_fit(some) * (some[-1][0] - some[0][0]) for some in (late, last)]
    return Slope(made, _fit([*late, *last]), min(grown))


def _fit(points: Sequence[tuple[int, int]]) -> float:
    """The slope of the line through points that has the least squares."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


def cycle(made: Sequence[Call]) -> Callable[[], object]:
    """A function that makes the next of these calls each time."""
    position = 0

    def call() -> object:
        nonlocal position
        position += 1
        one = made[position % len(made)]
        return one.operation(one.tok, one.text)

    return call


# ---------------------------------------------------------------------- the program


def main(arguments: Sequence[str] | None = None) -> int:
    made = parser("soak", __doc__)
    made.add_argument("--threads", type=int, default=NUM_THREADS, help=f"({NUM_THREADS})")
    given = made.parse_args(arguments)
    run = Run.of("soak", given)
    faulthandler.dump_traceback_later(given.seconds + HANG_SECONDS, exit=True)
    has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    print(
        "free-threading: "
        + ("not tested, since this Python has the GIL" if has_gil else "this Python has no GIL")
    )
    vocabs = vocabularies()
    small, large = calls(vocabs, OPERATIONS, 12), calls(vocabs, LARGE, 2)
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, vocab in vocabs.items():
            files.append(Path(folder) / f"{name}.json")
            try:
                Tokenizer(vocab).save(files[-1])
            except byteweld.UnsupportedError:
                files.pop()
        run.started = time.monotonic()
        threads = Threads(small, large, files)
        threads.run(given.seconds / 2, given.seed, given.threads)
        for name, number in threads.counts.items():
            run.count(f"threads: {name}", number)
        for what in threads.findings:
            run.find("threads", what)
        _memory(run, vocabs, small, files)
    faulthandler.cancel_dump_traceback_later()
    return run.finish()


def _memory(
    run: Run, vocabs: dict[str, Vocabulary], small: list[Call], files: Sequence[Path]
) -> None:
    loads = [partial(byteweld.load, file) for file in files]
    position = iter(range(sys.maxsize))
    groups: dict[str, Callable[[], object]] = {
        subject: cycle([call for call in small if call.name.endswith(f"/{subject}")])
        for subject in vocabs
    }
    groups["load and drop"] = lambda: loads[next(position) % len(loads)]()
    for number, (name, call) in enumerate(groups.items()):
        found = slope(call, max(0.5, (run.seconds - run.elapsed) / (len(groups) - number)))
        run.count(f"memory: {name}", found.calls)
        print(
            f"  memory, {name}: {found.calls:,} calls, {found.bytes_per_call:+.2f} bytes per call"
        )
        if found.is_leak:
            run.find(
                "memory",
                f"{name}: {found.bytes_per_call:.1f} bytes more in each of {found.calls:,} calls",
            )


if __name__ == "__main__":
    raise SystemExit(main())
