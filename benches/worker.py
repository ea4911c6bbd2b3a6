"""One measurement in a separate process: load an engine, set up, time its calls, print one line.

Started by run.py as `python -P worker.py ENGINE_FILE JOB_JSON`. The engine's output goes to stderr;
stdout is one line of JSON: seconds of each pass, peak memory, and the digest of the answer.
"""

from __future__ import annotations

import array
import base64
import contextlib
import gc
import hashlib
import importlib
import importlib.util
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

SHORT_STRINGS = 20_000
SHORT_BYTES = 200
_BLOCK_BYTES = 1 << 20
_WARM_PASSES = 3
_WARM_SECONDS = 2.0  # a slow engine makes fewer warm passes
_SHORT_SEED = 5
_DECODING = ("decode_list", "decode_array")
_FIRST_IDS = Path(__file__).resolve().parent / "first_ids.py"

Clocks = tuple[float, float]  # wall and CPU seconds
# The seconds of each pass by both clocks, the last result, and the function for its answer.
Timed = tuple[dict[str, dict[str, float]], Any, Callable[..., Any]]


class Job(SimpleNamespace):
    """A task for an engine: the definition's keys, and the input in the forms that engines accept.

    Keys: measure, variant, threads, corpus (a file of documents), warm_up, separator, shape,
    pattern (or None), pattern_name, cache (a folder for build output); for training, vocab_size
    and tie_rule; with a vocabulary, vocab, rank_file, tokenizer_json, special_tokens and
    own_pattern (the pattern is not the vocabulary's); for encoding, passes, and fresh (loading is
    timed, and nothing is warmed up).
    """

    probe = "The lazy dog isn't 12,345 metres\n\n  tall: naïve 日本語!"  # shows that loading worked

    def documents(self) -> Iterator[str]:
        """Yield the documents of the corpus one by one, like a data loader."""
        separator: bytes = self.separator.encode()
        rest = b""
        with Path(self.corpus).open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                *whole, rest = (rest + block).split(separator)
                for document in whole:
                    yield document.decode()
        yield rest.decode()

    def texts(self) -> list[str]:
        """The corpus in memory as strings: documents, or one string."""
        return self._shape(self.corpus)

    def warm_up_texts(self) -> list[str]:
        """Other strings of the same kind."""
        return self._shape(self.warm_up)

    def ranks(self) -> dict[bytes, int]:
        """The rank file as {token: rank}."""
        lines = Path(self.rank_file).read_bytes().splitlines()
        return {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, lines)}

    def _shape(self, path: str) -> list[str]:
        if self.shape == "file":
            return [path]
        documents = Path(path).read_bytes().decode().split(self.separator)
        if self.shape == "string":
            return ["".join(documents)]
        if self.shape == "short":
            return short_strings("".join(documents))
        return documents


def short_strings(text: str) -> list[str]:
    """Consecutive strings of 1 to 200 bytes of UTF-8 from a text, wrapping around if it is short.

    They are cut at characters: a string has at least one, and then as many as fit. Uses only
    `Random.random`, whose sequence Python guarantees to be stable.
    """
    source = random.Random(_SHORT_SEED)
    data = text.encode()
    strings: list[str] = []
    at = 0
    while data and len(strings) < SHORT_STRINGS:
        end = at + 1 + int(source.random() * SHORT_BYTES)
        while _is_inside(data, end):
            end -= 1
        if end == at:
            end += 1
            while _is_inside(data, end):
                end += 1
        strings.append(data[at:end].decode())
        at = end if end < len(data) else 0
    return strings


def _is_inside(data: bytes, at: int) -> bool:
    """Whether a position in UTF-8 is inside a character."""
    return at < len(data) and data[at] & 0xC0 == 0x80


def load_engine(path: Path) -> ModuleType:
    """Import an engine's file under another name, since its own is that of a library."""
    spec = importlib.util.spec_from_file_location(f"engine_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def digest(parts: Iterable[bytes] | Iterable[list[int]]) -> str:
    """Digest an ordered answer: tokens (bytes), or lists of ids. Equal digests, equal answers."""
    state = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else array.array("I", part).tobytes()
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()[:16]


def peak_bytes() -> int:
    """The peak memory of this process so far, or of a child that it waited for.

    Read from /proc if possible: getrusage includes the parent's memory from before exec.
    """
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                peak = int(line.split()[1]) * 1024
    return max(peak, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit)


def cpu_seconds() -> float:
    """CPU time so far, of all threads and of children that were waited for."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def pin(threads: int) -> None:
    """Pin the process to as many CPUs as there are threads, if the system supports it."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:])


def digest_ids(parts: Iterable[Any]) -> str:
    """Digest ids (lists, arrays or bytes of uint32) or text.

    Boundaries between documents do not count: some engines return all ids in one array.
    """
    state = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            part = part.encode()
        elif isinstance(part, list):
            part = array.array("I", part)
        elif hasattr(part, "astype"):
            part = part.astype("uint32", copy=False)
        state.update(memoryview(part).cast("B"))
    return state.hexdigest()[:16]


def measure(engine: ModuleType, job: Job) -> dict[str, Any]:
    """Set up, warm up, time the call, and digest its answer untimed."""
    arguments: tuple[list[str], ...] = ()
    others: tuple[list[str], ...] = ()
    if job.shape is not None:  # loaded before the engine, so that it does not count as its memory
        arguments, others = (job.texts(),), (job.warm_up_texts(),)
    base = reset_peak() if job.passes else 0
    if job.fresh:
        passes, result, answer = _timed_fresh(engine, job, arguments)
    else:
        passes, result, answer = _timed_passes(engine, job, arguments, others)
    peak = peak_bytes() - base
    digest_answer = digest_ids if job.passes else digest
    return {"passes": passes, "peak": peak, "digest": digest_answer(answer(result))}


def _timed_passes(
    engine: ModuleType, job: Job, arguments: tuple[Any, ...], others: tuple[Any, ...]
) -> Timed:
    """Time the passes of a process that is set up and warmed up with other text."""
    call, answer = getattr(engine, job.measure)(job)
    if job.measure in _DECODING:
        arguments, others = ((_as_ids(engine, job, texts),) for (texts,) in (arguments, others))
    if job.shape is not None:
        call(*others)
    passes = {}
    for name in job.passes or [""]:
        result = None  # the previous answer must not count as memory of this pass
        repeats = _WARM_PASSES if name == "warm" else 1
        passes[name], result = _timed(call, arguments, repeats)
    return passes, result, answer


def _timed_fresh(engine: ModuleType, job: Job, arguments: tuple[Any, ...]) -> Timed:
    """Time loading and the first call. Only imports are done before the clock starts."""
    for name in engine.IMPORTS:
        importlib.import_module(name)
    gc.collect()
    start = _clocks()
    call, answer = getattr(engine, job.measure)(job)
    loaded = _clocks()
    result = call(*arguments)
    end = _clocks()
    passes = {
        "load": _seconds(start, loaded),
        "encode": _seconds(loaded, end),
        "total": _seconds(start, end),
    }
    return passes, result, answer


def measure_first_ids(engine_file: str, job: Job) -> dict[str, Any]:
    """Run first_ids.py twice: the first run fills caches on disk, the second is timed."""
    values = vars(job) | {"probe": job.probe}
    command = [sys.executable, "-P", str(_FIRST_IDS), engine_file, repr(values)]
    for _ in range(2):
        done = subprocess.run(command, stdout=subprocess.PIPE)
        if done.returncode != 0:
            sys.exit(done.returncode)  # its message is on stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _as_ids(engine: ModuleType, job: Job, texts: list[str]) -> list[Any]:
    """Encode texts with the engine itself, as input for decoding: lists, or arrays of uint32."""
    call, answer = engine.list_out(job)
    ids = list(answer(call(texts)))
    if job.measure == "decode_list":
        return ids
    import numpy

    return [numpy.array(part, dtype=numpy.uint32) for part in ids]


def _timed(
    call: Callable[..., Any], arguments: tuple[Any, ...], repeats: int
) -> tuple[dict[str, float], Any]:
    """Median seconds of a few calls, and the last result."""
    times: list[dict[str, float]] = []
    result = None
    while len(times) < repeats and sum(seconds["wall"] for seconds in times) < _WARM_SECONDS:
        result = None
        gc.collect()
        start = _clocks()
        result = call(*arguments)
        times.append(_seconds(start, _clocks()))
    medians = {
        clock: statistics.median(seconds[clock] for seconds in times) for clock in ("wall", "cpu")
    }
    return medians, result


def _clocks() -> Clocks:
    return time.perf_counter(), cpu_seconds()


def _seconds(start: Clocks, end: Clocks) -> dict[str, float]:
    return {"wall": end[0] - start[0], "cpu": end[1] - start[1]}


def reset_peak() -> int:
    """Reset the peak memory, if the system supports it, and return the current use."""
    gc.collect()
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak_bytes()


def main() -> None:
    """Measure once and print the result."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # some engines print while they train
    engine_file, job_json = sys.argv[1:]
    job = Job(**json.loads(job_json))
    pin(job.threads)  # before the engine is imported and counts CPUs
    if job.measure == "first_ids":
        result = measure_first_ids(engine_file, job)
    else:
        result = measure(load_engine(Path(engine_file)), job)
    print(json.dumps(result), file=out, flush=True)


if __name__ == "__main__":
    main()
