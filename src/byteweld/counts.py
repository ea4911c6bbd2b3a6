"""Counts: how often each pre-token occurs. Tables add up, so counting can be distributed."""

from __future__ import annotations

import dataclasses
import functools
import heapq
import itertools
import operator
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from byteweld import _memory, _native, counts_files
from byteweld._memory import Memory as Memory
from byteweld._saves import read_together
from byteweld._text import batches
from byteweld.corpus import Corpus, check_local
from byteweld.counts_files import PARTS, CountFacts
from byteweld.counts_files import Pruning as Pruning
from byteweld.errors import BudgetError, check_text
from byteweld.recipes import ALPHABETS, Recipe


class Counts:
    """How often each pre-token occurs (64-bit). Immutable.

    `byteweld.count` makes one from a corpus. `counts[pretoken]` is a count, 0 if the pre-token does
    not occur; iterating yields the pre-tokens in order; `+` adds two tables. Counts that do not fit
    in a memory budget are in an unnamed file on disk, and are read in order.

    Args:
        counts: the count of each pre-token.
        pattern: the pattern that split the documents; None if there was none.
        boundaries: the special tokens at which documents were split; None if unknown.
        skipped_documents: number of documents that were left out.

    Examples:
        >>> counts = byteweld.Counts({b"low": 5, b"lower": 2})
        >>> counts[b"low"], len(counts), counts.total, counts.total_bytes
        (5, 2, 7, 25)
        >>> counts.items(), counts.most_common(1)
        ([(b'low', 5), (b'lower', 2)], [(b'low', 5)])
        >>> sum(int(numbers.sum()) for pretokens, numbers in counts.batches())
        7
        >>> one = byteweld.Counts({b"low": 1})
        >>> (counts + one)[b"low"], byteweld.Counts.merge([counts, one, one])[b"low"]
        (6, 7)
        >>> counts.prune(3).items(), counts.prune(3).pruning.pair_error  # see `prune`
        ([(b'low', 5)], 2)
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     counts.save(f"{folder}/counts")
        ...     byteweld.Counts.load(f"{folder}/counts") == counts
        True

        What split the documents:

        >>> specials = ["<|end|>"]
        >>> text = byteweld.count(documents=["low"], recipe="ck-ascii", special_tokens=specials)
        >>> text.pattern, text.boundaries, text.alphabet, text.skipped_documents
        (None, ('<|end|>',), 'ascii', 0)

        Before a long run, whether it may take too much memory, and whether a folder can be written:

        >>> counts.check_training(1000, "8GB")
        >>> counts.training_bytes(32_768) < 2 << 30
        True
        >>> byteweld.Counts.check_saving("new-folder"), byteweld.Counts.is_saved_at("new-folder")
        (None, False)
    """

    __slots__ = ("_facts", "_table")

    _table: _native.Counts
    _facts: CountFacts

    def __init__(
        self,
        counts: Mapping[bytes, int],
        *,
        pattern: str | None = None,
        boundaries: Sequence[str] | None = None,
        skipped_documents: int = 0,
    ) -> None:
        if not isinstance(counts, Mapping):
            raise TypeError(f"expected a mapping from pre-token to count, found {counts!r}")
        for pretoken, count in counts.items():
            if not isinstance(pretoken, bytes) or not pretoken:
                raise TypeError(f"a pre-token is {pretoken!r}; expected non-empty bytes")
            if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count < 2**64:
                raise ValueError(
                    f"the count of {pretoken!r} is {count!r}; expected a whole number below 2^64"
                )
        if pattern is not None:
            check_text("pattern", pattern)
        for text in boundaries or ():
            check_text("a boundary", text)
        facts = CountFacts(
            pattern=pattern,
            boundaries=None if boundaries is None else tuple(boundaries),
            skipped_documents=skipped_documents,
        )
        self._set(_native.Counts(sorted(counts.items())), facts)

    def _set(self, table: _native.Counts, facts: CountFacts) -> None:
        object.__setattr__(self, "_table", table)
        object.__setattr__(self, "_facts", facts)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("Counts are immutable")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("Counts are immutable")

    @classmethod
    def _of(cls, table: _native.Counts, facts: CountFacts) -> Self:
        counts = cls.__new__(cls)
        counts._set(table, facts)
        return counts

    @property
    def pattern(self) -> str | None:
        """The pattern that split the documents."""
        return self._facts.pattern

    @property
    def boundaries(self) -> tuple[str, ...] | None:
        """The special tokens at which documents were split; None if unknown."""
        return self._facts.boundaries

    @property
    def alphabet(self) -> str | None:
        """`ascii` if no other bytes were allowed; otherwise None."""
        return self._facts.alphabet

    @property
    def skipped_documents(self) -> int:
        """Number of documents left out because of `on_error="skip"`."""
        return self._facts.skipped_documents

    @property
    def pruning(self) -> Pruning | None:
        """Which rare pre-tokens were left out, with error bounds; None if none were."""
        return self._facts.pruning

    @property
    def is_on_disk(self) -> bool:
        """Whether the counts are on disk because they did not fit in the memory budget."""
        return self._table.is_spilled

    @property
    def total(self) -> int:
        """Total number of pre-tokens, repetitions included."""
        return self._table.sums()[2]

    @property
    def total_bytes(self) -> int:
        """Total number of bytes of all pre-tokens, repetitions included."""
        return self._table.sums()[3]

    def items(self) -> list[tuple[bytes, int]]:
        """Return all (pre-token, count) pairs, ordered by pre-token."""
        return self._table.items()

    def most_common(self, n: int | None = None) -> list[tuple[bytes, int]]:
        """Return the n most frequent pre-tokens with their counts; ties are ordered by bytes."""
        return self._table.most_common(len(self) if n is None else max(n, 0))

    def batches(self) -> Iterator[tuple[list[bytes], Any]]:
        """Yield all pre-tokens in batches, each with an array of counts, in no particular order.

        For tables that are too large for `items`.
        """
        for part in range(PARTS):
            for offsets, data, counts in counts_files.batches(self._table, part):
                yield _split(offsets, data), counts

    def check_training(self, new_ids: int, memory: Memory, *, step_by_step: bool = False) -> None:
        """Raise if training `new_ids` new tokens may exceed the memory budget.

        Args:
            new_ids: number of merges to learn.
            memory: the budget, such as "2GB".
            step_by_step: for `explain_training`, which records every step.

        Raises:
            BudgetError: if the budget is too small; it says what would be enough.
        """
        budget, resident = _memory.parse_memory(memory), _memory.resident_bytes()
        needed = resident + self.training_bytes(new_ids, step_by_step=step_by_step)
        if needed > budget:
            distinct, distinct_bytes, _, _ = self._table.sums()
            amount = _memory.amount
            less = "show fewer merges" if step_by_step else "leave out rare pre-tokens (prune=2)"
            raise BudgetError(
                f"training {new_ids} new tokens on {distinct} distinct pre-tokens of "
                f"{distinct_bytes} bytes may need {amount(needed)}, including {amount(resident)} "
                f"that the process already uses; the budget is {amount(budget)}; raise it, {less}, "
                "or save the counts and train from them on a larger machine",
                needed=needed,
            )

    def training_bytes(self, new_ids: int, *, step_by_step: bool = False) -> int:
        """Return an upper bound on the memory of training `new_ids` new tokens, in bytes.

        The counts themselves are not included. `step_by_step` is for `explain_training`.
        """
        distinct, distinct_bytes, _, _ = self._table.sums()
        return _memory.training_bytes(
            distinct, distinct_bytes, operator.index(new_ids), step_by_step=step_by_step
        )

    @staticmethod
    def merge(
        tables: Iterable[Counts | str | os.PathLike[str]],
        *,
        memory: Memory | None = None,
        num_threads: int | None = None,
    ) -> Counts:
        """Add any number of tables and folders of saved tables; their order does not matter.

        Args:
            tables: the Counts, or the folders that `save` wrote.
            memory: a budget; tables that do not fit are merged on disk.
            num_threads: default: one per processor.

        Raises:
            ValueError: if they were made with different patterns or special tokens.
        """
        found = [
            table if isinstance(table, Counts) else Counts.load(table, memory=memory)
            for table in tables
        ]
        facts = merge_facts([table._facts for table in found])
        budget = _memory.divide(memory, num_threads)
        merged = _native.Counts.merge(
            [table._table for table in found], limit=budget.limit, num_threads=budget.num_threads
        )
        return Counts._of(merged, facts)

    def prune(self, threshold: int, *, memory: Memory | None = None) -> Counts:
        """Leave out pre-tokens that occur fewer than `threshold` times.

        In a large corpus, most distinct pre-tokens are rare, so this saves memory. Training on the
        result is inexact; its `pruning` bounds the error.
        """
        if isinstance(threshold, bool) or not isinstance(threshold, int):
            raise TypeError(f"threshold is {threshold!r}; it must be an integer")
        if not 1 <= threshold < 2**64:
            raise ValueError(f"threshold is {threshold}; it must be at least 1 and below 2^64")
        limit = _memory.divide(memory, 1).limit
        table, (distinct, occurrences, size, pair_error) = self._table.prune(threshold, limit=limit)
        pruning = Pruning(
            threshold=threshold,
            distinct=distinct,
            occurrences=occurrences,
            bytes=size,
            word_error=threshold - 1 if distinct else 0,
            pair_error=pair_error,
        )
        both = _added([self._facts.pruning, pruning])
        return Counts._of(table, dataclasses.replace(self._facts, pruning=both))

    def __add__(self, other: Counts) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        return Counts.merge([self, other])

    def __getitem__(self, pretoken: bytes) -> int:
        return self._table.get(pretoken)

    def __contains__(self, pretoken: object) -> bool:
        return isinstance(pretoken, bytes) and self._table.get(pretoken) > 0

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[bytes]:
        if not self.is_on_disk:
            return (pretoken for pretoken, _ in self.items())
        return heapq.merge(*(_pretokens(self._table, part) for part in range(PARTS)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        return (
            self.pattern == other.pattern
            and self.boundaries == other.boundaries
            and len(self) == len(other)
            and all(_same_part(self._table, other._table, part) for part in range(PARTS))
        )

    __hash__ = None  # type: ignore[assignment]  # equality reads every entry

    def __reduce__(self) -> tuple[object, ...]:
        parts = [list(counts_files.batches(self._table, part)) for part in range(PARTS)]
        return (_rebuild, (parts, self._facts))

    def __repr__(self) -> str:
        return f"<Counts {len(self)} pre-tokens, {self.total} in all>"

    # ------------------------------------------------------------------ saving

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write a folder of sixteen sorted Parquet files, and a manifest with pattern and totals.

        Equal counts give identical files, however they were made.

        Args:
            path: the folder; it must be new, or empty, unless `overwrite`.
            overwrite: whether to replace saved counts.
        """
        check_local(path)
        counts_files.write_folder(path, self._table, self._facts, overwrite=overwrite)

    @staticmethod
    def check_saving(path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Raise now, before counting, if `save` could not write to `path`."""
        check_local(path)
        counts_files.check_target(path, overwrite=overwrite)

    @staticmethod
    def load(path: str | os.PathLike[str], *, memory: Memory | None = None) -> Counts:
        """Read a folder that `save` wrote, checking every row.

        Args:
            path: the folder.
            memory: a budget; counts that do not fit stay on disk.

        Raises:
            FormatError: if a file is missing, damaged, or not of saved counts.
        """

        def read(target: Path) -> Counts:
            folder = counts_files.open_folder(target)
            table = counts_files.read_folder(folder, limit_of(memory, folder.sums))
            return Counts._of(table, folder.facts)

        return read_together(Path(path), counts_files.files_in, read)

    @staticmethod
    def is_saved_at(path: str | os.PathLike[str]) -> bool:
        """Whether `path` is a folder that `save` wrote, even if files are missing."""
        return counts_files.is_folder_of_counts(path)


def limit_of(memory: Memory | None, sums: counts_files.Sums) -> _native.MemoryLimit | None:
    """Return the limit within which to read saved counts; None if all of them may be in memory."""
    limit = _memory.divide(memory, 1).limit
    distinct, distinct_bytes = (min(value, 2**63) for value in sums[:2])  # a file may claim more
    return None if limit is None or limit.can_keep(distinct, distinct_bytes) else limit


def _rebuild(parts: list[list[tuple[Any, Any, Any]]], facts: CountFacts) -> Counts:
    loader = _native.CountLoader(limit=None)
    for part in parts:
        for batch in part:
            wrong = loader.add(*batch)
            if wrong is not None:
                raise ValueError(f"pickled counts: {wrong[1]}")
        loader.end_part()
    return Counts._of(loader.finish(), facts)


def _pretokens(table: _native.Counts, part: int) -> Iterator[bytes]:
    for offsets, data, _ in counts_files.batches(table, part):
        yield from _split(offsets, data)


def _split(offsets: Any, data: Any) -> list[bytes]:
    content, ends = data.tobytes(), offsets.tolist()
    return [content[start:end] for start, end in itertools.pairwise(ends)]


def _same_part(a: _native.Counts, b: _native.Counts, part: int) -> bool:
    """Whether a part is the same in both; equal parts are cut into equal batches."""
    batches = zip(counts_files.batches(a, part), counts_files.batches(b, part), strict=True)
    try:
        return all(
            x.tobytes() == y.tobytes()
            for one, two in batches
            for x, y in zip(one, two, strict=True)
        )
    except ValueError:  # one has more batches
        return False


def same_pattern(a: str | None, b: str | None) -> bool:
    """Whether two patterns split every text in the same way, as far as the engine can tell."""
    if a == b:
        return True
    if a is None or b is None:
        return False
    canonical = _native.canonical_pattern(a)
    return canonical is not None and canonical == _native.canonical_pattern(b)


def merge_facts(all_facts: list[CountFacts]) -> CountFacts:
    """Return the facts of the sum, which do not depend on the order; raise if they conflict."""
    if not all_facts:
        return CountFacts()
    first = all_facts[0]
    patterns = {facts.pattern for facts in all_facts}
    if not all(same_pattern(first.pattern, pattern) for pattern in patterns):
        raise ValueError(
            f"counts made with different patterns cannot be added: {sorted(map(repr, patterns))}"
        )
    boundaries = {facts.boundaries for facts in all_facts}
    if len(boundaries) > 1:
        raise ValueError(
            "counts split at different special tokens cannot be added: "
            f"{sorted(map(repr, boundaries))}"
        )
    alphabets = {facts.alphabet for facts in all_facts}
    return CountFacts(
        # Of several spellings, always the same one, whatever the order of the tables.
        pattern=min((pattern for pattern in patterns if pattern is not None), default=None),
        boundaries=first.boundaries,
        alphabet=alphabets.pop() if len(alphabets) == 1 else None,
        skipped_documents=sum(facts.skipped_documents for facts in all_facts),
        pruning=_added([facts.pruning for facts in all_facts]),
    )


def _added(all_pruning: list[Pruning | None]) -> Pruning | None:
    known = [pruning for pruning in all_pruning if pruning is not None]
    return functools.reduce(operator.add, known) if known else None


# ---------------------------------------------------------------------- counting


def count_corpus(
    corpus: Corpus | Iterable[str | bytes],
    recipe: Recipe,
    *,
    num_threads: int | None = None,
    memory: Memory | None = None,
    progress: Callable[[int], object] | None = None,
) -> Counts:
    """Count the pre-tokens of files or documents; `progress` is called with the bytes read.

    With `memory` ("2GB", or a number of bytes), the process stays within this budget.
    """
    files = corpus if isinstance(corpus, Corpus) else None
    budget = _memory.divide(
        memory,
        num_threads,
        whole_documents=recipe.pattern is None or (files is not None and files.has_records),
        dictionaries=0 if files is None else files.num_dictionaries,
    )
    return count_within(budget, corpus, recipe, progress=progress)


def count_within(
    budget: _memory.Budget,
    corpus: Corpus | Iterable[str | bytes],
    recipe: Recipe,
    *,
    progress: Callable[[int], object] | None = None,
) -> Counts:
    """Count within the given limits of the engine."""
    alphabet = ALPHABETS["ascii"] if recipe.alphabet == "ascii" else None
    builder = _native.CountBuilder(
        pattern=recipe.pattern,
        boundaries=recipe.boundaries,
        alphabet=alphabet,
        num_threads=budget.num_threads,
        limit=budget.limit,
    )
    skipped = 0
    if isinstance(corpus, Corpus):
        skipped = builder.add_files(corpus.engine_arguments(), progress=progress)
    else:
        total = 0
        for batch in batches(map(_checked, corpus), budget.batch_bytes):
            builder.add_documents(batch)
            if progress is not None:
                total += sum(map(len, batch))
                progress(total)
    facts = CountFacts(
        pattern=recipe.pattern,
        boundaries=recipe.boundaries,
        alphabet=None if alphabet is None else "ascii",
        skipped_documents=skipped,
    )
    return Counts._of(builder.finish(), facts)


def _checked(document: object) -> str | bytes:
    if not isinstance(document, str | bytes):
        raise TypeError(f"a document is a {type(document).__name__}; expected str or bytes")
    return document
