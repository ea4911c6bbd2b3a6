"""README.md pasted from top to bottom in a fresh clone: every line of every block works.

A copy of the tracked files stands for the clone. Only the build is replaced: `make` lines are dry
runs (`make -n`), and `.venv` runs the package under test. All other lines run as they are, in one
shell that finds neither byteweld nor its Python until the environment is activated. What they leave
in the clone is ignored by git.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.helpers.pages import ROOT, Block, blocks, commands, expected_status, write_programs

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
    for command in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    binaries = write_programs(folder / ".venv" / "bin")
    (binaries / "activate").write_text(f'PATH="{binaries}:$PATH"\n')
    return folder


def as_shell(block: Block) -> list[str]:
    """The commands of a block; Python is pasted into `python` at once."""
    if block.language == "python":
        return [f"python - <<'END_OF_PYTHON'\n{block.text}END_OF_PYTHON"]
    return [command for command, _ in commands(block)]


def test_the_readme_works_pasted_from_top_to_bottom(clone: Path) -> None:
    for tool in ("bash", "make"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    pytest.importorskip("tokenizers", reason="`byteweld prove` needs the real tokenizers")
    found = blocks((ROOT / "README.md").read_text("utf-8"))
    assert {"sh", "python"} <= {block.language for block in found} <= {"sh", "python", "console"}
    assert not any(block.not_run or block.needs for block in found)
    pasted = [command for block in found for command in as_shell(block)]
    statuses = clone.parent / "statuses"
    script = PRELUDE + "".join(f'{command}\necho $? >> "{statuses}"\n' for command in pasted)
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
    for command, status in zip(pasted, seen, strict=True):
        assert status == expected_status(command, []), f"{command}\nexit {status}\n{done.stderr}"
    untracked = ["git", "ls-files", "--others", "--exclude-standard", "--modified"]
    assert subprocess.check_output(untracked, cwd=clone, text=True) == ""
