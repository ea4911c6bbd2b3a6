"""Output: the only module that writes to stdout (data) and stderr (messages and progress).

Text may come from anywhere: file names, tokens, patterns, other libraries' errors. What a terminal
would obey in it is written out here, for every verb; only our own colors pass.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, BinaryIO, Literal, NoReturn

from byteweld._amounts import amount as amount
from byteweld._amounts import size as size
from byteweld._amounts import speed
from byteweld._text import printable

Unit = Literal["bytes", "merges", "files", "documents"]

_SECONDS_BEFORE_BAR = 0.3  # quick work needs no bar, and importing rich takes time
_SECONDS_BETWEEN_LINES = 5.0  # if stderr is not a terminal
_SECONDS_BETWEEN_FRAMES = 0.1
_SECONDS_BETWEEN_JSON = 0.5
_DEFAULT_WIDTH = 88


class ClosedStreamError(OSError):
    """A standard stream that the caller closed."""


# ---------------------------------------------------------------------------- data on stdout


def data(content: bytes) -> None:
    """Write bytes to stdout: unchanged, except that a terminal gets only what is safe to show."""
    if _is_attached(sys.stdout):
        content = printable(content.decode("utf-8", "surrogateescape")).encode()
    _write(content)


def text(content: str) -> None:
    """Write text to stdout."""
    _write(_safe(content).encode())


def lines(content: Iterable[str]) -> None:
    """Write lines to stdout; a newline within a line is written out too."""
    for line in content:
        text(line.replace("\n", "⟨U+000A⟩") + "\n")


def report(value: object) -> None:
    """Write a value to stdout as JSON."""
    text(_json(value, indent=2) + "\n")


def _json(value: object, indent: int | None = None) -> str:
    made = json.dumps(value, ensure_ascii=False, indent=indent)
    return printable(made, lambda found: f"\\u{ord(found[0]):04x}")


# Our own colors: bold(), render.py and _bytes.py.
_OWN_CODES = re.compile("(\x1b\\[(?:[012]|38;5;[0-9]+|(?:1;)?38;5;[0-9]+;48;5;[0-9]+)m)")


def _safe(content: str) -> str:
    if "\x1b" not in content or not has_color():
        return printable(content)
    parts = _OWN_CODES.split(content)
    parts[::2] = map(printable, parts[::2])
    return "".join(parts)


def _write(content: bytes) -> None:
    if sys.stdout is None or sys.stdout.closed:
        _closed("stdout")
    with _named("stdout"):
        sys.stdout.buffer.write(content)


@contextlib.contextmanager
def _named(stream: str) -> Iterator[None]:
    """Make a failure name its stream, as in "stdout: no space left on device"."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, stream) from None


def stdin() -> BinaryIO:
    """Standard input; OSError if it is closed."""
    if sys.stdin is None or sys.stdin.closed:
        _closed("stdin")
    return sys.stdin.buffer


def _closed(name: str) -> NoReturn:
    use = "redirect it to a file or to /dev/null" if name == "stdout" else "pass a file"
    raise ClosedStreamError(errno.EBADF, f"the standard stream is closed; {use}", name)


def flush() -> None:
    """Flush stdout; raises BrokenPipeError if the reader closed the pipe."""
    if sys.stdout is None or sys.stdout.closed:
        return
    with _named("stdout"):
        sys.stdout.flush()


def until_closed() -> contextlib.AbstractContextManager[None]:
    """Stop writing when the reader closes the pipe, but go on: the exit code is the answer."""
    return contextlib.suppress(BrokenPipeError, ClosedStreamError)


def give_up_stdout() -> None:
    """Redirect stdout to the null device, so that flushing it at exit cannot fail."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


# ---------------------------------------------------------------------------- messages on stderr


def say(message: str) -> None:
    """Write a message, as a JSON line under --progress json."""
    _say(_json({"message": message}) if _progress_as_json else message)


def say_all(messages: Iterable[str]) -> None:
    """Write several messages."""
    for message in messages:
        say(message)


def say_error(message: str) -> None:
    """Write an error message, as a JSON line under --progress json."""
    _say(_json({"error": message}) if _progress_as_json else f"byteweld: {message}")


def _say(line: str) -> None:
    """Write a line; a stderr that is closed or full must not change what the program does."""
    if sys.stderr is None:
        return
    shown = printable(line.replace("\n", "⟨U+000A⟩"))
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.buffer.write(shown.encode() + b"\n")
        sys.stderr.flush()


class GuardedStream:
    """A text stream, for all that Python and other libraries write: tracebacks, warnings."""

    def __init__(self, stream: IO[str]) -> None:
        self.unguarded = stream

    def write(self, content: str) -> int:
        """Write text that is safe to print."""
        self.unguarded.write(printable(content))
        return len(content)

    def writelines(self, content: Iterable[str]) -> None:
        """Write several strings."""
        for one in content:
            self.write(one)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unguarded, name)


def guard_stderr() -> None:
    """Let nothing unsafe pass to stderr, whoever writes it."""
    if sys.stderr is not None:
        sys.stderr = GuardedStream(sys.stderr)


# ---------------------------------------------------------------------------- formatting


def has_color() -> bool:
    """Whether to color stdout: never with NO_COLOR, always with FORCE_COLOR, else on a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or _is_terminal(sys.stdout)


def bold(content: str) -> str:
    """The text in bold, if stdout has colors."""
    return f"\x1b[1m{content}\x1b[0m" if has_color() else content


def width() -> int:
    """The width of a line in columns."""
    if not _is_terminal(sys.stdout):
        return _DEFAULT_WIDTH
    import shutil

    return max(40, min(100, shutil.get_terminal_size((_DEFAULT_WIDTH, 24)).columns))


def seconds(value: float) -> str:
    """A duration with a unit.

    >>> seconds(0.0123), seconds(72.4)
    ('12 ms', '72.4 s')
    """
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"


def shortened(content: str, limit: int = 60) -> str:
    """The text, cut at a limit and marked with an ellipsis if it is longer."""
    return content if len(content) <= limit else content[: limit - 1] + "…"


def _is_terminal(stream: IO[Any] | None) -> bool:
    return os.environ.get("TERM") != "dumb" and _is_attached(stream)


def _is_attached(stream: IO[Any] | None) -> bool:
    """Whether a stream is a terminal of any kind."""
    try:
        return stream is not None and stream.isatty()
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
    detail: Callable[[], str] = str,
) -> Iterator[Callable[[int], None]]:
    """Show progress: a bar on a terminal, an occasional line elsewhere.

    Yields a function that takes the amount done so far. `already` was done by an earlier run.
    `is_compressed` means that bytes are counted in compressed files. `beside_data` means that the
    work writes to stdout, so a bar on the same terminal would garble its output. `detail` returns
    what else to show.
    """
    work = _Work(what, total, unit, already, is_compressed, detail)
    if _progress_as_json:
        _say(_json(work.to_dict()))
        yield work.each(_SECONDS_BETWEEN_JSON, lambda: _say(_json(work.to_dict())))
        _say(_json(work.to_dict()))
    elif not _is_terminal(sys.stderr):
        yield work.each(_SECONDS_BETWEEN_LINES, lambda: say(work.line()))
    elif beside_data and _is_terminal(sys.stdout):
        yield lambda done: None
    else:
        with _bar(work):
            yield work.advance


class _Work:
    """Some work: how much of it is done, at which rate."""

    def __init__(
        self,
        what: str,
        total: int | None,
        unit: Unit,
        already: int,
        is_compressed: bool,
        detail: Callable[[], str],
    ) -> None:
        self.what, self.total, self.unit = what, total, unit
        self.is_compressed, self.detail = is_compressed, detail
        self.already = self.done = already
        self._started = self._last = time.monotonic()

    def advance(self, done: int) -> None:
        """Note how much is done."""
        self.done = done

    def each(self, seconds: float, show: Callable[[], None]) -> Callable[[int], None]:
        """Return `advance` with a call of `show` at most once in this time."""

        def advance(done: int) -> None:
            self.done = done
            if time.monotonic() - self._last >= seconds:
                self._last = time.monotonic()
                show()

        return advance

    def _elapsed(self) -> float:
        return time.monotonic() - self._started

    def _rate(self) -> float | None:
        elapsed, new = self._elapsed(), self.done - self.already
        return new / elapsed if elapsed > 0 and new > 0 else None

    def rate(self) -> str:
        """The rate with its unit; empty if too little is done for it to mean something."""
        if self.unit == "bytes":
            return speed(self.done - self.already, self._elapsed()) or ""
        rate = self._rate()
        return "" if rate is None or rate < 1 else f"{self._amount(round(rate))}/s"

    def _seconds_left(self) -> float | None:
        rate = self._rate()
        return None if self.total is None or rate is None else max(0, self.total - self.done) / rate

    def _amount(self, count: int) -> str:
        return size(count) if self.unit == "bytes" else amount(count, self.unit.removesuffix("s"))

    def line(self) -> str:
        """The progress in words."""
        of = "" if self.total is None else f" of {self._amount(self.total)}"
        compressed = " compressed" if self.is_compressed else ""
        left = self._seconds_left()
        about = "" if left is None else f"about {seconds(left)} left"
        done = f"{self.what}: {self._amount(self.done)}{of}{compressed}"
        return ", ".join(filter(None, (done, self.rate(), self.detail(), about)))

    def to_dict(self) -> dict[str, Any]:
        """The progress as JSON."""
        rate, left = self._rate(), self._seconds_left()
        return {
            "stage": _STAGES.get(self.what, self.what),
            "unit": self.unit,
            "done": self.done,
            "total": self.total,
            "seconds": round(self._elapsed(), 3),
            "per_second": None if rate is None else round(rate, 1),
            "seconds_left": None if left is None else round(left, 1),
        }


@contextlib.contextmanager
def _bar(work: _Work) -> Iterator[None]:
    import threading

    is_over = threading.Event()

    def draw() -> None:
        if is_over.wait(_SECONDS_BEFORE_BAR):
            return
        with _make_bar(work.unit, work.is_compressed) as bar:
            task = bar.add_task(
                work.what, total=work.total, completed=work.already, rate="", detail=""
            )
            is_last = False
            while not is_last:
                is_last = is_over.wait(_SECONDS_BETWEEN_FRAMES)
                bar.update(task, completed=work.done, rate=work.rate(), detail=work.detail())

    thread = threading.Thread(target=draw, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _make_bar(unit: Unit, is_compressed: bool) -> Any:
    from rich import progress as rich_progress
    from rich.console import Console

    text = rich_progress.TextColumn
    if unit == "bytes":
        amounts = [rich_progress.DownloadColumn(), *([text("compressed")] if is_compressed else [])]
    else:
        amounts = [rich_progress.MofNCompleteColumn(), text(unit)]
    return rich_progress.Progress(
        text("{task.description:<9}"),
        rich_progress.BarColumn(),
        *amounts,
        text("{task.fields[rate]}"),
        text("{task.fields[detail]}"),
        rich_progress.TimeRemainingColumn(),
        console=Console(file=getattr(sys.stderr, "unguarded", sys.stderr)),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
