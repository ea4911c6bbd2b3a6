"""Every page of docs/ is in the navigation of mkdocs.yml, once, and nothing else is."""

from __future__ import annotations

import re

from tests.helpers.pages import ROOT


def test_every_page_is_in_the_navigation_once() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    named = re.findall(r"^\s+- (?:[^:\n]+: )?(\S+\.md)$", navigation, re.MULTILINE)
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")]
    assert sorted(named) == sorted(pages)
