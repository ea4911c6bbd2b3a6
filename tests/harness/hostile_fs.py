"""Hostile files and file systems: every reader and writer ends soon, with an error that says why.

Pipes, devices, sockets, links, folders and odd names wherever a file is read or written; full
disks, missing hard links, read-only folders, closed standard streams, files that are replaced while
they are read. Each case runs in a forked process with limits on time and memory. It may succeed
only where that is right; otherwise it ends with an OSError or a ByteweldError (a command with exit
code 2 and one message), writes nothing, and leaves no temporary file.

    python -m tests.harness.hostile_fs --seconds 300
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import byteweld
from byteweld import _atomic, encodings, formats
from byteweld._saves import journal_path, write_atomic
from byteweld.counts_files import arrow
from byteweld.errors import ByteweldError
from byteweld.training.checkpoint import Checkpoint
from tests.harness.kill import CORPUS, NOBODY, identity, names_in
from tests.harness.run import Run, parser

SECONDS = 10.0  # generous: the machine may be busy; a hang takes forever
MEMORY_BYTES = 3 << 30  # of address space; what was there before counts
OK = "ok"


@dataclass(frozen=True)
class Case:
    """Something to do in a fresh folder; `may_succeed` where that is a right answer."""

    name: str
    work: Callable[[Path], object]
    may_succeed: bool = False
    leaves: Callable[[Path], object] | None = None  # must be the same before and after
    prepare: Callable[[Path], object] | None = None
    is_kept: bool = False  # a checkpoint keeps what was done
    group: str = ""  # for the report


# ---------------------------------------------------------------------- running a case


def in_child(work: Callable[[], object]) -> tuple[int | None, str]:
    """Run in a forked process with limits; return its exit code (None for a hang), what it said."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(out)
        _limit()
        said = OK
        try:
            work()
        except (OSError, ByteweldError) as error:
            said = f"error {type(error).__name__}: {error}"
        except BaseException as error:
            said = f"UNTYPED {type(error).__name__}: {error}"
        with contextlib.suppress(OSError):
            os.writev(into, [said.encode("utf-8", "replace")[:2000]])
        os._exit(0)
    os.close(into)
    parts = []
    end = time.monotonic() + SECONDS
    while True:
        left = end - time.monotonic()
        if left <= 0 or not select.select([out], [], [], left)[0]:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(out)
            return None, "hangs"
        part = os.read(out, 1 << 16)
        if not part:
            break
        parts.append(part)
    os.close(out)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), b"".join(parts).decode()


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)


def check(case: Case, root: Path) -> str | None:
    """Run a case; return what is wrong."""
    folder = Path(tempfile.mkdtemp(dir=root))
    folder.chmod(0o755)
    try:
        if case.prepare is not None:
            case.prepare(folder)
        before = names_in(folder), case.leaves and case.leaves(folder)
        code, said = in_child(lambda: case.work(folder))
        after = names_in(folder), case.leaves and case.leaves(folder)
        if code is None:
            return "hangs"
        if code != 0:
            return f"dies with {code}"
        if said.startswith("UNTYPED"):
            return said
        if said == OK and not case.may_succeed:
            return "succeeds, and should not"
        left = [name for name in after[0] if Path(name).name.startswith(_atomic.PREFIX)]
        if set(left) - before[0]:
            return f"leaves {left}"
        if said != OK and after != before and not case.is_kept:
            return f"fails ({said}) and changes {sorted(after[0] ^ before[0]) or 'a file'}"
        return None
    finally:
        subprocess.run(["chmod", "-R", "u+rwx", folder], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(folder, ignore_errors=True)


def command(*arguments: object, **options: Any) -> None:
    """Run a verb in a process of its own; raise an OSError if it fails as it should."""
    done = subprocess.run(
        [sys.executable, "-m", "byteweld", *map(str, arguments)],
        stdin=options.pop("stdin", subprocess.DEVNULL),
        capture_output=True,
        timeout=SECONDS * 0.9,
        check=False,
        **options,
    )
    said = done.stderr.decode("utf-8", "replace")
    if b"Traceback" in done.stderr or done.returncode not in (0, 2):
        raise AssertionError(f"exit code {done.returncode}: {said[-500:]}")
    if done.returncode == 2:
        if len(said.strip().splitlines()) != 1:
            raise AssertionError(f"more than one message: {said!r}")
        raise OSError(said)


# ---------------------------------------------------------------------- kinds of files

_sockets: list[socket.socket] = []


def _socket(path: Path) -> None:
    made = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(path.parent)  # the path of a socket is limited to 107 bytes
    try:
        made.bind(path.name)
    finally:
        os.chdir(here)
    _sockets.append(made)


KINDS: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "socket": _socket,
    "folder": lambda path: path.mkdir(),
    "link to /dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "link to /dev/full": lambda path: path.symlink_to("/dev/full"),
    "link to /dev/tty": lambda path: path.symlink_to("/dev/tty"),
    "dangling link": lambda path: path.symlink_to("nowhere"),
    "loop of links": lambda path: path.symlink_to(path.name),
    "link to a pipe": lambda path: (
        os.mkfifo(path.with_name("the-pipe")),
        path.symlink_to("the-pipe"),
    ),
    "link to a file that never ends": lambda path: path.symlink_to("/proc/self/mem"),
    "file with a wrong size": lambda path: path.symlink_to("/proc/self/maps"),
    "sparse file of 1 TB": lambda path: (path.touch(), os.truncate(path, 1 << 40)),
    "empty file": lambda path: path.touch(),
}


def _set_up() -> tuple[byteweld.Tokenizer, byteweld.Tokenizer]:
    return (
        byteweld.train(
            documents=CORPUS, vocab_size=290, bos="<s>", special_tokens=["<s>"], num_threads=1
        ),
        byteweld.train(documents=CORPUS, vocab_size=290, recipe="ck", num_threads=1),
    )


def cases() -> list[Case]:
    tok, ck = _set_up()
    groups = {
        "reading": _reads(tok, ck),
        "writing": _writes(tok, ck),
        "full disks": _full_disks(tok, ck),
        "read-only folders": _read_only(tok, ck),
        "no links, flags, locks": _poor(tok, ck),
        "closed streams": _streams(tok),
        "odd names": _names(tok),
        "changing files": _replaced(tok),
    }
    return [dataclasses.replace(case, group=group) for group in groups for case in groups[group]]


# ---------------------------------------------------------------------- reading

# The files that each saved tokenizer is read from, the main one first.
SAVED: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "huggingface": ("huggingface", "tokenizer.json", ("tokenizer.json", "tokenizer_config.json")),
    "huggingface with sidecar": ("huggingface", "a.json", ("a.json", "a.json.byteweld.json")),
    "tiktoken": ("tiktoken", "a.tiktoken", ("a.tiktoken", "a.tiktoken.byteweld.json")),
    "gpt2": ("gpt2", "pair", ("pair/vocab.json", "pair/merges.txt", "pair/byteweld.json")),
    "ck": (
        "ck",
        "export",
        (
            "export/tokenizer_meta.json",
            "export/vocab_offsets.bin",
            "export/vocab_strings.bin",
            "export/vocab_merges.bin",
        ),
    ),
}
# Optional files: what cannot be read there is ignored, or is an error, but never a hang.
_OPTIONAL = ("tokenizer_config.json", "byteweld.json", "a.json.byteweld.json", "training.json")


def _save(tok: byteweld.Tokenizer, ck: byteweld.Tokenizer, name: str, folder: Path) -> Path:
    format, file, _ = SAVED[name]
    made = ck if format == "ck" else tok
    made.save(folder / file, format=format, overwrite=True)
    return folder / file


def _reads(tok: byteweld.Tokenizer, ck: byteweld.Tokenizer) -> Iterator[Case]:
    for name, (_, _, files) in SAVED.items():
        for file in files:
            for kind, make in KINDS.items():

                def load(folder: Path, name: str = name) -> None:
                    byteweld.load(folder / SAVED[name][1])

                yield Case(
                    f"load {name} where {file} is a {kind}",
                    load,
                    may_succeed=file.endswith(_OPTIONAL),
                    prepare=lambda folder, name=name, file=file, make=make: (
                        _save(tok, ck, name, folder),
                        (folder / file).unlink(),
                        make(folder / file),
                    ),
                )
    for kind, make in KINDS.items():
        for format in formats.FORMATS:
            yield Case(
                f"load a {kind} as {format}",
                lambda folder, format=format: byteweld.load(folder / "x", format=format),
                prepare=lambda folder, make=make: make(folder / "x"),
            )
        yield Case(
            f"load a {kind} of any format",
            lambda folder: byteweld.load(folder / "x"),
            prepare=lambda folder, make=make: make(folder / "x"),
        )
        yield Case(
            f"load with a cache where the cache is a {kind}",
            lambda folder: byteweld.load(folder / "a.json", cache=folder / "cache"),
            may_succeed=True,
            prepare=lambda folder, make=make: (
                tok.save(folder / "a.json"),
                make(folder / "cache"),
            ),
        )
        yield Case(
            f"the training report is a {kind}",
            lambda folder: byteweld.load(folder / "a.json").training,
            may_succeed=True,
            prepare=lambda folder, make=make: (
                formats.save(tok.vocab, folder / "a.json"),
                make(folder / "a.training.json"),
            ),
        )
        yield Case(
            f"the journal is a {kind}",
            lambda folder: byteweld.load(folder / "a.json"),
            may_succeed=True,
            prepare=lambda folder, make=make: (
                formats.save(tok.vocab, folder / "a.json"),
                make(journal_path(folder)),
            ),
        )
        yield Case(
            f"counts where a part is a {kind}",
            lambda folder: byteweld.Counts.load(folder / "counts"),
            prepare=lambda folder, make=make: (
                byteweld.Counts({b"a": 1}).save(folder / "counts"),
                (folder / "counts" / "part-03.parquet").unlink(),
                make(folder / "counts" / "part-03.parquet"),
            ),
        )
        for file in ("checkpoint.json", "merges.log", "counts"):
            yield Case(
                f"a checkpoint where {file} is a {kind}",
                lambda folder: Checkpoint(folder / "point", {}).close(),
                may_succeed=True,
                prepare=lambda folder, make=make, file=file: (
                    (folder / "point").mkdir(),
                    make(folder / "point" / file),
                ),
            )
        yield Case(
            f"an encoding of BYTEWELD_PATH that is a {kind}",
            lambda folder: _by_name(folder),
            prepare=lambda folder, make=make: make(folder / "mine.tiktoken"),
        )
        for verb, arguments in VERBS.items():
            yield Case(
                f"byteweld {verb} on a {kind}",
                lambda folder, verb=verb, arguments=arguments: command(
                    verb, *(folder / part if "." in part else part for part in arguments)
                ),
                may_succeed=verb == "train",  # any text is a list of special tokens
                prepare=lambda folder, make=make: (
                    formats.save(tok.vocab, folder / "good.json"),
                    make(folder / "x.json"),
                ),
            )


# What reads the file x.json; arguments with a dot are files.
VERBS: dict[str, tuple[str, ...]] = {
    "inspect": ("x.json",),
    "convert": ("x.json", "y.tiktoken"),
    "encode": ("--tokenizer", "x.json", "--text", "a"),
    "decode": ("--tokenizer", "x.json", "--ids", "1 2"),
    "tokens": ("--tokenizer", "x.json", "--text", "a"),
    "explain": ("a", "--tokenizer", "x.json"),
    "compare": ("good.json", "x.json", "good.json"),
    "prove": ("x.json", "good.json"),
    "train": ("good.json", "--vocab-size", "270", "--specials-file", "x.json", "--out", "o.json"),
}


def _by_name(folder: Path) -> None:
    os.environ["BYTEWELD_PATH"] = str(folder)
    encodings.list_encoding_names()
    try:
        encodings.get_encoding("mine")
    except ValueError as error:
        raise OSError(str(error)) from None


# ---------------------------------------------------------------------- writing


def _writes(tok: byteweld.Tokenizer, ck: byteweld.Tokenizer) -> Iterator[Case]:
    for kind, make in KINDS.items():
        is_replaced = "link" in kind or "file" in kind
        for name, (format, file, files) in SAVED.items():
            for written in files:

                def prepare(
                    folder: Path, make: Callable[[Path], object] = make, written: str = written
                ) -> None:
                    (folder / written).parent.mkdir(exist_ok=True)
                    make(folder / written)

                def save(
                    folder: Path, overwrite: bool, format: str = format, file: str = file
                ) -> None:
                    made = ck if format == "ck" else tok
                    formats.save(made.vocab, folder / file, format=format, overwrite=overwrite)

                for overwrite in (False, True):
                    yield Case(
                        f"save {name} where {written} is a {kind}, overwrite={overwrite}",
                        lambda folder, save=save, overwrite=overwrite: save(folder, overwrite),
                        # A config is merged into, unless it cannot be read.
                        may_succeed=(overwrite and is_replaced)
                        or (written == "tokenizer_config.json" and kind == "dangling link"),
                        prepare=prepare,
                    )
        yield Case(
            f"byteweld explain --html to a {kind}",
            lambda folder: command("explain", "a", "--html", folder / "x.html", "--force"),
            may_succeed=is_replaced,
            prepare=lambda folder, make=make: make(folder / "x.html"),
        )
    for device in ("/dev/null", "/dev/full", "/dev/zero"):
        yield Case(
            f"overwrite {device}",
            lambda folder, device=device: write_atomic(device, b"x", overwrite=True),
            leaves=lambda folder, device=device: Path(device).stat().st_rdev,
        )


# ---------------------------------------------------------------------- full, read-only, poor


def _savers(
    tok: byteweld.Tokenizer, ck: byteweld.Tokenizer
) -> Iterator[tuple[str, Callable[[Path], object], Callable[[Path], object]]]:
    """Name, writer and reader of everything that is saved."""
    for name, (format, file, _) in SAVED.items():
        made = ck if format == "ck" else tok
        yield (
            f"save {name}",
            lambda folder, made=made, file=file, format=format: made.save(
                folder / file, format=format, overwrite=True
            ),
            lambda folder, file=file: identity(folder / file),
        )
    counts = byteweld.Counts({b"%d" % number: number + 1 for number in range(5000)})
    yield (
        "save counts",
        lambda folder: counts.save(folder / "counts", overwrite=True),
        lambda folder: (folder / "counts").exists() and byteweld.Counts.load(folder / "counts"),
    )
    words = byteweld.count(documents=CORPUS)
    yield (
        "checkpoint",
        lambda folder: byteweld.train(words, vocab_size=290, checkpoint=folder / "point"),
        lambda folder: None,
    )


def _full_disks(tok: byteweld.Tokenizer, ck: byteweld.Tokenizer) -> Iterator[Case]:
    for name, write, read in _savers(tok, ck):
        for size in (0, 100, 1000, 4000):

            def fill(
                folder: Path, write: Callable[[Path], object] = write, size: int = size
            ) -> None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
                try:
                    write(folder)
                except OSError as error:
                    if str(folder) not in str(error):
                        raise AssertionError(f"the error names no file: {error}") from None
                    raise

            is_checkpoint = name == "checkpoint"
            for over in (False, True):
                if is_checkpoint and over:
                    continue
                yield Case(
                    f"{name} {'over old ' * over}with files limited to {size} bytes",
                    fill,
                    may_succeed=size == 4000,
                    prepare=write if over else None,
                    is_kept=is_checkpoint,
                    leaves=read,
                )
    if os.geteuid() == 0:
        yield from _full_tmpfs(tok, ck)


def _full_tmpfs(tok: byteweld.Tokenizer, ck: byteweld.Tokenizer) -> Iterator[Case]:
    for name, write, _ in _savers(tok, ck):
        for pages in (1, 2, 3, 4, 6, 8):

            def fill(
                folder: Path, write: Callable[[Path], object] = write, pages: int = pages
            ) -> None:
                place = folder / "small"
                done = subprocess.run(
                    ["mount", "-t", "tmpfs", "-o", f"size={pages * 4}k", "none", place],
                    check=False,
                    capture_output=True,
                )
                if done.returncode != 0:
                    raise OSError("cannot mount")
                try:
                    before = names_in(place)
                    try:
                        write(place)
                    except OSError as error:
                        if str(place) not in str(error):
                            raise AssertionError(f"the error names no file: {error}") from None
                        if names_in(place) != before and "point" not in str(error):
                            raise AssertionError(f"leaves {names_in(place)}") from None
                        raise
                finally:
                    subprocess.run(["umount", "-l", place], check=False)

            yield Case(
                f"{name} on a disk of {pages * 4} KB",
                fill,
                may_succeed=True,
                prepare=lambda folder: (folder / "small").mkdir(),
            )


def _read_only(tok: byteweld.Tokenizer, ck: byteweld.Tokenizer) -> Iterator[Case]:
    """Folders that may only be read: as an ordinary user, whom modes stop."""
    for name, write, read in _savers(tok, ck):
        for over in (False, True):
            if name == "checkpoint" and over:
                continue

            def try_to(folder: Path, write: Callable[[Path], object] = write) -> None:
                if os.geteuid() == 0:
                    os.setgroups([])
                    os.setgid(NOBODY)
                    os.setuid(NOBODY)
                write(folder)

            def prepare(
                folder: Path, write: Callable[[Path], object] = write, over: bool = over
            ) -> None:
                if over:
                    write(folder)
                folder.chmod(0o555)

            yield Case(
                f"{name} {'over old ' * over}in a read-only folder",
                try_to,
                prepare=prepare,
                leaves=read,
            )
            if over:
                yield Case(
                    f"read after {name} in a read-only folder",
                    lambda folder, read=read: try_to(folder, read),
                    prepare=prepare,
                    may_succeed=True,
                )


def _poor(tok: byteweld.Tokenizer, ck: byteweld.Tokenizer) -> Iterator[Case]:
    """File systems without hard links, renames with flags, locks."""

    def fail(number: int) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            raise OSError(number, os.strerror(number))

        return call

    for name, write, _ in _savers(tok, ck):
        for lacks in ("links", "links and flags", "links, flags and locks"):
            for number in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):

                def poor(
                    folder: Path,
                    write: Callable[[Path], object] = write,
                    lacks: str = lacks,
                    number: int = number,
                ) -> None:
                    import fcntl

                    os.link = fail(number)
                    if "flags" in lacks:
                        _atomic._rename2 = lambda *arguments: False
                    if "locks" in lacks and "checkpoint" not in str(write):
                        fcntl.flock = fail(errno.ENOLCK)
                    try:
                        write(folder)
                    except OSError as error:
                        raise AssertionError(f"{error!r}") from None

                if name == "checkpoint" and "locks" in lacks:
                    continue  # it needs a lock
                yield Case(
                    f"{name} without {lacks} ({errno.errorcode[number]})", poor, may_succeed=True
                )


# ---------------------------------------------------------------------- streams, names, replacing


def _streams(tok: byteweld.Tokenizer) -> Iterator[Case]:
    verbs = {
        "inspect": lambda folder: ["inspect", folder / "a.json"],
        "convert": lambda folder: ["convert", folder / "a.json", folder / "b.tiktoken"],
        "encode": lambda folder: ["encode", "--tokenizer", folder / "a.json", "--text", "a cat"],
        "train": lambda folder: [
            *("train", folder / "c.txt", "--vocab-size", 270, "--out", folder / "o.json"),
        ],
        "count": lambda folder: ["count", folder / "c.txt", "--out", folder / "counts"],
    }
    for verb, arguments in verbs.items():
        for closed in ((0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)):

            def run(
                folder: Path, arguments: Any = arguments, closed: tuple[int, ...] = closed
            ) -> None:
                shell = " ".join(f"{stream}>&-" for stream in closed)
                words = [sys.executable, "-m", "byteweld", *map(str, arguments(folder))]
                done = subprocess.run(
                    ["sh", "-c", f'"$@" {shell}', "sh", *words],
                    capture_output=True,
                    timeout=SECONDS * 0.9,
                    check=False,
                )
                if b"Traceback" in done.stderr or done.returncode not in (0, 2):
                    raise AssertionError(f"exit code {done.returncode}: {done.stderr[-500:]!r}")
                if done.returncode == 2:
                    raise OSError(done.stderr.decode())
                for file in folder.rglob("*.json"):
                    if not file.read_bytes().startswith(b"{"):
                        raise AssertionError(f"{file} has foreign content")

            yield Case(
                f"byteweld {verb} with {closed} closed",
                run,
                may_succeed=True,
                prepare=lambda folder: (
                    formats.save(tok.vocab, folder / "a.json"),
                    (folder / "c.txt").write_text(CORPUS[0]),
                ),
            )


ODD_NAMES: dict[str, bytes] = {
    "newline": b"a\nb",
    "escape": b"\x1b[31mred\x1b]0;title\x07",
    "invalid UTF-8": b"\xff\xfe",
    "247 bytes": b"x" * 242,
    "255 bytes": b"x" * 250,
    "spaces and quotes": b" ' \" $(x) ; -rf ",
    "leading dash": b"--out",
    "right to left": "\u202egpj".encode(),
}


def _names(tok: byteweld.Tokenizer) -> Iterator[Case]:
    for kind, raw in ODD_NAMES.items():
        for suffix in (".json", ".tiktoken", ".bpe1"):
            name = os.fsdecode(raw + suffix.encode()[: 255 - len(raw)])

            def save(folder: Path, name: str = name) -> None:
                made = folder / name
                tok.save(made)
                if identity(made) is None:
                    raise AssertionError("not saved")
                tok.save(made, overwrite=True)
                byteweld.load(made, cache=folder / "cache")

            yield Case(f"save under a name with {kind}, {suffix}", save, may_succeed=True)
        for verb in ("inspect", "convert"):

            def run(folder: Path, verb: str = verb, raw: bytes = raw) -> None:
                path = os.fsencode(folder) + b"/" + raw + b".json"
                words = [sys.executable.encode(), b"-m", b"byteweld", verb.encode(), path]
                more = [path + b"2.tiktoken"] if verb == "convert" else []
                done = subprocess.run(
                    [*words, *more], capture_output=True, timeout=SECONDS * 0.9, check=False
                )
                if b"Traceback" in done.stderr or done.returncode not in (0, 2):
                    raise AssertionError(f"exit code {done.returncode}: {done.stderr[-500:]!r}")
                if b"\x1b]0;" in done.stderr + done.stdout:
                    raise AssertionError("an escape sequence of a name reaches the terminal")
                if done.returncode == 2:
                    raise OSError(done.stderr.decode("utf-8", "replace"))

            for is_missing in (False, True):

                def prepare(folder: Path, raw: bytes = raw, is_missing: bool = is_missing) -> None:
                    formats.save(tok.vocab, folder / "a.json", format="huggingface")
                    with contextlib.suppress(OSError):
                        if not is_missing:
                            (folder / "a.json").rename(folder / os.fsdecode(raw + b".json"))

                yield Case(
                    f"byteweld {verb} on a {'missing ' * is_missing}name with {kind}",
                    run,
                    may_succeed=True,
                    prepare=prepare,
                )


def _replaced(tok: byteweld.Tokenizer) -> Iterator[Case]:
    """Files that change while they are read: by another save, a truncation, another kind."""
    other = byteweld.train(documents=CORPUS, vocab_size=270, num_threads=1)

    def saves(folder: Path, file: str, format: str) -> None:
        known = set()
        for made in (tok, other):
            formats.save(made.vocab, folder / file, format=format, overwrite=True)
            known.add(formats.load(folder / file).fingerprint)
        stop = threading.Event()

        def write() -> None:
            while not stop.is_set():
                for made in (tok, other):
                    formats.save(made.vocab, folder / file, format=format, overwrite=True)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            end = time.monotonic() + 1.5
            while time.monotonic() < end:
                found = formats.load(folder / file).fingerprint
                if found not in known:
                    raise AssertionError(f"{found} is neither of the two")
        finally:
            stop.set()
            writer.join()

    for name, (format, file, _) in SAVED.items():
        if format != "ck":
            yield Case(
                f"load {name} while it is saved",
                lambda folder, file=file, format=format: saves(folder, file, format),
                may_succeed=True,
            )

    def changes(folder: Path, make: Callable[[Path], object]) -> None:
        file = folder / "a.json"
        formats.save(tok.vocab, file)
        data = file.read_bytes()
        stop = threading.Event()

        def change() -> None:
            while not stop.is_set():
                with contextlib.suppress(OSError):
                    file.unlink()
                    make(file)
                    file.unlink()
                    file.write_bytes(data)

        thread = threading.Thread(target=change)
        thread.start()
        try:
            end = time.monotonic() + 0.5
            while time.monotonic() < end:
                with contextlib.suppress(OSError, ByteweldError):
                    byteweld.load(file)
        finally:
            stop.set()
            thread.join()

    for kind in ("pipe", "link to /dev/zero", "empty file", "dangling link"):
        yield Case(
            f"a file that becomes a {kind} while it is read",
            lambda folder, make=KINDS[kind]: changes(folder, make),
            may_succeed=True,
        )


# ---------------------------------------------------------------------- the program


def run_all(run: Run, made: list[Case], root: Path) -> None:
    for case in run.random("order").sample(made, len(made)):
        if run.is_over:
            break
        wrong = check(case, root)
        run.count(case.group)
        if wrong is not None:
            run.find(case.name, wrong)


def main(arguments: list[str] | None = None) -> int:
    options = parser("hostile_fs", __doc__, seconds=1800)
    options.add_argument("--case", default="", help="only cases whose name contains this")
    given = options.parse_args(arguments)
    run = Run.of("hostile_fs", given)
    arrow()  # now: a child without root's rights may not be able to import it
    with tempfile.TemporaryDirectory(prefix="byteweld-hostile-") as root:
        Path(root).chmod(0o755)
        made = [case for case in cases() if given.case in case.name]
        print(f"{len(made):,} cases", flush=True)
        run_all(run, made, Path(root))
    return run.finish()


if __name__ == "__main__":
    raise SystemExit(main())
