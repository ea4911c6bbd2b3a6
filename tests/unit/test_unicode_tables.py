"""The scanners' Unicode table is what its script makes of Unicode 16."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "make_unicode_tables.py"


def test_the_table_in_the_engine_is_what_the_script_writes() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr or "run scripts/make_unicode_tables.py"
