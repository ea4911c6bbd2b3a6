"""A verb's module -> a command: typer reads the signature of its run(), our own page is its --help.

A verb's module has run(), whose docstring is the first paragraph of the help, and EXAMPLES.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import typer
from typer.core import TyperCommand

from byteweld.cli import _errors, _output

_LEFT = 26  # columns for the names of options


class _Command(TyperCommand):
    """A command whose help is one plain page: options in groups, then examples."""

    examples: str = ""

    def get_help(self, ctx: Any) -> str:
        return help_page(self, _output.width())


def make(name: str, module: ModuleType) -> _Command:
    """Make the command of a verb."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    settings = {"help_option_names": ["--help", "-h"]}
    app.command(name, cls=_Command, context_settings=settings)(module.run)
    command = typer.main.get_command(app)
    assert isinstance(command, _Command)  # what typer was told to make
    command.examples = module.EXAMPLES
    return command


def call(name: str, module: ModuleType, arguments: list[str]) -> int:
    """Parse the arguments and run a verb; returns its exit code."""
    command = make(name, module)
    prepare = getattr(module, "prepare", None)
    if prepare is not None:
        arguments = prepare(arguments)
    try:
        # Not command.main(): it would make its own exit codes of a broken pipe and an interrupt.
        with command.make_context(f"byteweld {name}", arguments) as context:
            result = command.invoke(context)
    except typer.Exit as stop:
        return stop.exit_code
    except Exception as error:
        # typer's exceptions are click's, or those of its private copy of click; both have this.
        if not hasattr(error, "format_message"):
            raise
        raise _errors.UsageError(_usage_message(name, command, error)) from None
    return result if isinstance(result, int) else 0


def _usage_message(name: str, command: _Command, error: Any) -> str:
    if type(error).__name__ == "NoSuchOption":
        known = [opt for parameter in command.params for opt in parameter.opts] + ["--help"]
        wrong = str(error.option_name)
        return f"{name} has no option {wrong!r}{_errors.nearest(wrong, known)}"
    message = error.format_message().rstrip(".")
    message = " ".join(message.split())
    return f"{name}: {message[:1].lower()}{message[1:]}; see `byteweld {name} --help`"


# ---------------------------------------------------------------------------- help


def help_page(command: _Command, width: int) -> str:
    """The whole help of a verb, for a page of a width."""
    return "\n".join(_help_lines(command, width))


def _help_lines(command: _Command, width: int) -> Iterator[str]:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option"]
    shape = " ".join(["[OPTIONS]", *(_argument_name(argument) for argument in arguments)])
    yield f"Usage: byteweld {command.name} {shape}"
    yield ""
    for paragraph in (command.help or "").split("\n\n"):
        yield from _wrap(" ".join(paragraph.split()), width)
        yield ""
    if arguments:
        yield "Arguments:"
        for argument in arguments:
            yield from _entry(_argument_name(argument), _help_of(argument), width)
        yield ""
    groups: dict[str, list[Any]] = {}
    for option in options:
        groups.setdefault(getattr(option, "rich_help_panel", None) or "Options", []).append(option)
    for title, members in groups.items():
        yield f"{title}:"
        for option in members:
            yield from _entry(_option_name(option), _help_of(option), width)
        yield ""
    yield "Examples:"
    yield from textwrap.indent(textwrap.dedent(command.examples).strip("\n"), "  ").splitlines()


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=False)


def _argument_name(argument: Any) -> str:
    name = str(argument.metavar or argument.name.upper())
    return name if argument.required else f"[{name}]"


def _option_name(option: Any) -> str:
    names = ", ".join(option.opts)
    return names if option.is_flag else f"{names} {option.metavar}"


def _help_of(parameter: Any) -> str:
    return " ".join((getattr(parameter, "help", None) or "").split())


def _entry(name: str, help: str, width: int) -> Iterator[str]:
    lines = _wrap(help, max(20, width - _LEFT)) or [""]
    if len(name) + 4 > _LEFT:
        yield f"  {name}"
    else:
        yield f"  {name:<{_LEFT - 2}}{lines.pop(0)}".rstrip()
    for line in lines:
        yield " " * _LEFT + line
