"""docs/reference/vocabularies.md is up to date with the script that writes it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "make_vocabularies_table.py"


@pytest.mark.slow
def test_the_page_is_what_its_script_writes(shared):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--check"], capture_output=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr.decode().splitlines()[-1:]
