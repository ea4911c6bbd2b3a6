"""Memory budgets: how they are written, what the process has already, how the rest is shared out.

A budget bounds the memory of the whole process (its resident set). What the process has when the
work starts is taken off; the rest is divided between the threads' buffers, the tables of counts and
the result. What does not fit is spilled to a file without a name in TMPDIR.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from byteweld import _native
from byteweld.errors import BudgetError

Memory = int | str

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY_UNITS = {"KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
_SPELLING = re.compile(
    r"\s*([0-9]{1,18}(?:\.[0-9]{1,18})?|\.[0-9]{1,18})\s*(?:([KMGT]I?)?B?)\s*",
    re.ASCII | re.IGNORECASE,
)

_MOST_BYTES = 2**62  # more than any machine has, and the engine can count with it
# Measured: the engine's own state, patterns included; and of each thread the block that it counts,
# the document that is read, its stack and the buffers of what it spills.
_FIXED_BYTES = 8 << 20
_THREAD_BYTES = 8 << 20
# What pyarrow takes to read or write a part, if it is there.
_ARROW_BYTES = 32 << 20
# Smaller tables would be written out all the time.
_LEAST_TABLE_BYTES = 4 << 20
# The allocator cannot use all that it has: this much of the budget is left to it, one over ...
_ALLOCATOR_SHARE = 8
# What merging cannot make use of.
_MOST_MERGE_BYTES = 256 << 20
# A process that cannot be measured is taken to have this much.
_UNMEASURED_BYTES = 128 << 20


def parse_memory(memory: Memory) -> int:
    """Bytes, from a number of them or a text with a unit; a unit without `i` is decimal.

    >>> parse_memory("2GB"), parse_memory("512MiB"), parse_memory("1.5G"), parse_memory(4096)
    (2000000000, 536870912, 1500000000, 4096)
    """
    if isinstance(memory, bool) or not isinstance(memory, int | str):
        raise TypeError(f"memory is {memory!r}; expected bytes as an int, or a text such as '2GB'")
    if isinstance(memory, int):
        found = memory
    else:
        match = _SPELLING.fullmatch(memory)
        if match is None:
            raise ValueError(
                f"memory is {memory!r}; expected a number with a unit, such as '2GB', '512MiB', "
                "'1.5G', or bytes"
            )
        number, unit = match[1], (match[2] or "").upper()
        found = int(float(number) * (_UNITS | _BINARY_UNITS)[unit])
    if found <= 0:
        raise ValueError(f"memory is {memory!r}; it must be more than nothing")
    return min(found, _MOST_BYTES)


def amount(count: int) -> str:
    """Bytes for people, rounded up, so that what is said to be needed is enough.

    >>> amount(1_234_567), amount(5_000_000_001)
    ('2MB', '5.01GB')
    """
    if count >= 10**9:
        return f"{-(-count // 10**7) / 100:g}GB"
    return f"{-(-count // 10**6)}MB"


def _in_bytes(memory: Memory) -> str:
    """What a number without a unit is taken for: whoever writes 4 may mean 4GB."""
    is_bare = isinstance(memory, int) or memory.strip().isdigit()
    return " (bytes, for want of a unit)" if is_bare else ""


def resident_bytes() -> int:
    """How much memory the process has now; where that cannot be known, the most it ever had."""
    _give_back()
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    try:
        import resource
    except ImportError:
        return _UNMEASURED_BYTES
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _give_back() -> None:
    """Have the allocator return what is free, so that it is not counted as used (glibc only)."""
    if sys.platform == "linux":
        import ctypes

        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def training_bytes(distinct: int, distinct_bytes: int, new_ids: int) -> int:
    """How much memory a training takes at most, besides the counts.

    Measured on prose, on random words and on random bytes, from 1,000 to 400,000 tokens: the text
    with the lists of places takes up to 14 bytes for each byte of it, a token with its values in
    Python up to 1 kB, and rare pairs, of which many tokens bring many, up to 80 bytes each.
    """
    text = distinct + distinct_bytes
    return (8 << 20) + 14 * text + 1024 * new_ids + 80 * min(text, 8 * new_ids)


def check_training(memory: Memory, distinct: int, distinct_bytes: int, new_ids: int) -> None:
    """Refuse a training that may need more than the budget, before it starts."""
    budget = parse_memory(memory)
    resident = resident_bytes()
    needed = resident + training_bytes(distinct, distinct_bytes, new_ids)
    if needed > budget:
        raise BudgetError(
            f"training {new_ids} new tokens on {distinct} distinct pre-tokens of {distinct_bytes} "
            f"bytes may need {amount(needed)}, of which the process has {amount(resident)} "
            f"already; the budget is {amount(budget)}; give a larger one, leave out rare "
            "pre-tokens (prune=2, --prune 2), or save the counts and train from them on a larger "
            "machine",
            needed=needed,
        )


class Plan(NamedTuple):
    """How a budget is shared out: what the engine must keep to, and how many threads it has."""

    limit: _native.MemoryLimit
    num_threads: int
    batch_bytes: int  # of documents that Python hands over at once


def plan(memory: Memory, num_threads: int | None, *, whole_documents: bool = False) -> Plan:
    """Share out a budget, or refuse one that cannot work.

    `whole_documents`: nothing cuts a document, so that it must be in memory whole. Without a number
    of threads there are as many as there are processors, or fewer if the budget is too small.
    """
    budget = parse_memory(memory)
    resident = resident_bytes()
    usable = (budget - resident) * (_ALLOCATOR_SHARE - 1) // _ALLOCATOR_SHARE

    fixed = _FIXED_BYTES + (_ARROW_BYTES if "pyarrow" in sys.modules else 0)

    def rest(threads: int) -> int:
        return usable - fixed - threads * _THREAD_BYTES

    def is_enough(threads: int) -> bool:
        return rest(threads) >= 2 * threads * _LEAST_TABLE_BYTES

    threads = num_threads if num_threads is not None else _processors()
    if num_threads is None:
        while threads > 1 and not is_enough(threads):
            threads -= 1
    if threads >= 1 and not is_enough(threads):
        needed = fixed + threads * (_THREAD_BYTES + 2 * _LEAST_TABLE_BYTES)
        needed = resident + needed * _ALLOCATOR_SHARE // (_ALLOCATOR_SHARE - 1) + _ALLOCATOR_SHARE
        fewer = "" if threads == 1 else ", or fewer threads"
        raise BudgetError(
            f"memory is {memory!r}{_in_bytes(memory)}, which is too little: the process has "
            f"{amount(resident)} already, and counting on {threads} "
            f"thread{'' if threads == 1 else 's'} needs {amount(needed)} in all; "
            f"give at least {amount(needed)!r}{fewer}",
            needed=needed,
        )
    room = rest(max(threads, 1))
    texts = room // 4 if whole_documents else room // 16
    tables = room - texts
    text_bytes = texts // max(threads, 1) // 2  # a buffer that grows is there twice
    limit = memory_limit(
        table_bytes=tables // max(threads, 1),
        text_bytes=text_bytes,
        # Two texts of the greatest length must be there to be compared, and one that goes out.
        merge_bytes=min(tables, max(_MOST_MERGE_BYTES, 4 * text_bytes)),
        keep_bytes=room // 4,
    )
    return Plan(limit, threads, min(8 << 20, max(texts // 8, 1 << 16)))


def memory_limit(
    *, table_bytes: int, text_bytes: int, merge_bytes: int, keep_bytes: int
) -> _native.MemoryLimit:
    """A limit with its temporary folder: TMPDIR, also where it cannot be written to."""
    return _native.MemoryLimit(
        os.environ.get("TMPDIR") or tempfile.gettempdir(),
        table_bytes=table_bytes,
        text_bytes=text_bytes,
        merge_bytes=merge_bytes,
        keep_bytes=keep_bytes,
    )


def _processors() -> int:
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
