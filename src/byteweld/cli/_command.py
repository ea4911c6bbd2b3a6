"""Turns verb modules into commands: reads the signature of run(), parses arguments, renders --help.

A verb's module has run(), whose parameters are annotated with an Option or an Argument and whose
docstring opens the help page, and EXAMPLES. A parameter whose type is a NamedTuple of annotated
fields bundles options that several verbs share. We parse arguments ourselves because argparse and
its peers take longer to import than a small verb takes to run.
"""

from __future__ import annotations

import textwrap
import typing
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, Final

from byteweld.cli import _errors

_LEFT = 26  # columns for the names of options
_HELP: Final = ("--help", "-h")


class Option:
    """An option of a verb; a parameter of type bool makes it a flag, a list lets it repeat."""

    def __init__(
        self,
        *names: str,
        help: str,
        metavar: str = "",
        read: Callable[[str], Any] = str,
        choices: Sequence[str] = (),
        group: str = "Options",
        bare: str | None = None,
        is_hidden: bool = False,
    ) -> None:
        self.names = names
        self.help = help
        self.metavar = metavar
        self.read = read  # argument -> value; raises UsageError
        self.choices = choices
        self.group = group
        self.bare = bare  # the value when no number follows the option
        self.is_hidden = is_hidden


class Argument:
    """A positional argument of a verb; a list takes several, a default makes it optional."""

    def __init__(self, *, metavar: str, help: str, unless: str = "") -> None:
        self.metavar = metavar
        self.help = help
        self.unless = unless  # required unless the option of this parameter is given


class Parameter(typing.NamedTuple):
    """A parameter of run() with its declaration."""

    name: str
    declared: Option | Argument
    is_flag: bool
    is_list: bool
    is_required: bool
    bundle: str | None = None  # the parameter of run() that bundles it


class Command:
    """A verb, ready to parse its arguments and to show its help."""

    def __init__(self, name: str, module: ModuleType) -> None:
        self.name = name
        self._module = module
        self.params = list(_parameters(module.run))
        self._options = {
            name: parameter
            for parameter in self.params
            if isinstance(parameter.declared, Option)
            for name in parameter.declared.names
        }

    # ------------------------------------------------------------------------ parsing

    def parse(self, arguments: list[str]) -> dict[str, Any] | None:
        """Read arguments into the keyword arguments of run(); None when help is requested."""
        if prepare := getattr(self._module, "prepare", None):
            arguments = prepare(arguments)
        values: dict[str, Any] = {}
        positional: list[str] = []
        rest = arguments[::-1]
        while rest:
            argument = rest.pop()
            if argument == "--":
                positional += rest[::-1]
                break
            if argument in _HELP:
                return None
            if argument.startswith("-") and argument != "-":
                self._option(argument, rest, values)
            else:
                positional.append(argument)
        self._assign(positional, values)
        return values

    def bundled(self, values: dict[str, Any]) -> dict[str, Any]:
        """Group the values of bundled options into the parameters of run() that bundle them."""
        hints = typing.get_type_hints(self._module.run)
        grouped: dict[str, Any] = {}
        bundles: dict[str, dict[str, Any]] = {}
        for parameter in self.params:
            if parameter.name in values:
                where = grouped
                if parameter.bundle is not None:
                    where = bundles.setdefault(parameter.bundle, {})
                where[parameter.name] = values[parameter.name]
        return grouped | {name: hints[name](**fields) for name, fields in bundles.items()}

    def _option(self, argument: str, rest: list[str], values: dict[str, Any]) -> None:
        """Read one option; `rest` has the arguments after it, in reverse order."""
        name, equals, value = argument.partition("=")
        given = value if equals else None
        if not argument.startswith("--"):  # -t PATH, -tPATH
            name, given = argument[:2], argument[2:] or None
        parameter = self._options.get(name)
        if parameter is None:
            known = [n for n, p in self._options.items() if not _is_hidden(p)] + ["--help"]
            hint = _errors.nearest(name, known)
            raise _errors.UsageError(f"{self.name} has no option {name!r}{hint}")
        option = parameter.declared
        assert isinstance(option, Option)
        if parameter.is_flag:
            if given is not None:
                raise self._wrong(f"{name} takes no value")
            values[parameter.name] = True
            return
        if given is None and option.bare is not None and not (rest and rest[-1].isdigit()):
            given = option.bare
        if given is None:
            if not rest:
                raise self._wrong(f"{name} needs a value")
            given = rest.pop()
        if option.choices and given not in option.choices:
            names, hint = ", ".join(option.choices), _errors.nearest(given, option.choices)
            raise _errors.UsageError(f"{name} is {given!r}; it must be one of {names}{hint}")
        read = option.read(given)
        if parameter.is_list:
            values.setdefault(parameter.name, []).append(read)
        else:
            values[parameter.name] = read

    def _assign(self, positional: list[str], values: dict[str, Any]) -> None:
        """Assign positional arguments; a list takes all that the arguments after it do not need."""
        arguments = [(p, p.declared) for p in self.params if isinstance(p.declared, Argument)]
        for index, (parameter, argument) in enumerate(arguments):
            after = len(arguments) - index - 1
            count = max(0, len(positional) - after) if parameter.is_list else 1
            taken, positional = positional[:count], positional[count:]
            if taken:
                values[parameter.name] = taken if parameter.is_list else taken[0]
            elif parameter.is_required and argument.unless not in values:
                raise self._wrong(f"missing argument {argument.metavar}")
        if positional:
            raise self._wrong(f"unexpected argument {positional[0]!r}")
        for parameter in self.params:
            is_option = isinstance(parameter.declared, Option)
            if is_option and parameter.is_required and parameter.name not in values:
                raise self._wrong(f"missing option {_shown_name(parameter)}")

    def _wrong(self, what: str) -> _errors.UsageError:
        return _errors.UsageError(f"{self.name}: {what}; see `byteweld {self.name} --help`")

    # ------------------------------------------------------------------------ help

    def help_page(self, width: int) -> str:
        """Render the help page."""
        return "\n".join(self._help_lines(width))

    def _help_lines(self, width: int) -> Iterator[str]:
        arguments = [p for p in self.params if isinstance(p.declared, Argument)]
        shape = " ".join(["[OPTIONS]", *map(_shown_name, arguments)])
        yield f"Usage: byteweld {self.name} {shape}"
        yield ""
        for paragraph in (self._module.run.__doc__ or "").strip().split("\n\n"):
            yield from _wrap(paragraph, width)
            yield ""
        groups: dict[str, list[Parameter]] = {"Arguments": arguments} if arguments else {}
        for parameter in self.params:
            if isinstance(parameter.declared, Option) and not parameter.declared.is_hidden:
                groups.setdefault(parameter.declared.group, []).append(parameter)
        groups.setdefault("Options", [])
        for title, members in groups.items():
            yield f"{title}:"
            for parameter in members:
                yield from _entry(_shown_name(parameter), parameter.declared.help, width)
            if title == "Options":
                yield from _entry("-h, --help", "Show this help.", width)
            yield ""
        yield "Examples:"
        yield from textwrap.indent(self._module.EXAMPLES.strip("\n"), "  ").splitlines()


_called: list[str] = []


def command_line() -> str:
    """The command that is running, for reports."""
    import shlex  # only reports need it

    return shlex.join(_called)


def call(name: str, module: ModuleType, arguments: list[str]) -> int:
    """Parse the arguments and run a verb; returns its exit code."""
    _called[:] = ["byteweld", name, *arguments]
    command = Command(name, module)
    values = command.parse(arguments)
    if values is None:
        from byteweld.cli import _output

        _output.lines(command.help_page(_output.width()).split("\n"))
        return 0
    result = module.run(**command.bundled(values))
    return result if isinstance(result, int) else 0


def _parameters(run: Callable[..., Any]) -> Iterator[Parameter]:
    hints = typing.get_type_hints(run, include_extras=True)
    names = [name for name in hints if name != "return"]
    required = len(names) - len(run.__defaults__ or ())
    for index, name in enumerate(names):
        if _is_bundle(hints[name]):
            for field, hint in typing.get_type_hints(hints[name], include_extras=True).items():
                yield _parameter(field, hint, is_required=False, bundle=name)
        else:
            parameter = _parameter(name, hints[name], is_required=index < required)
            may_be_replaced = isinstance(parameter.declared, Argument) and parameter.declared.unless
            yield parameter._replace(is_required=True) if may_be_replaced else parameter


def _parameter(name: str, hint: Any, *, is_required: bool, bundle: str | None = None) -> Parameter:
    kind, declared = typing.get_args(hint)
    is_list = any(typing.get_origin(k) is list for k in (kind, *typing.get_args(kind)))
    return Parameter(name, declared, kind is bool, is_list, is_required, bundle)


def _is_bundle(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, tuple)


def _is_hidden(parameter: Parameter) -> bool:
    return isinstance(parameter.declared, Option) and parameter.declared.is_hidden


def _shown_name(parameter: Parameter) -> str:
    declared = parameter.declared
    if isinstance(declared, Argument):
        return declared.metavar if parameter.is_required else f"[{declared.metavar}]"
    names = ", ".join(sorted(declared.names, key=len))
    return f"{names} {declared.metavar}".rstrip()


def _entry(name: str, help: str, width: int) -> Iterator[str]:
    lines = _wrap(help, max(20, width - _LEFT))
    if len(name) + 4 > _LEFT:
        yield f"  {name}"
    else:
        yield f"  {name:<{_LEFT - 2}}{lines.pop(0)}"
    for line in lines:
        yield " " * _LEFT + line


def _wrap(text: str, width: int) -> list[str]:
    words = " ".join(text.split())
    return textwrap.wrap(words, width, break_on_hyphens=False, break_long_words=False)
