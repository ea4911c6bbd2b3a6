"""Remote files through fsspec: `memory://`, and a web server of our own where aiohttp is there."""

from __future__ import annotations

import contextlib
import functools
import gzip
import http.server
import importlib.util
import pickle
import re
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import byteweld
from byteweld._native import Documents
from byteweld.corpus import Corpus, Reading, open_corpus
from byteweld.corpus._remote import engine_path
from byteweld.errors import CorpusError

fsspec = pytest.importorskip("fsspec")
needs_aiohttp = pytest.mark.skipif(
    importlib.util.find_spec("aiohttp") is None, reason="fsspec reads http with aiohttp"
)


@pytest.fixture
def memory() -> Iterator[object]:
    """An empty file system in memory."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    yield system
    system.store.clear()


FILES = ["a.parquet", "b.txt", "sub/c.jsonl.gz"]  # those that are read


def fill(system) -> None:
    system.pipe("/d/b.txt", b"plain")
    system.pipe("/d/sub/c.jsonl.gz", gzip.compress(b'{"text": "one"}\n{"text": "two"}\n'))
    system.pipe("/d/other.bin", b"not read")
    system.pipe("/d/empty.txt", b"")
    with system.open("/d/a.parquet", "wb") as file:
        pq.write_table(pa.table({"text": ["p1", "p2"]}), file)


def read(source, **reading) -> list[str]:
    return [text.decode() for text in open_corpus(source, **reading).documents()]


def test_folders_files_and_globs(memory):
    fill(memory)
    corpus = open_corpus("memory://d")
    assert [file.removeprefix("memory:///d/") for file in corpus.files] == FILES
    assert dict(corpus.skipped_files) == {".bin": 1}
    assert corpus.total_bytes == sum(memory.size(f"/d/{name}") for name in FILES)
    assert corpus.has_records and corpus.has_compressed
    assert read("memory://d") == ["p1", "p2", "plain", "one", "two"]
    assert read("memory://d/b.txt") == ["plain"]
    assert read("memory://d/*.txt") == ["plain", ""]
    assert read(["memory://d/sub", "memory://d/b.txt"]) == ["one", "two", "plain"]
    assert read("memory://d", ext="bin") == ["not read"]
    assert read("memory://d/**/*.gz") == ["one", "two"]


def test_a_dataset_in_a_remote_folder(memory):
    fill(memory)
    for name, text in (("y.arrow", "first"), ("x.arrow", "second")):
        table = pa.table({"text": [text]})
        with memory.open(f"/d/c/{name}", "wb") as file:
            with pa.ipc.new_stream(file, table.schema) as writer:
                writer.write_table(table)
    memory.pipe("/d/c/dataset_info.json", b"{}")
    memory.pipe(
        "/d/c/state.json", b'{"_data_files": [{"filename": "y.arrow"}, {"filename": "x.arrow"}]}'
    )
    assert read("memory://d/c") == ["first", "second"]
    assert read("memory://d") == ["p1", "p2", "plain", "first", "second", "one", "two"]
    memory.pipe("/d/dataset_dict.json", b'{"splits": ["c"]}')
    with pytest.raises(CorpusError, match="the splits 'c'; name the folder of one"):
        open_corpus("memory://d")


def test_every_verb_reads_them(memory, tmp_path):
    fill(memory)
    texts = ["p1", "p2", "plain", "one", "two"]
    for threads in (1, 2):
        assert byteweld.count("memory://d", num_threads=threads) == byteweld.count(documents=texts)
    tok = byteweld.train("memory://d", vocab_size=260, checkpoint=tmp_path / "c")
    assert tok.vocab == byteweld.train(documents=texts, vocab_size=260).vocab
    found = byteweld.evaluate(tok, "memory://d")
    assert [file.name.removeprefix("memory:///d/") for file in found.files] == FILES
    assert sum(open_corpus("memory://d").count_bytes().counts) == len("".join(texts))


def test_a_checkpoint_notices_a_changed_file(memory, tmp_path):
    memory.pipe("/d/b.txt", b"plain text " * 100)
    first = open_corpus("memory://d")
    facts = byteweld.sources.open_sources(first).facts()
    assert facts["files"][0][:2] == [str(first.files[0]), 1100]
    assert pickle.loads(pickle.dumps(first)) == first
    assert pickle.loads(pickle.dumps(first)).total_bytes == 1100


def test_large_files_are_read_in_blocks(memory):
    text = b"".join(b"line %d\n" % number for number in range(1_500_000))
    memory.pipe("/large.txt", text)
    assert list(open_corpus("memory://large.txt").documents()) == [text]
    memory.pipe("/large.jsonl.gz", gzip.compress(b'{"text": "x"}\n' * 700_000, 1))
    assert byteweld.count("memory://large.jsonl.gz").total == 700_000


def test_positions_and_digests_are_those_of_local_files(memory, tmp_path):
    fill(memory)
    memory.get("/d", str(tmp_path / "d"), recursive=True)
    remote = Documents(open_corpus("memory://d").engine_arguments() | {"digest": True})
    local = Documents(open_corpus(tmp_path / "d").engine_arguments() | {"digest": True})
    assert list(remote) == list(local)
    assert remote.take_finished() == local.take_finished()
    assert remote.bytes_read == local.bytes_read
    again = Documents(open_corpus("memory://d").engine_arguments())
    again.start_at((0, 1, 1, 0))
    next(again)
    rest = Documents(open_corpus("memory://d").engine_arguments())
    rest.start_at(again.position)
    assert [b"p2", *rest] == [b"p2", b"plain", b"one", b"two"]


def test_what_cannot_be_read(memory, monkeypatch):
    with pytest.raises(FileNotFoundError, match="memory://gone: no such file or folder"):
        open_corpus("memory://gone")
    with pytest.raises(FileNotFoundError, match=re.escape("no file matches 'memory://gone/*.txt'")):
        open_corpus("memory://gone/*.txt")
    with pytest.raises(CorpusError, match="unknown://x: Protocol not known: unknown; expected s3"):
        open_corpus("unknown://x")
    memory.pipe("/d/a.txt", b"first")
    memory.pipe("/d/b.txt", b"second")
    corpus = open_corpus("memory://d")
    memory.rm("/d/a.txt")
    with pytest.raises(FileNotFoundError, match=r"memory:///d/a\.txt"):
        list(corpus.documents())
    skipping = Corpus(files=corpus.files, reading=Reading(on_error="skip"))
    documents = Documents(skipping.engine_arguments())
    assert list(documents) == [b"second"]
    assert documents.take_skips()[0][0] == 0


def test_an_error_in_the_middle_keeps_its_exception(memory, monkeypatch):
    memory.pipe("/a.txt", b"x" * (9 << 20))
    corpus = open_corpus("memory://a.txt")
    kind = type(memory.open("/a.txt"))
    plain = kind.read
    calls = []

    def read(self, *arguments):
        calls.append(1)
        if len(calls) > 1:
            raise RuntimeError("the connection was reset")
        return plain(self, *arguments)

    monkeypatch.setattr(kind, "read", read, raising=False)
    with pytest.raises(
        OSError, match=r"cannot be read: the connection was reset: .*a\.txt"
    ) as error:
        byteweld.count(corpus)
    assert isinstance(error.value.__cause__, RuntimeError)


def test_a_file_shorter_than_it_says_is_an_error(memory, monkeypatch):
    memory.pipe("/a.txt", b"x" * 100)
    kind = type(memory.open("/a.txt"))
    monkeypatch.setattr(kind, "size", 150)
    with pytest.raises(CorpusError, match="the file ended after 100 of 150 bytes"):
        byteweld.count("memory://a.txt")


@pytest.mark.parametrize(
    "url, extra",
    [("s3://bucket/a.txt", "s3"), ("gs://bucket/a.txt", "gcs"), ("https://host/a", "remote")],
)
def test_missing_packages_name_their_extra(url, extra, monkeypatch):
    for name in ("s3fs", "gcsfs", "aiohttp"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "fsspec.implementations.http", raising=False)
    for scheme in ("s3", "gs", "https"):
        known = sys.modules["fsspec.registry"]._registry
        monkeypatch.delitem(known, scheme, raising=False)
    with pytest.raises(ImportError, match=re.escape(f"pip install 'byteweld[{extra}]'")):
        open_corpus(url)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(ImportError, match=re.escape(f"pip install 'byteweld[{extra}]'")):
        open_corpus(url)


# ---------------------------------------------------------------------- the web


def test_the_name_of_a_file_on_the_web_ends_its_url():
    assert engine_path("https://host/a.jsonl?download=true") == (
        "https://host/a.jsonl?download=true#/a.jsonl"
    )
    for url in ("https://host/a.jsonl", "s3://bucket/a?b#c.jsonl", "memory://a.jsonl"):
        assert engine_path(url) == url


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, and parts of them, without a log."""

    def log_message(self, *arguments: object) -> None:
        pass


@contextlib.contextmanager
def serving(handler: Any) -> Iterator[str]:
    """Run a web server, whose address it is."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{running.server_port}"
        finally:
            running.shutdown()
            thread.join()


@pytest.fixture
def server(tmp_path) -> Iterator[str]:
    with serving(functools.partial(Quiet, directory=str(tmp_path))) as url:
        yield url


@needs_aiohttp
def test_files_on_a_web_server(tmp_path, server):
    (tmp_path / "a.txt").write_text("text " * 1_000_000)
    (tmp_path / "r.jsonl.gz").write_bytes(gzip.compress(b'{"text": "one"}\n{"text": "two"}\n'))
    assert read(f"{server}/a.txt") == ["text " * 1_000_000]
    assert read(f"{server}/r.jsonl.gz?download=true") == ["one", "two"]
    with pytest.raises(FileNotFoundError):
        open_corpus(f"{server}/gone.txt")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "b.txt").write_text("listed")
    assert read(f"{server}/d/") == ["listed"]
    pq.write_table(pa.table({"text": ["t"]}), tmp_path / "t.parquet")
    assert read(f"{server}/t.parquet") == ["t"]


@needs_aiohttp
def test_a_folder_on_the_web_has_only_the_files_below_it(tmp_path, server):
    (tmp_path / "d").mkdir()
    (tmp_path / "above.txt").write_text("above")
    (tmp_path / "d" / "b.txt").write_text("listed")
    links = ("b.txt", "../above.txt", "?C=N;O=D")
    (tmp_path / "d" / "index.html").write_text(
        " ".join(f'<a href="{link}">{link}</a>' for link in links)
    )
    assert read(f"{server}/d/", ext="*") == ["listed"]


class Failing(Quiet):
    """Serves no file: its name is the status of the answer."""

    def do_GET(self) -> None:
        self.send_error(int(self.path[1:4]))

    do_HEAD = do_GET


@needs_aiohttp
def test_only_a_file_that_the_server_does_not_have_is_missing():
    with serving(Failing) as url:
        with pytest.raises(FileNotFoundError, match=r"404\.txt: no such file or folder"):
            open_corpus(f"{url}/404.txt")
        with pytest.raises(PermissionError, match=r"403\.txt"):
            open_corpus(f"{url}/403.txt")
        with pytest.raises(OSError, match=r"cannot be read: 500.*500\.txt") as failed:
            open_corpus(f"{url}/500.txt")
        # In a job of hours, the files that a failing server has are not skipped.
        files = (f"{url}/404.txt", f"{url}/500.txt")
        documents = Corpus(files=files, reading=Reading(on_error="skip")).documents()
        with pytest.raises(OSError, match=r"cannot be read: 500.*500\.txt"):
            list(documents)
        assert documents.skipped == 1
    with pytest.raises(OSError, match=r"cannot be read: .*404\.txt") as gone:
        open_corpus(f"{url}/404.txt")  # nothing answers any more
    for error in (failed, gone):
        assert not isinstance(error.value, FileNotFoundError)
