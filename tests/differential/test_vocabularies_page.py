"""docs/vocabularies.md is what its script writes today."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "make_vocabularies_table.py"


@pytest.mark.slow
def test_the_page_of_vocabularies_is_up_to_date(shared):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--check"], capture_output=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr.decode().splitlines()[-1:]
