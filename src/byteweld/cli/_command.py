"""Turns verb modules into commands: derives flags from run(), parses arguments, renders --help.

A verb's module has run() and EXAMPLES. The parameters of run() before `*` are positional arguments,
the others options: the name gives the flag, the type says how the value is read, and the default
whether it may be left out. A NamedTuple, or `Fields` of a class, bundles several options. Their
help is in sections of the docstring, as in `threads (N): Number of threads.`; the title of a
section is that of a group, and options of a group "Hidden", or without help, are not shown.
`_options.SHARED` has the help of parameters of many verbs. A module may also have WORDS, which help
texts mention; ALIASES, hidden names of options; and prepare(), which changes the arguments first.
"""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Annotated, Any, Final, Literal, NamedTuple

from byteweld.cli import _errors

_LEFT = 26  # columns for the names of options
_HELP: Final = ("--help", "-h")
_HIDDEN: Final = "Hidden"
_SECTION = re.compile(r"^(\w[\w -]*):\n(?= {4}\S)", re.MULTILINE)
_ENTRY = re.compile(r"^ {4}(\w+)(?: \((.*?)\))?: (.*(?:\n {8}.*)*)", re.MULTILINE)


class Fields(NamedTuple):
    """Annotates a dict of keyword arguments: the fields of a class, those that are given."""

    of: type  # a dataclass or TypedDict, whose docstring has the help
    title: str = ""  # of their group; empty if the docstring is written for the command line
    names: tuple[str, ...] = ()  # the fields that have flags; empty for all


class Entry(NamedTuple):
    """What a docstring says about a parameter."""

    names: str  # flags, a metavar, or both
    help: str
    group: str


class Parameter(NamedTuple):
    """A positional argument or an option, and the parameter of run() that takes it."""

    name: str
    flags: tuple[str, ...]  # none for a positional argument
    metavar: str
    help: str
    group: str
    read: Callable[[str], Any] | None  # raises ValueError, "expected ..."; None for a switch
    choices: tuple[str, ...]
    is_list: bool
    is_required: bool
    bundle: str  # the parameter of run() that bundles it; empty for none

    @property
    def shown(self) -> str:
        """The name on the help page."""
        if not self.flags:
            return self.metavar if self.is_required else f"[{self.metavar}]"
        names = ", ".join(sorted(self.flags, key=len))
        return names if self.read is None else f"{names} {self.metavar}"

    def value(self, text: str, flag: str) -> Any:
        """Read a value."""
        assert self.read is not None
        try:
            return self.read(text)
        except ValueError as error:
            shown = text if re.fullmatch("-?[0-9]+", text) else repr(text)
            raise _errors.UsageError(f"{flag} is {shown}; {error}") from None


class Command:
    """A verb, ready to parse its arguments and to show its help."""

    def __init__(self, name: str, module: ModuleType) -> None:
        self.name = name
        self._module = module
        self._aliases: Mapping[str, str] = getattr(module, "ALIASES", {})
        self._text, self._entries = sections(module.run.__doc__)
        self._bundles: dict[str, Any] = {}  # parameters of run() that bundle options
        hints = typing.get_type_hints(module.run, include_extras=True)
        parameters = inspect.signature(module.run).parameters.values()
        self.params = [p for one in parameters for p in self._parameters(one, hints[one.name])]
        self._by_flag = {flag: p for p in self.params for flag in p.flags}

    def _parameters(self, given: inspect.Parameter, hint: Any) -> Iterator[Parameter]:
        from byteweld.cli import _options

        words = getattr(self._module, "WORDS", {})
        name, shared = given.name, _options.shared()
        kind, _, notes = _unwrapped(hint)
        fields = next((note for note in notes if isinstance(note, Fields)), None)
        if fields is None and not (isinstance(kind, type) and issubclass(kind, tuple | dict)):
            entry = self._entries.get(name) or shared.get(name)
            is_option = given.kind is given.KEYWORD_ONLY
            yield _parameter(name, hint, entry, words, given.default, is_option=is_option)
            return
        bundle = kind if fields is None else fields.of
        entries = shared | sections(bundle.__doc__)[1]
        if fields is not None and fields.title:
            entries = {n: e._replace(group=fields.title) for n, e in entries.items()}
            entries |= shared | self._entries
        self._bundles[name] = dict if fields is not None else kind
        defaults = getattr(bundle, "_field_defaults", {})
        known = typing.get_type_hints(bundle, include_extras=True)
        for field in (fields and fields.names) or known:
            entry = entries.get(field)
            yield _parameter(field, known[field], entry, words, defaults.get(field), bundle=name)

    @property
    def options(self) -> list[Parameter]:
        """The options that are shown."""
        return [p for p in self.params if p.flags and p.group != _HIDDEN]

    # ------------------------------------------------------------------------ parsing

    def parse(self, arguments: list[str]) -> dict[str, Any] | None:
        """Read arguments into the keyword arguments of run(); None when help is requested."""
        if prepare := getattr(self._module, "prepare", None):
            arguments = prepare(arguments)
        values: dict[str, Any] = {}
        self._used: dict[str, str] = {}  # the flag of each option that is given
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
        return self._bundled(values)

    def _bundled(self, values: dict[str, Any]) -> dict[str, Any]:
        """Group the values of bundled options into the parameters of run() that bundle them."""
        grouped: dict[str, dict[str, Any]] = {name: {} for name in ("", *self._bundles)}
        for parameter in self.params:
            if parameter.name in values:
                grouped[parameter.bundle][parameter.name] = values[parameter.name]
        bundles = {name: make(**grouped[name]) for name, make in self._bundles.items()}
        return grouped[""] | bundles

    def _option(self, argument: str, rest: list[str], values: dict[str, Any]) -> None:
        """Read one option; `rest` has the arguments after it, in reverse order."""
        flag, has_value, given = argument.partition("=")
        if not argument.startswith("--"):  # -t PATH, -tPATH
            flag, has_value, given = argument[:2], argument[2:], argument[2:]
        parameter = self._by_flag.get(self._aliases.get(flag, flag))
        if parameter is None:
            known = [name for p in self.options for name in p.flags]
            hint = _errors.nearest(flag, [*known, "--help"])
            raise _errors.UsageError(f"{self.name} has no option {flag!r}{hint}")
        other = self._used.setdefault(parameter.name, flag)
        if other != flag and not self._aliases.keys().isdisjoint((other, flag)):
            raise _errors.UsageError(f"{other} and {flag} are the same option; pass one of them")
        is_optional = parameter.metavar.startswith("[")  # only a number can follow
        value: Any = True
        if parameter.read is None:
            if has_value:
                raise self._wrong(f"{flag} takes no value")
        elif is_optional and not has_value and not (rest and rest[-1].isdigit()):
            value = ""
        else:
            if not has_value and not rest:
                raise self._wrong(f"{flag} needs a value")
            value = parameter.value(given if has_value else rest.pop(), flag)
        name = parameter.name
        values[name] = [*values.get(name, []), value] if parameter.is_list else value

    def _assign(self, positional: list[str], values: dict[str, Any]) -> None:
        """Assign positional arguments; a list takes all that the arguments after it do not need."""
        arguments = [p for p in self.params if not p.flags]
        for index, parameter in enumerate(arguments):
            after = len(arguments) - index - 1
            count = max(0, len(positional) - after) if parameter.is_list else 1
            taken, positional = positional[:count], positional[count:]
            if taken:
                read = [parameter.value(text, parameter.metavar) for text in taken]
                values[parameter.name] = read if parameter.is_list else read[0]
            elif parameter.is_required:
                raise self._wrong(f"missing argument {parameter.metavar}")
        if positional:
            raise self._wrong(f"unexpected argument {positional[0]!r}")
        for parameter in self.params:
            if parameter.is_required and parameter.name not in values:
                raise self._wrong(f"missing option {parameter.shown}")

    def _wrong(self, what: str) -> _errors.UsageError:
        return _errors.UsageError(f"{self.name}: {what}; see `byteweld {self.name} --help`")

    # ------------------------------------------------------------------------ help

    def help_page(self, width: int) -> Iterator[str]:
        """Yield the lines of the help page."""
        arguments = [p for p in self.params if not p.flags]
        yield " ".join([f"Usage: byteweld {self.name} [OPTIONS]", *(p.shown for p in arguments)])
        yield ""
        for paragraph in self._text.split("\n\n"):
            yield from _wrap(paragraph, width)
            yield ""
        groups: dict[str, list[tuple[str, str]]] = {}
        for p in arguments + self.options:
            groups.setdefault(p.group if p.flags else "Arguments", []).append((p.shown, p.help))
        groups.setdefault("Options", []).append(("-h, --help", "Show this help."))
        for title, members in groups.items():
            yield f"{title}:"
            for name, help in members:
                indented = textwrap.indent("\n".join(_wrap(help, width - _LEFT)), " " * _LEFT)
                if len(name) + 4 > _LEFT:
                    yield f"  {name}"
                else:
                    indented = f"  {name}".ljust(_LEFT) + indented.lstrip(" ")
                yield from indented.split("\n")
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
    _errors.flags = {p.name: max(p.flags, key=len) for p in command.params if p.flags}
    values = command.parse(arguments)
    if values is None:
        from byteweld.cli import _output

        _output.lines(command.help_page(_output.width()))
        return 0
    return module.run(**values) or 0


def sections(docstring: str | None) -> tuple[str, dict[str, Entry]]:
    """Split a docstring into its text, and what its sections say about each parameter."""
    text, *parts = _SECTION.split(inspect.cleandoc(docstring or ""))
    entries: dict[str, Entry] = {}
    for title, content in zip(parts[::2], parts[1::2], strict=True):
        group = "Options" if title in ("Args", "Attributes") else title
        for name, names, help in _ENTRY.findall(content):
            help = " ".join(help.split())
            entries[name] = Entry(names, help[:1].upper() + help[1:], group)
    return text.strip(), entries


def _parameter(
    name: str,
    hint: Any,
    entry: Entry | None,
    words: Mapping[str, str],
    default: Any = None,
    *,
    is_option: bool = True,
    bundle: str = "",
) -> Parameter:
    from byteweld.cli import _options

    kind, is_list, notes = _unwrapped(hint)
    entry = entry or Entry("", "", _HIDDEN)
    choices = typing.get_args(kind) if typing.get_origin(kind) is Literal else ()
    choices = next((note for note in notes if isinstance(note, tuple)), choices)
    least = next((note for note in notes if type(note) is int), None)
    readers: dict[Any, Callable[[str], Any] | None]
    readers = {int: functools.partial(_whole_number, least), float: _number, bool: None}
    read = next((note for note in notes if callable(note)), readers.get(kind, str))
    if choices:
        read = functools.partial(_choice, choices)
    names = entry.names.split()
    flags = [word for word in names if word.startswith("-")]
    metavar = " ".join(word for word in names if not word.startswith("-"))
    if is_option and not any(flag.startswith("--") for flag in flags):
        flags.append(_errors.RENAMED.get(name) or f"--{name.replace('_', '-')}")
    if not metavar:
        metavar = "NAME" if choices else {int: "N", float: "F"}.get(kind, "TEXT")
        metavar = metavar if is_option else name.upper()
    return Parameter(
        name,
        tuple(flags),
        metavar,
        _options.filled(entry.help, default, words),
        entry.group,
        read,
        tuple(choices),
        is_list,
        default is inspect.Parameter.empty,
        bundle,
    )


def _choice(choices: Sequence[str], text: str) -> str:
    if text not in choices:
        hint = _errors.nearest(text, choices)
        raise ValueError(f"it must be one of {', '.join(choices)}{hint}")
    return text


def _whole_number(at_least: int | None, text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise ValueError("expected a whole number")
    if at_least is not None and int(text) < at_least:
        raise ValueError(f"it must be at least {at_least}")
    return int(text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("expected a number") from None


def _unwrapped(hint: Any) -> tuple[Any, bool, list[Any]]:
    """The type of a value, whether several are collected in a list, and its annotations."""
    is_list, notes = False, []
    while (origin := typing.get_origin(hint)) not in (None, Literal):
        first, *others = typing.get_args(hint)
        if origin is Annotated:
            notes += others
        is_list |= origin in (list, tuple)
        hint = first
    return hint, is_list, notes


def _wrap(text: str, width: int) -> list[str]:
    words = " ".join(text.split())
    return textwrap.wrap(words, width, break_on_hyphens=False, break_long_words=False)
