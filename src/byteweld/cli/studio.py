"""`byteweld studio`: a local web page to explore tokenizers."""

from __future__ import annotations

import contextlib
import sysconfig
from pathlib import Path

import byteweld
from byteweld.cli import DONE, INTERRUPTED, _corpus, _errors, _output
from byteweld.cli import _options as options
from byteweld.cli.quickstart import SPECIAL, find_sources
from byteweld.sources import open_sources

EXAMPLES = """
byteweld studio
byteweld studio tokenizer.json
byteweld studio tokenizer.json --corpus books/
byteweld studio mine.json theirs.tiktoken --no-browser --port 8765
"""

_QUICKSTART = Path("out/quickstart/tokenizer.json")
_QUICKSTART_SIZE = 8192


def run(
    tokenizers: list[str] | None = None,
    *,
    corpus: list[str] | None = None,
    port: options.Natural = 0,
    no_browser: bool = False,
    loading: options.Loading,
    reading: options.Reading,
) -> int:
    """Explore tokenizers in a web page: tokens, merges, training, bytes and vocabularies.

    The page is served to this machine only and needs no network access. Press Ctrl-C to stop.

    Args:
        tokenizers (TOKENIZER...): Files or folders in any format, or names of vocabularies.
            Default: the tokenizer of `byteweld quickstart`, trained now if necessary.
        corpus (SOURCE): Files, folders or globs of any size, for the Training view to show their
            pairs and merges. May be repeated.
        port: The port to listen on; only this machine can connect. Default: any free port.
        no_browser: Print the URL without opening a browser.
    """
    from byteweld.studio.redirect import Redirect
    from byteweld.studio.server import StudioServer  # slow to import, and not needed for --help
    from byteweld.studio.session import MAX_OPEN, GivenCorpus, Session

    if port > 65535:
        raise _errors.UsageError(f"--port is {port}; it must be at most 65535")
    if len(tokenizers or ()) > MAX_OPEN:
        raise _errors.UsageError(f"the studio opens at most {MAX_OPEN} tokenizers at once")
    opened = [(_name(path), options.load_tokenizer(path, **loading)) for path in tokenizers or ()]
    given = None
    if "-" in (corpus or ()):
        raise _errors.UsageError(
            "--corpus of the studio is read again for each recipe; pass a file"
        )
    if corpus is not None:
        _corpus.open_all(corpus, byteweld.RECIPES["modern"], reading)  # errors show now, not later
        name = corpus[0] if len(corpus) == 1 else _output.amount(len(corpus), "source")

        def count(recipe: byteweld.Recipe) -> byteweld.Counts:
            found = open_sources(corpus, recipe=recipe, options=reading)
            return found.count(recipe).counts

        given = GivenCorpus(name, count)
    elif reading:
        raise _errors.UsageError("the reading options need --corpus")
    # Somebody who names no tokenizer may be new here.
    first_view = "tokens" if opened else "how"
    session = Session(opened or [_quickstart()], first_view, given)
    with StudioServer(session, port) as server, contextlib.ExitStack() as stack:
        _output.lines([server.url])
        _output.flush()
        _output.say("serving the studio; press Ctrl-C to stop")
        if not no_browser:
            redirect = stack.enter_context(Redirect(server.url))
            server.when_used = redirect.close
            redirect.open_browser()
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:  # how the user stops the server
            return INTERRUPTED
    return DONE


def _name(path: str) -> str:
    """The name of a tokenizer on the page: its file, or the folder of a `tokenizer.json`."""
    file = Path(path)
    if not file.exists():
        return path  # it is a name, not a path
    return file.parent.name or file.stem if file.stem == "tokenizer" else file.stem or path


def _quickstart() -> tuple[str, byteweld.Tokenizer]:
    """The quickstart tokenizer: loaded from its folder, or trained now and kept in memory."""
    if _QUICKSTART.is_file():
        return "quickstart", byteweld.load(_QUICKSTART)
    _output.say("training the quickstart tokenizer on Python's standard library")
    sources = find_sources(Path(sysconfig.get_path("stdlib")))
    if not sources:
        raise FileNotFoundError(
            "no Python source files found to train on; pass a TOKENIZER to open"
        )
    recipe = byteweld.RECIPES["modern"].replace(special_tokens=[SPECIAL])
    tok = byteweld.train(list(sources), vocab_size=_QUICKSTART_SIZE, recipe=recipe)
    return "quickstart", tok
