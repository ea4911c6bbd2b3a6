"""Check the built docs site: every link leads somewhere, and nothing is loaded from elsewhere.

`python scripts/check_site.py site` prints each problem, and exits with 1 if there is one. Links to
this repository's files on the web are checked against the files of this clone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
REPOSITORY = "https://github.com/byteweld/byteweld/"
# Attributes whose address the browser fetches by itself, and addresses in a style sheet.
_LOADED = ("src", "poster", "data")
_STYLE = re.compile(r"""(?:url\(\s*|@import\s+)["']?([^"')\s]+)""")
_NOT_LOADED_LINKS = frozenset({"canonical", "prev", "next", "alternate", "edit"})


class _Page(HTMLParser):
    """The anchors of a page, and the addresses it names: (is it loaded, address)."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.addresses: list[tuple[bool, str]] = []
        self._is_style = False  # whether what follows is a style sheet

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if "href" in given:
            is_loaded = tag == "link" and given.get("rel") not in _NOT_LOADED_LINKS
            self.addresses.append((is_loaded, given["href"]))
        self.addresses += [(True, given[name]) for name in _LOADED if given.get(name)]
        for each in given.get("srcset", "").split(","):
            self.addresses += [(True, address) for address in each.split()[:1]]
        self.addresses += [(True, address) for address in _STYLE.findall(given.get("style", ""))]
        self._is_style = tag == "style"

    def handle_data(self, data: str) -> None:
        if self._is_style:
            self.addresses += [(True, address) for address in _STYLE.findall(data)]

    def handle_endtag(self, tag: str) -> None:
        self._is_style = False


def problems(site: Path, root: Path = ROOT) -> Iterator[str]:
    """Yield one line per problem of a built site."""
    site = site.resolve()
    pages = {}
    for file in sorted(site.rglob("*.html")):
        pages[file] = _Page()
        pages[file].feed(file.read_text("utf-8"))
    if not pages:
        yield f"{site}: no pages"
    for file in sorted(site.rglob("*.css")):
        pages[file] = _Page()
        style = file.read_text("utf-8")
        pages[file].addresses = [(True, address) for address in _STYLE.findall(style)]
    for file, page in pages.items():
        name = file.relative_to(site)
        if name.name == "404.html":  # its addresses start at the root of a server
            continue
        for is_loaded, address in page.addresses:
            parts = urlsplit(address)
            if parts.scheme in ("mailto", "data"):
                continue
            if parts.scheme or parts.netloc:
                if is_loaded:
                    yield f"{name}: loads {address}"
                elif address.startswith(REPOSITORY) and not _is_in_repository(address, root):
                    yield f"{name}: {address} is not a file of this repository"
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file() or not target.is_relative_to(site):
                yield f"{name}: no file {address}"
            elif parts.fragment and target in pages:
                if unquote(parts.fragment) not in pages[target].anchors | {"__top"}:
                    yield f"{name}: no anchor {address}"


def _is_in_repository(address: str, root: Path) -> bool:
    kind, _, path = urlsplit(address.removeprefix(REPOSITORY)).path.partition("/main/")
    if kind not in ("blob", "tree"):
        return True  # the repository itself, its issues
    return (root / path).is_file() if kind == "blob" else (root / path).is_dir()


def main(arguments: list[str]) -> int:
    """Check a folder; the default is `site`."""
    site = Path(arguments[0]) if arguments else ROOT / "site"
    found = list(problems(site))
    for line in found:
        sys.stderr.write(f"{line}\n")
    sys.stderr.write(
        f"{site}: {len(found)} problems\n" if found else f"{site}: all links lead somewhere\n"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
