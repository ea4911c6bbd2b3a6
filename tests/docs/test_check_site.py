"""The check of the built docs site notices what it should."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.pages import ROOT
from tests.helpers.scripts import load_script

check_site = load_script("check_site")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<a href="b.html">b</a><a href="b.html#x">x</a><a href="#top">top</a>', None),
        ('<a href="https://example.com/">elsewhere</a>', None),
        ('<a href="https://github.com/byteweld/byteweld/blob/main/README.md">file</a>', None),
        ('<a href="https://github.com/byteweld/byteweld/tree/main/docs">folder</a>', None),
        ('<link rel="stylesheet" href="style.css">', None),
        ('<a href="sub/">the index of a folder</a>', None),
        ('<a href="c.html">c</a>', "a.html: no file c.html"),
        ('<img src="gone.png">', "a.html: no file gone.png"),
        ('<a href="b.html#y">y</a>', "a.html: no anchor b.html#y"),
        ('<a href="#y">y</a>', "a.html: no anchor #y"),
        ('<script src="https://cdn.example/x.js"></script>', "loads https://cdn.example/x.js"),
        ('<script src="//cdn.example/x.js"></script>', "loads //cdn.example/x.js"),
        ('<link rel="stylesheet" href="https://fonts.example/x">', "loads https://fonts.example/x"),
        (
            '<a href="https://github.com/byteweld/byteweld/blob/main/no.md">file</a>',
            "blob/main/no.md is not a file of this repository",
        ),
    ],
)
def test_problems_are_named(tmp_path: Path, body: str, problem: str | None) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "index.html").write_text("<p>s")
    (tmp_path / "style.css").write_text("")
    (tmp_path / "a.html").write_text(f'<h1 id="top">A</h1>{body}')
    (tmp_path / "b.html").write_text('<h1 id="x">B</h1>')
    found = list(check_site.problems(tmp_path, ROOT))
    assert len(found) == (problem is not None)
    assert problem is None or problem in found[0]


def test_a_folder_without_pages_is_a_problem(tmp_path: Path) -> None:
    assert check_site.main([str(tmp_path)]) == 1
