"""`python -m byteweld.cli._docs`: generates docs/reference/cli.md from the verbs' help."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from byteweld.cli import VERBS, _command, _output, module_of, overview

_WIDTH = 96
_INTRODUCTION = """\
# The command line

Generated from the help texts by `python -m byteweld.cli._docs`; do not edit.

Data goes to stdout, messages to stderr. `-` is standard input, which is read byte for byte. Exit
codes: 0 success, 1 the answer is no, 2 error or wrong usage, 130 interrupted. A broken pipe does
not change the code. Nothing is overwritten without `--force`, except that `quickstart` replaces the
files in its own folder. Long-running verbs show a progress bar on a terminal and an occasional line
elsewhere. `NO_COLOR` turns colors off; `FORCE_COLOR` turns them on even if stdout is not a
terminal.
"""


def page() -> str:
    """The content of docs/reference/cli.md."""
    parts = [_INTRODUCTION, _block(overview())]
    for name in VERBS:
        command = _command.Command(name, module_of(name))
        parts += [f"## {name}\n", _block(command.help_page(_WIDTH))]
    return "\n".join(parts)


def _block(lines: Iterable[str]) -> str:
    return "\n".join(["```text", *lines, "```\n"])


def main(arguments: list[str]) -> int:
    """Write the page to the given file, or to docs/reference/cli.md of this checkout."""
    here = Path(__file__).resolve()
    target = Path(arguments[0]) if arguments else here.parents[3] / "docs" / "reference" / "cli.md"
    target.write_text(page(), encoding="utf-8")
    _output.say(f"wrote {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
