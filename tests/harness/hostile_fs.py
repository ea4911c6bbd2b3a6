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
import fcntl
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import byteweld
from byteweld import _atomic, encodings, formats
from byteweld._saves import journal_path, write_atomic
from byteweld.counts_files import arrow
from byteweld.errors import ByteweldError
from byteweld.training.checkpoint import Checkpoint
from tests.harness.kill import CORPUS, become_nobody, identity, names_in
from tests.harness.run import Run, in_child, parser

SECONDS = 10.0  # generous: the machine may be busy; a hang takes forever
MEMORY_BYTES = 3 << 30  # of address space; what was there before counts
OK = "ok"

Work = Callable[[Path], object]  # on a folder or a path
Made = tuple[byteweld.Tokenizer, byteweld.Tokenizer]  # one of any kind, and one of recipe ck


@dataclass(frozen=True)
class Case:
    """Something to do in a fresh folder; `may_succeed` where that is a right answer."""

    name: str
    work: Work
    may_succeed: bool = False
    leaves: Work | None = None  # must be the same before and after
    prepare: Work | None = None
    is_kept: bool = False  # a checkpoint keeps what was done
    group: str = ""  # for the report


# ---------------------------------------------------------------------- running a case


def _tried(work: Callable[[Path], object], folder: Path) -> str:
    """What a piece of work ends with, within limits and without standard streams."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    try:
        work(folder)
        return OK
    except (OSError, ByteweldError) as error:
        return f"error {type(error).__name__}: {error}"
    except BaseException as error:
        return f"UNTYPED {type(error).__name__}: {error}"


def check(case: Case, root: Path) -> str | None:
    """Run a case; return what is wrong."""
    folder = Path(tempfile.mkdtemp(dir=root))
    folder.chmod(0o755)
    try:
        if case.prepare is not None:
            case.prepare(folder)
        before = names_in(folder), case.leaves and case.leaves(folder)
        code, said = in_child(partial(_tried, case.work, folder), seconds=SECONDS)
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


def command(*words: str | bytes | Path) -> None:
    """Run a verb in a process of its own; raise an OSError if it fails as it should."""
    done = _run(sys.executable, "-m", "byteweld", *words)
    if done.returncode == 2 and len(done.stderr.strip().splitlines()) != 1:
        raise AssertionError(f"more than one message: {done.stderr!r}")
    _as_error(done)


def _run(*words: str | bytes | Path) -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS * 0.9, check=False
    )
    if b"Traceback" in done.stderr or done.returncode not in (0, 2):
        raise AssertionError(f"exit code {done.returncode}: {done.stderr[-500:]!r}")
    return done


def _as_error(done: subprocess.CompletedProcess[bytes]) -> None:
    if done.returncode == 2:
        raise OSError(done.stderr.decode("utf-8", "replace"))


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


KINDS: dict[str, Work] = {
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


def cases() -> list[Case]:
    options: dict[str, Any] = {"documents": CORPUS, "vocab_size": 290, "num_threads": 1}
    made = (
        byteweld.train(bos="<s>", special_tokens=["<s>"], **options),
        byteweld.train(recipe="ck", **options),
    )
    groups = {
        "reading": _reads,
        "writing": _writes,
        "full disks": _full_disks,
        "read-only folders": _read_only,
        "no links, flags, locks": _poor,
        "closed streams": _streams,
        "odd names": _names,
        "changing files": _replaced,
    }
    return [
        dataclasses.replace(case, group=group) for group in groups for case in groups[group](made)
    ]


# ---------------------------------------------------------------------- reading

# The format, the path and the files of each saved tokenizer, the main one first.
SAVED: dict[str, tuple[str, str, list[str]]] = {
    "huggingface": ("huggingface", "tokenizer.json", ["tokenizer.json", "tokenizer_config.json"]),
    "huggingface with sidecar": ("huggingface", "a.json", ["a.json", "a.json.byteweld.json"]),
    "tiktoken": ("tiktoken", "a.tiktoken", ["a.tiktoken", "a.tiktoken.byteweld.json"]),
    "gpt2": ("gpt2", "pair", ["pair/vocab.json", "pair/merges.txt", "pair/byteweld.json"]),
    "ck": (
        *("ck", "export"),
        ["export/tokenizer_meta.json"]
        + [f"export/vocab_{table}.bin" for table in ("offsets", "strings", "merges")],
    ),
}
# Optional files: what cannot be read there is ignored, or is an error, but never a hang.
_OPTIONAL = ("tokenizer_config.json", "byteweld.json", "a.json.byteweld.json", "training.json")


def _save(made: Made, name: str, folder: Path) -> None:
    format, file, _ = SAVED[name]
    made[format == "ck"].save(folder / file, format=format, overwrite=True)


def _spoiled(
    name: str,
    file: str,
    work: Work,
    good: Work = lambda folder: None,
    may_succeed: Callable[[str], bool] | bool = False,
) -> Iterator[Case]:
    """A case for each kind of file that stands where `file` was or should be."""

    def prepare(make: Work, folder: Path) -> None:
        good(folder)
        path = folder / file
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        make(path)

    for kind, make in KINDS.items():
        may = may_succeed if isinstance(may_succeed, bool) else may_succeed(kind)
        shown = name.replace("KIND", kind)
        yield Case(shown, work, may_succeed=may, prepare=partial(prepare, make))


def _load(name: str, **options: Any) -> Work:
    return lambda folder: byteweld.load(folder / name, **options)


def _verb(verb: str, arguments: tuple[str, ...], folder: Path) -> None:
    command(verb, *(folder / part if "." in part else part for part in arguments))


def _reads(made: Made) -> Iterator[Case]:
    for name, (_, target, files) in SAVED.items():
        save, load = partial(_save, made, name), _load(target)
        for file in files:
            shown = f"load {name} where {file} is a KIND"
            yield from _spoiled(shown, file, load, save, file.endswith(_OPTIONAL))
    for format in (*formats.FORMATS, None):
        shown = f"load a KIND {f'as {format}' if format else 'of any format'}"
        yield from _spoiled(shown, "x", _load("x", format=format))

    def saved(name: str, folder: Path) -> None:
        formats.save(made[0].vocab, folder / name)

    def with_cache(folder: Path) -> None:
        byteweld.load(folder / "a.json", cache=folder / "cache")

    for name, file, work in (
        ("load with a cache where the cache is a KIND", "cache", with_cache),
        ("the training report is a KIND", "a.training.json", _load("a.json")),
        ("the journal is a KIND", journal_path(Path("x")).name, _load("a.json")),
    ):
        yield from _spoiled(name, file, work, partial(saved, "a.json"), True)
    yield from _spoiled(
        *("counts where a part is a KIND", "counts/part-03.parquet"),
        lambda folder: byteweld.Counts.load(folder / "counts"),
        lambda folder: byteweld.Counts({b"a": 1}).save(folder / "counts"),
    )
    for file in ("checkpoint.json", "merges.log", "counts"):
        work = lambda folder: Checkpoint(folder / "point", {}).close()  # noqa: E731
        shown = f"a checkpoint where {file} is a KIND"
        yield from _spoiled(shown, f"point/{file}", work, may_succeed=True)
    shown = "an encoding of BYTEWELD_PATH that is a KIND"
    yield from _spoiled(shown, "mine.tiktoken", _by_name)
    for verb, arguments in VERBS.items():
        may = verb == "train"  # any text is a list of special tokens
        work, good = partial(_verb, verb, arguments), partial(saved, "good.json")
        yield from _spoiled(f"byteweld {verb} on a KIND", "x.json", work, good, may)


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


def _writes(made: Made) -> Iterator[Case]:
    def save(name: str, overwrite: bool, folder: Path) -> None:
        format, file, _ = SAVED[name]
        vocab = made[format == "ck"].vocab
        formats.save(vocab, folder / file, format=format, overwrite=overwrite)

    def may_be_saved(file: str, overwrite: bool, kind: str) -> bool:
        """Links and files are replaced; a config is merged into, unless it cannot be read."""
        is_merged = file == "tokenizer_config.json" and kind == "dangling link"
        return is_merged or (overwrite and ("link" in kind or "file" in kind))

    for name, (_, _, files) in SAVED.items():
        for file in files:
            for over in (False, True):
                yield from _spoiled(
                    *(f"save {name} where {file} is a KIND, overwrite={over}", file),
                    partial(save, name, over),
                    may_succeed=partial(may_be_saved, file, over),
                )
    yield from _spoiled(
        *("byteweld explain --html to a KIND", "x.html"),
        lambda folder: command("explain", "a", "--html", folder / "x.html", "--force"),
        may_succeed=partial(may_be_saved, "x.html", True),
    )
    for device in ("/dev/null", "/dev/full", "/dev/zero"):
        yield Case(
            f"overwrite {device}",
            lambda folder, device=device: write_atomic(device, b"x", overwrite=True),
            leaves=lambda folder, device=device: Path(device).stat().st_rdev,
        )


# ---------------------------------------------------------------------- full, read-only, poor


def _savers(made: Made) -> Iterator[tuple[str, Work, Work]]:
    """Name, writer and reader of everything that is saved."""
    for name, (_, file, _) in SAVED.items():
        read: Work = lambda folder, file=file: identity(folder / file)  # noqa: E731
        yield f"save {name}", partial(_save, made, name), read
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


def _naming(place: Path, write: Work) -> None:
    """Write to a place; an error must name a file there."""
    try:
        write(place)
    except OSError as error:
        if str(place) not in str(error):
            raise AssertionError(f"the error names no file: {error}") from None
        raise


def _full_disks(made: Made) -> Iterator[Case]:
    def limited(write: Work, size: int, folder: Path) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        _naming(folder, write)

    def mounted(write: Work, pages: int, folder: Path) -> None:
        place = folder / "small"
        options = ["-t", "tmpfs", "-o", f"size={pages * 4}k", "none", place]
        if subprocess.run(["mount", *options], check=False, capture_output=True).returncode != 0:
            raise OSError("cannot mount")
        before = names_in(place)
        try:
            _naming(place, write)
        except OSError as error:
            if names_in(place) != before and "point" not in str(error):
                raise AssertionError(f"leaves {names_in(place)}") from None
            raise
        finally:
            subprocess.run(["umount", "-l", place], check=False)

    for name, write, read in _savers(made):
        is_checkpoint = name == "checkpoint"
        for size in (0, 100, 1000, 4000):
            for over in (False,) if is_checkpoint else (False, True):
                yield Case(
                    f"{name} {'over old ' * over}with files limited to {size} bytes",
                    partial(limited, write, size),
                    may_succeed=size == 4000,
                    prepare=write if over else None,
                    is_kept=is_checkpoint,
                    leaves=read,
                )
        for pages in (1, 2, 3, 4, 6, 8) if os.geteuid() == 0 else ():
            yield Case(
                f"{name} on a disk of {pages * 4} KB",
                partial(mounted, write, pages),
                may_succeed=True,
                prepare=lambda folder: (folder / "small").mkdir(),
            )


def _read_only(made: Made) -> Iterator[Case]:
    """Folders that may only be read: as an ordinary user, whom modes stop."""

    def as_nobody(work: Work, folder: Path) -> None:
        if os.geteuid() == 0:
            become_nobody()
        work(folder)

    def locked(write: Work | None, folder: Path) -> None:
        if write is not None:
            write(folder)
        folder.chmod(0o555)

    for name, write, read in _savers(made):
        for over in (False,) if name == "checkpoint" else (False, True):
            prepare = partial(locked, write if over else None)
            yield Case(
                f"{name} {'over old ' * over}in a read-only folder",
                partial(as_nobody, write),
                prepare=prepare,
                leaves=read,
            )
            if over:
                yield Case(
                    f"read after {name} in a read-only folder",
                    partial(as_nobody, read),
                    prepare=prepare,
                    may_succeed=True,
                )


def _poor(made: Made) -> Iterator[Case]:
    """File systems without hard links, renames with flags, locks."""

    def fail(number: int) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            raise OSError(number, os.strerror(number))

        return call

    def poor(write: Work, lacks: str, number: int, folder: Path) -> None:
        os.link = fail(number)
        if "flags" in lacks:
            _atomic._rename2 = lambda *arguments: False
        if "locks" in lacks:
            fcntl.flock = fail(errno.ENOLCK)
        try:
            write(folder)
        except OSError as error:
            raise AssertionError(f"{error!r}") from None

    for name, write, _ in _savers(made):
        for lacks in ("links", "links and flags", "links, flags and locks"):
            for number in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
                if name != "checkpoint" or "locks" not in lacks:  # it needs a lock
                    yield Case(
                        f"{name} without {lacks} ({errno.errorcode[number]})",
                        partial(poor, write, lacks, number),
                        may_succeed=True,
                    )


# ---------------------------------------------------------------------- streams, names, replacing


def _streams(made: Made) -> Iterator[Case]:
    verbs = {
        "inspect": "inspect FOLDER/a.json",
        "convert": "convert FOLDER/a.json FOLDER/b.tiktoken",
        "encode": "encode --tokenizer FOLDER/a.json --text a",
        "train": "train FOLDER/c.txt --vocab-size 270 --out FOLDER/o.json",
        "count": "count FOLDER/c.txt --out FOLDER/counts",
    }

    def prepare(folder: Path) -> None:
        formats.save(made[0].vocab, folder / "a.json")
        (folder / "c.txt").write_text(CORPUS[0])

    def run(line: str, closed: tuple[int, ...], folder: Path) -> None:
        shell = " ".join(f"{stream}>&-" for stream in closed)
        words = [sys.executable, "-m", "byteweld", *line.replace("FOLDER", str(folder)).split()]
        _as_error(_run("sh", "-c", f'"$@" {shell}', "sh", *words))
        for file in folder.rglob("*.json"):
            if not file.read_bytes().startswith(b"{"):
                raise AssertionError(f"{file} has foreign content")

    for verb, line in verbs.items():
        for closed in ((0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)):
            work = partial(run, line, closed)
            name = f"byteweld {verb} with {closed} closed"
            yield Case(name, work, may_succeed=True, prepare=prepare)


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


def _names(made: Made) -> Iterator[Case]:
    tok, _ = made

    def save(name: str, folder: Path) -> None:
        tok.save(folder / name)
        if identity(folder / name) is None:
            raise AssertionError("not saved")
        tok.save(folder / name, overwrite=True)
        byteweld.load(folder / name, cache=folder / "cache")

    def run(verb: str, raw: bytes, folder: Path) -> None:
        path = os.fsencode(folder) + b"/" + raw + b".json"
        more = [path + b"2.tiktoken"] if verb == "convert" else []
        done = _run(sys.executable, "-m", "byteweld", verb, path, *more)
        if b"\x1b]0;" in done.stderr + done.stdout:
            raise AssertionError("an escape sequence of a name reaches the terminal")
        _as_error(done)

    def prepare(raw: bytes, is_missing: bool, folder: Path) -> None:
        formats.save(tok.vocab, folder / "a.json", format="huggingface")
        with contextlib.suppress(OSError):
            if not is_missing:
                (folder / "a.json").rename(folder / os.fsdecode(raw + b".json"))

    for kind, raw in ODD_NAMES.items():
        for suffix in (".json", ".tiktoken", ".bpe1"):
            name = os.fsdecode(raw + suffix.encode()[: 255 - len(raw)])
            shown = f"save under a name with {kind}, {suffix}"
            yield Case(shown, partial(save, name), may_succeed=True)
        for verb in ("inspect", "convert"):
            for missing in (False, True):
                yield Case(
                    f"byteweld {verb} on a {'missing ' * missing}name with {kind}",
                    partial(run, verb, raw),
                    may_succeed=True,
                    prepare=partial(prepare, raw, missing),
                )


def _meanwhile(change: Callable[[], object], read: Callable[[], object], seconds: float) -> None:
    """Read again and again for some seconds while a thread changes something."""
    stop = threading.Event()

    def live() -> None:
        while not stop.is_set():
            change()

    thread = threading.Thread(target=live)
    thread.start()
    try:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            read()
    finally:
        stop.set()
        thread.join()


def _replaced(made: Made) -> Iterator[Case]:
    """Files that change while they are read: by another save, a truncation, another kind."""
    tok, _ = made
    other = byteweld.train(documents=CORPUS, vocab_size=270, num_threads=1)

    def saves(file: str, format: str, folder: Path) -> None:
        known = set()

        def save() -> None:
            for one in (tok, other):
                formats.save(one.vocab, folder / file, format=format, overwrite=True)
                if len(known) < 2:
                    known.add(formats.load(folder / file).fingerprint)

        def read() -> None:
            found = formats.load(folder / file).fingerprint
            if found not in known:
                raise AssertionError(f"{found} is neither of the two")

        save()
        _meanwhile(save, read, 1.5)

    def changes(make: Work, folder: Path) -> None:
        file = folder / "a.json"
        formats.save(tok.vocab, file)
        data = file.read_bytes()

        def change() -> None:
            with contextlib.suppress(OSError):
                file.unlink()
                make(file)
                file.unlink()
                file.write_bytes(data)

        def read() -> None:
            with contextlib.suppress(OSError, ByteweldError):
                byteweld.load(file)

        _meanwhile(change, read, 0.5)

    for name, (format, file, _) in SAVED.items():
        if format != "ck":
            work = partial(saves, file, format)
            yield Case(f"load {name} while it is saved", work, may_succeed=True)
    for kind in ("pipe", "link to /dev/zero", "empty file", "dangling link"):
        name = f"a file that becomes a {kind} while it is read"
        yield Case(name, partial(changes, KINDS[kind]), may_succeed=True)


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
