"""Checkpoints: resuming a training, refusing other arguments, and recovering a damaged log."""

from __future__ import annotations

import json
import os

import pytest

import byteweld
from byteweld import Counts, FormatError, TrainingEvent
from byteweld.training.checkpoint import Checkpoint, remove_checkpoint

pytest.importorskip("pyarrow", reason="a checkpoint stores counts as Parquet files")

HEAD, RECORD = 16, 32  # bytes of the log's header and of a record
DOCUMENT = " ".join(f"{a}{b}{c}" for a in "abcdefg" for b in "hijklmn" for c in "opqrstu")


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "a.txt").write_text(DOCUMENT)
    (tmp_path / "b.txt").write_text(DOCUMENT[::-1])
    return [tmp_path / "a.txt", tmp_path / "b.txt"]


def train(source, point=None, **options):
    options = {"vocab_size": 600, "min_frequency": 1} | options
    return byteweld.train(source, checkpoint=point, **options)


@pytest.fixture
def point(tmp_path):
    """Where a training is checkpointed."""
    return tmp_path / "point"


class Killed(Exception):
    """Stands in for a kill."""


def train_and_kill(source, point, merges=100, **options):
    def progress(event):
        if event.kind == "merge" and event.merges_completed >= merges:
            raise Killed

    with pytest.raises(Killed):
        train(source, point, progress=progress, **options)


def test_a_training_resumes_after_the_logged_merges(corpus, point):
    whole = train(corpus)
    train_and_kill(corpus, point, 200)
    names = ["checkpoint.json", "counts", "merges.log"]
    assert sorted(path.name for path in point.iterdir()) == names
    written = ((point / "merges.log").stat().st_size - HEAD) // RECORD
    assert written >= 200
    events: list[TrainingEvent] = []
    again = train(corpus, point, progress=events.append)
    assert again.vocab == whole.vocab
    assert again.training.merge_counts == whole.training.merge_counts
    assert again.training.total_tokens == whole.training.total_tokens
    # Files are not read again.
    assert (events[0].kind, events[0].merges_completed) == ("start", written)
    assert events[-1].kind == "complete"


def test_a_finished_training_is_returned_at_once(corpus, point):
    whole = train(corpus, point)
    events: list[TrainingEvent] = []
    again = train(corpus, point, progress=events.append)
    assert again.vocab == whole.vocab
    assert again.training.stop == whole.training.stop
    assert [event.kind for event in events] == ["start", "complete"]


def test_half_written_counts_are_ignored(corpus, point):
    whole = train(corpus)
    train_and_kill(corpus, point)
    torn = point / ".counts.abc123"
    (point / "counts").rename(torn)
    for file in torn.rglob("*.parquet"):
        file.write_bytes(file.read_bytes()[:100])
    (point / "merges.log").write_bytes(b"byteweld")
    assert train(corpus, point).vocab == whole.vocab
    assert not torn.exists()


def test_a_checkpoint_without_counts_starts_over(corpus, point):
    with pytest.raises(ValueError, match="pattern"):
        train(Counts({b"ab": 3}, pattern="a+"), point)
    assert train(corpus, point).vocab == train(corpus).vocab


def test_a_half_removed_checkpoint_gives_no_merges_to_another_training(corpus, point):
    train(corpus[0], point)
    (point / "counts").rename(point / ".counts.removed")  # then it was killed
    assert train(corpus[1], point).vocab == train(corpus[1]).vocab


def test_counts_can_be_passed_and_must_be_the_same(corpus, point):
    counts = byteweld.count(corpus)
    whole = train(corpus)
    train_and_kill(counts, point)
    others = Counts(
        {pretoken[::-1]: count for pretoken, count in counts.items()},
        pattern=counts.pattern,
        boundaries=counts.boundaries,
    )
    with pytest.raises(ValueError, match="on other counts"):
        train(others, point)
    with pytest.raises(ValueError, match=r"'total': \d+.*, now .*'total': \d+"):
        train(counts + counts, point)
    assert train(counts, point).vocab == whole.vocab


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"vocab_size": 601}, "vocab_size was 600, now 601"),
        ({"min_frequency": 2}, "min_frequency was 1, now 2"),
        ({"tie_break": "smallest-bytes"}, "tie_break was 'smallest-ids'"),
        ({"special_tokens": ["<x>"]}, "special_tokens was []"),
        ({"lines": True}, "unit was 'file', now 'line'"),
    ],
    ids=str,
)
def test_other_arguments_are_refused_with_the_difference(corpus, point, change, words):
    train(corpus, point, vocab_size=600)
    with pytest.raises(ValueError, match="is the checkpoint of another run") as caught:
        train(corpus, point, **change)
    assert words in str(caught.value)


def test_other_files_are_refused_with_the_difference(corpus, point):
    train(corpus, point)
    with pytest.raises(ValueError, match=r"source .*b\.txt is gone"):
        train(corpus[:1], point)
    with pytest.raises(ValueError, match="the sources are in another order"):
        train(corpus[::-1], point)
    os.utime(corpus[1], ns=(5, 5))
    with pytest.raises(ValueError, match=r"source .*b\.txt was modified"):
        train(corpus, point)
    corpus[0].write_text("shorter")
    with pytest.raises(ValueError, match=r"a\.txt had \d+ bytes, now 7 bytes"):
        train(corpus, point)


def test_a_checkpoint_with_another_start_is_refused(corpus, point):
    start = byteweld.train(corpus, vocab_size=300)
    train_and_kill(corpus, point, vocab_size=700, start=start)
    with pytest.raises(ValueError, match="start was "):
        train(corpus, point, vocab_size=700, start=start.cut(290))
    again = train(corpus, point, vocab_size=700, start=start)
    assert again.vocab == train(corpus, vocab_size=700, start=start).vocab


def test_a_checkpoint_needs_sources_that_can_be_read_again(point):
    with pytest.raises(TypeError, match="a checkpoint needs files or saved counts"):
        train(iter([DOCUMENT]), point)
    assert not point.exists()


def test_a_checkpoint_is_used_by_one_training_at_a_time(tmp_path):
    pytest.importorskip("fcntl", reason="there are no such locks on Windows")
    point = Checkpoint(tmp_path / "point", {})
    with pytest.raises(ValueError, match="another run is using the checkpoint"):
        Checkpoint(tmp_path / "point", {})
    with pytest.raises(ValueError, match="another run is using the checkpoint"):
        Checkpoint(tmp_path / "point", {"vocab_size": 300})
    point.close()
    assert "vocab_size" not in (tmp_path / "point/checkpoint.json").read_text()
    Checkpoint(tmp_path / "point", {}).close()


def test_a_process_killed_before_it_wrote_the_facts_blocks_nothing(tmp_path):
    (tmp_path / "merges.log").write_bytes(b"byteweld m")
    Checkpoint(tmp_path, {}).close()
    (tmp_path / "checkpoint.json").unlink()
    (tmp_path / "merges.log").write_bytes(b"byteweld merges\n and more")
    with pytest.raises(FileExistsError, match=r"not a checkpoint \(it has 'merges.log'\)"):
        Checkpoint(tmp_path, {})


def test_an_invalid_checkpoint_is_refused(tmp_path):
    (tmp_path / "checkpoint.json").write_text("not json")
    with pytest.raises(FormatError, match="expected JSON"):
        Checkpoint(tmp_path, {})
    (tmp_path / "checkpoint.json").write_text('{"format": "byteweld checkpoint 9"}')
    with pytest.raises(ValueError, match="format was 'byteweld checkpoint 9'"):
        Checkpoint(tmp_path, {})
    (tmp_path / "checkpoint.json").write_text('{"format": "byteweld checkpoint 1"}')
    (tmp_path / "merges.log").write_bytes(b"something else\n\n\n\n")
    with pytest.raises(FormatError, match="expected a log of merges"):
        Checkpoint(tmp_path, {})


def test_a_log_truncated_anywhere_is_recovered(tmp_path):
    merges = [(97, 98, 256 + n, 1000 - n, n) for n in range(20)]
    point = Checkpoint(tmp_path / "point", {"a": 1})
    point.append(merges)
    point.close()
    log = tmp_path / "point" / "merges.log"
    whole = log.read_bytes()
    assert len(whole) == HEAD + 20 * RECORD
    for length in range(len(whole) + 1):
        log.write_bytes(whole[:length])
        point = Checkpoint(tmp_path / "point", {"a": 1})
        kept = max(0, length - HEAD) // RECORD
        assert point.merges == merges[:kept]
        point.append(merges[kept:])
        point.finish("size", 5)
        point.close()
        assert log.read_bytes()[: len(whole)] == whole
    again = Checkpoint(tmp_path / "point", {"a": 1})
    assert (again.merges, again.stop, again.first_tokens) == (merges, "size", 5)
    again.close()
    remove_checkpoint(again.path)
    assert not (tmp_path / "point").exists()


def test_a_flipped_bit_in_the_log_is_detected(tmp_path):
    merges = [(97, 98, 256 + n, 1000 - n, n) for n in range(4)]
    point = Checkpoint(tmp_path / "point", {})
    point.append(merges)
    point.close()
    log = tmp_path / "point" / "merges.log"
    whole = log.read_bytes()
    for offset in range(HEAD, len(whole)):
        damaged = bytearray(whole)
        damaged[offset] ^= 1 << (offset % 8)
        log.write_bytes(damaged)
        point = Checkpoint(tmp_path / "point", {})
        assert point.merges == merges[: (offset - HEAD) // RECORD]
        point.close()
    log.write_bytes(whole[:HEAD] + whole[HEAD + RECORD :])  # the first record is missing
    point = Checkpoint(tmp_path / "point", {})
    assert point.merges == []
    point.close()


def test_removing_a_checkpoint_keeps_other_files(tmp_path):
    point = Checkpoint(tmp_path / "point", {})
    (tmp_path / "point" / "notes.txt").write_text("mine")
    point.close()
    remove_checkpoint(point.path)
    assert [path.name for path in (tmp_path / "point").iterdir()] == ["notes.txt"]


def test_many_files_are_identified_by_a_digest(tmp_path, point, monkeypatch):
    monkeypatch.setattr("byteweld.sources._MAX_LISTED_FILES", 3)
    for n in range(5):
        (tmp_path / f"{n}.txt").write_text(DOCUMENT[: 50 + n])
    files = sorted(tmp_path.glob("*.txt"))
    train(files, point)
    facts = json.loads((point / "checkpoint.json").read_text())
    assert facts["files"].startswith("5 files with digest ")
    train(files, point)
    files[2].write_text("changed")
    with pytest.raises(ValueError, match="files was '5 files with digest"):
        train(files, point)


@pytest.mark.parametrize("source", [".", "*", "**/*.json", "../corpus"])
def test_a_checkpoint_inside_the_corpus_folder_is_not_read(source, tmp_path, monkeypatch):
    folder = tmp_path / "corpus"
    (folder / "more").mkdir(parents=True)
    (folder / "a.txt").write_text(DOCUMENT)
    (folder / "more" / "b.json").write_text(DOCUMENT[::-1])
    monkeypatch.chdir(folder)
    whole = train(source, ext="*")
    train_and_kill(source, "point", ext="*")
    again = train(source, "point", ext="*")
    assert again == whole
    assert again.training.files == whole.training.files


def test_a_checkpoint_recognizes_a_file_name_that_is_not_utf8(tmp_path, point):
    name = os.fsencode(tmp_path) + b"/\xff\xfe.txt"
    try:
        with open(name, "wb") as file:  # noqa: PTH123 (a path of bytes)
            file.write(DOCUMENT.encode())
    except OSError:
        pytest.skip("this file system allows only UTF-8 names")
    whole = train(os.fsdecode(name))
    for _ in range(2):
        assert train(os.fsdecode(name), point) == whole
