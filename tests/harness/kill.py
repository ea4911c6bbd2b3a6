"""Kills every writer before every file-system event; the files must be old or new afterwards.

A writer runs in a forked process that counts its events (opening a file to write, each half of a
write, sync, rename, link, removal, mode) and kills itself with SIGKILL before event number k, for
every k. Afterwards a reader without the right to write, and then an ordinary one, must find exactly
the old or the new result; files of others are intact; and the next save succeeds and leaves no
temporary file. Then come kills at random times. A short run draws a sample of all that.

    python -m tests.harness.kill --seconds 600 --writer gpt2
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import hashlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import byteweld
from byteweld import _atomic, formats
from byteweld.cli import main as command
from tests.harness.run import Run, in_child, parser

RANDOM_KILLS = 200
NOBODY = 65534
FOREIGN = {"notes.txt": b"mine", "other.json": b"{}"}
CORPUS = ["the cat sat on the mat, and the other cat sat there as well; then they ate. " * 20]

# ---------------------------------------------------------------------- events

_AUDITED = frozenset(
    "os.rename os.remove os.mkdir os.rmdir os.chmod os.link os.symlink os.truncate".split()
)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Events:
    """Counts the file-system events of this process; kills it before event number `at`."""

    def __init__(self, at: int | None = None) -> None:
        self.at = at
        self.seen = 0

    def event(self) -> None:
        self.seen += 1
        if self.seen == self.at:
            os.kill(os.getpid(), signal.SIGKILL)

    def install(self) -> None:
        """Watch this process until it ends: audit hooks cannot be removed."""
        sys.addaudithook(self._audit)
        write, fsync, fchmod, rename2 = os.write, os.fsync, os.fchmod, _atomic._rename2

        def halves(descriptor: int, data: Any) -> int:
            view = memoryview(data)
            if len(view) < 2:
                self.event()
                return write(descriptor, view)
            self.event()
            done = write(descriptor, view[: len(view) // 2])
            self.event()
            return done + write(descriptor, view[len(view) // 2 :])

        os.write = halves  # type: ignore[assignment]
        os.fsync = self._before(fsync)
        os.fchmod = self._before(fchmod)
        _atomic._rename2 = self._before(rename2)

    def _before(self, function: Callable[..., Any]) -> Any:
        def watched(*arguments: Any) -> Any:
            self.event()
            return function(*arguments)

        return watched

    def _audit(self, name: str, arguments: tuple[Any, ...]) -> None:
        if name in _AUDITED or (name == "open" and int(arguments[2] or 0) & _WRITES):
            self.event()


# ---------------------------------------------------------------------- writers

State = object  # what a reader finds: comparable, None for nothing


@dataclass(frozen=True)
class Writer:
    """Something that saves: `write(folder, is_new)` writes the old or the new result."""

    name: str
    write: Callable[[Path, bool], object]
    read: Callable[[Path], State]
    over: bool = True  # over an existing result
    without: tuple[str, ...] = ()  # what the file system lacks: "rename2", "link"
    foreign: bool = True  # there are files of others in the folder
    is_either: bool = True  # False if it writes several results, each of them old or new


def identity(path: Path) -> State:
    """Return what identifies a saved tokenizer; None if there is none."""
    if not path.exists() and not list(path.parent.glob(".byteweld-journal-*")):
        return None
    try:
        tok = byteweld.load(path)
    except FileNotFoundError:
        return None
    except byteweld.FormatError as error:
        if "the format of this folder is unknown" in str(error):  # it holds none of the files
            return None
        raise
    report = tok.training
    return (
        tok.vocab.fingerprint,
        tuple(sorted(tok.vocab.roles.items())),
        None if report is None else report.merges_learned,
    )


Pair = tuple[byteweld.Tokenizer, byteweld.Tokenizer]  # an old and a new one


def _tokenizers(recipe: str, **options: Any) -> Pair:
    """Return an old and a new tokenizer."""
    return (
        byteweld.train(documents=CORPUS, vocab_size=290, recipe=recipe, **options),
        byteweld.train(documents=CORPUS, vocab_size=270, recipe=recipe, **options),
    )


def _saver(
    name: str, file: str, format: str, pair: Pair, *, report: bool = False, **options: Any
) -> Iterator[Writer]:
    def write(folder: Path, is_new: bool) -> None:
        tok = pair[is_new]
        save = tok.save if report else partial(formats.save, tok.vocab)
        overwrite = not {entry.name for entry in folder.iterdir()} <= FOREIGN.keys()
        save(folder / file, format=format, overwrite=overwrite)

    for over in (True, False):
        kind = "over old" if over else "over nothing"
        read = partial(_identity_in, file)
        yield Writer(f"{name}, {kind}", write, read, over=over, **options)


def _identity_in(file: str, folder: Path) -> State:
    return identity(folder / file)


def writers() -> list[Writer]:
    modern, ck = _tokenizers("modern"), _tokenizers("ck")
    roles = _tokenizers("modern", bos="<s>", special_tokens=["<s>"])
    changed = (roles[0], _tokenizers("modern", eos="<s>", special_tokens=["<s>"])[1])
    bpe1 = _tokenizers("bpe1")
    bare: dict[str, Any] = {"without": ("rename2",)}
    none: dict[str, Any] = {"without": ("rename2", "link")}
    report: dict[str, Any] = {"report": True}
    saved: list[tuple[str, str, str, Pair, dict[str, Any]]] = [
        ("bpe1", "a.bpe1", "bpe1", bpe1, {}),
        ("bpetite", "a.json", "bpetite", _tokenizers("bpetite"), {}),
        ("tekken", "tekken.json", "tekken", modern, {}),
        ("tiktoken", "a.tiktoken", "tiktoken", modern, {}),
        ("huggingface", "a.json", "huggingface", modern, {}),
        ("huggingface with config", "tokenizer.json", "huggingface", changed, {}),
        ("huggingface with sidecar", "a.json", "huggingface", roles, {}),
        ("huggingface without its sidecar", "a.json", "huggingface", (roles[0], modern[1]), {}),
        ("gpt2", "pair", "gpt2", modern, {}),
        ("ck", "export", "ck", ck, {}),
        ("gpt2 among others", ".", "gpt2", modern, {}),
        ("ck among others", ".", "ck", ck, {}),
        ("ck, no exchange", "export", "ck", ck, bare),
        ("gpt2, no exchange", "pair", "gpt2", modern, bare),
        ("bpe1, no links", "a.bpe1", "bpe1", bpe1, none),
        ("tiktoken, no links", "a.tiktoken", "tiktoken", modern, none),
        ("tokenizer with report", "a.json", "huggingface", roles, report),
        ("tiktoken with report", "a.tiktoken", "tiktoken", modern, report),
        ("ck with report", "export", "ck", ck, report),
        ("gpt2 with report among others", ".", "gpt2", modern, report),
    ]
    made = [writer for *given, options in saved for writer in _saver(*given, **options)]
    return [*made, *_counts(), *_checkpoints(), *_caches(modern[0]), *_commands(modern)]


def _counts() -> Iterator[Writer]:
    pair = (byteweld.Counts({b"old": 3, b"a": 1}), byteweld.Counts({b"new": 2, b"b": 5}))

    def write(folder: Path, is_new: bool) -> None:
        pair[is_new].save(folder / "counts", overwrite=True)

    def read(folder: Path) -> State:
        try:
            return tuple(sorted(byteweld.Counts.load(folder / "counts").items()))
        except FileNotFoundError:
            return None

    for over in (True, False):
        for without in ((), ("rename2",)):
            name = "counts, " + ("over old" if over else "over nothing")
            yield Writer(
                name + ", no exchange" * bool(without), write, read, over=over, without=without
            )


def _checkpoints() -> Iterator[Writer]:
    corpus = Path(tempfile.mkdtemp(prefix="byteweld-corpus-")) / "corpus.txt"
    corpus.write_text(CORPUS[0])
    atexit.register(shutil.rmtree, corpus.parent, ignore_errors=True)
    options: dict[str, Any] = {"vocab_size": 280, "num_threads": 1}
    expected = byteweld.train(corpus, **options).vocab.fingerprint

    def write(folder: Path, is_new: bool) -> None:
        tok = byteweld.train(corpus, checkpoint=folder / "point", **options)
        if tok.vocab.fingerprint != expected:  # resumed from what the killed process left
            raise AssertionError("the training gives another tokenizer")
        byteweld.training.checkpoint.remove_checkpoint(folder / "point")

    yield Writer("checkpoint", write, lambda folder: None, over=False)


def _caches(tok: byteweld.Tokenizer) -> Iterator[Writer]:
    def write(folder: Path, is_new: bool) -> None:
        file = folder / "a.json"
        if not file.exists():
            formats.save(tok.vocab, file)
        for cached in (folder / "cache").glob("*.byteweld"):
            cached.unlink()  # so that it is saved again
        if byteweld.load(file, cache=folder / "cache").vocab != tok.vocab:
            raise AssertionError("the cache gives another tokenizer")

    yield Writer("compiled cache", write, lambda folder: None, over=False)


def _commands(modern: Pair) -> Iterator[Writer]:
    def run(*arguments: object) -> None:
        with Path(os.devnull).open("w") as null, contextlib.redirect_stderr(null):
            with contextlib.redirect_stdout(null):
                code = command(list(map(str, arguments)))
        if code != 0:
            raise OSError(f"exit code {code}: {arguments}")

    @contextlib.contextmanager
    def input_of(is_new: bool) -> Iterator[Path]:
        with tempfile.TemporaryDirectory() as aside:
            formats.save(modern[is_new].vocab, Path(aside) / "in.json")
            yield Path(aside) / "in.json"

    def convert(folder: Path, is_new: bool) -> None:
        with input_of(is_new) as path:
            run("convert", path, folder / "a.tiktoken", "--force")

    def train(folder: Path, is_new: bool) -> None:
        with input_of(is_new) as path:
            corpus = path.with_name("corpus.txt")
            corpus.write_text(CORPUS[0])
            line = ["train", corpus, "--vocab-size", 270 if is_new else 290, "--force", "--out"]
            run(*line, folder / "a.json")
            run(*line, folder / "export", "--recipe", "ck", "--format", "ck")

    def page(folder: Path, is_new: bool) -> None:
        with input_of(is_new) as path:
            text = "cats" if is_new else "the cat"
            run("explain", text, "--tokenizer", path, "--html", folder / "a.html", "--force")

    def read_page(folder: Path) -> State:
        path = folder / "a.html"
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None

    def read_both(folder: Path) -> State:
        return identity(folder / "a.json"), identity(folder / "export")

    yield Writer("byteweld convert", convert, partial(_identity_in, "a.tiktoken"))
    yield Writer("byteweld train", train, read_both, over=True, is_either=False)
    yield Writer("byteweld explain --html", page, read_page)


# ---------------------------------------------------------------------- runs


@contextlib.contextmanager
def _lacking(without: tuple[str, ...]) -> Iterator[None]:
    """Take renames with flags, or hard links, away from this process."""
    kept = _atomic._rename2, os.link

    def no_link(*arguments: Any, **options: Any) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    try:
        if "rename2" in without:
            _atomic._rename2 = lambda *arguments: False
        if "link" in without:
            os.link = no_link
        yield
    finally:
        _atomic._rename2, os.link = kept


def become_nobody() -> None:
    """Take root's rights away from this process."""
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def names_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


class Case:
    """A folder with the old state, in which a writer is killed."""

    def __init__(self, writer: Writer, root: Path) -> None:
        self.writer = writer
        self.root = root
        self.template = root / "template"
        self.template.mkdir()
        self.template.chmod(0o755)
        for name, content in FOREIGN.items() if writer.foreign else ():
            (self.template / name).write_bytes(content)
        with _lacking(writer.without):
            if writer.over:
                writer.write(self.template, False)
            self.old = self.writer.read(self.template)
            done = self._copy()
            started = time.monotonic()
            writer.write(done, True)
            self.seconds = time.monotonic() - started
            self.new = self.writer.read(done)
            self.names = names_in(done)
        if writer.over and self.old == self.new:
            raise AssertionError(f"{writer.name}: old and new are the same")
        shutil.rmtree(done)

    def _copy(self) -> Path:
        folder = Path(tempfile.mkdtemp(dir=self.root))
        shutil.copytree(self.template, folder, symlinks=True, dirs_exist_ok=True)
        folder.chmod(0o755)
        return folder

    def _write(self, folder: Path, events: Events | None) -> int:
        """Write the new state, and return the number of events."""
        with _lacking(self.writer.without):
            if events is not None:
                events.install()
            self.writer.write(folder, True)
            return 0 if events is None else events.seen

    def count(self) -> int:
        folder = self._copy()
        code, said = in_child(lambda: self._write(folder, Events()))
        shutil.rmtree(folder)
        if code != 0:
            raise AssertionError(f"{self.writer.name} fails: {said}")
        return int(said)

    def kill_before(self, event: int) -> str | None:
        """Kill the writer before an event; return what is wrong afterwards."""
        folder = self._copy()
        code, said = in_child(lambda: self._write(folder, Events(event)))
        if code != -signal.SIGKILL:
            return f"was not killed: exit {code}, {said}"
        return self._check(folder)

    def kill_after(self, seconds: float) -> str | None:
        """Kill the writer after a time; return what is wrong afterwards."""
        folder = self._copy()
        in_child(lambda: self._write(folder, None), seconds=seconds)
        return self._check(folder)

    def _check(self, folder: Path) -> str | None:
        with _lacking(self.writer.without):
            wrong = self._check_state(folder)
            if wrong is None:
                wrong = self._check_next(folder)
        if wrong is None:
            shutil.rmtree(folder)
            return None
        return f"{wrong}; see {folder}: {sorted(names_in(folder))[:30]}"

    def _check_state(self, folder: Path) -> str | None:
        if self.writer.is_either:
            if os.geteuid() == 0:
                code, said = in_child(lambda: self._read_as_nobody(folder))
                if code != 0 or said not in (repr(self.old), repr(self.new)):
                    return f"a reader without rights finds {said[:300]}"
            try:
                found = self.writer.read(folder)
            except Exception as error:
                return f"a reader fails: {type(error).__name__}: {error}"
            if found not in (self.old, self.new):
                return f"neither old nor new: {found!r}"
        for name, content in FOREIGN.items() if self.writer.foreign else ():
            if not (folder / name).is_file() or (folder / name).read_bytes() != content:
                return f"the foreign file {name} has changed"
        return None

    def _read_as_nobody(self, folder: Path) -> str:
        become_nobody()
        return repr(self.writer.read(folder))

    def _check_next(self, folder: Path) -> str | None:
        try:
            self.writer.write(folder, True)
            found = self.writer.read(folder)
        except Exception as error:
            return f"the next save fails: {type(error).__name__}: {error}"
        if found != self.new:
            return f"the next save gives {found!r}"
        left = names_in(folder) - self.names
        return f"the next save leaves {sorted(left)}" if left else None


def run_all(
    run: Run, made: list[Writer], root: Path, random_kills: int, most: int | None = None
) -> None:
    """Kill at every point, or as many as allowed and the time allows, then at random times."""
    cases = []
    for number, writer in enumerate(made):
        place = root / str(number)
        place.mkdir()
        place.chmod(0o755)
        cases.append(Case(writer, place))
    points = [(case, event) for case in cases for event in range(1, case.count() + 1)]
    print(f"{len(points):,} kill points of {len(cases)} writers", flush=True)
    shuffled = run.random("points").sample(points, len(points))
    for case, event in shuffled[:most]:
        if run.elapsed >= run.seconds * 0.8:
            break
        wrong = case.kill_before(event)
        run.count(case.writer.name)
        if wrong is not None:
            run.find(case.writer.name, f"killed before event {event}: {wrong}")
    draw = run.random("times")
    for _ in range(random_kills):
        if run.is_over:
            break
        case = draw.choice(cases)
        wrong = case.kill_after(draw.random() * 1.5 * case.seconds)
        run.count("random kills")
        if wrong is not None:
            run.find(case.writer.name, f"killed at random: {wrong}")


def main(arguments: list[str] | None = None) -> int:
    options = parser("kill", __doc__, seconds=1800)
    options.add_argument("--writer", default="", help="only writers whose name contains this")
    given = options.parse_args(arguments)
    run = Run.of("kill", given)
    with tempfile.TemporaryDirectory(prefix="byteweld-kill-") as root:
        Path(root).chmod(0o755)
        made = [writer for writer in writers() if given.writer in writer.name]
        most = max(2, int(run.seconds // 2))  # a short run should not only prepare
        made = run.random("writers").sample(made, min(most, len(made)))
        run_all(run, made, Path(root), RANDOM_KILLS)
    return run.finish()


if __name__ == "__main__":
    raise SystemExit(main())
