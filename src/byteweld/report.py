"""What is shown of a result: one value, as lines of text and as HTML.

A Report is a headline and parts: facts, figures, tables, lines, sections. Parts are made of words:
text, numbers, tokens. Pure: prints nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, NamedTuple

from byteweld import markup
from byteweld._amounts import amount
from byteweld._cached import cached_property
from byteweld.markup import Child, Html, charts, element, joined
from byteweld.render import Span, columns, decimal, painted, tile, to_ansi, visible

_LANES = 4  # colors of tokenizers in report.css


# ---------------------------------------------------------------------------- words


class Token(NamedTuple):
    """A token, colored by its id; at most `limit` bytes of it are shown."""

    id: int
    bytes: bytes
    limit: int = 200
    kind: str = ""  # "special", or its class on a page


class Share(NamedTuple):
    """A share, shown in percent; None is a dash."""

    value: float | None


class Key(NamedTuple):
    """The letter of one of several tokenizers."""

    lane: int


class Code(NamedTuple):
    """Text that a page shows in the font of code, or in a class of its own."""

    content: str
    kind: str | None = None


Words = str | int | float | None | Token | Share | Key | Code | Sequence["Words"]


def text_of(words: Words, color: bool = False) -> str:
    """Return words for a terminal: numbers with separators, or with two places."""
    match words:
        case str():
            return words
        case None | float():
            return decimal(words)
        case int():
            return f"{words:,}"
        case Token():
            return painted(words.id, visible(words.bytes[: words.limit]), color)
        case Share():
            return "-" if words.value is None else f"{100 * words.value:.1f}%"
        case Key():
            return chr(ord("A") + words.lane)
        case Code():
            return words.content
    return "".join(text_of(part, color) for part in words)


def html_of(words: Words) -> Child:
    """Return words for a page."""
    match words:
        case Token():
            special = words.kind == "special"
            kind = "" if special else words.kind
            return tile(words.id, words.bytes[: words.limit], is_special=special, kind=kind)
        case Key():
            return element("span", text_of(words), class_=f"key lane{words.lane % _LANES}")
        case Code(kind=None):
            return element("code", words.content)
        case Code():
            return element("span", words.content, class_=words.kind)
        case str() | int() | float() | None | Share():
            return text_of(words)
    return [html_of(part) for part in words]


# ---------------------------------------------------------------------------- parts


class Part:
    """A part of a report; by default, nothing is shown of it."""

    def lines(self, color: bool) -> Iterable[str]:
        """Return the part for a terminal."""
        return ()

    def html(self) -> Child:
        """Return the part for a page."""
        return None


@dataclass(frozen=True)
class Text(Part):
    """Lines of text: paragraphs of a class on a page."""

    paragraphs: Sequence[Words]
    kind: str | None = None

    def lines(self, color: bool) -> Iterable[str]:
        return (text_of(words, color) for words in self.paragraphs)

    def html(self) -> Child:
        return [element("p", html_of(words), class_=self.kind) for words in self.paragraphs]


@dataclass(frozen=True)
class Listing(Part):
    """Lines in which spaces count: preformatted on a page, in a box that scrolls."""

    rows: Sequence[Words]

    def lines(self, color: bool) -> Iterable[str]:
        return (text_of(words, color) for words in self.rows)

    def html(self) -> Child:
        rows = [[html_of(words), "\n"] for words in self.rows]
        return element("div", rows, class_="tree", tabindex="0") if rows else None


@dataclass(frozen=True)
class Tokens(Part):
    """Tokens side by side, colored: a page has up to `limit`, a terminal has all, then `after`."""

    spans: Sequence[Span]
    limit: int = 5_000
    after: str = ""

    def lines(self, color: bool) -> Iterable[str]:
        return (to_ansi(self.spans, color) + self.after).split("\n")

    def html(self) -> Child:
        parts: list[Child] = []
        for span in self.spans[: self.limit]:
            parts.append(tile(span.id, span.bytes, is_special=span.is_special))
            if span.bytes.endswith(b"\n"):
                parts.append(element("br"))
        left_out = markup.more(len(self.spans) - self.limit, "token")
        return element("div", element("p", parts, class_="tokens"), left_out)


@dataclass(frozen=True)
class Facts(Part):
    """Names and values, one pair per line."""

    items: Sequence[tuple[str, Words]]

    def lines(self, color: bool) -> Iterable[str]:
        return columns([[name, text_of(value, color)] for name, value in self.items])

    def html(self) -> Child:
        return markup.facts((name, html_of(value)) for name, value in self.items)


@dataclass(frozen=True)
class Figures(Part):
    """The few figures that matter most, large, each with what it is; only on a page."""

    items: Sequence[tuple[Words, Words]]

    def html(self) -> Child:
        items = [element("li", element("b", html_of(n)), html_of(what)) for n, what in self.items]
        return element("ul", items, class_="figures")


@dataclass(frozen=True)
class Table(Part):
    """Rows of cells; numbers are aligned right, columns in `left` are not.

    A page has the column `name` first, then bars for the columns that are `charted`, of each
    tokenizer one, and these below each other, then the others. A terminal leaves out columns
    without any text.
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
                share = self._share(row[self.charted[0]])
                marks = max(1, int(share * len(self.bar))) if share else 0
                cells.append(self.bar[:marks])
        order = [n for n in order if any(cells[n] for cells in rows)]
        if self.has_heads and rows:
            rows.insert(0, [*self.heads, ""])
        right = [at for at, n in enumerate(order) if n not in left]
        yield from columns([[cells[n] for n in order] for cells in rows], right=right)
        if left_out > 0:
            yield f"... and {left_out:,} more {self.noun}{'' if left_out == 1 else 's'}"

    def html(self) -> Child:
        size = len(self.heads)
        name = self.name % size
        others = [n for n in range(size) if n != name and n not in self.charted]
        left = {n % size for n in self.left}
        heads = [self.heads[name], *(self.heads[n] for n in others)]
        numbers = [at for at, n in enumerate([name, *others]) if n not in left]
        if self.charted:
            heads[1:1] = ["", self.heads[self.charted[0]].removesuffix(" A")]
            numbers = [2, *(at + 2 if at else 0 for at in numbers)]

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
        kind = " narrow" if len(self.heads) > 4 else ""
        return [
            [
                charts.bar(self._share(row[n]), f"lane{lane % _LANES}{kind}")
                for lane, n in enumerate(self.charted)
            ],
            [element("div", html_of(row[n]), class_="lane-label") for n in self.charted],
        ]

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
class Custom(Part):
    """A part that is drawn in its own way."""

    page: Callable[[], Child]
    text: Callable[[bool], Iterable[str]] = lambda color: ()

    def lines(self, color: bool) -> Iterable[str]:
        return self.text(color)

    def html(self) -> Child:
        return self.page()


class Parts(Part):
    """Several parts, without those that are None."""

    def __init__(self, *parts: Part | None) -> None:
        self.parts = [part for part in parts if part is not None]

    def lines(self, color: bool) -> Iterable[str]:
        return chain.from_iterable(part.lines(color) for part in self.parts)

    def html(self) -> Child:
        return [part.html() for part in self.parts]


class InText(Parts):
    """Parts that a page does not show."""

    def html(self) -> Child:
        return None


class OnPage(Parts):
    """Parts that a terminal does not show; `kind` is the class of a box around them."""

    def __init__(self, *parts: Part | None, kind: str | None = None) -> None:
        super().__init__(*parts)
        self._kind = kind

    def lines(self, color: bool) -> Iterable[str]:
        return ()

    def html(self) -> Child:
        made = super().html()
        return made if self._kind is None else element("div", made, class_=self._kind)


class Folded(Parts):
    """Parts that a page collapses under a title; a terminal shows them without it."""

    def __init__(self, title: str, *parts: Part) -> None:
        super().__init__(*parts)
        self._title = title

    def html(self) -> Child:
        return markup.folded(self._title, super().html())


class Section(Parts):
    """A title in bold and parts, indented; on a page it may have a hint, or be collapsed.

    With a `summary`, the title has a colon and the summary after it. Without `is_heading`, the
    title is plain, for the parts of another section.
    """

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
        super().__init__(*parts)
        self._title, self._summary, self._hint = title, summary, hint
        self._is_folded, self._is_on_page, self._is_heading = is_folded, is_on_page, is_heading

    def lines(self, color: bool) -> Iterable[str]:
        title = _bold(self._title, color and self._is_heading)
        yield f"{title}: {self._summary}" if self._summary else title
        yield from _indented(super().lines(color))

    def html(self) -> Child:
        if not self._is_on_page:
            return None
        title, content = self._title.removesuffix(":"), super().html()
        if self._is_folded:
            return markup.folded(title, content)
        if not self._is_heading:
            return [element("p", title, class_="hint"), content]
        title = title[:1].upper() + title[1:]
        return markup.section(title, content, hint=self._hint or self._summary or None)


class Report(Parts):
    """What is shown of a result: a headline, and the parts that are not None.

    `kind` is how a page shows the headline: not at all, since it has a title, as a hint, or as the
    answer of a question.
    """

    def __init__(
        self,
        headline: str,
        *parts: Part | None,
        kind: Literal["title", "hint", "answer", "answer yes", "answer no"] = "title",
    ) -> None:
        super().__init__(*parts)
        self.headline = headline
        self.kind = kind

    def lines(self, color: bool) -> Iterator[str]:
        """Yield the report for a terminal; each section follows a blank line."""
        if self.headline:
            yield _bold(self.headline, color)
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
        return joined(shown, super().html())


def _bold(text: str, color: bool) -> str:
    return f"\x1b[1m{text}\x1b[0m" if color else text


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" if line else "" for line in lines)


# ---------------------------------------------------------------------------- values


class Displayable(ABC):
    """A value that `str()` shows as text and a notebook as HTML."""

    @abstractmethod
    def report(self) -> Report:
        """Return what is shown of the value: a headline, facts, tables, charts.

        Examples:
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
            >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=265)
            >>> print(byteweld.evaluate(tok, documents=["hello world"]).lines()[0])
            byteweld-62b86dea on 1 file, 1 document, 11 bytes
        """
        return list(self.report().lines(color))

    def to_html(self) -> Html:
        """Return the value as part of a page.

        Examples:
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


@dataclass(frozen=True, repr=False)
class EncodedText(Displayable):
    """Encoded text to look at; made by `Tokenizer.show`.

    `print` shows its tokens, a notebook shows them in color.

    Attributes:
        spans: the tokens: id, bytes, text, and whether it is a special token.
        ends: the byte offset in the text at which each token ends.

    Examples:
        >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=265)
        >>> shown = tok.show("hello world!")
        >>> print(shown)
        hello|·world|!
        >>> shown.ids, shown.ends, shown.bytes_per_token
        ([263, 264, 33], (5, 11, 12), 4.0)
    """

    spans: tuple[Span, ...]
    ends: tuple[int, ...]

    @property
    def ids(self) -> list[int]:
        """The ids of the text."""
        return [span.id for span in self.spans]

    @property
    def bytes_per_token(self) -> float | None:
        """Bytes per token; None if the text is empty."""
        return self.ends[-1] / len(self.spans) if self.spans else None

    def __len__(self) -> int:
        return len(self.spans)

    def __repr__(self) -> str:
        return f"<EncodedText {len(self)} tokens of {self._bytes} bytes>"

    @property
    def _bytes(self) -> int:
        return self.ends[-1] if self.ends else 0

    def report(self) -> Report:
        """Return the tokens; on a page, also their number."""
        rate = self.bytes_per_token
        summary = f"{amount(len(self), 'token')}, {amount(self._bytes, 'byte')}"
        summary += "" if rate is None else f", {rate:.2f} bytes per token"
        return Report("", Tokens(self.spans), OnPage(Text([summary], "hint")))

    def to_dict(self) -> dict[str, Any]:
        """Return the text as JSON-serializable values."""
        tokens = [
            {
                "id": span.id,
                "bytes": span.bytes.hex(),
                "text": span.text,
                "start": start,
                "end": end,
                "is_special": span.is_special,
            }
            for span, start, end in zip(self.spans, (0, *self.ends), self.ends, strict=False)
        ]
        return {"bytes": self._bytes, "tokens": tokens}
