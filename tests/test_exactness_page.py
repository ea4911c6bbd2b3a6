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
