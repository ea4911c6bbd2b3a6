"""docs/design/exactness.md: every test, file and command that it names exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "design" / "exactness.md").read_text("utf-8")


def test_every_file_and_test_on_the_page_exists() -> None:
    named = re.findall(r"`((?:tests|crates)/[\w/.-]+\.(?:py|rs))(?:::(\w+))?`", PAGE)
    assert len(named) > 30
    for file, test in named:
        assert (ROOT / file).is_file(), file
        assert not test or f"def {test}(" in (ROOT / file).read_text("utf-8"), test


def test_every_command_on_the_page_exists() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = set(re.findall(r"`make ([\w-]+)", PAGE)) | set(
        re.findall(r"^make ([\w-]+)", PAGE, re.M)
    )
    assert len(named) > 8
    assert named <= targets, named - targets


def test_every_row_has_evidence_and_a_result() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    claims = [row for row in rows if not row.startswith("| claim |")]
    assert len(claims) > 25
    for row in claims:
        claim, how, where, result = row.strip("| ").split(" | ")
        assert claim and how and result, row
        assert "`" in where, row


def test_counts_of_vocabularies_are_those_of_their_page() -> None:
    table = (ROOT / "docs" / "reference" / "vocabularies.md").read_text("utf-8")
    rows = re.findall(r"\| (?:–|312 / 312) \| 312 / 312 \|", table)
    said = re.search(r"\[(\d+) vocabularies\]\(\.\./reference", PAGE)
    assert said and int(said[1]) == len(rows)
