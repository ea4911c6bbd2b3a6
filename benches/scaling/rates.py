"""Measured rates on one core: counting, saving, merging, encoding, copying, and the merge loop.

`prepare` makes the inputs, once. For every run, `scale.py rates` starts a new process on one CPU,
which calls `run_job` and prints one line of JSON. Reading is from the page cache. Every answer is
checked; a wrong one is recorded without times.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from scaling import corpora, tasks
from scaling.heaps import RECIPE

SLICE_BYTES = 128_000_000
MERGED = 8  # folders of saved counts, one per slice
FAN_IN = 64  # as many folders of smaller slices, to see what a large fan-in costs
TRAIN_SIZES = (32_000, 128_000)
TRAIN_HALVINGS = (0, 1, 2, 3, 4)  # of the corpus
BUDGET = "256MB"  # makes `merge` use the disk
CIPHERS = 8  # copies of the corpus, each with other letters: more pre-tokens, alike in number
REPEAT = {"train": 3}
_DEFAULT_REPEAT = 5


def repeats(job: Mapping[str, Any]) -> int:
    return REPEAT.get(job["measure"], _DEFAULT_REPEAT)


def prepare(whole: Sequence[bytes], cache: Path) -> list[dict[str, Any]]:
    """Write texts and saved counts to the cache, and return the jobs with the right answers."""
    import byteweld

    cache.mkdir(parents=True, exist_ok=True)
    path = cache / "jobs.json"
    if path.exists():
        return list(json.loads(path.read_bytes()))
    order = corpora.shuffled(whole)
    total = sum(map(len, order))
    slices = corpora.write_slices(order, cache / "slices", SLICE_BYTES)[:MERGED]
    small = corpora.write_slices(order, cache / "small", total // FAN_IN)[:FAN_IN]
    several, many = _saved(slices, cache / "counts"), _saved(small, cache / "small-counts")
    folders, first = several["folders"], several.pop("first")
    text = {"text": str(slices[0]), "bytes": slices[0].stat().st_size}
    saved = {"folder": folders[0], "rows": first, "bytes": _folder_bytes(folders[:1])}
    jobs: list[dict[str, Any]] = [
        {"name": "count", "measure": "count", **text, "right": first},
        {"name": "save", "measure": "save", **saved, "right": saved["bytes"]},
        {"name": "load", "measure": "load", **saved, "right": first},
        {"name": "merge and save", "measure": "merge", **several, "memory": None},
        {"name": f"merge and save in {BUDGET}", "measure": "merge", **several, "memory": BUDGET},
        {"name": f"merge and save {FAN_IN}", "measure": "merge", **many, "memory": None},
        {"name": "encode", "measure": "encode", **text, "right": _text_digest(slices[0])},
        {"name": "write", "measure": "write", **text, "right": _digest(slices[0].read_bytes())},
    ]
    for halving in TRAIN_HALVINGS:
        taken = corpora.sample(order, total >> halving)
        counts = byteweld.count(documents=taken, recipe=RECIPE, num_threads=1)
        folder, num_bytes = cache / f"counts-half-{halving}", sum(map(len, taken))
        jobs += _training(counts, folder, f"{num_bytes / 1e6:.0f} MB", num_bytes)
    copies = []
    for number in range(CIPHERS):
        letters = corpora.cipher(number)
        documents = (document.translate(letters) for document in order)
        copies.append(byteweld.count(documents=documents, recipe=RECIPE, num_threads=1))
    merged = byteweld.Counts.merge(copies)
    jobs += _training(merged, cache / "counts-ciphers", f"{CIPHERS} ciphers", CIPHERS * total)
    path.write_text(json.dumps(jobs, indent=1))
    return jobs


def _training(counts: Any, folder: Path, name: str, num_bytes: int) -> list[dict[str, Any]]:
    """Save counts; return the jobs that train on them."""
    counts.save(folder, overwrite=True)
    distinct, distinct_bytes, _, _ = counts._table.sums()
    return [
        {
            "name": f"train {size} on {name}",
            "measure": "train",
            "folder": str(folder),
            "vocab_size": size,
            "bytes": num_bytes,
            "rows": distinct,
            "distinct_bytes": distinct_bytes,
            "right": None,  # the answer of the first run
        }
        for size in TRAIN_SIZES
    ]


def _saved(slices: Sequence[Path], folder: Path) -> dict[str, Any]:
    """Save the counts of slices; return where, and the facts of merging them."""
    import byteweld

    folders, sizes = [], []
    for number, text in enumerate(slices):
        counts = byteweld.count(text, recipe=RECIPE, separator=corpora.SEPARATOR, num_threads=1)
        counts.save(folder / str(number), overwrite=True)
        folders.append(str(folder / str(number)))
        sizes.append(len(counts))
    return {
        "folders": folders,
        "rows": sum(sizes),
        "bytes": _folder_bytes(folders),
        "right": len(byteweld.count(slices, separator=corpora.SEPARATOR, num_threads=1)),
        "first": sizes[0],
    }


# ---------------------------------------------------------------------- one run


def run_job(job: Mapping[str, Any]) -> dict[str, Any]:
    """Time one call; return its seconds, memory, answer and other facts."""
    scratch = Path(job["scratch"])
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    call, answer = _SETUPS[job["measure"]](job, scratch)
    before = _reset_peak()
    wall, cpu = time.perf_counter(), time.process_time()
    result = call()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = _peak()
    facts = answer(result)
    shutil.rmtree(scratch)
    return {
        "wall_seconds": round(wall, 6),
        "cpu_seconds": round(cpu, 6),
        "resident_before": before,
        "peak_rss_bytes": peak,
        **facts,
    }


Setup = tuple[Callable[[], Any], Callable[[Any], dict[str, Any]]]


def _count(job: Mapping[str, Any], scratch: Path) -> Setup:
    import byteweld

    def call() -> Any:
        return byteweld.count(
            job["text"], recipe=RECIPE, separator=corpora.SEPARATOR, num_threads=1
        )

    return call, lambda counts: {"answer": len(counts)}


def _save(job: Mapping[str, Any], scratch: Path) -> Setup:
    import byteweld

    counts = byteweld.Counts.load(job["folder"])
    out = scratch / "counts"
    return lambda: counts.save(out), lambda _: {"answer": _folder_bytes([str(out)])}


def _load(job: Mapping[str, Any], scratch: Path) -> Setup:
    import byteweld

    return lambda: byteweld.Counts.load(job["folder"]), lambda counts: {"answer": len(counts)}


def _merge(job: Mapping[str, Any], scratch: Path) -> Setup:
    import byteweld

    def call() -> Any:
        # Counts on disk are merged while they are saved, so saving is part of it.
        counts = byteweld.Counts.merge(job["folders"], memory=job["memory"], num_threads=1)
        counts.save(scratch / "counts")
        return counts

    return call, lambda counts: {"answer": len(counts), "is_on_disk": counts.is_on_disk}


def _encode(job: Mapping[str, Any], scratch: Path) -> Setup:
    import numpy as np

    import byteweld

    tokenizer = byteweld.load(job["tokenizer"])
    out = scratch / "ids"

    def call() -> Any:
        options = {"separator": corpora.SEPARATOR, "eot": "none", "num_threads": 1}
        return byteweld.tokenize(job["text"], tokenizer, out=out, **options)

    def answer(manifest: Any) -> dict[str, Any]:
        ids = np.fromfile(out / "train.bin", "u4" if tokenizer.n_vocab > 65536 else "u2")
        return {
            "answer": _digest(tokenizer.decode_bytes(ids.tolist())),
            "tokens": manifest.tokens,
            "text_bytes": manifest.text_bytes,
            "out_bytes": (out / "train.bin").stat().st_size,
        }

    return call, answer


def _write(job: Mapping[str, Any], scratch: Path) -> Setup:
    out = scratch / "shard.bin"
    return lambda: tasks.copy(Path(job["text"]), out), lambda _: {
        "answer": _digest(out.read_bytes())
    }


def _train(job: Mapping[str, Any], scratch: Path) -> Setup:
    import byteweld

    counts = byteweld.Counts.load(job["folder"])

    def answer(tokenizer: Any) -> dict[str, Any]:
        merges = b"".join(a + b"\0" + b + b"\0" for a, b in tokenizer.vocab.merges)
        return {
            "answer": _digest(merges),
            "least_count": min(tokenizer.training.merge_counts),
            "new_ids": len(tokenizer.training.merge_counts),
        }

    return lambda: byteweld.train(counts, vocab_size=job["vocab_size"], num_threads=1), answer


_SETUPS: dict[str, Callable[[Mapping[str, Any], Path], Setup]] = {
    "count": _count,
    "save": _save,
    "load": _load,
    "merge": _merge,
    "encode": _encode,
    "write": _write,
    "train": _train,
}


def _reset_peak() -> int:
    """Let the kernel forget the peak of resident memory so far; return what is in use now."""
    from byteweld._memory import resident_bytes

    found = resident_bytes()
    Path("/proc/self/clear_refs").write_text("5")
    return found


def _peak() -> int:
    """The peak of resident memory; `getrusage` would include the parent's, from before exec."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024


def _folder_bytes(folders: Iterable[str]) -> int:
    return sum(file.stat().st_size for folder in folders for file in Path(folder).iterdir())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _text_digest(path: Path) -> str:
    """The digest of the text of all documents, without separators, as `tokenize` reads them."""
    return _digest(path.read_bytes().replace(corpora.SEPARATOR.encode(), b""))


# ---------------------------------------------------------------------- the record


def read_rates(path: Path) -> dict[str, list[dict[str, Any]]]:
    """The right runs of each measure's last time in a record."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in path.read_text().splitlines():
        values = json.loads(line)
        runs = found.setdefault(values["name"], [])
        if runs and runs[0]["date"] != values["date"]:
            runs.clear()
        runs.append(values)
    return {name: [run for run in runs if run["ok"] == "yes"] for name, runs in found.items()}


def report(rates: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Medians of each measure, and the merge loop's memory next to its bound."""
    from statistics import median

    from byteweld._memory import training_bytes

    lines = ["measure                     runs   wall s    CPU s     MB/s    rows/s   peak MiB"]
    for name, runs in rates.items():
        if not runs or runs[0]["measure"] == "train":
            continue
        wall, cpu = (median(run[f"{clock}_seconds"] for run in runs) for clock in ("wall", "cpu"))
        rows = f"{runs[0]['rows'] / wall:9,.0f}" if "rows" in runs[0] else " " * 9
        lines.append(
            f"{name:<27} {len(runs):4} {wall:8.3f} {cpu:8.3f} {runs[0]['bytes'] / 1e6 / wall:8.1f} "
            f"{rows} {max(run['peak_rss_bytes'] for run in runs) / 2**20:10.0f}"
        )
    lines += ["", "merge loop                  runs   wall s     distinct   MiB   bound MiB"]
    for name, runs in rates.items():
        if not runs or runs[0]["measure"] != "train":
            continue
        run = runs[0]
        used = max(run["peak_rss_bytes"] - run["resident_before"] for run in runs)
        bound = training_bytes(run["rows"], run["distinct_bytes"], run["new_ids"])
        lines.append(
            f"{name:<27} {len(runs):4} {median(run['wall_seconds'] for run in runs):8.3f} "
            f"{run['rows']:12,} {used / 2**20:5.0f} {bound / 2**20:11.0f}"
        )
    return "\n".join(lines)
