"""The byte heat map of a corpus, as text, JSON or HTML, and whether --ascii-only suits it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from byteweld.cli import _output
from byteweld.cli._documents import CorpusDocuments
from byteweld.corpus import ReadingOptions
from byteweld.markup import Child, element, wide
from byteweld.render import visible_name
from byteweld.report import Custom, Displayable, Report, Text
from byteweld.vocab import ASCII_BYTES

_ALPHABET = bytes(sorted(ASCII_BYTES))
_LEVELS = (".", "░", "▒", "▓", "█")
_LEVEL_NAMES = ("unused", "cold", "warm", "hot", "very hot")
_COLORS = (238, 24, 37, 214, 196)
_STEP = 8  # ratio of counts between neighboring levels
_ROWS = (
    "control characters, tab, line ends",
    "control characters",
    "space and punctuation",
    "digits and punctuation",
    "@, uppercase letters",
    "uppercase letters and punctuation",
    "`, lowercase letters",
    "lowercase letters and punctuation, DEL",
    *["not ASCII: continuation bytes of UTF-8"] * 4,
    *["not ASCII: first bytes of UTF-8 characters"] * 3,
    "not ASCII: first of four bytes, or never in UTF-8",
)


class HeatMap(Displayable):
    """How often each byte value occurs in files, folders or globs, or in standard input (`-`)."""

    def __init__(self, source: str, reading: ReadingOptions) -> None:
        self.source = source
        documents = CorpusDocuments([source], reading)
        corpus = documents.corpus
        with documents.progress("counting", is_stored=True) as advance:
            found = corpus.count_bytes(_ALPHABET, advance)
        if found.first_outside is not None:
            file = documents.name(found.first_outside.file)
            found = found._replace(first_outside=found.first_outside._replace(file=file))
        documents.say_skipped(found.skipped_documents)
        self.files = len(corpus.files)
        self.counts = counts = found.counts
        self.total = sum(counts)
        self.distinct = sum(count > 0 for count in counts)
        # The bytes that --ascii-only would reject.
        self.outside = self.total - sum(counts[byte] for byte in ASCII_BYTES)
        self._found = found

    def to_dict(self) -> dict[str, Any]:
        first = self._found.first_outside
        return {
            "file": self.source,
            "files": self.files,
            "skipped_documents": self._found.skipped_documents,
            "bytes": self.total,
            "counts": self.counts,
            "distinct": self.distinct,
            "ascii_only": {
                "fits": self.outside == 0,
                "bytes_outside": self.outside,
                "files_outside": self._found.files_outside,
                "first_outside": None if first is None else first.offset,
                "first_outside_file": None if first is None else first.file,
                "base_tokens_saved": 256 - len(ASCII_BYTES),
            },
        }

    def report(self) -> Report:
        """Return the heat map, and whether --ascii-only suits the corpus."""
        files = f"{_output.amount(self.files, 'file')}, " if self.files > 1 else ""
        used = f"{_output.size(self.total)}, {self.distinct} of 256 byte values used"
        summary = f"{visible_name(self.source)}: {files}{used}"
        return Report("", Text([summary]), Custom(self._table, self._map), Text(self._conclusion()))

    def _map(self, color: bool) -> Iterator[str]:
        yield ""
        yield "       " + " ".join(f"_{n:X}" for n in range(16))
        for row in range(16):
            counts = self.counts[16 * row : 16 * row + 16]
            cells = " ".join(_cell(self._level(count), color) for count in counts)
            yield f"  0x{row:X}_ {cells}  {self._share(row):>6}  {_ROWS[row]}"
        yield ""
        names = zip(_LEVEL_NAMES, range(5), strict=True)
        yield "       " + "   ".join(f"{_cell(level, color)} {name}" for name, level in names)
        yield ""

    def _table(self) -> Child:
        heads = [element("th", f"_{n:X}", scope="col") for n in range(16)]
        rows = [element("tr", element("td"), heads)]
        for row in range(16):
            cells = [
                element(
                    "td",
                    _compact(count),
                    class_=f"level{self._level(count)}",
                    title=f"0x{16 * row + n:02X}: {count:,} times",
                )
                for n, count in enumerate(self.counts[16 * row : 16 * row + 16])
            ]
            note = element("th", f"{self._share(row)}  {_ROWS[row]}", class_="row")
            rows.append(element("tr", element("th", f"0x{row:X}_"), cells, note))
        hint = "number of occurrences of each byte value; k is thousand, M million"
        return [wide(element("table", rows, class_="heat")), element("p", hint, class_="hint")]

    def _share(self, row: int) -> str:
        return f"{100 * sum(self.counts[16 * row : 16 * row + 16]) / max(1, self.total):.1f}%"

    def _level(self, count: int) -> int:
        if count == 0:
            return 0
        below = max(self.counts) // count
        return next((4 - n for n in range(3) if below < _STEP ** (n + 1) // 2), 1)

    def _conclusion(self) -> list[str]:
        base = len(ASCII_BYTES)
        starts = (
            f"--ascii-only starts from {base} base tokens instead of 256, which leaves "
            f"{256 - base} more for merges"
        )
        first = self._found.first_outside
        what = "this file" if self.files == 1 else "this corpus"
        if first is None:
            rule = "every byte is a tab, a line end or in 0x20 to 0x7E"
            return [starts, f"{what} qualifies: {rule}"]
        where = "" if first.offset is None else f" at offset {first.offset:,}"
        found = (
            f"{_output.amount(self.outside, 'byte')} other than tabs, line ends and 0x20 to 0x7E"
        )
        if self.files > 1:
            where += f" in {visible_name(first.file)}"
            found += f" in {self._found.files_outside:,} of {self.files:,} files"
        found += f", the first of them 0x{first.byte:02X}{where}"
        return [starts, f"{what} does not qualify: {found}"]


def _compact(count: int) -> str:
    """A count in at most four characters, such as 12k."""
    for unit, name in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= unit:
            return f"{count // unit}{name}"
    return str(count) if count else "·"


def _cell(level: int, color: bool) -> str:
    mark = _LEVELS[level] * 2 if level else " ."
    return f"\x1b[38;5;{_COLORS[level]}m{mark}\x1b[0m" if color else mark
