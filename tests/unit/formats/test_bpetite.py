"""bpetite's artifact v1: the golden bytes, round trips, and every refusal of the reader."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from byteweld import formats, patterns
from byteweld.errors import FormatError, MissingKeyError
from byteweld.formats import bpetite
from byteweld.vocab import Vocabulary

END = "<|endoftext|>"
GOLDEN_SHA256 = "83e34c1904279229b71aca25d62e8a00d84f3933d83bee909a44b60db9687bc2"
BYTES = {byte: bytes([byte]) for byte in range(256)}


def make(pairs: list[tuple[int, int]], **changes: Any) -> Vocabulary:
    """Return the vocabulary that bpetite has after these merges."""
    tokens = dict(BYTES)
    for left, right in pairs:
        tokens[len(tokens)] = tokens[left] + tokens[right]
    merges = [(left, right, 256 + rank) for rank, (left, right) in enumerate(pairs)]
    special_id = len(tokens)
    tokens[special_id] = END.encode()
    options: dict[str, Any] = {"special_tokens": {END: special_id}, "pattern": patterns.GPT2}
    return Vocabulary(tokens, merges, **(options | changes))


AB = make([(97, 98), (32, 256)])


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    path = tmp_path / "ab.json"
    formats.save(AB, path, format="bpetite")
    return path


def rewrite(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


# ---------------------------------------------------------------------- golden and round trips


def test_the_artifact_of_ab_ab_ab_has_the_bytes_that_bpetite_writes(artifact: Path) -> None:
    data = artifact.read_bytes()
    assert len(data) == 3170
    assert hashlib.sha256(data).hexdigest() == GOLDEN_SHA256


def test_the_golden_artifact_loads_as_the_vocabulary_that_made_it(artifact: Path) -> None:
    vocab = formats.load(artifact, format="bpetite")
    assert vocab == AB
    assert vocab.fingerprint == AB.fingerprint
    assert vocab.merges == [(b"a", b"b"), (b" ", b"ab")]
    assert vocab.special_tokens == {END: 258}
    assert vocab.pattern == patterns.GPT2


def test_another_spelling_of_the_pattern_is_written_as_bpetite_spells_it(tmp_path: Path) -> None:
    spelling = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
    formats.save(make([(97, 98), (32, 256)], pattern=spelling), tmp_path / "a", format="bpetite")
    assert hashlib.sha256((tmp_path / "a").read_bytes()).hexdigest() == GOLDEN_SHA256


def test_key_order_and_whitespace_do_not_matter_when_reading(artifact: Path) -> None:
    value = json.loads(artifact.read_text())
    artifact.write_text("\n" + json.dumps(dict(reversed(value.items())), indent=1) + "\n")
    assert formats.load(artifact, format="bpetite") == AB


# ---------------------------------------------------------------------- recognition


def test_an_artifact_is_recognized_by_its_content(artifact: Path) -> None:
    assert bpetite.recognize(artifact, artifact.read_bytes())
    assert bpetite.recognize(artifact, artifact.read_bytes()[:40])
    assert bpetite.recognize(artifact, b'{\n  "schema_version": 1,\n  "mergeable_vocab_size": 9')
    assert bpetite.recognize(artifact, b'{"merges": [], "pretokenizer_pattern": "')


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"{",
        b'{"version": "1.0", "model": {"vocab": {"mergeable_vocab_size": 1}}}',
        b'{"vocab": {"a": 0}, "merges": []}',
        b'["mergeable_vocab_size"]',
        b"BPE1" + bytes(32),
        b"\xff\xfe\x00",
    ],
)
def test_other_files_are_not_recognized(tmp_path: Path, head: bytes) -> None:
    assert not bpetite.recognize(tmp_path / "x", head)


# ---------------------------------------------------------------------- refusals of the reader


# Where in an artifact -> values that are wrong there, and the error.
REFUSED: list[tuple[tuple[str | int, ...], list[Any], str]] = [
    (("schema_version",), [0, 2, True, 1.0, "1", None], "schema_version is"),
    (("comment",), ["hello"], "unknown key 'comment'"),
    (
        ("pretokenizer_pattern",),
        [patterns.CL100K, patterns.GPT2 + " ", "gpt2", None, 1],
        "pretokenizer_pattern(: expected| is)",
    ),
    (("merges",), [None, {}, "[]", 2], "merges: expected"),
    (
        ("merges", 0),
        [None, "ab", 97, [], [97], [97, 98, 99], [97, "98"], [97, 98.0], [True, 98], {"97": 98}],
        r"merges\[0\](\[[01]\])?: expected",
    ),
    (
        ("merges", 0),
        [[97, 256], [257, 98], [-1, 98]],
        r"merge 0 (makes|is)|merges\[0\]\[0\]: expected",
    ),
    (("merges", 1), [[32, 257], [258, 1]], "merge 1 (makes|is)"),
    (
        ("mergeable_vocab_size",),
        [257, 259, 258.0, "258", True, None],
        "mergeable_vocab_size(: expected| is)",
    ),
    (
        ("special_tokens",),
        [{}, None, [END], {END: 257}, {END: "258"}, {END: 258.0}, {END: 258, "x": 3}, {"x": 258}],
        "special_tokens(: expected| is|\\.)",
    ),
    (("vocab",), [None, [], "x", 1], "vocab: expected"),
    *(
        (("vocab", key), [[1]], "in decimal digits")
        for key in ("01", "+1", "-1", " 1", "1 ", "1_0", "1.0", "", "a", "\u0661", "1e1")
    ),
    *((("vocab", key), [[1]], "expected ids in 0..258") for key in ("259", "9999999999")),
    (
        ("vocab", "256"),
        [None, "ab", 97, {}, [256], [-1], [True], [1.0], ["a"], [[97]]],
        r"vocab(\.'256'(\[0\])?: expected|\['256'\] is)",
    ),
    (("vocab", "0"), [[1]], "ids 0 and 1 are both"),
    (("vocab", "255"), [[]], "token 255 is b''; expected at least one byte"),
    (("vocab", "256"), [[98, 97]], r"merge 0 makes b'a' \+ b'b', but token 256 is b'ba'"),
    (("vocab", "257"), [[97, 98]], "256 and 257 are both b'ab'"),
    (("vocab", "258"), [[60]], "has id 258, whose bytes are b'<'; expected its text"),
]


@pytest.mark.parametrize(("where", "wrong", "words"), REFUSED)
def test_a_wrong_value_is_refused(
    artifact: Path, where: tuple[str | int, ...], wrong: list[Any], words: str
) -> None:
    def put(root: Any, new: object) -> None:
        for key in where[:-1]:
            root = root[key]
        root[where[-1]] = new

    good = artifact.read_text()
    for new in wrong:
        artifact.write_text(good)
        rewrite(artifact, lambda value: put(value, new))  # noqa: B023
        with pytest.raises(FormatError, match=words):
            formats.load(artifact, format="bpetite")


def test_an_unexpected_nested_value_is_shown_without_recursion(artifact: Path) -> None:
    deep = "[" * 300 + "]" * 300
    artifact.write_text(artifact.read_text().replace("[[97,98]", f"[{deep}"))
    with pytest.raises(FormatError, match=r"merges\[0\]") as caught:
        formats.load(artifact, format="bpetite")
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("key", bpetite._Artifact._fields)
def test_a_missing_key_is_a_format_error_and_a_key_error(artifact: Path, key: str) -> None:
    rewrite(artifact, lambda value: value.pop(key))
    with pytest.raises(MissingKeyError, match=f"key '{key}' is missing") as caught:
        formats.load(artifact, format="bpetite")
    assert isinstance(caught.value, FormatError)
    assert isinstance(caught.value, KeyError)
    assert caught.value.path == str(artifact)


@pytest.mark.parametrize("key", ["0", "200", "256", "258"])
def test_a_missing_id_is_refused(artifact: Path, key: str) -> None:
    rewrite(artifact, lambda value: value["vocab"].pop(key))
    with pytest.raises(FormatError, match=f"vocab has no id {key};"):
        formats.load(artifact, format="bpetite")
