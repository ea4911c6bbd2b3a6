"""The script that makes the static page: what it takes from the package, without a compiler."""

from __future__ import annotations

import re

import pytest

from byteweld.evaluation import script_of
from byteweld.formats._hf_pipeline import _dialect_problem
from byteweld.formats._oniguruma import find_dialect_problem
from byteweld.known_encodings import RANK_SETTINGS
from byteweld.patterns import PATTERNS
from scripts import make_page
from tests.studio.test_page_files import FORBIDDEN as PARSERS


@pytest.fixture(scope="module")
def facts():
    return make_page.facts()


@pytest.mark.parametrize("word", [*PARSERS, " fetch(", "import("])
def test_nothing_parses_html_or_connects(word: str):
    # api.js of the studio is the only module that does, and it is replaced.
    assert word not in make_page.bundle("app.js")
    assert word not in make_page._source("worker.js")


def test_an_element_is_never_ended_by_its_content():
    with pytest.raises(ValueError, match="</script"):
        make_page._plain("x = '</SCRIPT>'")
    page = make_page.page(b"\0asm")
    assert page.count("</script>") == 4 and page.count("</style>") == 1
    assert "<!-- head -->" not in page and "<!-- title -->" not in page


def test_the_policy_allows_the_pages_own_script_and_style_and_nothing_else():
    page = make_page.page(b"\0asm")
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    [script] = re.findall(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    [style] = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert policy == (
        f"default-src 'none'; script-src '{make_page._hash(script)}' 'wasm-unsafe-eval'; "
        f"style-src '{make_page._hash(style)}'; worker-src blob:; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def test_every_regular_expression_of_the_page_is_one_that_byteweld_reads(facts):
    regexes = facts["engine"]["regexes"]
    assert set(make_page._MORE_REGEXES) < set(regexes)
    for source, known in regexes.items():
        assert _dialect_problem(source) is None
        assert known["same_as"] in {source, *PATTERNS.values()}
    assert find_dialect_problem("a$") is not None and "a$" not in regexes


def test_the_page_knows_the_rank_files_that_byteweld_knows(facts):
    assert facts["engine"]["rank_files"].keys() == RANK_SETTINGS.keys()


def test_the_kinds_of_characters_are_those_of_script_of(facts):
    kinds = facts["kinds"]
    assert sum(kinds["lengths"]) == 0x110000
    end = 0
    for length, which in zip(kinds["lengths"], kinds["which"], strict=True):
        for code in (end, end + length - 1):
            if not 0xD800 <= code < 0xE000:
                assert script_of(chr(code).encode()) == kinds["names"][which], hex(code)
        end += length
