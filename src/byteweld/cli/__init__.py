"""The command line: the table of verbs, main(), exit codes.

Only the module of the chosen verb is imported. Exit 0: done. 1: the answer is no. 2: failure or
wrong use, said in one line on stderr. 130: interrupted. A broken pipe is a success.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

DONE: Final = 0
NO: Final = 1
FAILED: Final = 2
INTERRUPTED: Final = 130


class Verb(NamedTuple):
    """Where a verb lives, and what it does in one line."""

    module: str
    summary: str


VERBS: Final[Mapping[str, Verb]] = {
    "train": Verb("byteweld.cli.train", "learn a vocabulary from a corpus and write it"),
    "count": Verb("byteweld.cli.count", "count the pre-tokens of a corpus"),
    "encode": Verb("byteweld.cli.encode", "text to ids"),
    "decode": Verb("byteweld.cli.decode", "ids to text"),
    "tokens": Verb("byteweld.cli.tokens", "how many tokens a text has, by file and in all"),
    "inspect": Verb("byteweld.cli.inspect", "what a tokenizer is and does: size, merges, costs"),
    "explain": Verb("byteweld.cli.explain", "why these tokens: every step of encoding or training"),
    "convert": Verb("byteweld.cli.convert", "write a tokenizer in another format, and prove it"),
    "compare": Verb("byteweld.cli.compare", "two tokenizers on your corpus: ids, costs, speed"),
    "prove": Verb("byteweld.cli.prove", "your corpus through byteweld and the real peer"),
    "studio": Verb("byteweld.cli.studio", "a local page that shows tokens, merges and trainings"),
    "quickstart": Verb("byteweld.cli.quickstart", "train on Python's own sources and look at it"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit code."""
    from byteweld.cli import _output

    try:
        code = _run(list(sys.argv[1:] if arguments is None else arguments))
        _output.flush()
        return code
    except BrokenPipeError:  # the reader has seen enough
        _output.give_up_stdout()
        return DONE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        from byteweld.cli import _errors

        message = _errors.message_for_people(error)
        if message is None:  # our bug: the traceback is what a report needs
            raise
        _output.flush()
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
        hint = _errors.nearest(name, known) or "; `byteweld` alone lists the verbs"
        raise _errors.UsageError(f"no such {kind} {name!r}{hint}")
    from byteweld.cli import _command

    return _command.call(name, importlib.import_module(VERBS[name].module), rest)


def overview() -> list[str]:
    """What `byteweld` alone prints."""
    width = max(map(len, VERBS))
    return [
        "byteweld: byte-level BPE. Train, encode, decode, convert and look into tokenizers.",
        "",
        "Usage: byteweld VERB [OPTIONS] ...",
        "",
        *(f"  {name:<{width}}  {verb.summary}" for name, verb in VERBS.items()),
        "",
        "`byteweld VERB --help` shows a verb's options and examples.",
    ]
