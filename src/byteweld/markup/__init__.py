"""Values -> HTML that is safe by how it is made: all markup of reports and notebooks is made here.

A str is text and is escaped, always; only what `element` made is markup. There are no scripts,
links, images or style attributes to make. Pure: nothing is read but the style, nothing is written.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Final

# What can be made. A tag or attribute that is not here is a mistake of ours.
_TAGS: Final = frozenset(
    "b body br caption code dd details div dl dt figcaption figure footer h1 h2 h3 head header "
    "html li main meta ol p section span style summary svg table tbody td text th thead title tr "
    "ul line path rect circle".split()
)
_VOID: Final = frozenset(("br", "meta"))
_ATTRIBUTES: Final = frozenset(
    "charset class colspan content cx cy d dir height http-equiv id lang name open "
    "preserveAspectRatio r role rx scope title viewBox width x x1 x2 y y1 y2 "
    "aria-hidden aria-label".split()
)
# Controls, halves of surrogate pairs, what reorders text, and what no font shows: never as such.
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\ufffe\uffff\U000e0000-\U000e007f]"
)


class Html(str):
    """Markup: safe as it stands."""

    __slots__ = ()


Child = str | int | float | Iterable["Child"] | None


def escape(text: str) -> Html:
    """Text as markup that shows it; characters that hide or reorder are written out.

    >>> escape("<script>&\\u202e")
    '&lt;script&gt;&amp;⟨U+202E⟩'
    """
    if isinstance(text, Html):
        return text
    shown = _HIDDEN.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text)
    return Html(html.escape(shown, quote=True))


def element(tag: str, *children: Child, **attributes: str | int | float | bool | None) -> Html:
    """One element. Names of attributes: `class_` is class, `aria_label` is aria-label.

    >>> element("td", "a < b", class_="n")
    '<td class="n">a &lt; b</td>'
    """
    if tag not in _TAGS:
        raise ValueError(f"no element {tag!r} is ever made")
    given = "".join(
        _attribute(name.rstrip("_").replace("_", "-"), value)
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    if tag in _VOID:
        return Html(f"<{tag}{given}>")
    return Html(f"<{tag}{given}>{joined(*children)}</{tag}>")


def joined(*children: Child) -> Html:
    """Children on end: text, numbers, markup, lists of these; None is nothing."""
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
        raise ValueError(f"no attribute {name!r} is ever made")
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'


# ---------------------------------------------------------------------------- shapes


def table(
    heads: Iterable[Child], rows: Iterable[Iterable[Child]], *, numbers: Iterable[int] = ()
) -> Html:
    """A table; the columns of `numbers` are set to the right."""
    right = set(numbers)

    def cell(tag: str, place: int, content: Child) -> Html:
        scope = "col" if tag == "th" else None
        return element(tag, content, class_="n" if place in right else None, scope=scope)

    head = element(
        "tr", [cell("th" if content else "td", n, content) for n, content in enumerate(heads)]
    )
    body = [element("tr", [cell("td", n, item) for n, item in enumerate(row)]) for row in rows]
    made = element("table", element("thead", head), element("tbody", body))
    return element("div", made, class_="wide")


def facts(items: Iterable[tuple[str, Child]]) -> Html:
    """Names and values, one pair a row."""
    rows = [[element("dt", name), element("dd", value)] for name, value in items]
    return element("dl", rows, class_="facts")


def section(title: str, *content: Child, hint: str | None = None) -> Html:
    """A part of a report."""
    said = None if hint is None else element("p", hint, class_="hint")
    return element("section", element("h2", title), said, *content)


def folded(title: str, *content: Child, is_open: bool = False) -> Html:
    """Something long that opens when it is asked to."""
    return element("details", element("summary", title), *content, open=is_open)


# ---------------------------------------------------------------------------- whole pages


def document(title: str, *content: Child, subtitle: str | None = None) -> str:
    """One self-contained file. Its own policy lets it load nothing and run nothing.

    The same content gives the same bytes.
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
    said = None if subtitle is None else element("p", subtitle, class_="hint")
    body = element(
        "body",
        element("header", element("h1", title), said),
        element("main", *content),
        element("footer", element("p", "made by byteweld; loads nothing and runs nothing")),
        class_="byteweld report",
    )
    return "<!doctype html>\n" + element("html", head, "\n", body, lang="en") + "\n"


def fragment(*content: Child) -> str:
    """What a notebook shows: its style touches nothing outside of it."""
    return element("style", Html(_scoped_style())) + element("div", *content, class_="byteweld")


@cache
def palette() -> str:
    """The colours, as a style sheet."""
    return (files("byteweld.markup") / "palette.css").read_text("utf-8")


@cache
def _style() -> str:
    return palette() + (files("byteweld.markup") / "report.css").read_text("utf-8")


@cache
def _scoped_style() -> str:
    """The same, for a part of somebody else's page; every other rule names .byteweld itself."""
    return re.sub(r"(?m)^\.c(\d)", r".byteweld .c\1", _style().replace(":root", ".byteweld"))
