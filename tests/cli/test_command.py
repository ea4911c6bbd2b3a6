"""The parser of the command line: options, positional arguments, bundles, help."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Annotated, NamedTuple

import pytest

from byteweld.cli._command import Argument, Command, Option
from byteweld.cli._errors import UsageError

First = Annotated[str, Argument(metavar="FIRST", help="The first.")]
Rest = Annotated[list[str], Argument(metavar="REST...", help="The rest.")]
Path = Annotated[str, Option("--path", "-p", metavar="PATH", help="A path.")]
Names = Annotated[list[str] | None, Option("--name", metavar="NAME", help="A name.")]
Flag = Annotated[bool, Option("--flag", help="A flag.")]
Number = Annotated[int | None, Option("--number", metavar="N", read=int, help="A number.")]
Maybe = Annotated[str | None, Option("--maybe", metavar="[N]", bare="all", help="All, or N.")]
Kind = Annotated[str, Option("--kind", choices=("one", "two"), metavar="K", help="A kind.")]
Replaceable = Annotated[list[str] | None, Argument(metavar="FOLDER...", help="X.", unless="path")]
Old = Annotated[bool, Option("--old", help="An older spelling.", is_hidden=True)]


class Bundle(NamedTuple):
    kind: Kind = "one"
    old: Old = False


def run(
    first: First,
    rest: Rest,
    path: Path = "here",
    names: Names = None,
    flag: Flag = False,
    number: Number = None,
    maybe: Maybe = None,
    bundle: Bundle = Bundle(),  # noqa: B008 (immutable)
) -> None:
    """Do it."""


@pytest.fixture
def command():
    return Command("verb", SimpleNamespace(run=run, EXAMPLES="byteweld verb"))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], {}),
        (["--path", "x"], {"path": "x"}),
        (["--path=x=y"], {"path": "x=y"}),
        (["--path="], {"path": ""}),
        (["-p", "x"], {"path": "x"}),
        (["-px"], {"path": "x"}),
        (["--path", "-x"], {"path": "-x"}),
        (["--path", "x", "-p", "y"], {"path": "y"}),
        (["--name", "x", "--name=y"], {"names": ["x", "y"]}),
        (["--flag"], {"flag": True}),
        (["--number", "12"], {"number": 12}),
        (["--maybe", "--flag"], {"maybe": "all", "flag": True}),
        (["--maybe", "12"], {"maybe": "12"}),
        (["--maybe=x"], {"maybe": "x"}),
    ],
)
def test_options_are_read_wherever_they_are(command, arguments, expected):
    positional = {"first": "a", "rest": ["b", "-"]}
    assert command.parse([*arguments, "--", "a", "b", "-"]) == positional | expected
    assert command.parse(["a", "b", "-", *arguments]) == positional | expected
    if not arguments or arguments[-1] != "--maybe":
        assert command.parse(["a", *arguments, "b", "-"]) == positional | expected


def test_after_two_dashes_everything_is_positional(command):
    assert command.parse(["a", "--", "--flag", "--", "-h"]) == {
        "first": "a",
        "rest": ["--flag", "--", "-h"],
    }


def test_bundled_options_become_one_value(command):
    values = command.parse(["a", "b", "--kind", "two", "--old"])
    assert command.bundled(values)["bundle"] == Bundle("two", True)


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["a", "--flag", "-h"]])
def test_help_needs_no_other_arguments(command, arguments):
    assert command.parse(arguments) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a"], "verb: missing argument REST...; see `byteweld verb --help`"),
        ([], "verb: missing argument FIRST; see `byteweld verb --help`"),
        (["a", "b", "--path"], "verb: --path needs a value; see `byteweld verb --help`"),
        (["a", "b", "--flag=x"], "verb: --flag takes no value; see `byteweld verb --help`"),
        (["a", "b", "--pth", "x"], "verb has no option '--pth'; did you mean '--path'?"),
        (["a", "b", "-x"], "verb has no option '-x'"),
        (["a", "b", "--odl"], "verb has no option '--odl'"),
        (["--kind", "tow"], "--kind is 'tow'; it must be one of one, two; did you mean 'two'?"),
    ],
)
def test_wrong_arguments_are_refused(command, arguments, message):
    with pytest.raises(UsageError) as error:
        command.parse(arguments)
    assert str(error.value) == message


def test_an_extra_argument_is_refused():
    def single(first: First) -> None:
        """Do it."""

    command = Command("verb", SimpleNamespace(run=single, EXAMPLES=""))
    with pytest.raises(UsageError, match="verb: unexpected argument 'b'"):
        command.parse(["a", "b"])


def test_the_help_page_shows_what_is_not_hidden(command):
    assert command.help_page(60) == (
        "Usage: byteweld verb [OPTIONS] FIRST REST...\n"
        "\n"
        "Do it.\n"
        "\n"
        "Arguments:\n"
        "  FIRST                   The first.\n"
        "  REST...                 The rest.\n"
        "\n"
        "Options:\n"
        "  -p, --path PATH         A path.\n"
        "  --name NAME             A name.\n"
        "  --flag                  A flag.\n"
        "  --number N              A number.\n"
        "  --maybe [N]             All, or N.\n"
        "  --kind K                A kind.\n"
        "  -h, --help              Show this help.\n"
        "\n"
        "Examples:\n"
        "  byteweld verb"
    )


def test_an_argument_is_required_unless_the_option_that_replaces_it_is_given():
    def run(folder: Replaceable = None, path: Path = "") -> None:
        """Do it."""

    command = Command("verb", SimpleNamespace(run=run, EXAMPLES=""))
    assert command.parse(["--path", "x"]) == {"path": "x"}
    assert command.parse(["a", "b"]) == {"folder": ["a", "b"]}
    with pytest.raises(UsageError, match="missing argument FOLDER"):
        command.parse([])
    assert "[OPTIONS] FOLDER...\n" in command.help_page(60)
