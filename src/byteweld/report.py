"""What is shown of a result: one value, as lines of text and as HTML.

A Report is a headline and parts: facts, figures, tables, lines, sections. Parts are made of words:
text, numbers, tokens. Pure: prints nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from byteweld import markup
from byteweld._cached import cached_property
from byteweld.markup import Child, Html, charts, element, joined
from byteweld.render import columns, decimal, painted, tile, visible

_LANES = 4  # colors of tokenizers in report.css


# ---------------------------------------------------------------------------- words


@dataclass(frozen=True)
class Token:
    """A token, colored by its id; at most `limit` bytes of it are shown."""

    id: int
    bytes: bytes
    limit: int = 200
    kind: str = ""  # its class on a page

    def text(self, color: bool) -> str:
        """Return the token for a terminal."""
        return painted(self.id, visible(self.bytes[: self.limit]), color)

    def html(self) -> Html:
        """Return the token for a page."""
        is_special = self.kind == "special"
        kind = "" if is_special else self.kind
        return tile(self.id, self.bytes[: self.limit], is_special=is_special, kind=kind)


@dataclass(frozen=True)
class Share:
    """A share, shown in percent."""

    value: float | None

    def text(self, color: bool) -> str:
        """Return the share, or a dash for None."""
        return "-" if self.value is None else f"{100 * self.value:.1f}%"

    def html(self) -> Html:
        """Return the same for a page."""
        return markup.escape(self.text(color=False))


@dataclass(frozen=True)
class Key:
    """The letter of one of several tokenizers."""

    lane: int

    def text(self, color: bool) -> str:
        """Return the letter."""
        return chr(ord("A") + self.lane)

    def html(self) -> Html:
        """Return the letter on its color."""
        return element("span", self.text(color=False), class_=f"key lane{self.lane % _LANES}")


@dataclass(frozen=True)
class Code:
    """Text that a page shows in the font of code."""

    content: str
    kind: str | None = None

    def text(self, color: bool) -> str:
        """Return the text."""
        return self.content

    def html(self) -> Html:
        """Return the text in its font."""
        if self.kind is not None:
            return element("span", self.content, class_=self.kind)
        return element("code", self.content)


Words = str | int | float | None | Token | Share | Key | Code | Sequence["Words"]


def text_of(words: Words, color: bool = False) -> str:
    """Return words for a terminal: numbers with separators, or with two places."""
    if words is None or isinstance(words, float):
        return decimal(words)
    if isinstance(words, str):
        return words
    if isinstance(words, int):
        return f"{words:,}"
    if isinstance(words, Sequence):
        return "".join(text_of(part, color) for part in words)
    return words.text(color)


def html_of(words: Words) -> Child:
    """Return words for a page."""
    if words is None or isinstance(words, str | int | float):
        return text_of(words)
    return [html_of(part) for part in words] if isinstance(words, Sequence) else words.html()


# ---------------------------------------------------------------------------- parts


class Part(Protocol):
    """A part of a report."""

    def lines(self, color: bool) -> Iterable[str]:
        """Return the part for a terminal."""

    def html(self) -> Child:
        """Return the part for a page."""


@dataclass(frozen=True)
class Text:
    """Lines of text: paragraphs on a page."""

    paragraphs: Sequence[Words]
    kind: str | None = None  # the class of the paragraphs

    def lines(self, color: bool) -> Iterator[str]:
        """Yield one line for each paragraph."""
        return (text_of(words, color) for words in self.paragraphs)

    def html(self) -> Child:
        """Return the paragraphs."""
        return [element("p", html_of(words), class_=self.kind) for words in self.paragraphs]


@dataclass(frozen=True)
class Listing:
    """Lines in which spaces count: preformatted on a page."""

    rows: Sequence[Words]

    def lines(self, color: bool) -> Iterator[str]:
        """Yield the lines."""
        return (text_of(words, color) for words in self.rows)

    def html(self) -> Child:
        """Return the lines in a box that scrolls."""
        rows = [[html_of(words), "\n"] for words in self.rows]
        return element("div", rows, class_="tree", tabindex="0") if rows else None


@dataclass(frozen=True)
class Facts:
    """Names and values, one pair per line."""

    items: Sequence[tuple[str, Words]]

    def lines(self, color: bool) -> Iterator[str]:
        """Yield the lines; all values start in one column."""
        return columns([[name, text_of(value, color)] for name, value in self.items])

    def html(self) -> Child:
        """Return a list of definitions."""
        return markup.facts((name, html_of(value)) for name, value in self.items)


@dataclass(frozen=True)
class Figures:
    """The few figures that matter most, large; only on a page."""

    items: Sequence[tuple[Words, Words]]

    def lines(self, color: bool) -> Iterator[str]:
        """Yield nothing: the facts have them."""
        return iter(())

    def html(self) -> Child:
        """Return each figure with what it is."""
        return element(
            "ul",
            [element("li", element("b", html_of(n)), html_of(what)) for n, what in self.items],
            class_="figures",
        )


@dataclass(frozen=True)
class Table:
    """Rows of cells; numbers are aligned right, columns in `left` are not.

    A page has the column `name` first, then bars for the columns that are `charted`, of each
    tokenizer one, and these below each other, then the others.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[Words]]
    noun: str = "row"
    left: Collection[int] = (-1,)
    name: int = -1
    charted: Sequence[int] = ()
    bar: str = ""  # the longest one on a terminal, which has it after the column
    has_heads: bool = True  # on a terminal
    in_text: int | None = None  # number of rows on a terminal
    on_page: int = 200
    shown: int = 8  # number of rows on a page that are not collapsed
    size: int | None = None  # number of rows in all, if some are left out
    total: Sequence[Words] | None = None  # the last row on a terminal

    def lines(self, color: bool) -> Iterator[str]:
        """Yield aligned lines; a column without any text is left out."""
        given = list(self.rows[: self.in_text])
        left_out = self._size - len(given)
        given += [] if self.total is None else [self.total]
        order = list(range(len(self.heads)))
        left = {n % len(order) for n in self.left}
        rows = [[text_of(cell, color) for cell in row] for row in given]
        if self.bar:
            order.insert(self.charted[0] + 1, len(order))
            left.add(len(self.heads))
            for cells, row in zip(rows, given, strict=True):
                cells.append(self._text_bar(row))
        order = [n for n in order if any(cells[n] for cells in rows)]
        if self.has_heads and rows:
            rows.insert(0, [*self.heads, ""])
        right = [at for at, n in enumerate(order) if n not in left]
        yield from columns([[cells[n] for n in order] for cells in rows], right=right)
        yield from more_line(left_out, self.noun)

    def _text_bar(self, row: Sequence[Words]) -> str:
        share = self._share(row[self.charted[0]])
        return self.bar[: max(1, int(share * len(self.bar)))] if share else ""

    def html(self) -> Child:
        """Return a table; the rows after the first few are collapsed."""
        size = len(self.heads)
        name = self.name % size
        others = [n for n in range(size) if n != name and n not in self.charted]
        left = {n % size for n in self.left}
        chart = 2 if self.charted else 0
        numbers = [at + 1 + chart for at, n in enumerate(others) if n not in left]
        numbers += [0] * (name not in left) + [2] * bool(chart)
        rate = [self.heads[self.charted[0]].removesuffix(" A")] if chart else []
        heads = [self.heads[name], *[""] * bool(chart), *rate, *(self.heads[n] for n in others)]

        def cells(row: Sequence[Words]) -> list[Child]:
            return [html_of(row[name]), *self._bars(row), *(html_of(row[n]) for n in others)]

        def show(rows: Sequence[Sequence[Words]]) -> Html:
            return markup.table(heads, map(cells, rows), numbers=numbers)

        rows = self.rows[: self.on_page]
        return [
            markup.shortened(rows, self.shown, self.noun, show),
            markup.more(self._size - len(rows), self.noun),
        ]

    def _bars(self, row: Sequence[Words]) -> list[Child]:
        if not self.charted:
            return []
        kind = "narrow" if len(self.heads) > 4 else ""
        bars = [
            charts.bar(self._share(row[n]), f"lane{lane % _LANES} {kind}".rstrip())
            for lane, n in enumerate(self.charted)
        ]
        return [bars, [element("div", html_of(row[n]), class_="lane-label") for n in self.charted]]

    def _share(self, value: Words) -> float:
        """Return a value as a share of the highest one that is charted."""
        return value / self._most if isinstance(value, int | float) and self._most else 0

    @cached_property
    def _most(self) -> float:
        found = (row[n] for row in self.rows for n in self.charted)
        return max((n for n in found if isinstance(n, int | float)), default=0)

    @property
    def _size(self) -> int:
        return len(self.rows) if self.size is None else self.size


@dataclass(frozen=True)
class Custom:
    """A part that is drawn in its own way."""

    page: Callable[[], Child]
    text: Callable[[bool], Iterable[str]] = lambda color: ()

    def lines(self, color: bool) -> Iterable[str]:
        """Return the text."""
        return self.text(color)

    def html(self) -> Child:
        """Return the drawing."""
        return self.page()


class Section:
    """A title and parts; on a page it may have a hint, or be collapsed."""

    def __init__(
        self,
        title: str,
        *parts: Part | None,
        summary: str = "",
        hint: str | None = None,
        is_folded: bool = False,
        is_on_page: bool = True,
        is_heading: bool = True,
    ) -> None:
        self.title = title
        self.parts = [part for part in parts if part is not None]
        self.summary = summary
        self.hint = hint
        self.is_folded = is_folded
        self.is_on_page = is_on_page
        self.is_heading = is_heading  # of the report, rather than in a section

    def lines(self, color: bool) -> Iterator[str]:
        """Yield the title in bold, and the parts indented."""
        title = heading(self.title, color and self.is_heading)
        yield f"{title}: {self.summary}" if self.summary else title
        for part in self.parts:
            yield from _indented(part.lines(color))

    def html(self) -> Child:
        """Return the section of a page."""
        if not self.is_on_page:
            return None
        content = [part.html() for part in self.parts]
        title = self.title.removesuffix(":")
        if self.is_folded:
            return markup.folded(title, content)
        if not self.is_heading:
            return [element("p", title, class_="hint"), content]
        title = title[:1].upper() + title[1:]
        return markup.section(title, content, hint=self.hint or self.summary or None)


class Folded:
    """Parts that a page collapses under a title."""

    def __init__(self, title: str, *parts: Part) -> None:
        self._title = title
        self._parts = parts

    def lines(self, color: bool) -> Iterator[str]:
        """Yield the parts without the title."""
        for part in self._parts:
            yield from part.lines(color)

    def html(self) -> Child:
        """Return the collapsed parts."""
        return markup.folded(self._title, [part.html() for part in self._parts])


class OnPage:
    """Parts that a terminal does not show."""

    def __init__(self, *parts: Part | None, kind: str | None = None) -> None:
        self.parts = [part for part in parts if part is not None]
        self._kind = kind  # the class of a box around them

    def lines(self, color: bool) -> Iterator[str]:
        """Yield nothing."""
        return iter(())

    def html(self) -> Child:
        """Return the parts."""
        made = [part.html() for part in self.parts]
        return made if self._kind is None else element("div", made, class_=self._kind)


class InText:
    """Parts that a page does not show."""

    def __init__(self, *parts: Part) -> None:
        self._parts = parts

    def lines(self, color: bool) -> Iterator[str]:
        """Yield the lines of the parts."""
        for part in self._parts:
            yield from part.lines(color)

    def html(self) -> Child:
        """Return nothing."""
        return None


# ---------------------------------------------------------------------------- reports


class Report:
    """What is shown of a result.

    Args:
        headline: the first line.
        *parts: those that are None are left out.
        kind: how a page shows the headline: not at all, since it has a title, as a hint, or as the
            answer of a question.
    """

    def __init__(
        self,
        headline: str,
        *parts: Part | None,
        kind: Literal["title", "hint", "answer", "answer yes", "answer no"] = "title",
    ) -> None:
        self.headline = headline
        self.parts = [part for part in parts if part is not None]
        self.kind = kind

    def lines(self, color: bool) -> Iterator[str]:
        """Yield the report for a terminal; each section follows a blank line."""
        if self.headline:
            yield heading(self.headline, color)
        was_section = is_first = not self.headline
        for part in self.parts:
            found = list(part.lines(color))
            if not found:
                continue
            is_section = isinstance(part, Section)
            if (is_section or was_section) and not is_first:
                yield ""
            yield from _indented(found) if self.headline and not is_section else found
            was_section, is_first = is_section, False

    def html(self) -> Html:
        """Return the report as part of a page."""
        shown = element("p", self.headline, class_=self.kind) if self.kind != "title" else None
        return joined(shown, [part.html() for part in self.parts])


class Displayable(ABC):
    """A value that `str()` shows as text and a notebook as HTML."""

    @abstractmethod
    def report(self) -> Report:
        """Return what is shown of the value: a headline, facts, tables, charts.

        Examples:
            >>> import byteweld
            >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=265)
            >>> byteweld.compare(tok, tok, documents=["hello world"]).report().headline
            'identical ids on 1 document, 2 tokens, 11 bytes: 5.50 bytes per token'
        """

    @abstractmethod
    def to_dict(self) -> Any:
        """Return the value as JSON-serializable values."""

    def lines(self, *, color: bool = False) -> list[str]:
        """Return the value as lines of text; `color` is for a terminal.

        Examples:
            >>> import byteweld
            >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=265)
            >>> print(byteweld.evaluate(tok, documents=["hello world"]).lines()[0])
            byteweld-62b86dea on 1 file, 1 document, 11 bytes
        """
        return list(self.report().lines(color))

    def to_html(self) -> Html:
        """Return the value as part of a page.

        Examples:
            >>> import byteweld
            >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=265)
            >>> found = byteweld.evaluate(tok, documents=["hello world"])
            >>> from byteweld.markup import document
            >>> document("an evaluation", found.to_html())[:15]  # a page to save
            '<!doctype html>'
        """
        return self.report().html()

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {next(iter(self.lines()), '')}>"

    def _repr_html_(self) -> str:
        return markup.fragment(self.to_html())


# ---------------------------------------------------------------------------- lines


def heading(text: str, color: bool) -> str:
    """Return text in bold if `color`."""
    return f"\x1b[1m{text}\x1b[0m" if color else text


def more_line(count: int, noun: str) -> Iterator[str]:
    """Yield a line with the number of items not shown, if there are any."""
    if count > 0:
        yield f"... and {count:,} more {noun}{'' if count == 1 else 's'}"


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" if line else "" for line in lines)
