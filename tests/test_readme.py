"""README.md pasted from top to bottom in a fresh clone: every line of every block works.

A copy of the tracked files stands for the clone. Only the build is replaced: `make` lines are dry
runs (`make -n`), and `.venv` runs the package under test. All other lines run as they are, in one
shell that finds neither byteweld nor its Python until the environment is activated.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import byteweld

ROOT = Path(__file__).parent.parent
PACKAGE = Path(byteweld.__file__).parents[1]
PRELUDE = 'make() { command make --dry-run "$@"; }\n'


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A copy of the tracked files, with a stand-in for the environment that `make` builds."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a git clone")
    folder = tmp_path / "byteweld"
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file() and not name.startswith("benches/record/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    binaries = folder / ".venv" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "activate").write_text(f'PATH="{binaries}:$PATH"\n')
    run = f'#!/bin/sh\nPYTHONPATH="{PACKAGE}" exec "{sys.executable}"'
    for name, arguments in (("python", ""), ("byteweld", "-m byteweld")):
        (binaries / name).write_text(f'{run} {arguments} "$@"\n')
        (binaries / name).chmod(0o755)
    return folder


def blocks(page: str) -> list[tuple[str, str]]:
    """(language, text) of each fenced block."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def as_shell(language: str, block: str) -> list[str]:
    """The commands of a block; Python is pasted into `python` at once, a transcript has output."""
    if language == "console":
        return [line[2:] for line in block.splitlines() if line.startswith("$ ")]
    if language == "python":
        return [f"python - <<'END_OF_PYTHON'\n{block}END_OF_PYTHON"]
    return [line for line in block.splitlines() if line.strip()]


def expected_status(command: str) -> int:
    said = re.search(r"# exit code (\d)", command)
    return int(said[1]) if said else 0


def test_the_readme_works_pasted_from_top_to_bottom(clone: Path) -> None:
    for tool in ("bash", "make"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    pytest.importorskip("tokenizers", reason="`byteweld prove` needs the real tokenizers")
    found = blocks((ROOT / "README.md").read_text("utf-8"))
    assert {language for language, _ in found} == {"sh", "python", "console"}
    commands = [command for block in found for command in as_shell(*block)]
    statuses = clone.parent / "statuses"
    script = PRELUDE + "".join(f'{command}\necho $? >> "{statuses}"\n' for command in commands)
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "VIRTUAL_ENV") and not name.startswith("MAKE")
    }
    (clone.parent / "paste.sh").write_text(script)
    done = subprocess.run(
        ["bash", str(clone.parent / "paste.sh")],
        stdin=subprocess.DEVNULL,
        cwd=clone,
        env=environment | {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(clone.parent)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    seen = [int(status) for status in statuses.read_text().split()]
    for command, status in zip(commands, seen, strict=True):
        assert status == expected_status(command), f"{command}\nexit {status}\n{done.stderr}"
