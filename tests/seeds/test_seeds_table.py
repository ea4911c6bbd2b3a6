"""docs/about/seeds.md is complete: it names tests that exist, and no test of a seed is missing."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "about" / "seeds.md"
SEEDS = ("bpetite", "Worked theory", "From scratch", "ck", "BPE1")
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
NO_TEST = re.compile(r"no test: \S.{15,}")

Row = tuple[int, str, list[str]]  # line number, section, cells


def read_rows() -> list[Row]:
    """The rows of every table under a seed's heading, without header lines."""
    rows: list[Row] = []
    section = ""
    in_table = False
    for number, line in enumerate(PAGE.read_text("utf-8").splitlines(), 1):
        if line.startswith("## "):
            section = line[3:]
        if not line.startswith("|"):
            in_table = False
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))]
        is_rule = all(re.fullmatch(r"-+", cell) for cell in cells)
        if in_table and not is_rule and section in SEEDS:
            rows.append((number, section, cells))
        in_table = True
    return rows


ROWS = read_rows()


@cache
def functions_of(path: str) -> frozenset[str]:
    """The test functions of a file; none if it does not exist."""
    file = ROOT / path
    if not file.is_file():
        return frozenset()
    tree = ast.parse(file.read_text("utf-8"))
    return frozenset(
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )


# What a test that reads ../shared has: one of these marks or fixtures.
SHARED_MARKS = re.compile(r"needs_(course|ck|seeds|books|real)|ICONS|SHARED")
SHARED_FIXTURES = {"shared", "r50k", "drawings"}


@cache
def shared_tests(path: str) -> frozenset[str]:
    """The tests of a file that are skipped in a clone without ../shared."""
    found = set()
    for node in ast.parse((ROOT / path).read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            marks = " ".join(map(ast.unparse, node.decorator_list))
            fixtures = {argument.arg for argument in node.args.args}
            if SHARED_MARKS.search(marks) or fixtures & SHARED_FIXTURES:
                found.add(node.name)
    return frozenset(found)


def test_no_row_depends_on_shared_data_alone():
    lost = []
    for number, _, cells in ROWS:
        named = NAMED.findall(cells[-1])
        if named and all(name in shared_tests(path) for path, name in named):
            lost.append((number, cells[0]))
    assert lost == []
    skipped = shared_tests("tests/seeds/test_from_scratch.py")
    assert "test_merges_and_vocabulary_of_the_course_are_learned_exactly" in skipped


def test_every_test_that_the_page_names_exists():
    named = NAMED.findall(PAGE.read_text("utf-8"))
    assert len(named) > 150
    missing = [f"{path}::{name}" for path, name in named if name not in functions_of(path)]
    assert missing == []


def test_every_row_has_three_cells_and_a_test_or_a_reason():
    incomplete = []
    for number, _, cells in ROWS:
        complete = len(cells) == 3 and all(cells)
        if not complete or not (NAMED.search(cells[2]) or NO_TEST.fullmatch(cells[2])):
            incomplete.append((number, cells))
    assert incomplete == []


def test_every_test_of_the_seeds_is_on_the_page():
    named = {f"{path}::{name}" for path, name in NAMED.findall(PAGE.read_text("utf-8"))}
    forgotten = []
    for file in sorted(Path(__file__).parent.glob("test_*.py")):
        if file.name != Path(__file__).name:
            path = file.relative_to(ROOT).as_posix()
            forgotten += [f"{path}::{name}" for name in functions_of(path)]
    assert len(forgotten) > 100
    assert sorted(set(forgotten) - named) == []
