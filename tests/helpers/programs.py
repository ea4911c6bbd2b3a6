"""Programs that tests run."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any


def run_python(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments, such as `-c` and a program; its output is text."""
    command = [sys.executable, *map(str, arguments)]
    options = {"timeout": 240} | options
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def run_byteweld(folder: object, *arguments: str, **environment: str) -> tuple[int, str, str]:
    """Run the command in a folder; return its exit code, output and errors."""
    options = {"cwd": folder, "env": os.environ | environment, "timeout": 120}
    done = run_python("-m", "byteweld", *arguments, **options)
    return done.returncode, done.stdout, done.stderr
