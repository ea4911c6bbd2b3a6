"""The command line: the table of verbs, main(), exit codes.

Only the module of the chosen verb is imported. Exit codes: 0 success; 1 the answer is no; 2 error
or wrong usage, with one line on stderr; 130 interrupted. A broken pipe does not change the code.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from types import FrameType, ModuleType
from typing import Final

DONE: Final = 0
NO: Final = 1
FAILED: Final = 2
INTERRUPTED: Final = 130


VERBS: Final[Mapping[str, str]] = {
    "quickstart": "Train a first tokenizer on Python's standard library",
    "train": "Learn a vocabulary from a corpus",
    "extend": "Add tokens to a tokenizer, from a corpus or a list",
    "count": "Count the pre-tokens of a corpus, for later training",
    "encode": "Turn text into ids",
    "decode": "Turn ids back into text",
    "tokens": "Count the tokens of text, by file and in total",
    "inspect": "Show a tokenizer, or measure it on a corpus",
    "explain": "Show step by step how text becomes tokens",
    "convert": "Convert a tokenizer to another format, and verify it",
    "list": "List the vocabularies that can be loaded by name",
    "fetch": "Download a public vocabulary, to load it by name",
    "tokenize": "Encode a corpus into a dataset for training",
    "merge": "Combine the results of several ranks",
    "verify": "Check a token dataset, with its tokenizer and corpus",
    "megatron": "Encode JSON lines with the options of Megatron-LM's script",
    "compare": "Compare tokenizers on a corpus",
    "prove": "Check ids against the real tiktoken or tokenizers",
    "studio": "Explore tokenizers in a local web page",
    "completion": "Print a completion script for a shell",
}


def module_of(verb: str) -> ModuleType:
    """Import the module that implements a verb."""
    # A module called list would hide Python's own list in this package.
    return importlib.import_module(f"{__name__}.{'listing' if verb == 'list' else verb}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code; `arguments` defaults to those of the process."""
    if arguments is not None:
        return _main(list(arguments), _Interrupt())
    from byteweld.cli import _output

    _occupy_closed_descriptors()
    _output.guard_stderr()
    interrupt = _Interrupt()
    # SIGINT may be ignored, as for background jobs.
    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_ours:
        signal.signal(signal.SIGINT, interrupt)
    try:
        return _main(sys.argv[1:], interrupt)
    except Exception:  # our bug; the code 1 of an uncaught exception would mean "no"
        sys.excepthook(*sys.exc_info())
        return FAILED
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback while the process exits


def _occupy_closed_descriptors() -> None:
    """Take the descriptors of standard streams that the parent closed (`<&-`).

    Otherwise the next files to be opened would get them, and whatever a library or a child process
    writes to its stdout or stderr would end up in those files. Python's own streams stay None.
    """
    with contextlib.suppress(OSError):
        while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
            os.set_inheritable(descriptor, True)
        os.close(descriptor)


class _Interrupt:
    """A SIGINT handler that records the signal: libraries may replace KeyboardInterrupt."""

    def __init__(self) -> None:
        self.has_come = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.has_come = True
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a second Ctrl-C kills the process
        raise KeyboardInterrupt


def _main(arguments: list[str], interrupt: _Interrupt) -> int:
    from byteweld.cli import _output

    code = DONE
    try:
        code = _run(arguments)
        _output.flush()
        return code
    except BrokenPipeError:  # the reader closed the pipe, as `head` does
        _output.give_up_stdout()
        return code
    except BaseException as error:
        if interrupt.has_come or isinstance(error, KeyboardInterrupt):
            hint = f"; {error}" if isinstance(error, KeyboardInterrupt) and str(error) else ""
            _output.say(f"interrupted{hint}")
            return INTERRUPTED
        from byteweld.cli import _errors

        message = _errors.message_for_people(error)
        if message is None:  # a bug in byteweld: show the traceback
            raise
        try:
            _output.flush()
        except OSError:  # the one that is reported here, or it would be reported at exit
            _output.give_up_stdout()
        _output.say_error(message)
        return FAILED
    finally:
        _output.progress_as_json(False)


def _run(arguments: list[str]) -> int:
    from byteweld.cli import _output

    if not arguments or arguments[0] in ("--help", "-h", "help"):
        if len(arguments) == 2 and arguments[0] == "help":
            return _run([arguments[1], "--help"])
        _output.lines(overview())
        return DONE
    if arguments[0] in ("--version", "-V"):
        import byteweld

        _output.lines([f"byteweld {byteweld.__version__}"])
        return DONE
    name, *rest = arguments
    if name not in VERBS:
        from byteweld.cli import _errors

        kind = "option" if name.startswith("-") else "verb"
        known = ("--help", "--version") if kind == "option" else VERBS
        hint = _errors.nearest(name, known) or "; run `byteweld` for a list of verbs"
        raise _errors.UsageError(f"no such {kind} {name!r}{hint}")
    from byteweld.cli import _command

    return _command.call(name, module_of(name), rest)


def overview() -> list[str]:
    """What `byteweld` alone prints."""
    width = max(map(len, VERBS))
    return [
        "Train, inspect, compare and convert byte-level BPE tokenizers.",
        "",
        "Usage: byteweld VERB [OPTIONS] ...",
        "",
        "Verbs:",
        *(f"  {name:<{width}}  {summary}" for name, summary in VERBS.items()),
        "",
        "Options:",
        f"  {'-h, --help':<{width + 3}}  Show this help",
        f"  {'-V, --version':<{width + 3}}  Show the version",
        "",
        "Run `byteweld VERB --help` for the options of a verb, with examples.",
    ]
