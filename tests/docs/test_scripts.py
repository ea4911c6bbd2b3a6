"""Scripts: the check of the docs site notices problems, and what others wrote is up to date."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import check_site
from tests.helpers.pages import ROOT
from tests.helpers.programs import run_python


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (
            '<a href="b.html#x">x</a><a href="#top">top</a><a href="https://example.com/">e</a>'
            '<a href="https://github.com/byteweld/byteweld/blob/main/README.md">file</a>'
            '<link rel="stylesheet" href="style.css"><a href="sub/">a folder</a>',
            None,
        ),
        ('<a href="c.html">c</a>', "a.html: no file c.html"),
        ('<a href="b.html#y">y</a>', "a.html: no anchor b.html#y"),
        ('<script src="//cdn.example/x.js"></script>', "loads //cdn.example/x.js"),
        ('<img srcset="style.css 1x, https://cdn.example/x 2x">', "loads https://cdn.example/x"),
        ("<style>@import 'https://fonts.example/x';</style>", "loads https://fonts.example/x"),
        ('<p style="background: url(//cdn.example/x)">p</p>', "loads //cdn.example/x"),
        ('<a href="../beside.md">a file outside the site</a>', "a.html: no file ../beside.md"),
        (
            '<a href="https://github.com/byteweld/byteweld/blob/main/no.md">file</a>',
            "blob/main/no.md is not a file of this repository",
        ),
    ],
)
def test_problems_are_named(tmp_path: Path, body: str, problem: str | None) -> None:
    site = tmp_path / "site"
    (site / "sub").mkdir(parents=True)
    (tmp_path / "beside.md").write_text("beside the site")
    (site / "sub" / "index.html").write_text("<p>s")
    (site / "style.css").write_text("a { background: url(b.html) }")
    (site / "a.html").write_text(f'<h1 id="top">A</h1>{body}')
    (site / "b.html").write_text('<h1 id="x">B</h1>')
    found = list(check_site.problems(site, ROOT))
    assert len(found) == (problem is not None)
    assert problem is None or problem in found[0]


def test_style_sheets_are_checked(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<link rel="stylesheet" href="style.css">')
    style = (
        "@font-face { src: url('https://fonts.example/x.woff2') } a { background: url(gone.png) }"
    )
    (tmp_path / "style.css").write_text(style)
    assert list(check_site.problems(tmp_path, ROOT)) == [
        "style.css: loads https://fonts.example/x.woff2",
        "style.css: no file gone.png",
    ]


def test_the_unicode_table_of_the_engine_is_what_its_script_writes() -> None:
    done = run_python(ROOT / "scripts" / "make_unicode_tables.py", "--check")
    assert done.returncode == 0, done.stderr or "run scripts/make_unicode_tables.py"


@pytest.mark.slow
def test_the_page_of_vocabularies_is_what_its_script_writes(shared: Path) -> None:
    done = run_python(ROOT / "scripts" / "make_vocabularies_table.py", "--check", timeout=900)
    assert done.returncode == 0, done.stderr.splitlines()[-1:]
