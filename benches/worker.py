"""One measurement in a process of its own: load an engine, set up, time one call, print one line.

Started by run.py as `python -P worker.py ENGINE_FILE JOB_JSON`. What the engine prints goes to
stderr; stdout is one line of JSON: seconds, peak memory, and the digest of the answer.
"""

from __future__ import annotations

import array
import base64
import gc
import hashlib
import importlib.util
import json
import os
import resource
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

_BLOCK_BYTES = 1 << 20


class Job(SimpleNamespace):
    """What an engine is asked to do: a definition's keys, and the input in the forms engines take.

    Keys: measure, variant, threads, corpus (a file of documents), warm_up, separator, shape,
    pattern (None for none), pattern_name, cache (a folder for what an engine builds); for training
    vocab_size and tie_rule; with a vocabulary rank_file and tokenizer_json.
    """

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
        documents = Path(path).read_bytes().decode().split(self.separator)
        return ["".join(documents)] if self.shape == "string" else documents


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


def measure(engine: ModuleType, job: Job) -> dict[str, Any]:
    """Set up, warm up, time one call, and digest its answer outside the clock."""
    call, answer = getattr(engine, job.measure)(job)
    arguments: tuple[list[str], ...] = ()
    if job.shape is not None:
        call(job.warm_up_texts())
        arguments = (job.texts(),)
    gc.collect()
    cpu, wall = cpu_seconds(), time.perf_counter()
    result = call(*arguments)
    wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
    peak = peak_bytes()
    return {"wall": wall, "cpu": cpu, "peak": peak, "digest": digest(answer(result))}


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
