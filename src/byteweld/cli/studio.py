"""`byteweld studio`: the local page that shows what tokenizers do."""

from __future__ import annotations

import sysconfig
import webbrowser
from pathlib import Path
from typing import Annotated

import byteweld
from byteweld.cli import _errors, _output
from byteweld.cli import _options as options
from byteweld.cli._command import Argument, Option
from byteweld.cli.quickstart import SPECIAL, find_sources

EXAMPLES = """
byteweld studio
byteweld studio tokenizer.json
byteweld studio mine.json theirs.tiktoken --no-browser --port 8765
"""

_QUICKSTART = Path("out/quickstart/tokenizer.json")
_QUICKSTART_SIZE = 8192

Tokenizers = Annotated[
    list[str] | None,
    Argument(
        metavar="TOKENIZER...",
        help="Files or folders of any format, or names of encodings. "
        "Default: the quickstart's, which is trained if need be.",
    ),
]
Port = Annotated[
    int,
    Option(
        "--port",
        metavar="N",
        read=options.whole_number("--port", 0),
        help="Where to listen, on this machine only. Default: a free port.",
    ),
]
NoBrowser = Annotated[bool, Option("--no-browser", help="Print the address, and open no browser.")]


def run(
    tokenizers: Tokenizers = None,
    port: Port = 0,
    no_browser: NoBrowser = False,
    format: options.Format = None,
    pattern: options.LoadPattern = None,
    special: options.LoadSpecial = None,
    no_special: options.NoSpecial = False,
) -> None:
    """Open a page that shows tokens, why they are these, trainings, bytes and vocabularies.

    The page is served to this machine alone and needs no network. It ends with Ctrl-C.
    """
    from byteweld.studio.server import StudioServer  # slow to import, and --help does not need it
    from byteweld.studio.session import MAX_OPEN, Session

    if port > 65535:
        raise _errors.UsageError(f"--port is {port}; expected at most 65535")
    if len(tokenizers or ()) > MAX_OPEN:
        raise _errors.UsageError(f"the studio opens at most {MAX_OPEN} tokenizers at once")
    opened = [
        (
            _name(path),
            options.load_tokenizer(
                path, format=format, pattern=pattern, special=special, no_special=no_special
            ),
        )
        for path in tokenizers or ()
    ]
    with StudioServer(Session(opened or [_quickstart()]), port) as server:
        _output.lines([server.url])
        _output.flush()
        _output.say("the studio is open; Ctrl-C ends it")
        if not no_browser:
            webbrowser.open(server.url)
        server.serve_forever(poll_interval=0.2)


def _name(path: str) -> str:
    """What a tokenizer is called on the page: its file, or the folder of a `tokenizer.json`."""
    place = Path(path)
    return place.parent.name or place.stem if place.stem == "tokenizer" else place.stem or path


def _quickstart() -> tuple[str, byteweld.Tokenizer]:
    """The quickstart's tokenizer: from its folder, or trained now and kept in memory only."""
    if _QUICKSTART.is_file():
        return "quickstart", byteweld.load(_QUICKSTART)
    _output.say("training the quickstart's tokenizer on Python's own sources")
    sources = find_sources(Path(sysconfig.get_path("stdlib")))
    if not sources:
        raise FileNotFoundError("no Python sources found to train on; name a TOKENIZER to open")
    recipe = byteweld.RECIPES["modern"].replace(special_tokens=[SPECIAL])
    tok = byteweld.train(list(sources), vocab_size=_QUICKSTART_SIZE, recipe=recipe)
    return "quickstart", tok
