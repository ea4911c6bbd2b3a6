"""Paths that cannot be written are found before the work."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from byteweld._files import check_file
from byteweld._saves import write_atomic


def test_a_new_file_may_be_written_even_in_folders_that_do_not_exist_yet(tmp_path: Path) -> None:
    check_file(tmp_path / "a", overwrite=False)
    check_file(tmp_path / "b" / "c" / "a", overwrite=False)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_refused_in_the_same_words_before_and_after(tmp_path: Path) -> None:
    place = tmp_path / "a"
    place.write_bytes(b"old")
    expected = re.escape(f"{place} exists; pass overwrite=True (--force) to replace it")
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
