"""The files of the page, read once from the package; the server serves no other files."""

from __future__ import annotations

import html
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Final, NamedTuple

from byteweld.markup import palette

_KINDS = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}
_HEAD = "<!-- head -->"
_TITLE = "<!-- title -->"


class Asset(NamedTuple):
    """A file of the page."""

    content: bytes
    kind: str


def _read() -> dict[str, Asset]:
    folder = files("byteweld.studio") / "page"
    found = {
        entry.name: Asset(entry.read_bytes(), _KINDS[entry.name.rpartition(".")[2]])
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.rpartition(".")[2] in _KINDS
    }
    style = found["style.css"]
    return found | {"style.css": style._replace(content=palette().encode() + style.content)}


ASSETS: Final[Mapping[str, Asset]] = MappingProxyType(_read())
_INDEX: Final = (files("byteweld.studio") / "page" / "index.html").read_text("utf-8")
# The style sheet and entry module of the served page; a saved page embeds its own.
SERVED_HEAD: Final = (
    '<link rel="stylesheet" href="/page/style.css">\n'
    '<script type="module" src="/page/app.js"></script>\n'
)


def index_html(head: str, title: str = "byteweld studio") -> str:
    """Return the page with the given head."""
    return _INDEX.replace(_TITLE, html.escape(title)).replace(_HEAD, head)
