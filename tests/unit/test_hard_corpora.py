"""Difficult corpora: files that vanish, change or cannot be read, endless lines, floods of tiny
files, arbitrary bytes. docs/guides/corpus.md describes what happens in each case.
"""

from __future__ import annotations

import gzip
import lzma
import os
import random
import tempfile
import threading
import time
from pathlib import Path

import pytest

import byteweld
from byteweld import CorpusError
from byteweld.corpus import open_corpus
from tests.helpers.programs import run_python

NOBODY = 65534
CHANGED = r"changed while it was read"


def write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def counted(source, **options) -> dict[bytes, int]:
    return dict(byteweld.count(source, recipe="plain", **options).items())


@pytest.fixture
def unprivileged():
    """A folder owned by an unprivileged user, with the test running as that user."""
    if os.geteuid() != 0:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
        return
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, NOBODY, NOBODY)
        os.seteuid(NOBODY)
        try:
            yield Path(folder)
        finally:
            os.seteuid(0)


# ---------------------------------------------------------------------- missing or unreadable


def test_a_file_that_vanishes_after_listing_is_named_or_skipped(tmp_path):
    for name in ("a.txt", "b.txt", "c.txt"):
        write(tmp_path, name, name.encode())
    for on_error in ("fail", "replace", "skip"):
        write(tmp_path, "b.txt", b"b.txt")
        corpus = open_corpus(tmp_path, on_error=on_error)
        (tmp_path / "b.txt").unlink()
        assert corpus.total_bytes == 10
        if on_error == "skip":
            counts = byteweld.count(corpus, recipe="plain")
            assert dict(counts.items()) == {b"a.txt": 1, b"c.txt": 1}
            assert counts.skipped_documents == 1
            assert list(corpus.documents()) == [b"a.txt", b"c.txt"]
            continue
        for read in (lambda c: list(c.documents()), byteweld.count):
            with pytest.raises(FileNotFoundError) as caught:
                read(corpus)
            assert caught.value.filename == str(tmp_path / "b.txt")


def test_a_file_that_becomes_a_folder_is_named_or_skipped(tmp_path):
    path = write(tmp_path, "a.txt", b"text")
    corpus = open_corpus(tmp_path)
    path.unlink()
    path.mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        byteweld.count(corpus)
    assert caught.value.filename == str(path)
    write(path, "b.txt", b"inside")
    assert counted(tmp_path) == {b"inside": 1}  # a folder with the name of a file is a folder


def test_an_unreadable_file_is_named_or_skipped(unprivileged):
    write(unprivileged, "a.txt", b"open")
    secret = write(unprivileged, "b.txt", b"secret")
    secret.chmod(0)
    with pytest.raises(PermissionError) as caught:
        byteweld.count(unprivileged)
    assert caught.value.filename == str(secret)
    assert counted(unprivileged, on_error="skip") == {b"open": 1}


def test_an_unreadable_folder_is_never_skipped(unprivileged):
    write(unprivileged, "a.txt", b"open")
    secret = unprivileged / "sub"
    secret.mkdir(mode=0)
    try:
        for on_error in ("fail", "skip"):
            with pytest.raises(PermissionError) as caught:
                byteweld.count(unprivileged, on_error=on_error)
            assert caught.value.filename == str(secret)
    finally:
        secret.chmod(0o700)


def test_links_in_a_folder_are_ignored_broken_or_not(tmp_path):
    write(tmp_path, "a.txt", b"text")
    links = {"link.txt": "a.txt", "broken.txt": "nowhere", "loop.txt": "loop.txt", "up": ".."}
    for name, target in links.items():
        (tmp_path / name).symlink_to(target)
    (tmp_path / "down").mkdir()
    (tmp_path / "down" / "around").symlink_to(tmp_path)
    assert counted(tmp_path) == {b"text": 1}
    assert counted(tmp_path, ext="*") == {b"text": 1}


@pytest.mark.parametrize("target", ["nowhere", "broken.txt"])
def test_a_broken_link_passed_by_name_is_an_error_with_its_target(tmp_path, target):
    link = tmp_path / "broken.txt"
    link.symlink_to(target)
    with pytest.raises(FileNotFoundError, match=rf"broken\.txt: the link points to '{target}'"):
        open_corpus(link)


def test_a_pipe_is_read_if_named_and_ignored_in_a_folder(tmp_path):
    pipe = tmp_path / "pipe.txt"
    os.mkfifo(pipe)
    write(tmp_path, "a.txt", b"text")
    assert counted(tmp_path) == {b"text": 1}  # without waiting for a writer
    writer = threading.Thread(target=pipe.write_bytes, args=(b"word " * 100_000,))
    writer.start()
    assert byteweld.count(pipe, recipe="from-scratch").total_bytes == 500_000
    writer.join()


# ---------------------------------------------------------------------- files that change


def append(path):
    with path.open("ab") as file:
        file.write(b"more\n")


def truncate(path):
    os.truncate(path, path.stat().st_size // 2)


def rewrite(path):
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.write(b"x" * size)
    os.utime(path, ns=(1, 1))  # the clock of the file system may be coarse


CHANGES = {"grows": append, "shrinks": truncate, "is rewritten": rewrite}


@pytest.mark.parametrize("on_error", ["fail", "skip", "replace"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_file_that_changes_between_two_documents_is_an_error(tmp_path, change, on_error):
    path = write(tmp_path, "a.txt", b"line\n" * 1_000_000)
    documents = open_corpus(path, unit="line", on_error=on_error).documents()
    assert next(documents) == b"line\n"
    change(path)
    with pytest.raises(CorpusError, match=CHANGED) as caught:
        list(documents)
    assert caught.value.path == str(path)


@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_file_that_changes_while_being_counted_is_an_error(tmp_path, change, num_threads):
    for times in (1, 2, 4):  # on a busy machine, all of it may be read before the first report
        path = write(tmp_path, "a.txt", b"some words of text\n" * 3_000_000 * times)
        waiting = [change]

        def progress(_, waiting=waiting, path=path):
            if waiting:
                waiting.pop()(path)

        try:
            byteweld.count(path, num_threads=num_threads, progress=progress)
        except CorpusError as error:
            assert "changed while it was read" in str(error)
            assert error.path == str(path) and not waiting
            return
    pytest.fail("no change was noticed")


def xz(content: bytes) -> bytes:
    return lzma.compress(content, preset=0)


@pytest.mark.parametrize("compress", [gzip.compress, xz])
def test_an_archive_truncated_while_being_read_is_reported_as_changed_not_damaged(
    tmp_path, compress
):
    lines = random.Random(3).randbytes(1_500_000).hex("\n", 20).encode()
    path = write(tmp_path, "a.txt.gz", compress(lines))
    assert path.stat().st_size > 1_000_000
    documents = open_corpus(path, unit="line").documents()
    next(documents)
    truncate(path)
    with pytest.raises(CorpusError, match=CHANGED):
        list(documents)


def test_a_file_deleted_or_replaced_while_being_read_keeps_its_content(tmp_path):
    content = b"line\n" * 1_000_000
    for act in (Path.unlink, lambda path: write(tmp_path, "new", b"other").replace(path)):
        path = write(tmp_path, "a.txt", content)
        documents = open_corpus(path, unit="line").documents()
        next(documents)
        act(path)
        assert sum(1 for _ in documents) == 999_999


def test_a_file_of_unknown_size_is_read_in_full():
    status = Path("/proc/self/status")
    if not status.is_file():
        pytest.skip("no /proc on this system")
    assert b"VmPeak" in b"".join(open_corpus(status).documents())


# ---------------------------------------------------------------------- bytes of every kind


def test_every_kind_of_byte_is_counted_unchanged(tmp_path):
    contents = {
        "empty": b"",
        "mark": b"\xef\xbb\xbfafter a byte order mark",
        "utf-16": "text".encode("utf-16"),
        "nul": b"\x00\x00a\x00",
        "windows": b"one\r\ntwo\r\n",
        "mac": b"one\rtwo\r",
        "all bytes": bytes(range(256)),
        "broken": b"\x80\xff\xc3 \xed\xa0\x80\xf0\x9f\x91",
    }
    for name, content in contents.items():
        path = write(tmp_path, f"{name}.txt", content)
        assert list(open_corpus(path).documents()) == [content]
        assert counted(path) == ({content: 1} if content else {})
    folder = open_corpus(tmp_path)
    assert sorted(folder.documents()) == sorted(filter(None, contents.values()))


# ---------------------------------------------------------------------- sizes

ONE_LINE = """
import resource, sys, time
import byteweld

unit, megabytes, pattern = sys.argv[1], int(sys.argv[2]), sys.argv[3]
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
block = unit.encode()
block = (block * ((1 << 20) // len(block) + 1))[: 1 << 20]
with open(sys.argv[4], "wb") as file:
    for _ in range(megabytes):
        file.write(block)
byteweld.train(iter(["warm up"]), vocab_size=257, pattern=pattern or None)
before, started = peak(), time.process_time()
counts = byteweld.count(sys.argv[4], pattern=pattern or None, num_threads=2)
after, counted = peak(), time.process_time()
tok = byteweld.train(counts, vocab_size=300, pattern=pattern or None)
assert counts.total_bytes == megabytes << 20
assert len(tok) > 256
print(after - before, peak() - before, counted - started, time.process_time() - counted)
"""


def one_line(unit: str, megabytes: int, pattern: str, folder: Path) -> tuple[float, ...]:
    """Count and train one line in a separate process; return the memory and seconds of each."""
    done = run_python("-c", ONE_LINE, unit, megabytes, pattern, folder / "line.txt")
    assert done.returncode == 0, done.stderr
    return tuple(map(float, done.stdout.split()))


def test_a_line_of_64_megabytes_takes_no_more_memory_than_one_of_8(tmp_path):
    # No spaces or newlines, but the pattern splits the line, so it need not fit in memory.
    small = one_line("ab1;é漢9x=", 8, "o200k", tmp_path)
    large = one_line("ab1;é漢9x=", 64, "o200k", tmp_path)
    assert large[0] < small[0] + (24 << 20)
    assert large[2] < 8 * 3 * small[2] + 0.5  # eight times the text, with slack for a busy machine


@pytest.mark.parametrize("pattern", ["o200k", ""])
def test_a_pretoken_of_megabytes_trains_in_linear_time_and_memory(tmp_path, pattern):
    # Nothing splits it, so the whole pre-token must fit in memory.
    unit = "".join(random.Random(9).choices("abcdefgh", k=997))
    small = one_line(unit, 2, pattern, tmp_path)
    large = one_line(unit, 16, pattern, tmp_path)
    assert large[0] < 4 * (16 << 20)
    assert large[1] < 16 * (16 << 20)
    assert large[2] < 8 * 3 * small[2] + 0.5
    assert large[3] < 8 * 3 * small[3] + 0.5


def test_a_flood_of_tiny_files_is_counted_in_linear_time(tmp_path):
    def flood(files):
        folder = tmp_path / str(files)
        for n in range(files):
            parent = folder / f"{n % 50}"
            if n < 50:
                parent.mkdir(parents=True)
            (parent / f"{n}.txt").write_bytes(b"file %d" % n)
        started = time.process_time()
        corpus = open_corpus(folder)
        counts = byteweld.count(corpus, recipe="plain", num_threads=2)
        seconds = time.process_time() - started
        assert len(corpus.files) == len(counts) == counts.total == files
        assert list(corpus.files) == sorted(corpus.files, key=os.fsencode)
        return seconds

    small = flood(4000)
    assert flood(20_000) < 5 * 3 * small + 0.5
