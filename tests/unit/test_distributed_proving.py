"""Proofs in tasks: the result of one process, whatever the slices and the order of tasks."""

from __future__ import annotations

import dataclasses
import functools
import gzip
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import byteweld
from byteweld import peers, proof
from byteweld.corpus import Corpus, open_corpus
from byteweld.errors import CorpusError, TaskError
from byteweld.jobs import LocalRunner, Runner, proving
from byteweld.jobs.proving import Proved, WorkerPeer, prove_corpus
from tests.helpers.sliced import OTHER, SAME, Drawn, Encoder, Ending, MixedUp, corpora
from tests.helpers.strategies import examples

OURS, THEIRS = Encoder("ours", SAME), Encoder("theirs", SAME)
OPEN_THEIRS = functools.partial(Encoder, "theirs", SAME)


def small(failure: proof.Unencodable) -> proof.Unencodable:
    return failure._replace(document=failure.document._replace(content=b""))


def timeless(found: Proved) -> Proved:
    """What does not depend on times, and how much of a document is kept."""
    whole = found.proof
    return found._replace(
        proof=dataclasses.replace(
            whole,
            seconds=(0.0, 0.0),
            skipped=tuple(map(small, whole.skipped)),
            failure=None if whole.failure is None else small(whole.failure),
        )
    )


def prove_here(
    corpus: Corpus, ours: proof.Side, theirs: proof.Side, *, skip_failures: bool, num_threads: int
) -> Proved:
    """What one process finds."""
    skipped = 0

    def documents() -> Iterator[proof.Document]:
        nonlocal skipped
        for file, (name, read) in enumerate(corpus.by_file(), 1):
            for number, content in enumerate(read, 1):
                yield proof.Document(name, number, content, file, skipped + read.skipped)
            skipped += read.skipped

    found = proof.prove(
        ours, theirs, documents(), skip_failures=skip_failures, num_threads=num_threads
    )
    if found.end is not None:
        return Proved(found, found.end.file, found.end.skipped)
    return Proved(found, len(corpus.files), skipped)


def outcome(function: Any) -> Any:
    try:
        return timeless(function())
    except byteweld.ByteweldError as error:
        return type(error), str(error)


def check(
    corpus: Corpus, runner: Runner, ours: proof.Side, theirs: proof.Side, *, num_threads: int = 1
) -> Any:
    skip = corpus.reading.on_error == "skip"
    expected = outcome(
        lambda: prove_here(corpus, ours, theirs, skip_failures=skip, num_threads=num_threads)
    )
    open_theirs = functools.partial(Encoder, *theirs)
    found = outcome(lambda: prove_corpus(runner, corpus, ours, open_theirs, skip_failures=skip))
    assert found == expected
    return found


@examples(200)
@given(
    drawn=corpora(),
    theirs=st.sampled_from(
        [
            THEIRS,
            Encoder("theirs", SAME, b"!"),
            Encoder("theirs", OTHER),
            Encoder("theirs", OTHER, b"!"),
        ]
    ),
    ours=st.sampled_from([OURS, OURS, Encoder("ours", SAME, "漢".encode())]),
    slice_bytes=st.integers(1, 60),
    seed=st.integers(0, 99),
    num_threads=st.sampled_from([1, 2]),
)
def test_slices_have_the_result_of_the_whole(
    tmp_path: Path,
    drawn: Drawn,
    theirs: Encoder,
    ours: Encoder,
    slice_bytes: int,
    seed: int,
    num_threads: int,
) -> None:
    corpus = drawn.write(tmp_path)
    runner = MixedUp(seed, slice_bytes=slice_bytes, num_threads=1)
    check(corpus, runner, ours, theirs, num_threads=num_threads)


# ---------------------------------------------------------------------- the first difference


@pytest.fixture
def lines(tmp_path: Path) -> Corpus:
    """A file of 100 lines, the 40th and the 90th of which are encoded differently."""
    texts = ["ab"] * 100
    texts[39] = texts[89] = "ab abc"
    (tmp_path / "a.txt").write_text("\n".join(texts), "utf-8")
    return open_corpus(tmp_path / "a.txt", unit="line")


@pytest.mark.parametrize("seed", range(10))
def test_the_first_difference_is_that_of_the_corpus(lines: Corpus, seed: int) -> None:
    runner = MixedUp(seed, window=100, slice_bytes=10, num_threads=1)
    found = check(lines, runner, OURS, Encoder("theirs", OTHER))
    assert found.proof.difference.document.number == 40
    assert (found.proof.documents, found.proof.bytes) == (39, 39 * 3)


class FirstIsLast(LocalRunner):
    """Runs the first task after all others, as if it took long."""

    def _run(self, function: Any, items: Any) -> Iterator[Any]:
        upcoming = iter(items)
        first = next(upcoming)
        self.ran = [first]
        for item in upcoming:
            self.ran.append(item)
            yield from super()._run(function, [item])
        yield from super()._run(function, [first])


def test_tasks_after_a_difference_are_not_started(lines: Corpus) -> None:
    runner = FirstIsLast(slice_bytes=10, num_threads=1)
    found = check(lines, runner, OURS, Encoder("theirs", OTHER))
    assert found.proof.difference.document.number == 40
    assert len(runner.ran) < 20


def test_a_difference_comes_before_an_error_that_is_found_earlier(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"text": "ab"}\n{"text": "abc"}\n' + '{"text": "ab"}\n' * 9 + "{broken\n")
    corpus = open_corpus(file)
    for seed in range(10):
        runner = MixedUp(seed, window=100, slice_bytes=15, num_threads=1)
        found = check(corpus, runner, OURS, Encoder("theirs", OTHER))
        assert found.proof.difference.document.number == 2
        kind, message = check(corpus, runner, OURS, THEIRS)
        assert kind is CorpusError
        assert ":12: " in message


def test_skipped_documents_are_those_before_the_difference(tmp_path: Path) -> None:
    for name in "ab":
        lines = ["{broken", '{"text": "ab"}'] * 5 + ['{"text": "ab!"}'] * 14 * (name == "a")
        lines += ['{"text": "abc"}'] * (name == "b") + ["{broken"] * 3
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    (tmp_path / "c.jsonl").write_text('{"text": "ab"}\n')
    corpus = open_corpus(tmp_path, on_error="skip")
    for size in (1, 20, 70, 1000):
        runner = MixedUp(size, slice_bytes=size, num_threads=1)
        found = check(corpus, runner, OURS, Encoder("theirs", OTHER, b"!"))
        assert (found.files, found.skipped, found.proof.skipped_documents) == (2, 13, 14)
        assert len(found.proof.skipped) == 10
        assert found.proof.skipped[0].document.number == 6
        assert found.proof.difference.document.number == 6


# ---------------------------------------------------------------------- tasks


def test_a_work_folder_keeps_what_tasks_have_found(tmp_path: Path, lines: Corpus) -> None:
    options = {"slice_bytes": 10, "work": tmp_path / "work", "num_threads": 1}
    with pytest.raises(KeyboardInterrupt):
        prove_corpus(Ending(12, **options), lines, OURS, OPEN_THEIRS)
    runner = MixedUp(3, **options)
    seen: list[int] = []
    found = prove_corpus(runner, lines, OURS, OPEN_THEIRS, progress=seen.append)
    assert 0 < seen[0] < seen[-1] == lines.total_bytes
    assert min(part.number for part in runner.ran) == 13
    assert timeless(found) == timeless(
        prove_here(lines, OURS, THEIRS, skip_failures=False, num_threads=1)
    )
    assert not list((tmp_path / "work").iterdir())


def test_a_task_that_fails_is_named(lines: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(corpus: Corpus) -> None:
        raise MemoryError("too little")

    monkeypatch.setattr(proving, "Files", fails)
    with pytest.raises(TaskError, match=r"slice 0 \(.*a.txt, bytes 0 to .*too little"):
        prove_corpus(LocalRunner(slice_bytes=10), lines, OURS, OPEN_THEIRS)


def test_a_node_with_another_version_is_refused(lines: Corpus) -> None:
    names = iter(["theirs 1", "theirs 2"])
    with pytest.raises(TaskError, match="has theirs 2, but the proof was started with theirs 1"):
        prove_corpus(LocalRunner(), lines, OURS, lambda: Encoder(next(names), SAME))


# ---------------------------------------------------------------------- peers


@pytest.mark.parametrize("format", ["huggingface", "gpt2", "tiktoken", "bpetite"])
@pytest.mark.parametrize("library", peers.PEERS)
def test_a_worker_opens_a_peer_from_its_files(
    tmp_path: Path, format: str, library: peers.PeerName
) -> None:
    pytest.importorskip(library)
    tok = byteweld.train(documents=["low low lower lowest"] * 3, vocab_size=262, recipe="bpetite")
    path = tmp_path / {"gpt2": "pair", "tiktoken": "a.tiktoken"}.get(format, "tokenizer.json")
    tok.save(path, format=format)
    opened = peers.open_peer(path, format, tok.vocab, library=library)
    sent = pickle.dumps(WorkerPeer(opened, path, format, tok.vocab, num_threads=1))
    for file in path.iterdir() if path.is_dir() else [path]:
        file.unlink()  # as on a machine without it
    found = pickle.loads(sent)
    peer = found()
    assert found() is peer
    assert (peer.name, peer.copied) == (opened.name, opened.copied)
    texts = [b"low lower lowest", "naïve 🙂".encode()]
    assert [list(one) for one in peer.encode(texts)[0]] == [
        list(one) for one in opened.encode(texts)[0]
    ]


def test_a_compressed_file_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(gzip.compress(b'{"text": "ab abc"}\n' * 200, 0))
    runner = MixedUp(slice_bytes=100, num_threads=1)
    found = check(open_corpus(tmp_path), runner, OURS, THEIRS)
    assert (found.proof.documents, found.files) == (200, 1)
