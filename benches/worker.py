"""One measurement in a process of its own: load an engine, set up, time its calls, print one line.

Started by run.py as `python -P worker.py ENGINE_FILE JOB_JSON`. What the engine prints goes to
stderr; stdout is one line of JSON: seconds of each pass, peak memory, and the digest of the answer.
"""

from __future__ import annotations

import array
import base64
import contextlib
import gc
import hashlib
import importlib.util
import json
import os
import random
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

SHORT_STRINGS = 20_000
_BLOCK_BYTES = 1 << 20
_WARM_PASSES = 3
_WARM_SECONDS = 2.0  # a slow engine makes fewer warm passes
_SHORT_SEED = 5
_DECODING = ("decode_list", "decode_array")


class Job(SimpleNamespace):
    """What an engine is asked to do: a definition's keys, and the input in the forms engines take.

    Keys: measure, variant, threads, corpus (a file of documents), warm_up, separator, shape,
    pattern (None for none), pattern_name, cache (a folder for what an engine builds); for training
    vocab_size and tie_rule; with a vocabulary vocab, rank_file, tokenizer_json and own_pattern
    (the pattern is not the vocabulary's); passes, of encoding; fresh: set up inside the clock.
    """

    probe = (
        "The lazy dog isn't 12,345 metres\n\n  tall: naïve 日本語!"  # shows that a load went well
    )

    def documents(self) -> Iterator[str]:
        """Read the corpus's documents one by one, as a data loader would."""
        separator: bytes = self.separator.encode()
        rest = b""
        with Path(self.corpus).open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                *whole, rest = (rest + block).split(separator)
                for document in whole:
                    yield document.decode()
        yield rest.decode()

    def texts(self) -> list[str]:
        """The corpus as texts in memory: documents, or one string."""
        return self._shape(self.corpus)

    def warm_up_texts(self) -> list[str]:
        """Other texts of the same kind."""
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
    """Strings of 1 to 100 characters, one after the other from a text; over again if it is short.

    Only `Random.random` is used, whose numbers Python promises never to change.
    """
    source = random.Random(_SHORT_SEED)
    strings: list[str] = []
    at = 0
    while text and len(strings) < SHORT_STRINGS:
        size = 1 + int(source.random() * 100)
        strings.append(text[at : at + size])
        at = at + size if at + size < len(text) else 0
    return strings


def load_engine(path: Path) -> ModuleType:
    """Import an engine's file; its own name is that of a library, so it gets another."""
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
    """The most memory that this process has held so far, or one that it has waited for.

    From /proc where there is one: getrusage also counts the parent's memory, from before exec.
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
    """Processor time so far: of all threads, and of processes that were waited for."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def pin(threads: int) -> None:
    """Stay on as many processors as there are threads, where the system can do that."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:])


def digest_ids(parts: Iterable[Any]) -> str:
    """Digest ids in lists, arrays or bytes of uint32, or text. Where one ends is not told: some
    engines give all ids in one array."""
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
    """Set up, warm up, time the call, and digest its answer outside the clock."""
    arguments: tuple[list[str], ...] = ()
    others: tuple[list[str], ...] = ()
    if job.shape is not None:  # text is there before the engine: it is not the engine's memory
        arguments, others = (job.texts(),), (job.warm_up_texts(),)
    base = forget_peak() if job.passes else 0
    call, answer = _set_up(engine, job)
    if job.measure in _DECODING:
        arguments, others = ((_as_ids(engine, job, texts),) for (texts,) in (arguments, others))
    if job.shape is not None and not job.fresh:
        call(*others)
    passes = {}
    for name in job.passes or [""]:
        result = None  # the answer before is not this pass's memory
        repeats = _WARM_PASSES if name == "warm" else 1
        passes[name], result = _timed(call, arguments, repeats)
    peak = peak_bytes() - base
    told = digest_ids if job.passes else digest
    return {"passes": passes, "peak": peak, "digest": told(answer(result))}


def _set_up(engine: ModuleType, job: Job) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The call to time and what makes its answer; of a `fresh` job, setting up is in the clock."""
    make = getattr(engine, job.measure)
    if not job.fresh:
        call, answer = make(job)
        return call, answer
    made: list[Callable[..., Any]] = []

    def whole(*arguments: Any) -> Any:
        call, answer = make(job)
        made[:] = [answer]
        return call(*arguments)

    return whole, lambda result: made[0](result)


def _as_ids(engine: ModuleType, job: Job, texts: list[str]) -> list[Any]:
    """An engine's own ids of texts, in what it is to decode: lists, or arrays of uint32."""
    call, answer = engine.list_out(job)
    ids = list(answer(call(texts)))
    if job.measure == "decode_list":
        return ids
    import numpy

    return [numpy.array(part, dtype=numpy.uint32) for part in ids]


def _timed(
    call: Callable[..., Any], arguments: tuple[Any, ...], repeats: int
) -> tuple[dict[str, float], Any]:
    """Medians of the seconds of a few calls, and what the last one gave."""
    walls: list[float] = []
    cpus: list[float] = []
    result = None
    while len(walls) < repeats and sum(walls) < _WARM_SECONDS:
        result = None
        gc.collect()
        cpu, wall = cpu_seconds(), time.perf_counter()
        result = call(*arguments)
        wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
        walls.append(wall)
        cpus.append(cpu)
    return {"wall": statistics.median(walls), "cpu": statistics.median(cpus)}, result


def forget_peak() -> int:
    """Let the high-water mark start anew where the system can do that; what is held now."""
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
    pin(job.threads)  # before the engine is imported and counts processors
    print(json.dumps(measure(load_engine(Path(engine_file)), job)), file=out, flush=True)


if __name__ == "__main__":
    main()
