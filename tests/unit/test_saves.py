"""Files that belong together are old or new: kills, failures, journals, readers, links, modes."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import socket
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from byteweld import _atomic, _saves
from byteweld._saves import journal_path, read_together, write_atomic, write_folder, write_together


class Killed(BaseException):
    """Stands for SIGKILL: nothing may be cleaned up after it."""


def names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


def pair(folder: Path) -> dict[Path, bytes | None]:
    return {folder / "side": b"new side", folder / "main": b"new main"}


def put_old(folder: Path) -> None:
    (folder / "side").write_bytes(b"old side")
    (folder / "main").write_bytes(b"old main")


def read(folder: Path) -> tuple[bytes, bytes]:
    def both(main: Path) -> tuple[bytes, bytes]:
        return main.read_bytes(), main.with_name("side").read_bytes()

    files = lambda main: [main, main.with_name("side")]  # noqa: E731
    return read_together(folder / "main", files, both)


OLD, NEW = (b"old main", b"old side"), (b"new main", b"new side")


def journal_of(folder: Path, entries: list[Any], check: str | None = None) -> None:
    """Write a journal by hand."""
    body = json.dumps([_saves._FORMAT, *entries]).encode() + b"\n"
    check = hashlib.sha256(body).hexdigest() if check is None else check
    journal_path(folder).write_bytes(body + check.encode() + b"\n")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def interrupted(folder: Path) -> None:
    """Leave what a process leaves that is killed right after it wrote the journal."""
    entries = []
    for path, data in pair(folder).items():
        assert data is not None
        temporary = _atomic._new_name(path)
        temporary.write_bytes(data)
        old = digest(path.read_bytes()) if path.exists() else None
        entries.append([path.name, temporary.name, old, digest(data)])
    journal_of(folder, entries)


# ---------------------------------------------------------------------- together


def test_files_are_written_together_and_nothing_else_is_left(tmp_path: Path) -> None:
    write_together(pair(tmp_path), overwrite=False)
    assert read(tmp_path) == NEW
    assert names(tmp_path) == {"main", "side"}
    write_together({tmp_path / "side": None, tmp_path / "main": b"alone"}, overwrite=True)
    assert names(tmp_path) == {"main"}


@pytest.mark.parametrize("number", [1, 2, 3, 5, 6])  # 4 syncs the folder, which is optional
def test_a_rename_that_fails_restores_all_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    put_old(tmp_path)
    calls: list[object] = []

    def failing(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            calls.append(arguments)
            if len(calls) == number:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return function(*arguments, **options)

        return call

    monkeypatch.setattr(os, "replace", failing(os.replace))
    monkeypatch.setattr(os, "fsync", failing(os.fsync))
    with pytest.raises(OSError, match=r"(main|side)") as caught:
        write_together(pair(tmp_path), overwrite=True)
    assert caught.value.filename in (str(tmp_path / "main"), str(tmp_path / "side"))
    assert read(tmp_path) == OLD
    assert names(tmp_path) == {"main", "side"}


def test_an_interrupted_save_is_completed_by_the_next_reader_or_writer(tmp_path: Path) -> None:
    put_old(tmp_path)
    interrupted(tmp_path)
    assert read(tmp_path) == NEW
    assert names(tmp_path) == {"main", "side"}
    put_old(tmp_path)
    interrupted(tmp_path)
    write_atomic(tmp_path / "other", b"x")
    assert (tmp_path / "main").read_bytes() == b"new main"
    assert names(tmp_path) == {"main", "side", "other"}


def test_a_torn_journal_does_not_count(tmp_path: Path) -> None:
    put_old(tmp_path)
    interrupted(tmp_path)
    whole = journal_path(tmp_path).read_bytes()
    for length in range(0, len(whole) - 1, 7):
        journal_path(tmp_path).write_bytes(whole[:length])
        assert read(tmp_path) == OLD
    write_atomic(tmp_path / "main", b"x", overwrite=True)
    write_atomic(tmp_path / "side", b"x", overwrite=True)
    assert names(tmp_path) == {"main", "side"}


def test_a_reader_that_cannot_write_reads_through_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_old(tmp_path)
    interrupted(tmp_path)
    before = names(tmp_path)
    monkeypatch.setattr(_saves, "_settle", lambda folder, seconds: False)
    assert read(tmp_path) == NEW
    assert names(tmp_path) == before

    def fail(path: Path) -> None:
        raise FileNotFoundError(errno.ENOENT, "gone", str(path))

    with pytest.raises(FileNotFoundError) as caught:
        read_together(tmp_path / "main", lambda path: [path], fail)
    assert caught.value.filename == str(tmp_path / "main")


def test_a_file_that_somebody_else_wrote_voids_the_journal(tmp_path: Path) -> None:
    put_old(tmp_path)
    interrupted(tmp_path)
    (tmp_path / "side").write_bytes(b"restored by hand")
    assert read(tmp_path) == (b"old main", b"restored by hand")
    assert names(tmp_path) == {"main", "side"}


def test_a_reader_never_sees_one_without_the_other(tmp_path: Path) -> None:
    write_together(pair(tmp_path), overwrite=False)
    stop = threading.Event()

    def write() -> None:
        for number in range(10_000):
            if stop.is_set():
                return
            data = b"%d" % number
            write_together({tmp_path / "side": data, tmp_path / "main": data}, overwrite=True)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        seen = set()
        while len(seen) < 20:
            main, side = read(tmp_path)
            if main != b"new main":
                assert main == side
                seen.add(main)
    finally:
        stop.set()
        writer.join()


def test_a_file_that_keeps_changing_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "main"
    file.write_bytes(b"")

    def grow(path: Path) -> None:
        path.write_bytes(path.read_bytes() + b"x")

    with pytest.raises(OSError, match="keeps changing while it is read"):
        read_together(file, lambda path: [path], grow)


# ---------------------------------------------------------------------- hostile journals


@pytest.mark.parametrize("name", ["../victim", "/victim", "a/b", "..", "", ".", "a\0b", "\ud800"])
def test_a_journal_names_only_files_of_its_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "victim").write_bytes(b"victim")
    put_old(folder)
    fake = f".byteweld-{_atomic._mark('victim')}-1-00000000"
    (folder / fake).write_bytes(b"evil")
    journal_of(folder, [[name, fake, digest(b"victim"), digest(b"evil")]])
    assert read(folder) == OLD
    journal_of(folder, [[name, None, digest(b"victim"), None]])
    assert read(folder) == OLD
    assert (tmp_path / "victim").read_bytes() == b"victim"


def test_a_journal_moves_no_link_and_no_file_of_another_name(tmp_path: Path) -> None:
    put_old(tmp_path)
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    old = digest(b"old main")
    for temporary in ("secret", "side", _atomic._new_name(tmp_path / "side").name):
        journal_of(tmp_path, [["main", temporary, old, digest(b"secret")]])
        assert read(tmp_path) == OLD
    link = _atomic._new_name(tmp_path / "main")
    link.symlink_to(secret)
    journal_of(tmp_path, [["main", link.name, old, digest(b"secret")]])
    assert read(tmp_path) == OLD
    assert secret.read_bytes() == b"secret"


def test_a_journal_replaces_and_removes_only_the_content_that_it_states(tmp_path: Path) -> None:
    put_old(tmp_path)
    journal_of(tmp_path, [["side", None, digest(b"something else"), None]])
    assert read(tmp_path) == OLD
    journal_of(tmp_path, [["side", None, None, None]])
    assert read(tmp_path) == OLD
    evil = _atomic._new_name(tmp_path / "main")
    evil.write_bytes(b"evil")
    journal_of(tmp_path, [["main", evil.name, None, digest(b"evil")]])
    assert read(tmp_path) == OLD


@pytest.mark.parametrize(
    "content",
    [b"", b"\0" * 100, b"[" * 100_000, b'["byteweld journal 1", 5]\n', b"x" * (1 << 20)],
)
def test_an_odd_journal_is_ignored_and_removed(tmp_path: Path, content: bytes) -> None:
    put_old(tmp_path)
    journal_path(tmp_path).write_bytes(content + digest(content).encode() + b"\n")
    assert read(tmp_path) == OLD
    assert names(tmp_path) == {"main", "side"}


def test_a_journal_that_is_not_a_file_is_named_by_writers_and_ignored_by_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_saves, "_WAIT_SECONDS", 0.02)
    put_old(tmp_path)
    place = journal_path(tmp_path)
    for make in (place.mkdir, lambda: os.mkfifo(place), lambda: place.symlink_to("/dev/zero")):
        make()
        assert read(tmp_path) == OLD
        with pytest.raises(PermissionError, match="byteweld-journal"):
            write_atomic(tmp_path / "new", b"x")
        place.rmdir() if place.is_dir() else place.unlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_journals_of_other_users_are_never_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_saves, "_WAIT_SECONDS", 0.02)
    put_old(tmp_path)
    interrupted(tmp_path)
    theirs = journal_path(tmp_path).rename(journal_path(tmp_path, 12345))
    for name in names(tmp_path) - {"main", "side"}:
        os.chown(tmp_path / name, 12345, 12345)
    before = names(tmp_path)
    assert read(tmp_path) == OLD  # the files are not theirs
    os.chown(tmp_path / "main", 12345, 12345)
    assert read(tmp_path) == NEW  # read through
    assert names(tmp_path) == before
    write_atomic(tmp_path / "main", b"x", overwrite=True)
    assert read(tmp_path) == (b"x", b"old side")
    theirs.rename(journal_path(tmp_path))  # in the place of ours
    assert read(tmp_path) == (b"x", b"old side")
    with pytest.raises(PermissionError, match="or to another user"):
        write_atomic(tmp_path / "main", b"y", overwrite=True)


def test_a_save_waits_for_another_and_then_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_saves, "_WAIT_SECONDS", 0.02)
    with _saves._locked_journal(tmp_path):
        with pytest.raises(PermissionError, match="is saving to this folder"):
            write_atomic(tmp_path / "main", b"x")
    write_atomic(tmp_path / "main", b"x")


# ---------------------------------------------------------------------- temporaries


def test_temporaries_of_killed_processes_are_removed_and_live_ones_stay(tmp_path: Path) -> None:
    main, other = tmp_path / "main", tmp_path / "other"
    dead, dead_of_other = _atomic._new_name(main), _atomic._new_name(other)
    dead.write_bytes(b"x")
    dead_of_other.write_bytes(b"x")
    (tmp_path / ".byteweld-mine").write_bytes(b"a user's own")
    live = _atomic.Temporary(main, b"alive")
    write_atomic(main, b"new")
    assert names(tmp_path) == {"main", ".byteweld-mine", live.path.name, dead_of_other.name}
    live.close()


def test_a_full_disk_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, data: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    for write in (
        lambda: write_atomic(tmp_path / "main", b"x"),
        lambda: write_together(pair(tmp_path), overwrite=False),
        lambda: write_folder(tmp_path / "main", {"side": b"", "x": b"x"}, overwrite=False),
    ):
        with pytest.raises(OSError, match=r"No space left on device: .*(main|side|x)'$"):
            write()
        assert names(tmp_path) == set()


def test_the_umask_is_obeyed_and_never_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.umask(0o027)
    try:
        monkeypatch.setattr(os, "umask", None)
        write_atomic(tmp_path / "file", b"")
        write_folder(tmp_path / "folder", {"a": b""}, overwrite=False)
        with _atomic.replace_folder(tmp_path / "counts", is_ours=lambda folder: True) as made:
            (made / "a").write_bytes(b"")
    finally:
        monkeypatch.undo()
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"file": 0o640, "folder": 0o750, "counts": 0o750}


def test_an_overwritten_file_keeps_its_mode(tmp_path: Path) -> None:
    write_together(pair(tmp_path), overwrite=False)
    (tmp_path / "main").chmod(0o600)
    write_together(pair(tmp_path), overwrite=True)
    assert stat.S_IMODE((tmp_path / "main").stat().st_mode) == 0o600
    write_folder(tmp_path / "folder", {"a": b""}, overwrite=False)
    (tmp_path / "folder" / "a").chmod(0o604)
    (tmp_path / "folder").chmod(0o705)
    write_folder(tmp_path / "folder", {"a": b"new"}, overwrite=True)
    assert stat.S_IMODE((tmp_path / "folder" / "a").stat().st_mode) == 0o604
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o705


# ---------------------------------------------------------------------- links, other kinds of files


def test_a_link_is_replaced_and_not_what_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "aim").write_bytes(b"aim")
    for aim in ("aim", "nowhere", "/dev/null"):
        (tmp_path / "link").symlink_to(aim)
        with pytest.raises(FileExistsError):
            write_atomic(tmp_path / "link", b"new")
        write_atomic(tmp_path / "link", b"new", overwrite=True)
        assert not (tmp_path / "link").is_symlink()
        (tmp_path / "link").unlink()
    assert (tmp_path / "aim").read_bytes() == b"aim"


def test_pipes_sockets_and_devices_are_never_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "socket"))
        for name, kind in (("pipe", "a named pipe"), ("socket", "a socket")):
            with pytest.raises(FileExistsError, match=f"is {kind}, which is never replaced"):
                write_atomic(tmp_path / name, b"", overwrite=True)
    assert names(tmp_path) == {"pipe", "socket"}
    with pytest.raises(FileExistsError, match="is a device, which is never replaced"):
        write_atomic("/dev/null", b"", overwrite=True)


# ---------------------------------------------------------------------- other file systems


@pytest.fixture(params=["no renames with flags", "no hard links either"])
def poor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(_atomic, "_rename2", lambda *arguments: False)
    if request.param == "no hard links either":

        def no_link(*arguments: object) -> None:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

        monkeypatch.setattr(os, "link", no_link)
    return str(request.param)


def test_new_files_are_written_on_every_file_system(tmp_path: Path, poor: str) -> None:
    write_atomic(tmp_path / "main", b"x")
    with pytest.raises(FileExistsError, match="pass overwrite=True"):
        write_atomic(tmp_path / "main", b"y")
    assert (tmp_path / "main").read_bytes() == b"x"
    (tmp_path / "main").unlink()
    write_together(pair(tmp_path), overwrite=False)
    assert read(tmp_path) == NEW
    assert names(tmp_path) == {"main", "side"}


def test_of_many_writers_that_may_not_overwrite_one_wins(tmp_path: Path, poor: str) -> None:
    won: list[bytes] = []

    def write(data: bytes) -> None:
        try:
            write_atomic(tmp_path / "main", data)
        except FileExistsError:
            return
        won.append(data)

    threads = [threading.Thread(target=write, args=(b"%d" % n,)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(tmp_path / "main").read_bytes()] == won
    assert names(tmp_path) == {"main"}


def test_a_file_that_appears_meanwhile_is_not_replaced(
    tmp_path: Path, poor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync

    def sync_and_write(descriptor: int) -> None:
        sync(descriptor)
        (tmp_path / "main").write_bytes(b"somebody else's")

    monkeypatch.setattr(os, "fsync", sync_and_write)
    with pytest.raises(FileExistsError, match="main exists; pass overwrite=True"):
        write_together(pair(tmp_path), overwrite=False)
    with pytest.raises(FileExistsError):
        write_atomic(tmp_path / "main", b"x")
    monkeypatch.undo()
    assert names(tmp_path) == {"main"}
    assert (tmp_path / "main").read_bytes() == b"somebody else's"


def test_a_folder_replaced_in_steps_is_restored_after_a_kill(
    tmp_path: Path, poor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "counts"

    def save(content: bytes) -> None:
        is_ours = lambda folder: True  # noqa: E731
        with _atomic.replace_folder(target, overwrite=True, is_ours=is_ours) as made:
            (made / "a").write_bytes(content)

    save(b"old")
    old = _atomic._new_name(target)
    target.rename(old.with_name(old.name + ".old"))  # then it was killed
    assert _atomic.settle_folder(target) == target
    assert (target / "a").read_bytes() == b"old"
    target.rename(old.with_name(old.name + ".old"))
    save(b"new")
    assert (target / "a").read_bytes() == b"new"
    assert names(tmp_path) == {"counts"}


def test_a_name_of_255_bytes_can_be_written(tmp_path: Path) -> None:
    write_atomic(tmp_path / ("é" * 127 + "x"), b"x")
    assert len(names(tmp_path)) == 1
    with pytest.raises(OSError, match="File name too long"):
        write_atomic(tmp_path / ("x" * 256), b"x")
    assert len(names(tmp_path)) == 1
