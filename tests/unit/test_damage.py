"""Damaged checkpoints give typed errors; test_checkpoint.py damages their logs."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import byteweld
from byteweld.errors import ByteweldError
from byteweld.sources import open_sources
from byteweld.training.checkpoint import Checkpoint
from byteweld.training.plan import make_plan
from byteweld.training.run import facts_of

pytest.importorskip("pyarrow", reason="no pyarrow; saved counts are Parquet")

CORPUS = "low low lower lowest newest widest "
RECIPE = byteweld.RECIPES["from-scratch"]
MERGES = [(ord("l"), ord("o"), 256, 4, 4), (256, ord("w"), 257, 4, 4)]


def damaged(good: bytes, step: int = 1) -> Iterator[bytes]:
    """Yield copies with one byte changed, for every byte, or cut, at every `step`-th byte."""
    for at, byte in enumerate(good):
        yield good[:at] + bytes([byte ^ (0xFF if at % 9 == 8 else 1 << at % 9)]) + good[at + 1 :]
        if at % step == 0:
            yield good[:at]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    (tmp_path / "corpus.txt").write_text(CORPUS)
    return tmp_path / "corpus.txt"


def open_checkpoint(folder: Path, corpus: Path) -> Checkpoint:
    plan = make_plan(260, RECIPE)
    return Checkpoint(folder, facts_of(open_sources(corpus, recipe=RECIPE), plan, None))


@pytest.fixture
def checkpoint(tmp_path: Path, corpus: Path) -> Path:
    """A checkpoint with counts and two merges."""
    opened = open_checkpoint(tmp_path / "checkpoint", corpus)
    opened.keep_counts(byteweld.count(corpus, recipe=RECIPE))
    opened.append(MERGES)
    opened.close()
    return tmp_path / "checkpoint"


def test_damaged_facts_of_a_checkpoint_are_refused(checkpoint, corpus):
    file = checkpoint / "checkpoint.json"
    good = file.read_bytes()
    for bad in damaged(good):
        file.write_bytes(bad)
        try:
            open_checkpoint(checkpoint, corpus).close()
        except ByteweldError as error:
            assert str(checkpoint) in str(error)
        except ValueError as error:  # it may be the checkpoint of another run
            assert type(error) is ValueError and str(checkpoint) in str(error)


@pytest.mark.parametrize(
    "files", [[1], [[]], [None], [["a"]], [[["b"], 1, 2]], {}, "x", [{}], [[1, 2, 3, 4]]]
)
def test_facts_of_other_types_are_refused(checkpoint, corpus, files):
    file = checkpoint / "checkpoint.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"files": files}))
    with pytest.raises(ValueError, match="is the checkpoint of another run"):
        open_checkpoint(checkpoint, corpus)


def record(index: int, *fields: int) -> bytes:
    made = struct.pack("<IIIQQ", *fields)
    return made + struct.pack("<I", zlib.crc32(made, index))


@pytest.mark.parametrize(
    "fields",
    [
        (0, 0, 0, 0, 0),
        (1, 2, 300, 2**64 - 1, 2**64 - 1),
        (2**32 - 2, 5, 256, 1, 1),
        (97, 98, 2**32 - 2, 1, 1),
        (256, 256, 256, 1, 1),
        (108, 111, 256, 2**63, 2**63),
        (2**32 - 1, 0, 0, 77, 2**64 - 1),
        (2**32 - 1, 2**32 - 1, 2**32 - 1, 2**64 - 1, 2**64 - 1),
    ],
)
@pytest.mark.parametrize("at", [0, 1])
def test_a_log_with_wrong_merges_and_right_checksums_is_no_crash(checkpoint, corpus, fields, at):
    records = [record(index, *merge) for index, merge in enumerate(MERGES)][:at]
    (checkpoint / "merges.log").write_bytes(
        b"byteweld merges\n" + b"".join([*records, record(at, *fields), record(at + 1, *MERGES[1])])
    )
    try:
        byteweld.train(corpus, vocab_size=260, recipe=RECIPE, checkpoint=checkpoint)
    except (ByteweldError, ValueError) as error:
        assert str(error)
