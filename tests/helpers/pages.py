"""Examples in Markdown pages: fenced blocks, and how each is run.

A page runs from top to bottom in one folder. The comment right above a block can say more about it:
`<!-- not run: REASON -->`, or `<!-- needs: NAME, NAME -->`: vocabularies of ../shared, programs, or
Python packages.

    python   runs in one namespace per page
    pycon    runs in the same namespace; the output must be the one shown (doctest, with ELLIPSIS)
    sh       every line runs in bash and must succeed, or end with the code in `# exit code N`
    console  `$ ` lines run as in `sh`; the output must be the one shown, except for times and
             speeds; a line `...` stands for any lines
    others   are not run
"""

from __future__ import annotations

import doctest
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import byteweld

ROOT = Path(__file__).parents[2]
PACKAGE = Path(byteweld.__file__).parents[1]
VOCABULARIES = ROOT.parent / "shared" / "data" / "vocabs" / "tiktoken"

RUN = frozenset({"python", "pycon", "sh", "console"})
NOT_RUN = frozenset({"text", "json", "c", "sql"})

_FENCE = re.compile(
    r"(?:^<!-- (?P<note>not run|needs): (?P<value>[^\n]+?) -->\n)?"
    r"^(?P<ticks>```+)(?P<language>[^\n]*)\n(?P<text>.*?)^(?P=ticks)$",
    re.DOTALL | re.MULTILINE,
)
_MASKS = (
    (re.compile(r"\d[\d.,]* (?:[kMGT]?B|bytes)/s"), "SPEED"),
    (re.compile(r"\b\d[\d.,]* ?(?:µs|ms|s|min|h)\b"), "TIME"),
    (re.compile(r"[ ─━]{2,}"), "  "),  # columns are as wide as the figures
)


class Block(NamedTuple):
    """A fenced block of a page; `line` is that of its first line of content."""

    language: str
    text: str
    line: int
    needs: tuple[str, ...] = ()
    not_run: str | None = None


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    found = []
    for match in _FENCE.finditer(page):
        given = {match["note"]: match["value"]}
        found.append(
            Block(
                match["language"].strip(),
                match["text"],
                page.count("\n", 0, match.start("text")) + 1,
                tuple(re.findall(r"[^,\s]+", given.get("needs", ""))),
                given.get("not run"),
            )
        )
    return found


def commands(block: Block) -> list[tuple[str, list[str]]]:
    """Return the commands of a shell block, each with the lines shown below it."""
    if block.language == "sh":
        return [(line, []) for line in block.text.splitlines() if line.strip()]
    found: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
        else:
            raise AssertionError(f"line {block.line}: a transcript starts with `$ `")
    return found


def expected_status(command: str, shown: list[str]) -> int:
    """Return the exit code that a comment announces, or that of the error shown below."""
    said = re.search(r"# exit code (\d)", command)
    if said:
        return int(said[1])
    return 2 if any(line.startswith("byteweld: ") for line in shown) else 0


def has_need(name: str) -> bool:
    """Whether a vocabulary, a program or a Python package that a block needs is here."""
    if any(VOCABULARIES.glob(f"{name}.tiktoken*")) or shutil.which(name):
        return True
    return importlib.util.find_spec(name) is not None


def write_programs(folder: Path) -> Path:
    """Write `byteweld` and `python` that run the package under test; return their folder."""
    folder.mkdir(parents=True)
    run = f'#!/bin/sh\nPYTHONPATH="{PACKAGE}" exec "{sys.executable}"'
    for name, arguments in (("python", ""), ("byteweld", "-m byteweld")):
        (folder / name).write_text(f'{run} {arguments} "$@"\n')
        (folder / name).chmod(0o755)
    return folder


class PageRunner:
    """Runs the blocks of one page in the current folder, with one namespace for its Python."""

    def __init__(self, page: Path, environment: Mapping[str, str], *, compares: bool) -> None:
        self._page = page
        self._environment = dict(environment)
        self._compares = compares
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self.missing: list[str] = []

    def run(self) -> None:
        """Run every block; what cannot run here is in `missing` afterwards."""
        for block in blocks(self._page.read_text("utf-8")):
            where = f"{self._page.name}:{block.line}"
            assert block.language in RUN | NOT_RUN, f"{where}: a block of {block.language!r}"
            if block.language in NOT_RUN or block.not_run is not None:
                continue
            missing = [name for name in block.needs if not has_need(name)]
            if missing:
                self.missing.append(f"{where} needs {', '.join(missing)}")
            elif block.language in ("sh", "console"):
                self._run_shell(block, where)
            else:
                self._run_python(block, where)

    def _run_python(self, block: Block, where: str) -> None:
        if block.language == "python":
            code = "\n" * (block.line - 1) + block.text
            exec(compile(code, str(self._page), "exec"), self._names)
            return
        test = doctest.DocTestParser().get_doctest(block.text, self._names, where, None, 0)
        report: list[str] = []
        flags = doctest.ELLIPSIS if self._compares else 0
        runner = doctest.DocTestRunner(verbose=False, optionflags=flags)
        runner.run(test, out=report.append, clear_globs=False)
        self._names.update(test.globs)
        assert not runner.summarize(verbose=False).failed or not self._compares, "".join(report)

    def _run_shell(self, block: Block, where: str) -> None:
        for command, shown in commands(block):
            done = subprocess.run(
                ["bash", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=self._environment,
                text=True,
                timeout=240,
                check=False,
            )
            told = f"{where}: {command}\nexit {done.returncode}\n{done.stdout}"
            assert done.returncode == expected_status(command, shown), told
            if block.language == "console" and self._compares:
                assert is_shown(done.stdout, shown), f"{told}\nthe page shows\n" + "\n".join(shown)


def is_shown(output: str, shown: list[str]) -> bool:
    """Whether a page shows this output, apart from times and speeds; `...` is any lines."""
    pattern = "".join(
        r"(?:[^\n]*\n)*?" if line.strip() == "..." else re.escape(_masked(line)) + "\n"
        for line in _without_empty_end(shown)
    )
    lines = "".join(_masked(line) + "\n" for line in _without_empty_end(output.splitlines()))
    return re.fullmatch(pattern, lines) is not None


def _masked(line: str) -> str:
    for pattern, mask in _MASKS:
        line = pattern.sub(mask, line)
    return line.rstrip()


def _without_empty_end(lines: list[str]) -> list[str]:
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    return lines[:end]


def pages(folder: Path) -> Iterator[Path]:
    """Yield the pages of a folder that have blocks which are run."""
    for page in sorted(folder.rglob("*.md")):
        if any(block.language in RUN for block in blocks(page.read_text("utf-8"))):
            yield page


def shell_environment(programs: Path, home: Path) -> dict[str, str]:
    """Return the environment of shell blocks: ours, without what would change their output."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "VIRTUAL_ENV", "FORCE_COLOR")
        and not name.startswith(("MAKE", "PYTEST", "BYTEWELD", "TIKTOKEN", "DATA_GYM", "HF_"))
    }
    return kept | {
        "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "BYTEWELD_MIRROR": "http://127.0.0.1:9/",  # no example connects to another machine
        "COLUMNS": "96",
        "NO_COLOR": "1",
    }
