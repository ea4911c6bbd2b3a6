"""What a corpus takes: core-hours, distinct pre-tokens, shuffled bytes, memory, money.

Rates and growth come from the record, everything else from scale.toml. Times of tasks are CPU-bound
rates plus the time to move bytes to or from the shared folder, one after the other: an upper bound,
since the two overlap in part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from types import SimpleNamespace
from typing import Any

from scaling import heaps

_PER_HOUR = 3600
ROW_GROUP_ROWS = 1 << 16  # a reader of a run holds one row group
# The trainer numbers the bytes of all distinct pre-tokens, and an edge each, with 32 bits
# (crates/byteweld-core/src/train/layout.rs).
MAX_SLOTS = 2**32 - 1


def training_bytes(distinct: float, distinct_bytes: float, new_ids: int) -> float:
    """The bound that byteweld itself uses, which refuses a training above its budget."""
    from byteweld import _memory

    return _memory.training_bytes(int(distinct), int(distinct_bytes), new_ids)


@dataclass(frozen=True)
class Model:
    """Measured rates, per second on one core, and laws of growth, in bytes of text."""

    whole: heaps.Fit  # distinct pre-tokens; the fit of all points, and of the tail
    tail: heaps.Fit
    saved: heaps.Saved
    pretoken_bytes: float  # of a distinct pre-token, on average
    saved_bytes_per_row: float  # of the largest sample
    left_out: heaps.Fit  # the share of text that pruning leaves out, by bytes / threshold
    pair_error: heaps.Fit  # the bound on the error of a pair, per byte, by bytes / threshold
    count_bytes: float
    save_rows: float
    merge_rows: float
    encode_bytes: float
    write_bytes: float
    text_bytes_per_token: float
    train_seconds_per_row: float
    train_fixed_seconds: float
    least_count_per_byte: float  # the count of the last merge

    @classmethod
    def from_record(
        cls,
        points: Sequence[heaps.Point],
        rates: Mapping[str, Sequence[Mapping[str, Any]]],
        vocab_size: int = 128_000,
    ) -> Model:
        whole, tail = heaps.fits(points, lambda point: point.distinct)
        trained = [
            runs
            for runs in rates.values()
            if runs and runs[0]["measure"] == "train" and runs[0]["vocab_size"] == vocab_size
        ]
        seconds = [(runs[0]["rows"], median(r["wall_seconds"] for r in runs)) for runs in trained]
        fixed, slope = _line(seconds)
        encoded = rates["encode"][0]
        real = [runs[0] for runs in trained if "ciphers" not in runs[0].get("name", "")]
        largest = max(real, key=lambda run: run["rows"])
        return cls(
            whole=whole,
            tail=tail,
            saved=heaps.Saved.of(points),
            pretoken_bytes=points[-1].distinct_bytes / points[-1].distinct,
            saved_bytes_per_row=points[-1].saved_bytes / points[-1].distinct,
            left_out=pruning_law(points, lambda cut, p: cut.occurrences / p.pretokens),
            pair_error=pruning_law(points, lambda cut, p: cut.pair_error / p.bytes),
            count_bytes=_rate(rates["count"], "bytes"),
            save_rows=_rate(rates["save"], "rows"),
            merge_rows=_rate(rates["merge and save"], "rows"),
            encode_bytes=_rate(rates["encode"], "bytes"),
            write_bytes=_rate(rates["write"], "bytes"),
            text_bytes_per_token=encoded["text_bytes"] / encoded["tokens"],
            train_seconds_per_row=slope,
            train_fixed_seconds=fixed,
            least_count_per_byte=largest["least_count"] / largest["bytes"],
        )


def pruning_law(
    points: Sequence[heaps.Point], value: Callable[[heaps.Pruned, heaps.Point], float]
) -> heaps.Fit:
    """A power law in bytes / threshold, from thresholds of at least 10 and samples above 50 MB."""
    found = [
        (point.bytes / cut.threshold, value(cut, point))
        for point in points[-heaps.TAIL :]
        for cut in point.pruned
        if cut.threshold >= 10
    ]
    return heaps.fit(*zip(*found, strict=True))


def _rate(runs: Sequence[Mapping[str, Any]], of: str) -> float:
    return float(runs[0][of] / median(run["wall_seconds"] for run in runs))


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Intercept and slope by least squares."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum(
        (x - mean_x) ** 2 for x, _ in points
    )
    return mean_y - slope * mean_x, slope


@dataclass(frozen=True)
class Kept:
    """The merge loop on what pruning leaves."""

    threshold: int
    distinct: tuple[float, float]
    memory: tuple[float, float]
    fits: str  # whether the trainer has enough slots: yes, no, or that depends on the fit
    left_out: float  # share of the text
    word_error: int
    pair_error: float
    seconds: tuple[float, float]


@dataclass(frozen=True)
class Estimate:
    """What a corpus takes. A pair is a range: by the fit of the tail, and by that of all points."""

    slices: int
    files: int
    count_hours: float
    reduce_hours: float
    reduce_wall_hours: float
    two_level_hours: float
    two_level_wall_hours: float
    driver_hours: float  # to look at every slice, one after another
    encode_hours: float
    write_hours: float
    distinct: tuple[float, float]
    counts_bytes: tuple[float, float]
    shuffled_rows: float
    shuffled_bytes: float
    fan_in_bytes: float
    ids_bytes: float
    kept: tuple[Kept, ...]
    least_count: float
    core_cost: float
    storage_cost: float
    transfer_cost: float

    @property
    def core_hours(self) -> float:
        return self.count_hours + self.reduce_hours + self.encode_hours + self.write_hours

    @property
    def cost(self) -> float:
        return self.core_cost + self.storage_cost + self.transfer_cost


def estimate(model: Model, size: float, values: SimpleNamespace) -> Estimate:
    """Estimate what `size` bytes of text take."""
    laws = (model.tail, model.whole)
    store = values.store_mb_per_second * 1e6
    slices = math.ceil(size / values.slice_bytes)
    slice_bytes = size / slices
    rows = slices * model.tail(slice_bytes)
    shuffled = slices * model.saved(slice_bytes)
    distinct = _ordered(law(size) for law in laws)
    counts_bytes = _ordered(count * model.saved_bytes_per_row for count in distinct)
    ids = size / model.text_bytes_per_token * values.id_bytes
    count = size / model.count_bytes + size / store + rows / model.save_rows + shuffled / store
    merge = _merge(model, values)
    reduce = merge(slices, slice_bytes) + counts_bytes[1] / store
    wide = min(values.partitions, values.workers)
    groups = math.ceil(slices / values.fan_in)
    group_bytes = size / groups
    group_saved = groups * model.saved(group_bytes) / store
    first = merge(slices, slice_bytes) + group_saved
    second = merge(groups, group_bytes) + counts_bytes[1] / store
    first_wide = min(values.partitions * groups, values.workers)
    encode = size / model.encode_bytes + size / store + ids / store
    write = ids / model.write_bytes + 2 * ids / store
    hours = (count + reduce + encode + write) / _PER_HOUR
    stored = shuffled + counts_bytes[1] + 2 * ids
    moved = 2 * size + 2 * shuffled + counts_bytes[1] + 3 * ids
    return Estimate(
        slices=slices,
        files=slices * values.partitions,
        count_hours=count / _PER_HOUR,
        reduce_hours=reduce / _PER_HOUR,
        reduce_wall_hours=reduce / wide / _PER_HOUR,
        two_level_hours=(first + second) / _PER_HOUR,
        two_level_wall_hours=(first / first_wide + second / wide) / _PER_HOUR,
        driver_hours=slices * values.file_open_seconds / _PER_HOUR,
        encode_hours=encode / _PER_HOUR,
        write_hours=write / _PER_HOUR,
        distinct=distinct,
        counts_bytes=counts_bytes,
        shuffled_rows=rows,
        shuffled_bytes=shuffled,
        fan_in_bytes=slices * _group_bytes(model, slice_bytes, values.partitions),
        ids_bytes=ids,
        kept=tuple(_kept(model, size, threshold, values) for threshold in values.thresholds),
        least_count=model.least_count_per_byte * size,
        core_cost=hours * values.price_core_hour,
        storage_cost=stored / 1e9 * values.price_gb_month * values.months,
        transfer_cost=moved / 1e9 * values.price_gb_transferred,
    )


def _merge(model: Model, values: SimpleNamespace) -> Callable[[int, float], float]:
    """Seconds to read and merge runs, without writing the result to the shared folder."""

    def seconds(runs: int, run_text_bytes: float) -> float:
        rows, saved = runs * model.tail(run_text_bytes), runs * model.saved(run_text_bytes)
        opens = runs * values.partitions * values.file_open_seconds
        return rows / model.merge_rows + saved / values.store_mb_per_second / 1e6 + opens

    return seconds


def _group_bytes(model: Model, slice_bytes: float, partitions: int) -> float:
    """The memory of one open run: a row group, or the whole run if it has fewer rows."""
    rows = min(ROW_GROUP_ROWS, model.tail(slice_bytes) / partitions)
    return rows * (model.pretoken_bytes + 12)  # an offset of 4 bytes, a count of 8


def _kept(model: Model, size: float, threshold: int, values: SimpleNamespace) -> Kept:
    distinct = _ordered(law(size / threshold) for law in (model.tail, model.whole))
    seconds = (model.train_fixed_seconds + model.train_seconds_per_row * n for n in distinct)
    memory = (training_bytes(n, n * model.pretoken_bytes, values.vocab_size) for n in distinct)
    is_exact = threshold <= 1
    return Kept(
        threshold=threshold,
        distinct=distinct,
        memory=_ordered(memory),
        fits=_fits([n * (1 + model.pretoken_bytes) for n in distinct]),
        left_out=0.0 if is_exact else model.left_out(size / threshold),
        word_error=threshold - 1,
        pair_error=0.0 if is_exact else model.pair_error(size / threshold) * size,
        seconds=_ordered(seconds),
    )


def _fits(slots: Sequence[float]) -> str:
    if max(slots) <= MAX_SLOTS:
        return "yes"
    return "no" if min(slots) > MAX_SLOTS else "unsure"


def exact_limit(model: Model) -> tuple[float, float]:
    """The bytes of text whose distinct pre-tokens just fit the trainer, without pruning."""
    distinct = MAX_SLOTS / (1 + model.pretoken_bytes)
    return _ordered(
        math.exp((math.log(distinct) - law.log_k) / law.beta) for law in (model.tail, model.whole)
    )


def _ordered(values: Any) -> tuple[float, float]:
    low, high = sorted(values)
    return low, high


# ---------------------------------------------------------------------- showing


def report(model: Model, values: SimpleNamespace) -> str:
    """Markdown tables: what the corpora take, and the merge loop by threshold."""
    sizes = (values.small_bytes, values.large_bytes, values.common_crawl_bytes)
    names = [amount(size) for size in sizes[:2]] + [f"Common Crawl, {amount(sizes[2])}"]
    found = [estimate(model, size, values) for size in sizes]
    rows: list[tuple[str, Callable[[Estimate], str]]] = [
        (f"slices of {values.slice_bytes / 2**30:g} GiB", lambda e: f"{e.slices:,}"),
        ("files of runs", lambda e: f"{e.files:,}"),
        ("driver, one look per slice", lambda e: duration(e.driver_hours * _PER_HOUR)),
        ("counting, core-hours", lambda e: hours(e.count_hours)),
        ("reduce, core-hours", lambda e: hours(e.reduce_hours)),
        (
            f"reduce on {values.partitions} partitions",
            lambda e: duration(e.reduce_wall_hours * _PER_HOUR),
        ),
        ("reduce in two levels, core-hours", lambda e: hours(e.two_level_hours)),
        (
            f"reduce in two levels, {values.workers:,} workers",
            lambda e: duration(e.two_level_wall_hours * _PER_HOUR),
        ),
        ("encoding, core-hours", lambda e: hours(e.encode_hours)),
        ("writing, core-hours", lambda e: hours(e.write_hours)),
        ("shuffled rows", lambda e: number(e.shuffled_rows)),
        ("shuffled bytes", lambda e: amount(e.shuffled_bytes)),
        ("memory of a reduce that opens all runs", lambda e: amount(e.fan_in_bytes)),
        ("distinct pre-tokens", lambda e: between(e.distinct, number)),
        ("saved counts", lambda e: between(e.counts_bytes, amount)),
        ("ids", lambda e: amount(e.ids_bytes)),
        ("core-hours in all", lambda e: hours(e.core_hours)),
        (f"cores, at {values.price_core_hour:g} per hour", lambda e: money(e.core_cost)),
        (f"files, at {values.price_gb_month:g} per GB-month", lambda e: money(e.storage_cost)),
        (f"transfers, at {values.price_gb_transferred:g} per GB", lambda e: money(e.transfer_cost)),
        ("money in all", lambda e: money(e.cost)),
    ]
    lines = table(["", *names], [[label, *map(show, found)] for label, show in rows])
    heads = ["text", "prune below", "pre-tokens kept, at most", "fits", "memory", "one core"]
    heads += ["text left out", "error of a word", "error of a pair", "last merge"]
    kept_rows = [
        [
            name,
            f"{kept.threshold:,}" if kept.threshold > 1 else "(exact)",
            between(kept.distinct, number),
            kept.fits,
            between(kept.memory, amount),
            between(kept.seconds, duration),
            f"{100 * kept.left_out:.1g}%" if kept.left_out else "0",
            f"{kept.word_error:,}",
            number(kept.pair_error),
            number(each.least_count),
        ]
        for name, each in zip(names, found, strict=True)
        for kept in each.kept
    ]
    title = f"The merge loop, {values.vocab_size:,} tokens:"
    limit = (
        f"The trainer's 32-bit positions fit {number(MAX_SLOTS / (1 + model.pretoken_bytes))} "
        f"pre-tokens: those of {between(exact_limit(model), amount)} of text, without pruning."
    )
    return "\n".join([*lines, "", title, "", *table(heads, kept_rows), "", limit])


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table; all columns but the first are aligned to the right."""
    rule = ["---", *(["---:"] * (len(heads) - 1))]
    return ["| " + " | ".join(row) + " |" for row in [heads, rule, *rows]]


def between(values: tuple[float, float], show: Callable[[float], str]) -> str:
    low, high = map(show, values)
    return low if low == high else f"{low} - {high}"


def amount(size: float) -> str:
    """Bytes with two digits and a decimal unit."""
    for unit, name in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if size >= unit:
            return f"{_two(size / unit)} {name}"
    return f"{size:.0f} B"


def number(value: float) -> str:
    for unit, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{_two(value / unit)} {name}"
    return f"{value:.0f}"


def hours(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def duration(seconds: float) -> str:
    for unit, name in ((3600, "h"), (60, "min")):
        if seconds >= unit:
            return f"{_two(seconds / unit)} {name}"
    return f"{_two(seconds)} s"


def money(value: float) -> str:
    return f"{_two(value):}" if value < 1000 else f"{float(f'{value:.2g}'):,.0f}"


def _two(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
