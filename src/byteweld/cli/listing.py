"""`byteweld list`: the vocabularies that can be loaded by name, and those that can be fetched."""

from __future__ import annotations

from byteweld.cli import _output
from byteweld.encodings import find_encodings
from byteweld.known_encodings import FETCHABLE
from byteweld.report import Report, Section, Table, Text, Words

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
    missing = {name: file for name, file in FETCHABLE.items() if name not in here}
    if json:
        _output.report(
            {
                "here": [
                    {"name": one.name, "bytes": one.size, "place": one.place, "path": str(one.path)}
                    for one in found
                ],
                "fetchable": [
                    {
                        "name": name,
                        "bytes": file.size,
                        "url": file.url,
                        "sha256": file.sha256,
                        "license": file.license,
                        "command": f"byteweld fetch {name}",
                    }
                    for name, file in missing.items()
                ],
            }
        )
        return
    rows: list[list[Words]] = [
        [one.name, _output.size(one.size), one.place, str(one.path)] for one in found
    ]
    more: list[list[Words]] = [
        [name, _output.size(file.size), f"byteweld fetch {name}"] for name, file in missing.items()
    ]
    table = Table(("name", "size", "found in", "path"), rows, left=(0, 2, 3))
    fetchable = Table(("name", "size", "command"), more, left=(0, 2))
    shown = Report(
        "",
        Section("here", table if rows else Text(["none"])),
        Section("can be fetched", fetchable) if more else None,
    )
    _output.lines(shown.lines(_output.has_color()))
