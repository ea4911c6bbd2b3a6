"""`byteweld completion`: a shell script that completes verbs, options and their values.

The script is self-contained: completing a word does not start byteweld.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from typing import Literal

from byteweld.cli import VERBS, _output, module_of
from byteweld.cli._command import Command

EXAMPLES = """
byteweld completion bash > ~/.local/share/bash-completion/completions/byteweld
byteweld completion zsh > ~/.zfunc/_byteweld
byteweld completion fish > ~/.config/fish/completions/byteweld.fish
"""


def run(shell: Literal["bash", "zsh", "fish"]) -> None:
    """Print a shell script that completes verbs, options and their values.

    For zsh, save it in a folder that is in fpath before compinit runs.

    Args:
        shell: The shell: bash, zsh or fish.
    """
    commands = [Command(name, module_of(name)) for name in VERBS]
    _output.lines(_SHELLS[shell](commands))


def _first_sentence(help: str) -> str:
    return re.split(r"[.:;](?:\s|$)", help, maxsplit=1)[0]


def _bash(commands: list[Command]) -> Iterator[str]:
    verbs = " ".join([*VERBS, "--help", "--version"])
    yield "_byteweld() {"
    yield '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" words='
    yield '    case "$COMP_CWORD ${COMP_WORDS[1]} $before" in'
    yield f"        1\\ *) words={shlex.quote(verbs)} ;;"
    for command in commands:
        for option in command.options:
            for name in option.flags if option.choices else ():
                yield f"        *\\ {command.name}\\ {name}) words='{' '.join(option.choices)}' ;;"
    for command in commands:
        flags = " ".join([*(flag for option in command.options for flag in option.flags), "--help"])
        yield f"        *\\ {command.name}\\ *) [[ $word == -* ]] && words='{flags}' ;;"
    yield "    esac"
    yield '    COMPREPLY=($(compgen -W "$words" -- "$word"))'
    yield "}"
    yield "complete -o bashdefault -o default -F _byteweld byteweld"


def _zsh(commands: list[Command]) -> Iterator[str]:
    def quoted(text: str) -> str:
        return text.replace("'", "'\\''")

    def escaped(text: str) -> str:
        return quoted(re.sub(r"([\[\]:\\])", r"\\\1", text))

    yield "#compdef byteweld"
    yield "_byteweld() {"
    yield "    if (( CURRENT == 2 )); then"
    yield "        local -a verbs=("
    for name, summary in VERBS.items():
        yield f"            '{name}:{quoted(summary)}'"
    yield "        )"
    yield "        _describe verb verbs"
    yield "        return"
    yield "    fi"
    yield '    case "$words[2]" in'
    for command in commands:
        yield f"        {command.name}) _arguments \\"
        for option in command.options:
            repeated = "*" if option.is_list else ""
            values = f"({' '.join(option.choices)})" if option.choices else "_files"
            value = "" if option.read is None else f":{escaped(option.metavar)}:{values}"
            for name in option.flags:
                summary = escaped(_first_sentence(option.help))
                yield f"            '{repeated}{name}[{summary}]{value}' \\"
        yield "            '*:file:_files' ;;"
    yield "    esac"
    yield "}"
    yield 'if [ "$funcstack[1]" = "_byteweld" ]'
    yield 'then _byteweld "$@"'
    yield "else compdef _byteweld byteweld"
    yield "fi"


def _fish(commands: list[Command]) -> Iterator[str]:
    def quoted(text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    for name, summary in VERBS.items():
        summary = quoted(summary)
        yield f"complete -c byteweld -n __fish_use_subcommand -f -a {name} -d {summary}"
    for command in commands:
        for option in command.options:
            names = " ".join(
                re.sub("^--", "-l ", re.sub("^-(?!-)", "-s ", f)) for f in option.flags
            )
            values = f" -x -a {quoted(' '.join(option.choices))}" if option.choices else " -r"
            yield (
                f"complete -c byteweld -n '__fish_seen_subcommand_from {command.name}' {names}"
                f"{'' if option.read is None else values} -d {quoted(_first_sentence(option.help))}"
            )


_SHELLS: dict[str, Callable[[list[Command]], Iterator[str]]] = {
    "bash": _bash,
    "zsh": _zsh,
    "fish": _fish,
}
