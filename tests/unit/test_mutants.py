"""The tool that breaks readers: which changes it makes, and that it tells survivors from killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness import mutants
from tests.helpers.programs import run_python

PLANTED = """
def is_small(number):
    if number < 0:
        raise ValueError(number)
    return number <= 9
"""
WEAK = """
import pytest
from planted.module import is_small

def test_small():
    assert is_small(3)
    assert not is_small(30)

def test_negative():
    with pytest.raises(ValueError):
        is_small(-1)
"""
PROGRAM = """
import sys
from pathlib import Path
from tests.harness import mutants

mutants.ROOT = Path(sys.argv[1])
target = mutants.Target("src/planted/module.py", ("test_planted.py",))
changes = mutants.mutants((mutants.ROOT / target.source).read_text())
judged = mutants.judge(target, changes)
assert judged.passes
print(len(changes), judged.num_tests)
for change in judged.survivors:
    print(change.before, "->", change.after)
"""


def test_a_change_that_no_test_notices_survives(tmp_path: Path):
    (tmp_path / "src" / "planted").mkdir(parents=True)
    (tmp_path / "src" / "planted" / "module.py").write_text(PLANTED)
    (tmp_path / "test_planted.py").write_text(WEAK)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow: x\n    browser: x\n")
    paths = f"sys.path[:0] = {[str(tmp_path / 'src'), str(mutants.ROOT)]!r}"
    done = run_python("-c", f"import sys; {paths}\n{PROGRAM}", tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "4 2",
        "number < 0 -> number <= 0",
        "number <= 9 -> number < 9",
    ]


@pytest.mark.parametrize("name", mutants.TARGETS)
def test_the_page_explains_only_changes_that_the_tool_makes(name):
    target = mutants.TARGETS[name]
    source = (mutants.ROOT / target.source).read_text("utf-8")
    made = {change.key(name) for change in mutants.mutants(source, target.functions)}
    assert {key for key in mutants.explained() if key[0] == name} <= made
