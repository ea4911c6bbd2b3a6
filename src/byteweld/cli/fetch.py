"""`byteweld fetch`: downloads public vocabularies into byteweld's folder."""

from __future__ import annotations

from collections.abc import Iterator

from byteweld.cli import _options as options
from byteweld.cli import _output
from byteweld.encodings import find_encodings
from byteweld.fetching import TIMEOUT_SECONDS, fetch, find_file, find_target, find_url, is_fetched
from byteweld.known_encodings import FETCHABLE
from byteweld.render import columns

EXAMPLES = """
byteweld fetch
byteweld fetch cl100k_base
byteweld fetch o200k_base qwen3
byteweld fetch cl100k_base --force
"""


def run(
    names: list[str] | None = None,
    *,
    force: bool = False,
    timeout: options.Positive = round(TIMEOUT_SECONDS),
) -> None:
    """Download public vocabularies, so that -t NAME and byteweld.load find them.

    Without a name, list what can be downloaded; that needs no network. A file comes from its
    publisher, over HTTPS, or from the mirror that BYTEWELD_MIRROR names. It is written only if its
    SHA-256 is the known one, to the folder `vocabularies` in BYTEWELD_HOME (by default, in your
    data folder, such as ~/.local/share/byteweld).

    Each vocabulary has its own license, which the list shows.

    Args:
        names (NAME...): Vocabularies to download. Default: list them.
        force: Download again, and replace a file that is there already.
        timeout (SECONDS): How long to wait for the server each time.
    """
    if not names:
        _output.lines(_listing())
    files = {name: find_file(name) for name in names or ()}  # or raises, before any download
    for name, file in files.items():
        if not force and is_fetched(name):
            _output.lines([f"{name} is already here: {find_target(name)}"])
            continue
        _output.say(f"fetching {find_url(file)}")
        with _output.progress("fetching", file.size, "bytes") as advance:
            path = fetch(name, overwrite=force, timeout=timeout, progress=advance)
        _output.lines([f"{name}: wrote {path} ({_output.size(file.size)})"])


def _listing() -> Iterator[str]:
    here = {found.name: found.place for found in find_encodings()}
    rows = [
        (name, _output.size(file.size), file.license, file.source, here.get(name, "no"))
        for name, file in FETCHABLE.items()
    ]
    yield from columns([("name", "size", "license", "from", "here"), *rows], right=[1])
    yield ""
    yield "Run `byteweld fetch NAME` to download one; several names may share a file."
