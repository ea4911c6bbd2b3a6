"""Build HTML that is safe by construction, for reports and notebooks.

A str is text and always escaped; only the result of `element` is markup. Scripts, links, images
and style attributes cannot be built. Pure: reads only the style sheets, writes nothing.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Final, TypeVar

# The only tags and attributes that can be built; anything else is a bug in byteweld.
_TAGS: Final = frozenset(
    "b body br caption code dd details div dl dt figcaption figure footer g h1 h2 h3 head header "
    "html li main meta ol p section span style summary svg table tbody td text th thead title tr "
    "ul line path rect circle".split()
)
_VOID: Final = frozenset(("br", "meta"))
_ATTRIBUTES: Final = frozenset(
    "charset class colspan content cx cy d dir height http-equiv id lang name open "
    "preserveAspectRatio r role rx scope tabindex title viewBox width x x1 x2 y y1 y2 "
    "aria-hidden aria-label".split()
)
_TINTS: Final = 10  # in palette.css
# Controls, lone surrogates, bidi controls and invisible characters are always written out.
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\ufffe\uffff\U000e0000-\U000e007f]"
)


class Html(str):
    """Markup that needs no escaping."""

    __slots__ = ()


Child = str | int | float | Iterable["Child"] | None
Item = TypeVar("Item")


def escape(text: str) -> Html:
    """Escape text; characters that hide or reorder text are written out.

    >>> escape("<script>&\\u202e")
    '&lt;script&gt;&amp;⟨U+202E⟩'
    """
    if isinstance(text, Html):
        return text
    shown = _HIDDEN.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text)
    return Html(html.escape(shown, quote=True))


def element(tag: str, *children: Child, **attributes: str | int | float | bool | None) -> Html:
    """Return an element. Attribute names: `class_` means class, `aria_label` means aria-label.

    >>> element("td", "a < b", class_="n")
    '<td class="n">a &lt; b</td>'
    """
    if tag not in _TAGS:
        raise ValueError(f"element {tag!r} is not allowed")
    given = "".join(
        _attribute(name.rstrip("_").replace("_", "-"), value)
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    if tag in _VOID:
        return Html(f"<{tag}{given}>")
    return Html(f"<{tag}{given}>{joined(*children)}</{tag}>")


def joined(*children: Child) -> Html:
    """Concatenate text, numbers, markup and lists of these; None adds nothing."""
    parts: list[str] = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, str):
            parts.append(escape(child))
        elif isinstance(child, int | float):
            parts.append(escape(str(child)))
        else:
            parts.append(joined(*child))
    return Html("".join(parts))


def _attribute(name: str, value: str | int | float | bool) -> str:
    if name not in _ATTRIBUTES:
        raise ValueError(f"attribute {name!r} is not allowed")
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'


def table(
    heads: Iterable[Child], rows: Iterable[Iterable[Child]], *, numbers: Iterable[int] = ()
) -> Html:
    """Return a table; the columns in `numbers` are aligned right."""
    right = set(numbers)

    def cell(tag: str, column: int, content: Child) -> Html:
        scope = "col" if tag == "th" else None
        return element(tag, content, class_="n" if column in right else None, scope=scope)

    head = element(
        "tr", [cell("th" if content else "td", n, content) for n, content in enumerate(heads)]
    )
    body = [element("tr", [cell("td", n, item) for n, item in enumerate(row)]) for row in rows]
    made = element("table", element("thead", head), element("tbody", body))
    return wide(made)


def wide(content: Child) -> Html:
    """Return a box that scrolls sideways if its content does not fit, with the keyboard, too."""
    return element("div", content, class_="wide", tabindex="0")


def facts(items: Iterable[tuple[str, Child]]) -> Html:
    """Return names and values, one pair per row."""
    rows = [[element("dt", name), element("dd", value)] for name, value in items]
    return element("dl", rows, class_="facts")


def section(title: str, *content: Child, hint: str | None = None) -> Html:
    """Return a section of a report."""
    note = None if hint is None else element("p", hint, class_="hint")
    return element("section", element("h2", title), note, *content)


def folded(title: str, *content: Child, is_open: bool = False) -> Html:
    """Return content that is collapsed under its title."""
    return element("details", element("summary", title), *content, open=is_open)


def shortened(
    items: Sequence[Item], count: int, noun: str, show: Callable[[Sequence[Item]], Child]
) -> Html:
    """Return the first items, and the others collapsed; `show` makes content of some of them.

    A single item is not worth a click, so it is not collapsed.
    """
    if len(items) <= count + 1:
        return joined(show(items))
    rest = items[count:]
    return joined(show(items[:count]), folded(f"{len(rest):,} more {noun}s", show(rest)))


def more(count: int, noun: str) -> Html | None:
    """Return a note with the number of items not shown; None if there are none."""
    if count <= 0:
        return None
    return element("p", f"… and {count:,} more {noun}{'' if count == 1 else 's'}", class_="hint")


def document(title: str, *content: Child, subtitle: str | None = None) -> str:
    """Return a self-contained page whose security policy forbids loading and running anything.

    The same content always gives the same bytes.
    """
    style = Html(_style())
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", style),
    )
    note = None if subtitle is None else element("p", subtitle, class_="hint")
    body = element(
        "body",
        element("header", element("h1", title), note),
        element("main", *content),
        element("footer", element("p", "made by byteweld; loads nothing and runs nothing")),
        class_="byteweld report",
    )
    return "<!doctype html>\n" + element("html", head, "\n", body, lang="en") + "\n"


def fragment(*content: Child) -> str:
    """Return content for a notebook; its style affects nothing outside it."""
    return element("style", Html(_scoped_style())) + element("div", *content, class_="byteweld")


def tint(token_id: int) -> str:
    """Return the class of a token's tint in the palette, as in the studio."""
    return f"c{(token_id * 7 + 3) % _TINTS}"


@cache
def palette() -> str:
    """Return the colors as a style sheet."""
    return (files("byteweld.markup") / "palette.css").read_text("utf-8")


@cache
def _style() -> str:
    return palette() + (files("byteweld.markup") / "report.css").read_text("utf-8")


@cache
def _scoped_style() -> str:
    """Scope the style to .byteweld; only the palette's rules are not scoped already."""
    return re.sub(r"(?m)^\.c(\d)", r".byteweld .c\1", _style().replace(":root", ".byteweld"))
