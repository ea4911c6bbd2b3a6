"""Output: the only module that writes to stdout (data) and stderr (messages and progress)."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, Literal

Style = Literal["bold", "dim"]
Unit = Literal["bytes", "merges", "files"]

_CODES: dict[Style, str] = {"bold": "1", "dim": "2"}
_SECONDS_BEFORE_BAR = 0.3  # quick work needs no bar, and importing rich takes time
_SECONDS_BETWEEN_LINES = 5.0  # if stderr is not a terminal
_SECONDS_BETWEEN_FRAMES = 0.1
_SECONDS_BETWEEN_JSON = 0.5
_DEFAULT_WIDTH = 88


# ---------------------------------------------------------------------------- data on stdout


def data(content: bytes) -> None:
    """Write bytes to stdout."""
    sys.stdout.buffer.write(content)


def text(content: str) -> None:
    """Write text to stdout as UTF-8; non-UTF-8 bytes from arguments are written unchanged."""
    data(content.encode("utf-8", "surrogateescape"))


def lines(content: Iterable[str]) -> None:
    """Write lines to stdout."""
    for line in content:
        text(line + "\n")


def report(value: object) -> None:
    """Write a value to stdout as JSON."""
    text(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def flush() -> None:
    """Flush stdout; raises BrokenPipeError if the reader closed the pipe."""
    sys.stdout.flush()


def until_closed() -> contextlib.AbstractContextManager[None]:
    """Stop writing when the reader closes the pipe, but go on: the exit code is the answer."""
    return contextlib.suppress(BrokenPipeError)


def give_up_stdout() -> None:
    """Redirect stdout to the null device, so that flushing it at exit cannot fail."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


# ---------------------------------------------------------------------------- messages on stderr


def say(message: str) -> None:
    """Write a message, as a JSON line under --progress json."""
    if _progress_as_json:
        message = json.dumps({"message": message}, ensure_ascii=False)
    _say(message)


def say_error(message: str) -> None:
    """Write an error message, as a JSON line under --progress json."""
    as_json = json.dumps({"error": message}, ensure_ascii=False)
    _say(as_json if _progress_as_json else f"byteweld: {message}")


def _say(line: str) -> None:
    with contextlib.suppress(BrokenPipeError):
        sys.stderr.buffer.write(line.encode("utf-8", "backslashreplace") + b"\n")
        sys.stderr.flush()


# ---------------------------------------------------------------------------- formatting


def has_color() -> bool:
    """Whether to color stdout: never with NO_COLOR, always with FORCE_COLOR, else on a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or _is_terminal(sys.stdout)


def styled(content: str, style: Style) -> str:
    """The text in a style, if stdout has colors."""
    return f"\x1b[{_CODES[style]}m{content}\x1b[0m" if has_color() else content


def width() -> int:
    """The width of a line in columns."""
    if not _is_terminal(sys.stdout):
        return _DEFAULT_WIDTH
    import shutil

    return max(40, min(100, shutil.get_terminal_size((_DEFAULT_WIDTH, 24)).columns))


def size(count: int, *, is_compressed: bool = False) -> str:
    """A number of bytes with a unit.

    >>> size(999), size(12_300_000), size(12_300_000, is_compressed=True)
    ('999 bytes', '12.3 MB', '12.3 MB compressed')
    """
    if count < 1000:
        shown = amount(count, "byte")
    else:
        power = 1
        while power < 4 and count / 1000**power >= 999.95:
            power += 1
        shown = f"{count / 1000**power:,.1f} {'kMGT'[power - 1]}B"
    return f"{shown} compressed" if is_compressed else shown


def amount(count: int, what: str) -> str:
    """A count with its noun, in the plural unless it is 1.

    >>> amount(1, "file"), amount(2000, "file")
    ('1 file', '2,000 files')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def seconds(value: float) -> str:
    """A duration with a unit.

    >>> seconds(0.0123), seconds(72.4)
    ('12 ms', '72.4 s')
    """
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"


def shortened(content: str, limit: int = 60) -> str:
    """The text, cut at a limit and marked with an ellipsis if it is longer."""
    return content if len(content) <= limit else content[: limit - 1] + "…"


def _is_terminal(stream: IO[Any]) -> bool:
    try:
        return stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:  # closed
        return False


# ---------------------------------------------------------------------------- progress

# Names of stages in JSON lines; other stages keep their names.
_STAGES = {"counting": "count", "merging": "merge", "writing": "write"}
_progress_as_json = False


def progress_as_json(is_wanted: bool) -> None:
    """Choose whether progress, messages and errors are JSON lines on stderr."""
    global _progress_as_json
    _progress_as_json = is_wanted


@contextlib.contextmanager
def progress(
    what: str,
    total: int | None,
    unit: Unit,
    *,
    already: int = 0,
    is_compressed: bool = False,
    beside_data: bool = False,
) -> Iterator[Callable[[int], None]]:
    """Show progress: a bar on a terminal, an occasional line elsewhere.

    Yields a function that takes the amount done so far. `already` was done by an earlier run.
    `is_compressed` means that bytes are counted in compressed files. `beside_data` means that the
    work writes to stdout, so a bar on the same terminal would garble its output.
    """
    pace = _Pace(total, already)
    if _progress_as_json:
        with _json_lines(what, unit, pace) as advance:
            yield advance
    elif not _is_terminal(sys.stderr):
        yield _plain_lines(what, unit, pace, is_compressed)
    elif beside_data and _is_terminal(sys.stdout):
        yield lambda done: None
    else:
        with _bar(what, unit, pace, is_compressed) as advance:
            yield advance


class _Pace:
    """The rate of some work, and the time left at that rate."""

    def __init__(self, total: int | None, already: int) -> None:
        self.total = total
        self.already = already
        self.started = self.last = time.monotonic()

    def is_due(self, seconds: float) -> bool:
        """Whether this much time has passed since the last call that returned True."""
        now = time.monotonic()
        if now - self.last < seconds:
            return False
        self.last = now
        return True

    def rate(self, done: int) -> float | None:
        """The amount done per second."""
        elapsed = time.monotonic() - self.started
        new = done - self.already
        return new / elapsed if elapsed > 0 and new > 0 else None

    def seconds_left(self, done: int, rate: float | None) -> float | None:
        """The time left; None if unknown."""
        if self.total is None or rate is None:
            return None
        return max(0, self.total - done) / rate


def _plain_lines(what: str, unit: Unit, pace: _Pace, is_compressed: bool) -> Callable[[int], None]:
    total = pace.total

    def shown(count: int) -> str:
        return size(count) if unit == "bytes" else amount(count, unit.removesuffix("s"))

    def advance(done: int) -> None:
        if not pace.is_due(_SECONDS_BETWEEN_LINES):
            return
        line = f"{what}: {shown(done)}" + ("" if total is None else f" of {shown(total)}")
        line += " compressed" if is_compressed else ""
        rate = pace.rate(done)
        left = pace.seconds_left(done, rate)
        if rate is not None and rate >= 1:
            line += f", {shown(round(rate))}/s"
        say(line + ("" if left is None else f", about {seconds(left)} left"))

    return advance


@contextlib.contextmanager
def _json_lines(what: str, unit: Unit, pace: _Pace) -> Iterator[Callable[[int], None]]:
    latest = pace.already

    def line(done: int) -> None:
        rate = pace.rate(done)
        left = pace.seconds_left(done, rate)
        content = {
            "stage": _STAGES.get(what, what),
            "unit": unit,
            "done": done,
            "total": pace.total,
            "seconds": round(time.monotonic() - pace.started, 3),
            "per_second": None if rate is None else round(rate, 1),
            "seconds_left": None if left is None else round(left, 1),
        }
        _say(json.dumps(content))

    def advance(done: int) -> None:
        nonlocal latest
        latest = done
        if pace.is_due(_SECONDS_BETWEEN_JSON):
            line(done)

    line(latest)
    yield advance
    line(latest)


@contextlib.contextmanager
def _bar(
    what: str, unit: Unit, pace: _Pace, is_compressed: bool
) -> Iterator[Callable[[int], None]]:
    import threading

    latest = pace.already
    is_over = threading.Event()

    def draw() -> None:
        if is_over.wait(_SECONDS_BEFORE_BAR):
            return
        bar = _make_bar(unit, is_compressed)
        with bar:
            task = bar.add_task(what, total=pace.total, completed=pace.already, rate="")
            is_last = False
            while not is_last:
                is_last = is_over.wait(_SECONDS_BETWEEN_FRAMES)
                rate = pace.rate(latest)
                shown = "" if rate is None else f"{rate:,.0f}/s"
                bar.update(task, completed=latest, rate=shown)

    def advance(done: int) -> None:
        nonlocal latest
        latest = done

    thread = threading.Thread(target=draw, daemon=True)
    thread.start()
    try:
        yield advance
    finally:
        is_over.set()
        thread.join()


def _make_bar(unit: Unit, is_compressed: bool) -> Any:
    from rich import progress as rich_progress
    from rich.console import Console

    amounts: list[rich_progress.ProgressColumn]
    if unit == "bytes":
        amounts = [
            rich_progress.DownloadColumn(),
            *([rich_progress.TextColumn("compressed")] if is_compressed else []),
            rich_progress.TransferSpeedColumn(),
        ]
    else:
        rate = rich_progress.TextColumn("{task.fields[rate]}")
        amounts = [rich_progress.MofNCompleteColumn(), rich_progress.TextColumn(unit), rate]
    return rich_progress.Progress(
        rich_progress.TextColumn("{task.description:<9}"),
        rich_progress.BarColumn(),
        *amounts,
        rich_progress.TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
