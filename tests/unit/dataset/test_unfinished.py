"""Datasets that are not finished: what goes on, what starts over, and what is refused."""

from __future__ import annotations

import functools
import os
import resource
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byteweld
from byteweld._folders import LocalFolder
from byteweld.dataset import _document_files, _stream, make
from byteweld.dataset._document_files import DocumentFiles
from byteweld.dataset._manifest import Manifest
from byteweld.dataset.options import Options
from byteweld.jobs import LocalRunner, RankRunner
from byteweld.jobs._work import write_record
from byteweld.sources import open_sources
from tests.helpers.tokenized import EOT, digests, make_documents, write_jsonl


@pytest.fixture
def broken(corpus: Path) -> Path:
    """A corpus of several blocks, whose last file cannot be read to its end."""
    write_jsonl(corpus / "1.jsonl", make_documents(9000))
    with (corpus / "2.jsonl").open("a", encoding="utf-8") as file:
        file.write("no JSON\n")
    return corpus


def killed_before_the_manifest(corpus: Path, tok: byteweld.Tokenizer, out: Path, **options) -> None:
    """Move the files of the first shard to their place, and no more."""

    def killed(self: Manifest, folder: Path) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    process = os.fork()
    if process == 0:
        try:
            Manifest.save = killed  # type: ignore[method-assign]
            byteweld.tokenize(corpus, tok, out=out, **options)
        finally:
            os._exit(1)
    _, status = os.waitpid(process, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL


# ---------------------------------------------------------------------- the first shard


@pytest.mark.parametrize("format", ["flat", "olmo", "mds"])
def test_killed_between_the_first_shard_and_the_manifest(tok, corpus, tmp_path, out, format):
    byteweld.tokenize(corpus, tok, out=tmp_path / "once", format=format, validation=0.5)
    killed_before_the_manifest(corpus, tok, out, format=format, validation=0.5)
    assert {path.name for path in out.iterdir()} > {".unfinished"}
    byteweld.tokenize(corpus, tok, out=out, format=format, validation=0.5)
    assert digests(out) == digests(tmp_path / "once")


@pytest.mark.parametrize("format", ["flat", "olmo"])
def test_starting_over_leaves_no_file_of_a_killed_run(tok, corpus, tmp_path, out, format):
    byteweld.tokenize(corpus, tok, out=tmp_path / "once", format="npy")
    killed_before_the_manifest(corpus, tok, out, format=format, validation=0.5)
    byteweld.tokenize(corpus, tok, out=out, format="npy", overwrite=True)
    assert digests(out) == digests(tmp_path / "once")


def test_starting_over_removes_nothing_outside(tok, corpus, tmp_path, out):
    killed_before_the_manifest(corpus, tok, out)
    (tmp_path / "precious").write_text("")
    names = ["../precious", str(tmp_path / "precious"), 7]
    for hostile in (names, names[:2], {"a": 1}):
        write_record(LocalFolder(out / ".unfinished"), "announced/0.json", hostile)
        with pytest.raises(byteweld.CorpusError):
            byteweld.tokenize(corpus, tok, out=out, format="npy", overwrite=True, field="nothing")
        assert (tmp_path / "precious").exists()


def test_shards_that_the_manifest_does_not_list_yet_are_kept(
    tok, corpus, tmp_path, out, monkeypatch
):
    def killed(self, folder) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Manifest, "save", killed)
        byteweld.tokenize(corpus, tok, out=out, shard_tokens=1)
    assert (out / "train_000000.bin").exists() and not (out / "manifest.json").exists()
    with pytest.raises(FileExistsError, match="format was 'flat', now 'npy'"):
        byteweld.tokenize(corpus, tok, out=out, format="npy", shard_tokens=1)
    assert (out / "train_000000.bin").exists()
    byteweld.tokenize(corpus, tok, out=out, shard_tokens=1)
    byteweld.tokenize(corpus, tok, out=tmp_path / "once", shard_tokens=1)
    assert digests(out) == digests(tmp_path / "once")


# ---------------------------------------------------------------------- what may change


def test_special_text_that_was_refused_may_be_allowed(tok, tmp_path, out):
    texts = ["some text"] * 100
    corpus = write_jsonl(tmp_path / "a.jsonl", [*texts, f"a {EOT}"])
    with pytest.raises(byteweld.SpecialTokenError):
        byteweld.tokenize(corpus, tok, out=out, special_text="fail")
    byteweld.tokenize(corpus, tok, out=out, special_text="special")
    byteweld.tokenize(corpus, tok, out=tmp_path / "once", special_text="special")
    assert digests(out) == digests(tmp_path / "once")


def test_on_error_may_change_once(tok, broken, tmp_path, out):
    (broken / "3.txt").write_bytes(b"\xff")
    with pytest.raises(byteweld.CorpusError):
        byteweld.tokenize(broken, tok, out=out)

    def stop(event: make.Progress) -> None:
        raise InterruptedError("stopped")

    with pytest.raises(InterruptedError):
        byteweld.tokenize(broken, tok, out=out, on_error="skip", progress=stop)
    for other in ("replace", "fail"):
        with pytest.raises(FileExistsError, match=f"on_error was 'skip', now '{other}'"):
            byteweld.tokenize(broken, tok, out=out, on_error=other)
    byteweld.tokenize(broken, tok, out=out, on_error="skip")
    byteweld.tokenize(broken, tok, out=tmp_path / "once", on_error="skip")
    assert digests(out) == digests(tmp_path / "once")


def test_a_run_that_did_nothing_is_forgotten(tok, corpus, tmp_path, out):
    with pytest.raises(byteweld.CorpusError, match='no field "nothing"'):
        byteweld.tokenize(corpus, tok, out=out, field="nothing", shuffle=True)
    byteweld.tokenize(corpus, tok, out=out)
    byteweld.tokenize(corpus, tok, out=tmp_path / "once")
    assert digests(out) == digests(tmp_path / "once")


# ---------------------------------------------------------------------- damage


@pytest.mark.parametrize("name", ["job.json", "facts.json", "stream/0000000.json"])
def test_every_byte_of_a_record_counts(tok, broken, out, name):
    with pytest.raises(byteweld.CorpusError):
        byteweld.tokenize(broken, tok, out=out, shuffle=True)
    path = out / ".unfinished" / name
    data = path.read_bytes()
    damaged = [data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] for at in range(len(data))]
    for content in (b"", b"\0" * len(data), data[:-1], data + b"\n", b"{}", *damaged[::7]):
        path.write_bytes(content)
        with pytest.raises(byteweld.FormatError, match=rf"{name}.*damaged.*overwrite=True"):
            byteweld.tokenize(broken, tok, out=out, shuffle=True, on_error="skip")
    path.write_bytes(data)
    byteweld.tokenize(broken, tok, out=out, shuffle=True, on_error="skip")


@pytest.mark.parametrize("value", [None, [], {"files": 1}, [1, {}], [[[], [], False], {"a": -1}]])
def test_records_of_other_values_are_damaged(tok, broken, out, value):
    """Whatever wrote them: what other processes wrote is checked like any file."""
    with pytest.raises(byteweld.CorpusError):
        byteweld.tokenize(broken, tok, out=out)
    for name in ("stream/0000000.json", "job.json"):
        write_record(LocalFolder(out / ".unfinished"), name, value)
        with pytest.raises(byteweld.FormatError, match=f"{name}: damaged: .*expected"):
            byteweld.tokenize(broken, tok, out=out, on_error="skip")


def test_a_slice_whose_record_has_other_values_is_not_encoded(tok, corpus, out):
    sources = open_sources(corpus)
    make.encode_share(RankRunner(0, 1), sources, tok, str(out), Options().complete(tok))
    for value in ([{"documents": "1"}, {}], [], [{}, {}]):
        write_record(LocalFolder(out / ".unfinished"), "slices/0000000.json", value)
        with pytest.raises(FileNotFoundError, match="1 of 1 slices are not encoded yet"):
            make.merge_ranks(str(out), LocalRunner())


def test_what_does_not_fit_on_the_disk_is_an_error(tmp_path):
    """Even if it was still in a buffer when the files were closed."""
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, unlimited[1]))
    try:
        with (
            pytest.raises(OSError, match="File too large") as caught,
            DocumentFiles(tmp_path / "a", np.dtype("<u2")) as files,
        ):
            files.append(np.zeros(1000, np.uint32), np.array([1000]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    assert str(caught.value.filename) == str(tmp_path / "a.tokens")


@pytest.mark.parametrize("options", [{}, {"shuffle": True}])
@pytest.mark.parametrize("damage", ["cut", "removed"])
def test_work_files_that_are_too_short_are_named(tok, broken, tmp_path, options, damage):
    names = None
    for number in range(10):
        out = tmp_path / f"out{number}"
        with pytest.raises(byteweld.CorpusError):
            byteweld.tokenize(broken, tok, out=out, **options)
        files = [
            path for path in sorted((out / ".unfinished/stream").iterdir()) if path.stat().st_size
        ]
        names = [path.name for path in files if path.suffix != ".json"]
        if number >= len(names):
            break
        path = out / ".unfinished/stream" / names[number]
        if damage == "removed":
            path.unlink()
        else:
            os.truncate(path, path.stat().st_size - 1)
        with pytest.raises(OSError, match=rf"{names[number]} has \d+ bytes, but \d+ were written"):
            byteweld.tokenize(broken, tok, out=out, on_error="skip", **options)
        byteweld.tokenize(broken, tok, out=out, on_error="skip", overwrite=True, **options)
    assert names and len(names) == 2


# ---------------------------------------------------------------------- Ctrl-C


WATCHED = {"encode", "shuffle", "finish", "_receive", "_route", "_keep", "record", "append", "drop"}


@pytest.mark.parametrize("options", [{"shuffle": True}, {"format": "npy", "pack": 100}])
def test_ctrl_c_between_any_two_lines(tok, tmp_path, monkeypatch, options):
    """An interrupt where Python may deliver one: before each line that changes the state."""
    corpus = write_jsonl(tmp_path / "a.jsonl", make_documents(50))
    monkeypatch.setattr(_document_files, "_BATCH_TOKENS", 500)
    byteweld.tokenize(corpus, tok, out=tmp_path / "once", **options)
    expected = digests(tmp_path / "once")
    files = {make.__file__, _stream.__file__, _document_files.__file__}
    seen: Counter[tuple[str, int]] = Counter()

    def traced(out: Path, stop: tuple[str, int] | None = None, times: int = 0) -> None:
        def trace(frame, event, argument):
            code = frame.f_code
            if code.co_filename not in files or code.co_name not in WATCHED:
                return None
            place = (code.co_filename, frame.f_lineno)
            seen[place] += event == "line"
            if event == "line" and place == stop and seen[place] == times:
                sys.settrace(None)
                raise KeyboardInterrupt
            return trace

        seen.clear()
        sys.settrace(trace)
        try:
            byteweld.tokenize(corpus, tok, out=out, num_threads=1, **options)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)

    traced(tmp_path / "counted")
    assert digests(tmp_path / "counted") == expected
    places = dict(seen)
    assert len(places) > 40
    for number, (place, count) in enumerate(places.items()):
        out = tmp_path / f"out{number}"
        traced(out, place, min(2, count))
        byteweld.tokenize(corpus, tok, out=out, num_threads=1, **options)
        assert digests(out) == expected, place


# ---------------------------------------------------------------------- sources


def test_names_that_are_not_utf8_are_not_confused(tok, tmp_path, out):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    names = [os.fsdecode(b"\xfe.txt"), os.fsdecode(b"\xff.txt")]
    for name in names:
        (corpus / name).write_text("text")
    byteweld.tokenize(corpus, tok, out=out)
    (corpus / names[0]).write_text("longer text")
    with pytest.raises(FileExistsError, match="one of several sources with the same name"):
        byteweld.tokenize(corpus, tok, out=out)


def test_fewer_documents_than_before(tok, tmp_path, monkeypatch):
    receive = _stream.EncodingPass._receive

    def stop(self, *block: Any) -> None:
        receive(self, *block)
        raise InterruptedError("stopped")

    documents = make_documents(9000)
    with monkeypatch.context() as patch, pytest.raises(InterruptedError):
        patch.setattr(_stream.EncodingPass, "_receive", stop)
        byteweld.tokenize(documents=iter(documents), tokenizer=tok, out=tmp_path)
    for given in ([], documents[:1]):
        with pytest.raises(ValueError, match=rf"are {len(given)} documents, but \d+ were read"):
            byteweld.tokenize(documents=given, tokenizer=tok, out=tmp_path)
    manifest = byteweld.tokenize(documents=documents, tokenizer=tok, out=tmp_path)
    assert manifest.documents == 9000


# ---------------------------------------------------------------------- ranks


@pytest.mark.parametrize("slice_bytes", [2000, 3000])
def test_ranks_may_begin_at_the_same_time(tok, corpus, tmp_path, monkeypatch, slice_bytes):
    """One that divides the corpus in another way is noticed."""
    out, plan = str(tmp_path / "out"), Options().complete(tok)
    share = functools.partial(make.encode_share, tok=tok, out=out, plan=plan)
    encode, exists = make._Making.encode, LocalFolder.exists

    def begin_another(self: Any, job: Any) -> None:
        """Before the first rank has encoded anything, begin the second, which saw no job there."""
        unseen = {"job.json"} if slice_bytes == 2000 else {"job.json", "division.json"}

        def seen(folder: LocalFolder, name: str) -> bool:
            is_hidden = name in unseen
            unseen.difference_update({name} - {"job.json"})  # the division is read again
            return exists(folder, name) and not is_hidden

        monkeypatch.setattr(make._Making, "encode", encode)
        with monkeypatch.context() as patch:
            patch.setattr(LocalFolder, "exists", seen)
            share(RankRunner(1, 2, slice_bytes=slice_bytes), open_sources(corpus))
        encode(self, job)

    monkeypatch.setattr(make._Making, "encode", begin_another)
    first = RankRunner(0, 2, slice_bytes=2000)
    if slice_bytes != 2000:
        with pytest.raises(byteweld.TaskError, match="is not the work folder of this job"):
            share(first, open_sources(corpus))
        return
    share(first, open_sources(corpus))
    make.merge_ranks(out, LocalRunner())
    byteweld.tokenize(corpus, tok, out=tmp_path / "once")
    assert digests(tmp_path / "out") == digests(tmp_path / "once")


# ---------------------------------------------------------------------- links


@pytest.mark.parametrize("runner", ["here", "tasks"])
@pytest.mark.parametrize("linked", ["train", ".unfinished"])
def test_no_link_is_followed_out_of_the_folder(tok, corpus, tmp_path, out, linked, runner):
    """A dataset from elsewhere cannot have files removed, read or written next to it."""
    precious = tmp_path / "elsewhere"
    byteweld.tokenize(corpus, tok, out=out, format="olmo", validation=0.5)
    if linked == "train":
        (out / "train").rename(precious)
        with pytest.raises(byteweld.FormatError, match=r"out/train is a link that leads out of"):
            (out / "train").symlink_to(precious)
            list(byteweld.open_dataset(out))
        problem = byteweld.verify(out).problems[0]
        assert "is a link that leads out of" in problem.message
    else:
        precious.mkdir()
        (precious / "job.json").write_text("mine")
        (out / linked).symlink_to(precious)
    before = digests(precious)
    for options in ({"format": "olmo", "validation": 0.5}, {}):
        with pytest.raises(byteweld.FormatError, match=rf"out/{linked} is a link that leads out"):
            byteweld.tokenize(
                corpus,
                tok,
                out=out,
                overwrite=True,
                runner="local" if runner == "here" else LocalRunner(),
                **options,
            )
        assert digests(precious) == before


def test_a_dataset_of_links_is_read(tok, corpus, tmp_path, out):
    """As a cache of downloads has them; starting over removes the links alone."""
    byteweld.tokenize(corpus, tok, out=tmp_path / "blobs", format="olmo", validation=0.5)
    before = digests(tmp_path / "blobs")
    for name in before:
        (out / name).parent.mkdir(exist_ok=True, parents=True)
        (out / name).symlink_to(tmp_path / "blobs" / name)
    assert len(byteweld.open_dataset(out)) > 0 and byteweld.verify(out).is_good
    byteweld.tokenize(corpus, tok, out=out, overwrite=True)
    assert digests(tmp_path / "blobs") == before
