"""Paths that cannot be written are found before the work; reads are bounded, of regular files."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from byteweld._files import check_file, read_regular, read_start
from byteweld._saves import write_atomic
from byteweld.errors import FormatError


def test_a_new_file_may_be_written_even_in_folders_that_do_not_exist_yet(tmp_path: Path) -> None:
    check_file(tmp_path / "a", overwrite=False)
    check_file(tmp_path / "b" / "c" / "a", overwrite=False)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_refused_in_the_same_words_before_and_after(tmp_path: Path) -> None:
    place = tmp_path / "a"
    place.write_bytes(b"old")
    expected = re.escape(f"{place} exists; pass overwrite=True to replace it")
    with pytest.raises(FileExistsError, match=f"^{expected}$"):
        check_file(place, overwrite=False)
    with pytest.raises(FileExistsError, match=f"^{expected}$"):
        write_atomic(place, b"new")
    check_file(place, overwrite=True)
    assert place.read_bytes() == b"old"


def test_a_dangling_link_is_an_existing_file(tmp_path: Path) -> None:
    place = tmp_path / "link"
    place.symlink_to(tmp_path / "nothing")
    with pytest.raises(FileExistsError):
        check_file(place, overwrite=False)


def test_a_folder_is_never_replaced_by_a_file(tmp_path: Path) -> None:
    for overwrite in (False, True):
        with pytest.raises(IsADirectoryError, match="is a folder; expected the name of a file"):
            check_file(tmp_path, overwrite=overwrite)


def test_nothing_can_be_written_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(NotADirectoryError, match="a is not a folder; choose another path"):
        check_file(tmp_path / "a" / "b" / "c", overwrite=True)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    expected = re.escape(f"there is no folder {tmp_path / 'b'}; create it first")
    with pytest.raises(FileNotFoundError, match=expected):
        write_atomic(tmp_path / "b" / "a", b"")


def test_a_read_only_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Not by its mode, which does not stop root.
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    expected = re.escape(f"the folder {tmp_path} is read-only; choose another path")
    with pytest.raises(PermissionError, match=expected):
        check_file(tmp_path / "b" / "a", overwrite=True)


# ---------------------------------------------------------------------- reading


KINDS: dict[str, Callable[[Path], object]] = {
    "a named pipe": os.mkfifo,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a socket": lambda path: socket.socket(socket.AF_UNIX).bind(str(path)),
}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", KINDS)
def test_only_regular_files_are_read(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket is limited to 107 bytes
    path = Path("x")
    KINDS[kind](path)
    for read in (read_regular, read_start):
        with pytest.raises(FormatError, match=f"^x: expected a regular file, found {kind}$"):
            read(path, 100)
    Path("link").symlink_to(path)
    with pytest.raises(FormatError, match=f"expected a regular file, found {kind}$"):
        read_regular("link", 100)


def test_folders_and_missing_files_stay_what_python_says(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match=re.escape(str(tmp_path))):
        read_regular(tmp_path, 100)
    with pytest.raises(FileNotFoundError, match="nothing"):
        read_regular(tmp_path / "nothing", 100)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="loop"):
        read_regular(tmp_path / "loop", 100)


def test_reads_are_bounded_whatever_size_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 100)
    assert read_regular(file, 100) == b"x" * 100
    assert read_start(file, 100) == read_start(file, 101) == b"x" * 100
    assert read_start(file, 7) == b"x" * 7
    with pytest.raises(FormatError, match="has 100 bytes; expected at most 99"):
        read_regular(file, 99)
    os.truncate(file, 1 << 40)  # sparse
    with pytest.raises(FormatError, match="has 1099511627776 bytes; expected at most 1073741824"):
        read_regular(file, 1 << 30)
    assert len(read_start(file, 1000)) == 1000
    maps = Path("/proc/self/maps")
    if maps.exists():  # reports 0 bytes
        assert len(read_regular(maps, 1 << 24)) > 1000
        with pytest.raises(FormatError, match="more bytes than it reports; expected at most 1000"):
            read_regular(maps, 1000)


@pytest.mark.timeout(20)
def test_a_file_that_becomes_a_pipe_between_look_and_open_does_not_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x")
    look = os.stat

    def look_and_replace(path: Path) -> os.stat_result:
        found = look(path)
        file.unlink()
        os.mkfifo(file)
        return found

    monkeypatch.setattr(os, "stat", look_and_replace)
    with pytest.raises(FormatError, match="found a named pipe"):
        read_regular(file, 100)
