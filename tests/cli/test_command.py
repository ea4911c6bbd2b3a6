"""The parser of the command line: options, positional arguments, bundles, help."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import pytest

from byteweld.cli._command import Command, Fields
from byteweld.cli._errors import UsageError


class Bundle(NamedTuple):
    """A bundle.

    Bundled:
        kind (K): A kind: {kinds}.
    """

    kind: Literal["one", "two"] = "one"
    old: bool = False


class Given(TypedDict, total=False):
    """Keyword arguments.

    Attributes:
        size: how many.
        other: not an option.
    """

    size: Annotated[int, 1]
    other: str


def run(
    first: str,
    rest: list[str],
    *,
    path: str = "here",
    name: list[str] | None = None,
    flag: bool = False,
    number: int | None = None,
    share: float = 0.5,
    maybe: str | None = None,
    bundle: Bundle,
    given: Annotated[dict[str, Any], Fields(Given, "Given", ("size",))],
) -> None:
    """Do it.

    Args:
        first: The first.
        rest (REST...): The rest.
        path (-p PATH): A path.
        name (NAME): A name.
        flag: A flag.
        number: A number,
            of something.
        share (F): a share.
        maybe ([N]): All, or N.
    """


@pytest.fixture
def command():
    return Command(
        "verb", SimpleNamespace(run=run, EXAMPLES="byteweld verb", WORDS={"kinds": "one, two"})
    )


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
        (["--name", "x", "--name=y"], {"name": ["x", "y"]}),
        (["--flag"], {"flag": True}),
        (["--number", "12"], {"number": 12}),
        (["--maybe", "--flag"], {"maybe": "", "flag": True}),
        (["--share", "1"], {"share": 1.0}),
        (["--size", "2"], {"given": {"size": 2}}),
        (["--kind", "two", "--old"], {"bundle": Bundle("two", True)}),
        (["--maybe", "12"], {"maybe": "12"}),
        (["--maybe=x"], {"maybe": "x"}),
    ],
)
def test_options_are_read_wherever_they_are(command, arguments, expected):
    positional = {"first": "a", "rest": ["b", "-"], "bundle": Bundle(), "given": {}}
    assert command.parse([*arguments, "--", "a", "b", "-"]) == positional | expected
    assert command.parse(["a", "b", "-", *arguments]) == positional | expected
    if not arguments or arguments[-1] != "--maybe":
        assert command.parse(["a", *arguments, "b", "-"]) == positional | expected


def test_after_two_dashes_everything_is_positional(command):
    assert command.parse(["a", "--", "--flag", "--", "-h"]) == {
        "first": "a",
        "rest": ["--flag", "--", "-h"],
        "bundle": Bundle(),
        "given": {},
    }


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
        (["--other", "x"], "verb has no option '--other'; did you mean '--path'?"),
        (["--number", "x"], "--number is 'x'; expected a whole number"),
        (["--size", "0"], "--size is 0; it must be at least 1"),
        (["--share", "x"], "--share is 'x'; expected a number"),
        (["--kind", "tow"], "--kind is 'tow'; it must be one of one, two; did you mean 'two'?"),
    ],
)
def test_wrong_arguments_are_refused(command, arguments, message):
    with pytest.raises(UsageError) as error:
        command.parse(arguments)
    assert str(error.value) == message


def test_an_extra_argument_is_refused():
    def single(first: str) -> None:
        """Do it."""

    command = Command("verb", SimpleNamespace(run=single, EXAMPLES=""))
    with pytest.raises(UsageError, match="verb: unexpected argument 'b'"):
        command.parse(["a", "b"])


def test_the_help_page_shows_what_is_not_hidden(command):
    assert "\n".join(command.help_page(60)) == (
        "Usage: byteweld verb [OPTIONS] FIRST REST...\n"
        "\n"
        "Do it.\n"
        "\n"
        "Arguments:\n"
        "  FIRST                   The first.\n"
        "  REST...                 The rest.\n"
        "\n"
        "Options:\n"
        "  -p, --path PATH         A path. Default: here.\n"
        "  --name NAME             A name.\n"
        "  --flag                  A flag.\n"
        "  --number N              A number, of something.\n"
        "  --share F               A share. Default: 0.5.\n"
        "  --maybe [N]             All, or N.\n"
        "  -h, --help              Show this help.\n"
        "\n"
        "Bundled:\n"
        "  --kind K                A kind: one, two. Default: one.\n"
        "\n"
        "Given:\n"
        "  --size N                How many.\n"
        "\n"
        "Examples:\n"
        "  byteweld verb"
    )
