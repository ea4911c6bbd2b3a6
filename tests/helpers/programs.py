"""Programs that tests run."""

from __future__ import annotations

import subprocess
import sys
from typing import Any


def run_python(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments, such as `-c` and a program; its output is text."""
    command = [sys.executable, *map(str, arguments)]
    options = {"timeout": 240} | options
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)
