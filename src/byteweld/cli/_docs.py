"""`python -m byteweld.cli._docs`: writes docs/cli.md from the verbs' own help."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from byteweld.cli import VERBS, _command, _output, overview

_WIDTH = 96
_INTRODUCTION = """\
# The command line

Written by `python -m byteweld.cli._docs` from the verbs' own help; do not edit.

stdout is data and stderr is talk. `-` is standard input, and nothing is stripped from it. Exit
codes: 0 done, 1 the answer is no, 2 failure or wrong use, 130 interrupted. A broken pipe is a
success. Nothing is overwritten without `--force`, except that `quickstart` replaces what is in its
own folder. Progress is a bar on a terminal and a line now and then elsewhere. `NO_COLOR` is obeyed;
`FORCE_COLOR` gives colours to a pipe.
"""


def page() -> str:
    """The whole of docs/cli.md."""
    parts = [_INTRODUCTION, _block("\n".join(overview()))]
    for name, verb in VERBS.items():
        command = _command.Command(name, importlib.import_module(verb.module))
        parts += [f"## {name}\n", _block(command.help_page(_WIDTH))]
    return "\n".join(parts)


def _block(content: str) -> str:
    return f"```text\n{content}\n```\n"


def main(arguments: list[str]) -> int:
    """Write the page to the file named, or to docs/cli.md of this checkout."""
    here = Path(__file__).resolve()
    target = Path(arguments[0]) if arguments else here.parents[3] / "docs" / "cli.md"
    target.write_text(page(), encoding="utf-8")
    _output.say(f"wrote {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
