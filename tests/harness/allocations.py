"""Allocations that fail: every operation, with less memory than it needs.

A child process prepares an operation, fills what is free in its heap, limits its address space, and
runs the operation: first without a limit, to measure what it needs, then with limits below that.
The result, a `MemoryError` or a typed error is fine. A process that aborts, hangs or raises
anything else is a finding.

    python -m tests.harness.allocations --seconds 60 --seed 0 --only load
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import gzip
import json
import os
import re
import resource
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import byteweld
from byteweld import ByteweldError, Tokenizer
from byteweld._native import canonical_pattern
from byteweld.corpus import open_corpus
from byteweld.patterns import PATTERNS
from byteweld.vocab import Replace, Split
from tests.harness import draw
from tests.harness.files.bases import with_traits
from tests.harness.run import Run, in_child, parser

TOKENS = 20_000
TEXT_BYTES = 1_000_000
FORMATS: dict[str, str | None] = {"huggingface": None, "tiktoken": None, "gpt2": None}
FORMATS |= {name: name for name in ("bpe1", "bpetite", "ck")}  # they hold only their recipe's
RECIPES = {"modern": 3000, "plain": 300, "huggingface": 1000, "bpe1": 500}
DATASETS = ("megatron", "npy", "mds")
STEPS = (Split("[0-9]"), "prefix-space", "byte-letters", Split(r"\s+|\S+"))
TRAITS: dict[str, dict[str, Any]] = {
    "gpt2": {"pattern": "gpt2"},
    "whole": {"pattern": None},
    "backtracking": {"pattern": r"(?!\uffff)(?:\w+|\W)"},
    "normalized": {"normalizer": ("nfkd", Replace("q", "quick"))},
    "steps": {"pattern": None, "steps": STEPS},
}
BYTES = {bytes([byte]): byte for byte in range(256)}
# Successive multiples, modulo 1, spread evenly however many there are.
GOLDEN_RATIO = 0.618033988749895
LEAST_BYTES = 1 << 14
# A heap of a thread has 64 MB of address space from the start.
M_ARENA_MAX = -8
CHILD_SECONDS = 120.0

Call = Callable[[], object]
Prepare = Callable[[], Call]


def main(arguments: Sequence[str] | None = None) -> int:
    made = parser("allocations", __doc__)
    made.add_argument("--only", default="", help="only operations whose name contains this")
    made.add_argument("--runs", type=int, help="runs in all, instead of --seconds")
    given = made.parse_args(arguments)
    run = Run.of("allocations", given)
    ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)
    with tempfile.TemporaryDirectory() as folder:
        _in_child(lambda: make_files(run.random("files"), Path(folder)))
        every = {
            name: prepare
            for name, prepare in operations(run.random("operations"), Path(folder))
            if given.only in name
        }
        needs = {name: int(_in_child(partial(_measured, every[name]))) for name in every}
        rng = run.random("order")
        turns = 0
        # At least once: measuring what each needs takes longer than a slice of the harness.
        while not turns or (
            not run.is_over if given.runs is None else run.executions.total() < given.runs
        ):
            share = (turns // 3 * GOLDEN_RATIO + run.seed * GOLDEN_RATIO**2) % 1
            for name in rng.sample(sorted(every), len(every)):
                # Evenly up to what is needed; and close to nothing and to all of it.
                most = max(2 * LEAST_BYTES, needs[name])
                near = LEAST_BYTES * (most / LEAST_BYTES) ** share
                more = (most * share, near, most - near)[turns % 3]
                try_once(run, name, every[name], int(more))
            turns += 1
    return run.finish()


def _in_child(work: Call) -> str:
    """Do some work that the parent's memory must not show."""
    code, answer = in_child(work)
    if code != 0:
        raise AssertionError(f"a child failed: {code} {answer}")
    return answer


def try_once(run: Run, name: str, prepare: Prepare, more: int) -> None:
    """Run an operation in a child that can map only this much memory more than it has."""
    said = os.memfd_create("stderr")
    try:
        code, answer = in_child(lambda: _limited(prepare, more, said), CHILD_SECONDS)
        run.count(f"{name.partition(' ')[0]}: {answer if code == 0 else 'failed'}")
        if code != 0:
            words = os.pread(said, 4000, 0).decode(errors="replace").strip()
            how = {None: "does not end", 1: answer}.get(code, f"ended with {code}")
            run.find(name, f"with {more:,} bytes: {how}; it said: {words}")
    finally:
        os.close(said)


def _limited(prepare: Prepare, more: int, stderr: int) -> str:
    """Run an operation with a limit on memory; return how it ended."""
    call = _prepared(prepare)
    os.dup2(stderr, 2)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_mapped("VmSize") + more, hard))
    try:
        call()
        return "done"
    except (MemoryError, ByteweldError):
        return "refused"
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
        return "refused"
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def _measured(prepare: Prepare) -> int:
    """Run an operation; return how many bytes it mapped."""
    call = _prepared(prepare)
    before = _mapped("VmSize")
    with contextlib.suppress(ByteweldError):
        call()
    return _mapped("VmPeak") - before


def _prepared(prepare: Prepare) -> Call:
    call = prepare()
    # The stack grows under the limit too, and the kernel kills a process whose stack cannot.
    nested: list[object] = []
    for _ in range(400):
        nested = [nested]
    repr(nested)
    # Fill the holes that were left in the heap.
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_mapped("VmSize"), hard))
    malloc = ctypes.CDLL(None).malloc
    malloc.argtypes, malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
    for bits in range(24, 9, -1):
        while malloc(1 << bits):
            pass
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    return call


def _mapped(field: str) -> int:
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{field}:\s+(\d+) kB", status)[1]) << 10  # type: ignore[index]


# ---------------------------------------------------------------------- operations


def make_files(rng: Random, folder: Path) -> None:
    """Write what the operations read; the folder "small" has little of it."""
    letters = "abcdefghijklmnopqrstuvwxyzäé漢"
    known = ["".join(rng.choices(letters, k=rng.randint(3, 25))) for _ in range(TEXT_BYTES // 30)]
    text = " ".join(rng.choices(known, k=TEXT_BYTES // 15))
    for to, content, size in ((folder, text, TOKENS), (folder / "small", text[:2000], 300)):
        to.mkdir(exist_ok=True)
        (to / "a.txt").write_text(content)
        (to / "a.jsonl").write_text(json.dumps({"text": content}) + "\n")
        (to / "a.gz").write_bytes(gzip.compress(content.encode(), 1))
        for format, recipe in FORMATS.items():
            made = byteweld.train(
                documents=[content],
                vocab_size=min(size, 3000) if recipe else size,
                recipe=recipe or "modern",
            )
            made.save(to / format, format=format)
        (to / "cache").mkdir(mode=0o700)
        byteweld.load(to / "huggingface", cache=to / "cache")


def operations(rng: Random, folder: Path) -> Iterator[tuple[str, Prepare]]:
    """Yield what prepares each operation. Its imports are done when it is yielded."""
    prepared: dict[str, Callable[[Path], Call]] = {
        name: partial(partial, work) for name, work in _on_files()
    }
    prepared |= {f"tokenize {format}": partial(_tokenize, format) for format in DATASETS}
    for traits, changes in TRAITS.items():
        for name, use in USES.items():
            prepared[f"{name} {traits}"] = partial(_use, use, changes)
    for name, prepare in prepared.items():
        prepare(folder / "small")()
        yield name, partial(prepare, folder)
    drawn = [draw.pattern(rng) for _ in range(20)]
    for number, pattern in enumerate((*PATTERNS.values(), *draw.HOSTILE_PATTERNS, *drawn)):
        for name, work in {"pattern": _compile, "canonical": canonical_pattern}.items():
            yield f"{name} {number}", partial(partial, work, pattern)


def _on_files() -> Iterator[tuple[str, Callable[[Path], object]]]:
    for format in FORMATS:
        yield f"load {format}", partial(_load, format)
    yield "load cached", _load_cached
    for recipe, size in RECIPES.items():
        yield f"train {recipe}", partial(_train, recipe, size)
    for method in ("items", "most_common", "batches"):
        yield f"count {method}", partial(_count, method)
    yield "count save", _save_counts
    for name in ("a.txt", "a.jsonl", "a.gz"):
        yield f"documents {name}", partial(_read, name)


def _load(format: str, folder: Path) -> object:
    return byteweld.load(folder / format).encode("hello")


def _load_cached(folder: Path) -> object:
    return byteweld.load(folder / "huggingface", cache=folder / "cache").encode("hello")


def _train(recipe: str, size: int, folder: Path) -> object:
    return byteweld.train(folder / "a.txt", vocab_size=size, recipe=recipe, num_threads=2)


def _count(method: str, folder: Path) -> object:
    return list(getattr(byteweld.count(folder / "a.txt", num_threads=1), method)())


def _save_counts(folder: Path) -> object:
    return byteweld.count(folder / "a.txt").save(folder / "counts", overwrite=True)


def _read(name: str, folder: Path) -> object:
    return list(open_corpus(folder / name).documents())


def _tokenize(format: str, folder: Path) -> Call:
    tok = byteweld.load(folder / "tiktoken")
    options = {"format": format, "eot": "none", "overwrite": True}
    return lambda: byteweld.tokenize(folder / "a.txt", tok, out=folder / f"d-{format}", **options)


Use = Callable[[Tokenizer, str, list[int]], object]


def _use(use: Use, changes: dict[str, Any], folder: Path) -> Call:
    tok = Tokenizer(with_traits(byteweld.load(folder / "huggingface").vocab, **changes))
    text = (folder / "a.txt").read_text()
    return partial(use, tok, text, tok.encode(text))


USES: dict[str, Use] = {
    "build": lambda tok, text, ids: Tokenizer(with_traits(tok.vocab)).encode("hello"),
    "encode": lambda tok, text, ids: tok.encode(text),
    "array": lambda tok, text, ids: tok.encode_to_numpy(text),
    "batch": lambda tok, text, ids: tok.encode_batch([text] * 3, num_threads=2),
    "ragged": lambda tok, text, ids: tok.encode_ragged([text[:50]] * 3000, num_threads=1),
    "offsets": lambda tok, text, ids: tok.encode_with_offsets(text),
    "spans": lambda tok, text, ids: tok.encode_spans([(text, False), (text, True)]),
    "pretokenize": lambda tok, text, ids: tok.pretokenize(text),
    "decode": lambda tok, text, ids: tok.decode(ids),
    "bytes": lambda tok, text, ids: tok.decode_bytes(np.array(ids)),
    "tokens": lambda tok, text, ids: (tok.vocab.tokens, tok.vocab.merges, tok.vocab.fingerprint),
}


def _compile(pattern: str) -> object:
    return Tokenizer.from_ranks(BYTES, pattern=pattern).encode("a")


if __name__ == "__main__":
    raise SystemExit(main())
