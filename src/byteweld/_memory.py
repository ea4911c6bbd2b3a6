"""Memory budgets: parse them, measure the process, divide the remainder.

A budget bounds the resident set of the whole process. What the process already uses is subtracted,
and the remainder is divided between the threads' buffers, the count tables and the result. Counts
that do not fit spill to an unnamed file in TMPDIR.
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

_MAX_BYTES = 2**62  # more than any machine has, and fits the engine's integers
# Measured: the engine's own state, including patterns; and, per thread, the block being counted,
# the document being read, the stack and the spill buffers.
_FIXED_BYTES = 8 << 20
_THREAD_BYTES = 8 << 20
# What pyarrow needs to read or write a part, if it is loaded.
_ARROW_BYTES = 32 << 20
# Smaller tables would spill all the time.
_MIN_TABLE_BYTES = 4 << 20
# One part in this many of the budget is reserved for the allocator's overhead.
_ALLOCATOR_SHARE = 8
_MAX_BATCH_BYTES = 8 << 20
# Merging does not get faster with more than this.
_MAX_MERGE_BYTES = 256 << 20
# Measured: what `explain_training` keeps of a step, with its Python values.
_STEP_BYTES = 64 << 10
# Assumed where the process cannot be measured.
_UNMEASURED_BYTES = 128 << 20


def parse_memory(memory: Memory) -> int:
    """Parse a number of bytes, or a string with a unit; a unit without `i` is decimal.

    >>> parse_memory("2GB"), parse_memory("512MiB"), parse_memory("1.5G"), parse_memory(4096)
    (2000000000, 536870912, 1500000000, 4096)
    """
    if isinstance(memory, bool) or not isinstance(memory, int | str):
        raise TypeError(
            f"memory is {memory!r}; expected a number of bytes, or a string such as '2GB'"
        )
    if isinstance(memory, int):
        found = memory
    else:
        match = _SPELLING.fullmatch(memory)
        if match is None:
            raise ValueError(
                f"memory is {memory!r}; expected a number with a unit, such as '2GB', '512MiB' or "
                "'1.5G', or a number of bytes"
            )
        number, unit = match[1], (match[2] or "").upper()
        found = int(float(number) * (_UNITS | _BINARY_UNITS)[unit])
    if found <= 0:
        raise ValueError(f"memory is {memory!r}; it must be greater than zero")
    return min(found, _MAX_BYTES)


def amount(count: int) -> str:
    """Format a number of bytes, rounding up so that the amount an error suggests is enough.

    >>> amount(1_234_567), amount(5_000_000_001)
    ('2MB', '5.01GB')
    """
    if count >= 10**9:
        return f"{-(-count // 10**7) / 100:g}GB"
    return f"{-(-count // 10**6)}MB"


def _unit_note(memory: Memory) -> str:
    """Point out that a number without a unit means bytes: whoever writes 4 may mean 4GB."""
    is_bare = isinstance(memory, int) or memory.strip().isdigit()
    return " (bytes, since it has no unit)" if is_bare else ""


def resident_bytes() -> int:
    """Return the memory that the process uses now or, if that is not available, its peak."""
    _trim_heap()
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    peak = peak_bytes()
    return _UNMEASURED_BYTES if peak is None else peak


def peak_bytes() -> int | None:
    """Return the peak memory of this process; None if the system does not report it."""
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _trim_heap() -> None:
    """Return free heap memory to the system, so that it does not count as used (glibc only)."""
    if sys.platform == "linux":
        import ctypes

        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def training_bytes(
    distinct: int, distinct_bytes: int, new_ids: int, *, step_by_step: bool = False
) -> int:
    """Return an upper bound on the memory that training needs, not including the counts.

    Measured on prose, random words and random bytes, from 1,000 to 400,000 tokens. The pre-tokens
    and the lists of pair positions take up to 14 bytes per byte, a token with its Python values up
    to 1 kB, and a rare pair up to 80 bytes; their number grows with the number of tokens.
    """
    text = distinct + distinct_bytes
    new_ids = min(new_ids, distinct_bytes)  # each merge shortens at least one pre-token
    pairs = 8 * new_ids
    needed = (8 << 20) + 14 * text + 1024 * new_ids
    if step_by_step:
        # Every pair of bytes is tracked, and those that each new token forms with all tokens.
        pairs = 256 * 256 + new_ids * 2 * (256 + new_ids)
        needed += _STEP_BYTES * new_ids
    return needed + 80 * min(text, pairs)


class Budget(NamedTuple):
    """How a budget is divided: the limits of the engine, and its number of threads."""

    limit: _native.MemoryLimit | None
    num_threads: int | None
    batch_bytes: int = _MAX_BATCH_BYTES  # documents that Python passes to the engine at once


def divide(
    memory: Memory | None,
    num_threads: int | None,
    *,
    whole_documents: bool = False,
    dictionaries: int = 0,
) -> Budget:
    """Divide a budget; raise if it is too small. If it is None, nothing is limited.

    The default number of threads is that of the processors, or fewer if the budget is too small.
    `whole_documents` must fit in memory: they are JSON records, or no pattern splits them.
    `dictionaries` is how many of those of compressed files there are at once.
    """
    if memory is None:
        return Budget(None, num_threads)
    resident = resident_bytes()
    fixed = _FIXED_BYTES + (_ARROW_BYTES if "pyarrow" in sys.modules else 0)
    usable = (parse_memory(memory) - resident) * (_ALLOCATOR_SHARE - 1) // _ALLOCATOR_SHARE - fixed

    def is_enough(threads: int) -> bool:
        return usable - threads * _THREAD_BYTES >= 2 * threads * _MIN_TABLE_BYTES

    threads = num_threads if num_threads is not None else _processors()
    if num_threads is None:
        while threads > 1 and not is_enough(threads):
            threads -= 1
    if threads >= 1 and not is_enough(threads):
        needed = fixed + threads * (_THREAD_BYTES + 2 * _MIN_TABLE_BYTES)
        needed = resident + needed * _ALLOCATOR_SHARE // (_ALLOCATOR_SHARE - 1) + _ALLOCATOR_SHARE
        fewer = "" if threads == 1 else ", or fewer threads"
        raise BudgetError(
            f"memory is {memory!r}{_unit_note(memory)}, which is too little: the process already "
            f"uses {amount(resident)}, and counting on {threads} "
            f"thread{'' if threads == 1 else 's'} needs {amount(needed)} in total; "
            f"use at least {amount(needed)!r}{fewer}",
            needed=needed,
        )
    workers = max(threads, 1)
    available = usable - workers * _THREAD_BYTES
    buffers = available // 4 if whole_documents else available // 16
    dictionary = available // 4 if dictionaries else available // 16
    tables = available - buffers - dictionary
    # A growing buffer exists twice while it is copied.
    text_bytes = buffers // workers // 2
    limit = memory_limit(
        table_bytes=tables // workers,
        text_bytes=text_bytes,
        # Merging holds two of the longest pre-tokens to compare, and one to write.
        merge_bytes=min(tables, max(_MAX_MERGE_BYTES, 4 * text_bytes)),
        keep_bytes=available // 4,
        # One in the reader and one with each thread.
        record_bytes=buffers // (workers + 1) // 2,
        # A growing dictionary exists one and a half times while it is copied.
        dictionary_bytes=dictionary // max(dictionaries, 1) * 2 // 3,
    )
    return Budget(limit, threads, min(_MAX_BATCH_BYTES, max(buffers // 8, 1 << 16)))


def memory_limit(**sizes: int) -> _native.MemoryLimit:
    """Make a limit that spills to TMPDIR.

    Uses TMPDIR even if it is not writable, where `tempfile` would silently choose another folder.
    """
    return _native.MemoryLimit(os.environ.get("TMPDIR") or tempfile.gettempdir(), **sizes)


def _processors() -> int:
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
