"""What changed between two runs of a job, in a few words each. All stores of progress compare so.

Facts are JSON values by name. Those of the sources are lists of a name, a size, and what changes
when the file is modified.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeGuard

from byteweld.formats._json import show

Facts = Mapping[str, Any]

_SOURCES: Final = ("sources", "files")
_MAX_LISTED: Final = 5


def changed_facts(before: Facts, now: Facts, *, may_change: Facts | None = None) -> list[str]:
    """Say what differs between what an earlier run noted, maybe of another version, and this one.

    `may_change` has values by name, from which a fact may change: nothing done depends on them.
    """
    found = []
    for name in {**before, **now}:
        old, new = before.get(name), now.get(name)
        if old == new or (old is not None and old == (may_change or {}).get(name)):
            continue
        if name in _SOURCES and _are_sources(old) and _are_sources(new):
            found += _changed_sources(old, new)
        elif not isinstance(old, dict) or not isinstance(new, dict):
            found.append(f"{name} was {show(old)}, now {show(new)}")
        elif "sha256" in new:  # which says nothing to people
            found.append(f"other {name}")
        else:
            found += changed_facts(old, new, may_change=may_change)
    return found


def _are_sources(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list) and all(
        isinstance(fact, list) and len(fact) > 1 and isinstance(fact[0], str) for fact in value
    )


def _changed_sources(before: list[Any], now: list[Any]) -> list[str]:
    old = {name: facts for name, *facts in before}
    new = {name: facts for name, *facts in now}
    found = []
    for name, facts in new.items():
        if name not in old:
            found.append(f"source {name} is new")
        elif old[name] != facts:
            size, now_size = old[name][0], facts[0]
            how = f"had {_bytes(size)}, now {_bytes(now_size)}"
            if size == now_size:
                how = "was modified"
            found.append(f"source {name} {how}")
    found += [f"source {name} is gone" for name in old if name not in new]
    if not found and [name for name, *_ in before] != [name for name, *_ in now]:
        found.append("the sources are in another order")
    elif not found:  # names that are not UTF-8 look alike
        found.append("one of several sources with the same name was modified")
    more = len(found) - _MAX_LISTED
    return [*found[:_MAX_LISTED], *([f"{more} more"] if more > 0 else [])]


def _bytes(size: object) -> str:
    return "an unknown number of bytes, as from a pipe" if size is None else f"{size} bytes"
