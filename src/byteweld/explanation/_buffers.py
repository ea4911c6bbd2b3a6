"""How ck-bpe-train learns merges: a pool of threads and two buffers that swap roles.

For reading and drawing, not for speed: every iteration counts everything again, as ck does. The
merges are those of `byteweld.train(..., recipe="ck")`, whose engine finds them in another way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, repeat
from typing import NamedTuple

from byteweld.errors import CorpusError
from byteweld.recipes import RECIPES
from byteweld.reference.train import Ids, Pair, Trained, merge
from byteweld.training import Stop
from byteweld.training.plan import LearnedMerge, TrainingPlan, make_plan

Buffer = list[Ids]  # one sequence of ids per file


class Iteration(NamedTuple):
    """One merge, phase by phase: count, merge tables, select, replace, flip."""

    local_counts: list[dict[Pair, int]]  # count: the table of each worker
    pair_counts: dict[Pair, int]  # merge tables: their sum
    merge: LearnedMerge  # select: the highest count, then the smallest ids
    tied: list[Pair]  # the pairs of the same count that lost, in tie order
    before: Sequence[Ids]  # the buffer that was read
    after: Sequence[Ids]  # replace: the buffer that was written; flip: the next one to read


def shards(files: int, workers: int) -> list[range]:
    """Divide the files among the workers: neighbors stay together, sizes differ by at most one.

    >>> shards(5, 2), shards(1, 2)
    ([range(0, 2), range(2, 5)], [range(0, 0), range(0, 1)])
    """
    bounds = [files * worker // workers for worker in range(workers + 1)]
    return [range(first, end) for first, end in pairwise(bounds)]


def train_in_buffers(
    files: Sequence[bytes],
    vocab_size: int,
    *,
    ascii_only: bool = False,
    min_frequency: int = 2,
    workers: int = 4,
    watch: Callable[[Iteration], object] = lambda iteration: None,
) -> Trained:
    """Train as ck does, each file one sequence. `watch` is called after every merge.

    >>> trained = train_in_buffers([b"low low", b"lower"], 262, workers=2)
    >>> trained.merges[0]
    LearnedMerge(left=112, right=115, new=260, pair_count=3)
    """
    if workers < 1:
        raise ValueError(f"workers is {workers}; it must be at least 1")
    recipe = RECIPES["ck-ascii" if ascii_only else "ck"].replace(min_frequency=min_frequency)
    plan = make_plan(vocab_size, recipe)
    tokens = dict(plan.base.tokens)
    read: Buffer = [_to_ids(name, file, plan) for name, file in enumerate(files)]  # seq_a
    write: Buffer = [()] * len(files)  # seq_b
    mine = shards(len(files), workers)
    merges: list[LearnedMerge] = []
    stopped: Stop = "size"
    with ThreadPoolExecutor(workers) as pool:
        while len(merges) < plan.max_new_ids:
            local_counts = list(pool.map(count_shard, repeat(read), mine))
            pair_counts = merge_tables(local_counts)
            allowed = {
                (left, right): count
                for (left, right), count in pair_counts.items()
                if tokens[left] + tokens[right] not in plan.forbidden
            }
            if not allowed:
                stopped = "no pairs"
                break
            best, *tied = select(allowed)
            if allowed[best] < min_frequency:
                stopped = "min frequency"
                break
            learned = LearnedMerge(*best, len(tokens), allowed[best])
            tokens[learned.new] = tokens[learned.left] + tokens[learned.right]
            merges.append(learned)
            before = tuple(read)
            list(pool.map(rewrite_shard, repeat(read), repeat(write), mine, repeat(learned)))
            read, write = write, read
            watch(Iteration(local_counts, pair_counts, learned, tied, before, tuple(read)))
    return Trained(plan.vocabulary([learned[:3] for learned in merges]), tuple(merges), stopped)


def count_shard(read: Buffer, shard: range) -> dict[Pair, int]:
    """Count every pair in the worker's own files, in the worker's own table: nothing is shared."""
    counts: Counter[Pair] = Counter()
    for file in shard:
        counts.update(pairwise(read[file]))
    return dict(counts)


def merge_tables(local_counts: Sequence[Mapping[Pair, int]]) -> dict[Pair, int]:
    """Add the tables of the workers to a global one."""
    total: Counter[Pair] = Counter()
    for counts in local_counts:
        total.update(counts)
    return dict(total)


def select(pair_counts: Mapping[Pair, int]) -> list[Pair]:
    """Return the pairs with the highest count, smallest ids first: the first one wins."""
    highest = max(pair_counts.values())
    return sorted(pair for pair, count in pair_counts.items() if count == highest)


def rewrite_shard(read: Buffer, write: Buffer, shard: range, learned: LearnedMerge) -> None:
    """Rewrite the worker's own files from one buffer to the other, with the pair replaced."""
    for file in shard:
        write[file] = merge(read[file], (learned.left, learned.right), learned.new)


def _to_ids(name: int, file: bytes, plan: TrainingPlan) -> Ids:
    ids = plan.base.ids
    for offset, byte in enumerate(file):
        if bytes([byte]) not in ids:
            raise CorpusError(
                f"byte 0x{byte:02X} at offset {offset} of file {name} is outside ASCII; "
                "remove it, or train without ascii_only"
            )
    return tuple(ids[bytes([byte])] for byte in file)
