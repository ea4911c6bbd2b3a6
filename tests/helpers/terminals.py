"""Runs the program many times, each in its own terminal: forks after the imports, which is quick.

As a program (`python -m tests.helpers.terminals`), reads a JSON list of runs and writes their
results.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

_SECONDS = 20
_ROOT = Path(__file__).parents[2]


class Shown(NamedTuple):
    """What one run wrote to its terminal, and its exit code."""

    code: int
    out: bytes


def run_in_terminals(
    runs: Sequence[tuple[Sequence[str], dict[str, str]]], folder: Path
) -> list[Shown]:
    """Run each (arguments, environment) in a folder; the studio is interrupted when it is ready."""
    plain = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    done = subprocess.run(
        [sys.executable, "-m", "tests.helpers.terminals"],
        input=json.dumps({"folder": str(folder), "runs": runs}).encode(),
        capture_output=True,
        cwd=_ROOT,
        env=plain | {"TERM": "xterm-256color"},
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return [Shown(code, bytes.fromhex(out)) for code, out in json.loads(done.stdout)]


def _run(arguments: list[str], environment: dict[str, str]) -> tuple[int, str]:
    process, leader = pty.fork()
    if process == 0:
        _be_the_program(arguments, environment)
    os.write(leader, b"\x04")  # standard input is empty
    out = b""
    end = time.monotonic() + _SECONDS
    is_interrupted = False
    while time.monotonic() < end:
        if not select.select([leader], [], [], 0.5)[0]:
            continue
        try:
            block = os.read(leader, 1 << 16)
        except OSError:  # the other side is closed
            break
        if not block:
            break
        out += block
        if b"press Ctrl-C to stop" in out and not is_interrupted:
            is_interrupted = True
            os.write(leader, b"\x03")
    else:
        os.kill(process, 9)
    os.close(leader)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), out.hex()


def _be_the_program(arguments: list[str], environment: dict[str, str]) -> None:
    code = 99
    try:
        from byteweld.cli import main

        os.environ.update(environment)
        sys.argv = ["byteweld", *arguments]
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False))
        sys.__stderr__ = sys.stderr
        code = main()
        sys.stdout.flush()
    finally:
        os._exit(code)


def _main() -> None:
    from byteweld.cli import VERBS, module_of

    slow = (
        "numpy",
        "tiktoken",
        "tokenizers",
        "byteweld.studio.server",
        "byteweld.evaluation.corpora",
    )
    for verb in VERBS:
        module_of(verb)
    for name in slow:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    given: Any = json.load(sys.stdin)
    os.chdir(given["folder"])
    json.dump([_run(*one) for one in given["runs"]], sys.stdout)


if __name__ == "__main__":
    _main()
