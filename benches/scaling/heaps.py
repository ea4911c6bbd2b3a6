"""Heaps' law: how the number of distinct pre-tokens V grows with n bytes of text, V = K n^beta.

`measure` counts samples of doubling size, `fit` finds K and beta. Of n bytes, the pre-tokens that
occur at least t times are about those of n / t bytes, and fewer: both are the pre-tokens with an
expected count above a limit, one sharply cut, one not. `report` shows how well that holds.

The share of pre-tokens that occur once is often taken as the slope of log V against log n. That
holds for shuffled words, not for shuffled documents: words repeat within a document, so fewer occur
once, and V grows faster than that share says.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scaling import corpora

THRESHOLDS = (2, 3, 5, 10, 100, 1000)
TAIL = 4  # the last points, a factor of eight in size: the fit of the tail
_LEAST_BYTES = 1_000_000
SAMPLES = 4  # of each size, at most; they do not overlap
RECIPE = "modern"


@dataclass(frozen=True)
class Pruned:
    """What pruning below a threshold leaves out."""

    threshold: int
    distinct: int
    occurrences: int
    pair_error: int


@dataclass(frozen=True)
class Point:
    """The counts of one sample."""

    corpus: str
    halving: int  # the sample is this part of the corpus: 1 / 2^halving
    documents: int
    bytes: int
    pretokens: int  # repetitions included
    distinct: int
    distinct_bytes: int
    saved_bytes: int  # of the folder of Parquet files
    empty_bytes: int  # of a folder without rows: the footers
    pruned: tuple[Pruned, ...]

    @property
    def once(self) -> float:
        """The share of distinct pre-tokens that occur once."""
        return self.pruned[0].distinct / self.distinct


@dataclass(frozen=True)
class Fit:
    """V = exp(log_k) n^beta, by least squares in logarithms."""

    log_k: float
    beta: float
    residuals: tuple[float, ...]  # of log V; 0.01 is 1%

    def __call__(self, size: float) -> float:
        return math.exp(self.log_k + self.beta * math.log(size))

    @property
    def worst(self) -> float:
        return max(map(abs, self.residuals))


def fit(sizes: Sequence[float], values: Sequence[float]) -> Fit:
    """Fit a power law; the fit of a single point is not defined."""
    if len(sizes) != len(values) or len(sizes) < 2:
        raise ValueError(f"expected at least two points, found {len(sizes)}, {len(values)}")
    x, y = [math.log(size) for size in sizes], [math.log(value) for value in values]
    mean_x, mean_y = math.fsum(x) / len(x), math.fsum(y) / len(y)
    spread = math.fsum((a - mean_x) ** 2 for a in x)
    beta = math.fsum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread
    log_k = mean_y - beta * mean_x
    return Fit(log_k, beta, tuple(b - log_k - beta * a for a, b in zip(x, y, strict=True)))


def fits(points: Sequence[Point], value: Callable[[Point], float]) -> tuple[Fit, Fit]:
    """The fit of all points, and that of the tail."""
    sizes, values = [point.bytes for point in points], [value(point) for point in points]
    return fit(sizes, values), fit(sizes[-TAIL:], values[-TAIL:])


@dataclass(frozen=True)
class Saved:
    """The bytes of saved counts by bytes of text: footers, and rows that grow by a power law."""

    footers: int
    rows: Fit

    @classmethod
    def of(cls, points: Sequence[Point]) -> Saved:
        _, rows = fits(points, lambda point: point.saved_bytes - point.empty_bytes)
        return cls(points[-1].empty_bytes, rows)

    def __call__(self, size: float) -> float:
        return self.footers + self.rows(size)


# ---------------------------------------------------------------------- measuring


def measure(name: str, whole: Sequence[bytes], scratch: Path) -> Iterable[Point]:
    """Count samples of a corpus: all of it, its halves, up to four of its quarters and so on."""
    import byteweld

    order = corpora.shuffled(whole)
    total = sum(map(len, order))
    halvings = max(0, int(math.log2(total / _LEAST_BYTES)))
    parts = [
        (halving, part)
        for halving in range(halvings, -1, -1)
        for part in range(min(2**halving, SAMPLES))
    ]
    for halving, part in parts:
        taken = corpora.sample(order, total >> halving, start=part * (total >> halving))
        counts = byteweld.count(documents=taken, recipe=RECIPE, num_threads=1)
        distinct, distinct_bytes, pretokens, _ = counts._table.sums()
        counts.save(scratch, overwrite=True)
        saved_bytes = _folder_bytes(scratch)
        counts.prune(2**63).save(scratch, overwrite=True)
        pruned = (counts.prune(threshold).pruning for threshold in THRESHOLDS)
        yield Point(
            corpus=name,
            halving=halving,
            documents=len(taken),
            bytes=sum(map(len, taken)),
            pretokens=pretokens,
            distinct=distinct,
            distinct_bytes=distinct_bytes,
            saved_bytes=saved_bytes,
            empty_bytes=_folder_bytes(scratch),
            pruned=tuple(
                Pruned(found.threshold, found.distinct, found.occurrences, found.pair_error)
                for found in pruned
                if found is not None
            ),
        )


def _folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


# ---------------------------------------------------------------------- the record


def as_line(point: Point, machine: dict[str, Any], sha256: str) -> str:
    """A line of the record."""
    return json.dumps({**machine, "corpus_sha256": sha256, **asdict(point)})


def average(points: Iterable[Point]) -> list[Point]:
    """One point for each size, smallest first: the means of its samples."""
    by_size: dict[int, list[Point]] = {}
    for point in points:
        by_size.setdefault(point.halving, []).append(point)
    return [_mean(by_size[halving]) for halving in sorted(by_size, reverse=True)]


def _mean(same: Sequence[Point]) -> Point:
    def mean(values: Iterable[int]) -> int:
        return round(sum(values) / len(same))

    numbers = ("documents", "bytes", "pretokens", "distinct", "distinct_bytes", "saved_bytes")
    numbers += ("empty_bytes",)
    pruned = tuple(
        Pruned(
            threshold=cuts[0].threshold,
            distinct=mean(cut.distinct for cut in cuts),
            occurrences=mean(cut.occurrences for cut in cuts),
            pair_error=mean(cut.pair_error for cut in cuts),
        )
        for cuts in zip(*(point.pruned for point in same), strict=True)
    )
    values = {name: mean(getattr(point, name) for point in same) for name in numbers}
    return Point(corpus=same[0].corpus, halving=same[0].halving, pruned=pruned, **values)


def read_points(path: Path) -> dict[str, list[Point]]:
    """The averaged points of each corpus in a record; of several times, the last."""
    found: dict[str, tuple[str, list[Point]]] = {}
    for line in path.read_text().splitlines():
        values = json.loads(line)
        date = values["date"]
        if values["corpus"] not in found or found[values["corpus"]][0] != date:
            found[values["corpus"]] = (date, [])
        names = Point.__dataclass_fields__.keys() - {"pruned"}
        pruned = tuple(Pruned(**entry) for entry in values["pruned"])
        point = Point(**{key: values[key] for key in names}, pruned=pruned)
        found[values["corpus"]][1].append(point)
    return {name: average(points) for name, (_, points) in found.items()}


# ---------------------------------------------------------------------- showing


def report(points: dict[str, list[Point]]) -> str:
    """The fits of each corpus, the points of the largest, and what pruning leaves out."""
    lines = [
        "corpus         MB    distinct  bytes  saved/text   once   beta, all points   beta, tail"
    ]
    for name, measured in points.items():
        last = measured[-1]
        whole, tail = fits(measured, lambda point: point.distinct)
        lines.append(
            f"{name:<9} {last.bytes / 1e6:7.0f} {last.distinct:11,} "
            f"{last.distinct_bytes / last.distinct:6.1f} {last.saved_bytes / last.bytes:11.2%} "
            f"{last.once:6.3f} "
            f"{whole.beta:8.3f} (+-{whole.worst:.1%}) {tail.beta:6.3f} (+-{tail.worst:.1%})"
        )
    name, measured = max(points.items(), key=lambda entry: entry[1][-1].bytes)
    lines += ["", f"{name}:     MB    distinct   slope    once   saved MB  saved/text"]
    for before, point in zip([None, *measured], measured, strict=False):
        slope = "" if before is None else f"{fit(*_pairs(before, point)).beta:.3f}"
        lines.append(
            f"{point.bytes / 1e6:14.1f} {point.distinct:11,} {slope:>7} {point.once:7.3f} "
            f"{point.saved_bytes / 1e6:10.1f} {point.saved_bytes / point.bytes:11.2%}"
        )
    lines += ["", *_pruning(name, measured)]
    return "\n".join(lines)


def _pairs(*points: Point) -> tuple[list[float], list[float]]:
    return [point.bytes for point in points], [point.distinct for point in points]


def _pruning(name: str, measured: Sequence[Point]) -> Iterable[str]:
    yield (
        f"{name}: below   distinct left out   of all text        kept   of 1/t of the text"
        "   pair error"
    )
    last = measured[-1]
    for cut in last.pruned:
        kept = last.distinct - cut.distinct
        smaller = interpolate(measured, last.bytes / cut.threshold)
        yield (
            f"{cut.threshold:12,} {cut.distinct / last.distinct:19.1%} "
            f"{cut.occurrences / last.pretokens:13.2%} {kept:11,} {smaller:20,.0f} "
            f"{cut.pair_error:12,}"
        )


def interpolate(measured: Sequence[Point], size: float) -> float:
    """Distinct pre-tokens of a sample of any size, on straight lines between logarithms."""
    above = next((n for n, point in enumerate(measured) if point.bytes >= size), len(measured) - 1)
    above = max(1, above)
    return fit(*_pairs(measured[above - 1], measured[above]))(size)
