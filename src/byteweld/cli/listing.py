"""`byteweld list`: the vocabularies that can be loaded by name, and those that can be fetched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from byteweld.cli import _output
from byteweld.encodings import Found, find_encodings
from byteweld.known_encodings import FETCHABLE
from byteweld.render import columns

EXAMPLES = """
byteweld list
byteweld list --json
byteweld fetch cl100k_base
byteweld tokens -t cl100k_base README.md
"""


def run(*, json: bool = False) -> None:
    """List the vocabularies that can be loaded by name here, and where each was found.

    They are looked up in the folders of BYTEWELD_PATH, in byteweld's folder, in tiktoken's cache
    and in Hugging Face's cache. Others can be fetched: the list shows the command. Nothing is
    downloaded.
    """
    found = find_encodings()
    here = {one.name for one in found}
    missing = [name for name in FETCHABLE if name not in here]
    if json:
        _output.report(_report(found, missing))
        return
    _output.lines(_found_lines(found))
    if missing:
        _output.lines(_missing_lines(missing))


def _found_lines(found: Sequence[Found]) -> Iterator[str]:
    yield _output.styled("here", "bold")
    if not found:
        yield "  none"
        return
    rows = [(one.name, _output.size(one.size), one.place, str(one.path)) for one in found]
    yield from _indented([("name", "size", "found in", "path"), *rows])


def _missing_lines(missing: Sequence[str]) -> Iterator[str]:
    rows = [
        (name, _output.size(FETCHABLE[name].size), f"byteweld fetch {name}") for name in missing
    ]
    yield ""
    yield _output.styled("can be fetched", "bold")
    yield from _indented([("name", "size", "command"), *rows])


def _indented(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    return (f"  {line}" for line in columns(rows, right=[1]))


def _report(found: Sequence[Found], missing: Sequence[str]) -> dict[str, Any]:
    return {
        "here": [
            {"name": one.name, "bytes": one.size, "place": one.place, "path": str(one.path)}
            for one in found
        ],
        "fetchable": [
            {
                "name": name,
                "bytes": FETCHABLE[name].size,
                "url": FETCHABLE[name].url,
                "sha256": FETCHABLE[name].sha256,
                "license": FETCHABLE[name].license,
                "command": f"byteweld fetch {name}",
            }
            for name in missing
        ],
    }
