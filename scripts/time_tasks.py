"""Write the times in docs/guides/ten-tasks.md: run its commands on real input, and time each task.

    python scripts/time_tasks.py --mixed FOLDER

`--mixed` is a folder of text of any size; tasks 1 and 4 read it instead of `books/`. The Python
that runs this needs transformers and tokenizers (`make test-transformers` makes such an
environment), and BYTEWELD_PATH must name a folder with cl100k_base and o200k_base.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "guides" / "ten-tasks.md"
START, END = "<!-- times:start -->", "<!-- times:end -->"
_RUNS = 3
_SECTION = re.compile(r"^## (\d+)\. (.*?)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
_BLOCK = re.compile(
    r"(?:^<!-- (not run|needs)[^\n]*\n)?^```(sh|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE
)
_LARGE = frozenset({1, 4})  # tasks that read the mixed folder


def main() -> int:
    """Time every task and rewrite the table."""
    parser = argparse.ArgumentParser(description="Time the ten tasks.")
    parser.add_argument("--mixed", type=Path, required=True, help="a folder of text")
    mixed: Path = parser.parse_args().mixed.resolve()
    size = sum(file.stat().st_size for file in mixed.rglob("*") if file.is_file())
    page = PAGE.read_text("utf-8")
    rows = []
    with tempfile.TemporaryDirectory(prefix="byteweld-tasks-") as folder:
        start = Path(folder) / "start"
        _quickstart(start)
        for number, title, body in _SECTION.findall(page):
            blocks = [
                (kind, text) for note, kind, text in _BLOCK.findall(body) if note != "not run"
            ]
            if int(number) in _LARGE:
                blocks = [(kind, text.replace("books/", f"{mixed}/")) for kind, text in blocks]
            times = []
            for run in range(_RUNS):
                work = Path(folder) / f"{number}-{run}"
                shutil.copytree(start, work)
                times.append(_run(blocks, work))
                shutil.rmtree(work)
            on = f", on {size / 1e6:,.0f} MB" if int(number) in _LARGE else ""
            rows.append(f"| {number}. {title}{on} | {_shown(min(times))} |")
            sys.stderr.write(f"{rows[-1]}\n")
    before, rest = page.split(START)
    table = ["| task | time |", "|---|---:|", *rows]
    note = (
        "Wall time of all commands of a task, the start of Python and every import included: the "
        f"best of {_RUNS} runs on a machine with {os.cpu_count()} processors. The other tasks read "
        "`books/`, 0.5 MB."
    )
    text = "\n".join([START, *table, "", note, END])
    PAGE.write_text(before + text + rest.split(END)[1], encoding="utf-8")
    return 0


def _quickstart(folder: Path) -> None:
    """Make books/ and tokenizer.json."""
    from pydoc_data.topics import topics

    (folder / "books").mkdir(parents=True)
    for name, text in topics.items():
        (folder / "books" / f"{name}.txt").write_text(text, encoding="utf-8")
    train = "byteweld train books/ --vocab-size 4096 --eos '<|endoftext|>'"
    _run([("sh", train)], folder)


def _run(blocks: list[tuple[str, str]], folder: Path) -> float:
    """Run the blocks of a task; return the seconds they took."""
    programs = folder.parent / "bin"
    programs.mkdir(exist_ok=True)
    program = f'#!/bin/sh\nexec "{sys.executable}" -m byteweld "$@"\n'
    (programs / "byteweld").write_text(program)
    (programs / "byteweld").chmod(0o755)
    environment = os.environ | {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "HF_HUB_OFFLINE": "1",
    }
    begun = time.perf_counter()
    for kind, text in blocks:
        lines = text.splitlines() if kind == "sh" else [text]
        for line in lines:
            command = ["bash", "-c", line] if kind == "sh" else [sys.executable, "-c", line]
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, check=False
            )
            said = re.search(r"# exit code (\d)", line) if kind == "sh" else None
            if done.returncode != (int(said[1]) if said else 0):
                sys.exit(f"{line}\nexit {done.returncode}\n{done.stderr}")
    return time.perf_counter() - begun


def _shown(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


if __name__ == "__main__":
    sys.exit(main())
