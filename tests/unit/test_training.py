"""The training report: writing, reading, finding it next to the vocabulary, rejecting bad ones."""

from __future__ import annotations

import dataclasses
import json

import pytest

import byteweld
from byteweld import FormatError, Training, TrainingEvent, UnsupportedError
from byteweld.training import report_path

DOCUMENTS = (
    "low low low low low lower lower newest newest",
    "widest <|x|> widest",
    "naïve\r\n\r\n",
)


@pytest.fixture
def tok():
    return byteweld.train(iter(DOCUMENTS), vocab_size=275, special_tokens=["<|x|>"])


@pytest.fixture
def saved(tok, tmp_path):
    tok.save(tmp_path / "t.json")
    return tmp_path / "t.json"


@pytest.mark.parametrize("name", byteweld.RECIPES)
def test_a_report_is_read_back_unchanged(name, tmp_path):
    recipe = byteweld.RECIPES[name]
    documents = (document.encode("ascii", "ignore") for document in DOCUMENTS)
    tok = byteweld.train(documents, vocab_size=recipe.minimum_size + 9, recipe=recipe)
    path = tmp_path / "report.json"
    tok.training.save(path, tok.vocab)
    assert Training.load(path, tok.vocab) == tok.training
    written = json.loads(path.read_text())
    assert written["fingerprint"] == tok.vocab.fingerprint
    assert written["merge_counts"] == list(tok.training.merge_counts)
    assert written["bytes_per_token"] == tok.training.bytes_per_token
    assert written["version"] == byteweld.__version__
    assert written["peak_memory_bytes"] > 1_000_000


def test_the_report_of_an_extended_training_says_where_it_started(tok, tmp_path):
    longer = byteweld.train(iter(DOCUMENTS), start=tok, vocab_size=280)
    longer.training.save(tmp_path / "r.json", longer.vocab)
    training = Training.load(tmp_path / "r.json", longer.vocab)
    assert training == longer.training
    assert training.start == (tok.vocab.fingerprint, 272, len(tok.vocab.merge_ids), 272)


def test_a_report_is_replaced_only_with_overwrite(saved, tok):
    with pytest.raises(FileExistsError, match="overwrite=True"):
        tok.training.save(report_path(saved), tok.vocab)
    tok.training.save(report_path(saved), tok.vocab, overwrite=True)


def test_the_report_is_next_to_a_file_or_inside_a_folder(tmp_path):
    (tmp_path / "folder").mkdir()
    assert report_path("a/tokenizer.json").as_posix() == "a/tokenizer.training.json"
    assert report_path("corpus.tiktoken").as_posix() == "corpus.training.json"
    assert report_path(tmp_path / "folder") == tmp_path / "folder" / "training.json"
    assert report_path("new/").as_posix() == "new/training.json"


def test_loading_ignores_the_report_of_another_vocabulary(saved, tok):
    byteweld.Tokenizer(tok.cut(270).vocab).save(saved, overwrite=True)
    loaded = byteweld.load(saved)
    assert loaded.training is None
    with pytest.raises(UnsupportedError, match="loaded with its report"):
        loaded.cut(262)
    with pytest.raises(FormatError, match="this report is about the vocabulary"):
        Training.load(report_path(saved), loaded.vocab)


BROKEN = {
    "merges_learned": [-1, 1.5, True, "1", None, 10**40],
    "count_seconds": [-1, "now", None, True],
    "layout_seconds": [-1, "now", None, True],
    "stop": ["tired", None, 3],
    "recipe": [None, {"name": 5}, {"color": "red"}, {"min_frequency": "2"}, []],
    "merge_counts": [None, [1], ["1"], {}, 3],
    "removed_tokens": [None, [1]],
    "first_tokens": [0, None],
    "start": [5, {}, {"fingerprint": 1, "tokens": 1, "merges": 1, "first_new_id": 1}],
    "version": [7],
    "files": [-1, "many"],
    "format": ["byteweld training 9", None],
    "another key": [1],
}


@pytest.mark.parametrize("key", BROKEN)
def test_a_broken_report_is_an_error_and_ignored_by_load(saved, tok, key):
    path = report_path(saved)
    whole = json.loads(path.read_text())
    for wrong in BROKEN[key]:
        path.write_text(json.dumps(whole | {key: wrong}))
        with pytest.raises(FormatError) as caught:
            Training.load(path, tok.vocab)
        assert str(path) in str(caught.value)
        assert byteweld.load(saved).training is None
    if key in whole and key != "layout_seconds":
        del whole[key]
        path.write_text(json.dumps(whole))
        with pytest.raises(FormatError, match=key):
            Training.load(path, tok.vocab)


def test_a_report_of_an_earlier_version_has_no_time_of_the_layout(saved, tok):
    path = report_path(saved)
    whole = json.loads(path.read_text())
    assert whole["layout_seconds"] == tok.training.layout_seconds
    del whole["layout_seconds"]
    path.write_text(json.dumps(whole))
    assert byteweld.load(saved).training == dataclasses.replace(tok.training, layout_seconds=0.0)


def test_a_truncated_report_is_refused(saved, tok):
    path = report_path(saved)
    whole = path.read_bytes()
    for length in range(0, len(whole) - 2, 7):
        path.write_bytes(whole[:length])
        with pytest.raises(FormatError):
            Training.load(path, tok.vocab)


def test_events_report_counting_and_then_merging(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"low lower lowest " * 100_000)
    events: list[TrainingEvent] = []
    byteweld.train(tmp_path / "a.txt", vocab_size=262, progress=events.append)
    stages = [event.stage for event in events]
    assert stages == sorted(stages)  # count, then merge
    counting = [event for event in events if event.stage == "count"]
    assert {event.total for event in counting} == {1_700_000}
    assert counting[-1].done == 1_700_000
    assert [event.done for event in counting] == sorted(event.done for event in counting)
    assert [event.kind for event in events[len(counting) :]] == ["start", "complete"]
    assert {event.merges_planned for event in events} == {6}


def test_progress_counts_compressed_bytes(tmp_path):
    import gzip

    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"low lower lowest " * 100_000))
    size = (tmp_path / "a.txt.gz").stat().st_size
    events: list[TrainingEvent] = []
    tok = byteweld.train(tmp_path / "a.txt.gz", vocab_size=262, progress=events.append)
    counting = [event for event in events if event.stage == "count"]
    assert (counting[-1].done, counting[-1].total) == (size, size)
    assert (tok.training.files, tok.training.file_bytes) == (1, size)
    assert tok.training.total_bytes == 1_700_000


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        *(("built_in", value) for value in ([1], [["a"]], None)),
        *(("roles", value) for value in ([1], ["ab"], [["bos"]], [["bos", 1]], None)),
        *(("extensions", value) for value in ("x", 1, [1])),
        *(("split_specials", value) for value in (None, 1)),
        *(("pattern", 1), ("name", None), ("max_token_bytes", "2")),
    ],
)
def test_an_invalid_recipe_in_a_report_is_refused(saved, tok, field, wrong):
    path = report_path(saved)
    whole = json.loads(path.read_text())
    path.write_text(json.dumps(whole | {"recipe": whole["recipe"] | {field: wrong}}))
    with pytest.raises(FormatError, match=field):
        Training.load(path, tok.vocab)
    del whole["recipe"][field]
    path.write_text(json.dumps(whole))
    with pytest.raises(FormatError, match=field):
        Training.load(path, tok.vocab)


@pytest.mark.parametrize(
    "wrong", [{"special_tokens": ["<x>"]}, {"encode_pattern": "gpt2"}, {"special_ids": "first"}]
)
def test_a_report_with_another_recipe_cannot_be_used_for_a_cut(tmp_path, wrong):
    other = {"encode_pattern": "o200k"} if "encode_pattern" in wrong else {}
    tok = byteweld.train(
        iter(["low lower lowest"] * 9), vocab_size=262, special_tokens=["<y>"], **other
    )
    tok.save(tmp_path / "tok.json")
    path = report_path(tmp_path / "tok.json")
    assert byteweld.load(tmp_path / "tok.json").cut(259) == tok.cut(259)
    whole = json.loads(path.read_text())
    path.write_text(json.dumps(whole | {"recipe": whole["recipe"] | wrong}))
    with pytest.raises(byteweld.UnsupportedError, match="cannot be cut"):
        byteweld.load(tmp_path / "tok.json").cut(259)


def test_the_report_of_a_file_without_a_pattern_is_found_whatever_the_pattern(tmp_path):
    tok = byteweld.train(documents=["hello hello low lower"] * 3, vocab_size=275, recipe="ck")
    tok.save(tmp_path / "ck", format="ck")
    for pattern in ("ck-runtime", "gpt2"):
        loaded = byteweld.load(tmp_path / "ck", pattern=pattern)
        assert loaded.training is not None
        assert loaded.training.recipe.encode_pattern == byteweld.PATTERNS[pattern]
        assert loaded.cut(270).vocab.merges == tok.vocab.merges[:10]
    # As earlier versions wrote it: about the vocabulary with GPT-2's pattern.
    (tmp_path / "ck" / "training.json").write_bytes(tok.training.render(tok.vocab))
    assert byteweld.load(tmp_path / "ck").training.recipe.name == "ck"
    # That of other merges is still refused.
    other = byteweld.train(documents=["abc abc abd"] * 3, vocab_size=275, recipe="ck")
    (tmp_path / "ck" / "training.json").write_bytes(other.training.render(other.vocab))
    assert byteweld.load(tmp_path / "ck").training is None
