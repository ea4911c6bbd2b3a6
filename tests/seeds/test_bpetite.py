"""The bpetite seed on the engine: FR-4 to FR-15, its worked example, events and artifact."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

import byteweld
from byteweld import (
    FormatError,
    MissingKeyError,
    Tokenizer,
    TrainingEvent,
    UnsupportedError,
    Vocabulary,
)

# The seed's own string and not our name for it, since FR-4 is about the string itself.
PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
END = "<|endoftext|>"
AB_SHA256 = "83e34c1904279229b71aca25d62e8a00d84f3933d83bee909a44b60db9687bc2"


def train(*documents: str | bytes, vocab_size: int, **options: Any) -> Tokenizer:
    return byteweld.train(iter(documents), vocab_size=vocab_size, recipe="bpetite", **options)


def pairs(tok: Tokenizer) -> list[tuple[int, int]]:
    return [(left, right) for left, right, _ in tok.vocab.merge_ids]


def prose(words: int, seed: int = 1) -> str:
    rng = random.Random(seed)
    return " ".join("".join(rng.choices("etaoinshrdlu", k=rng.randint(1, 9))) for _ in range(words))


NO_MERGES = train(vocab_size=256)
SOME_MERGES = train(prose(400), vocab_size=400)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))  # no lone surrogates
TRICKY = st.sampled_from(" \t\n\r'sdmtlvreIX09_-!€ñ中🦊\u3000\x85")


# ---------------------------------------------------------------------- the worked example


def test_ab_ab_ab_is_cut_into_the_seeds_three_chunks():
    tok = train("ab ab ab", vocab_size=258)
    assert tok.pretokenize("ab ab ab") == [b"ab", b" ab", b" ab"]


def test_ab_ab_ab_is_counted_as_two_distinct_chunks_with_their_multiplicity():
    counts = byteweld.count(iter(["ab ab ab"]), recipe="bpetite")
    assert dict(counts.items()) == {b"ab": 1, b" ab": 2}


def test_ab_ab_ab_has_the_pair_tables_of_the_seed():
    steps = byteweld.explain_training(["ab ab ab"], vocab_size=258, recipe="bpetite").steps
    tables = [{(row.left, row.right): row.count for row in step.rows} for step in steps]
    assert tables == [{(97, 98): 3, (32, 97): 2}, {(32, 256): 2}]


def test_ab_ab_ab_after_one_merge_is_the_seeds_intermediate_state():
    tok = train("ab ab ab", vocab_size=257)
    assert pairs(tok) == [(97, 98)]
    assert tok.training.merge_counts == (3,)
    assert tok.encode("ab") == [256]
    assert tok.encode(" ab") == [32, 256]
    assert tok == train("ab ab ab", vocab_size=258).cut(257)


def test_ab_ab_ab_to_258_gives_the_merges_tokens_and_special_of_the_seed():
    tok = train("ab ab ab", vocab_size=258)
    assert pairs(tok) == [(97, 98), (32, 256)]
    assert tok.training.merge_counts == (3, 2)
    assert tok.vocab.tokens[256] == b"ab"
    assert tok.vocab.tokens[257] == b" ab"
    assert tok.vocab.tokens[258] == END.encode()
    assert dict(tok.vocab.special_tokens) == {END: 258}
    assert tok.encode("ab ab ab") == [256, 257, 257]


def test_ab_ab_ab_to_a_larger_size_has_no_pair_left_after_two_merges():
    tok = train("ab ab ab", vocab_size=400)
    assert pairs(tok) == [(97, 98), (32, 256)]
    assert (tok.training.stop, tok.training.merges_planned) == ("no pairs", 144)


# ---------------------------------------------------------------------- FR-4 to FR-7: chunks


def test_fr4_the_pattern_is_the_seeds_to_the_letter():
    assert byteweld.RECIPES["bpetite"].pattern == PATTERN
    assert train("ab", vocab_size=257).vocab.pattern == PATTERN


@given(TEXTS | st.text(TRICKY))
def test_fr4_chunks_are_those_of_the_regex_package(text):
    expected = [chunk.encode() for chunk in regex.findall(PATTERN, text)]
    assert NO_MERGES.pretokenize(text) == expected


@given(TEXTS)
def test_fr5_chunks_in_source_order_are_all_of_the_text(text):
    assert b"".join(NO_MERGES.pretokenize(text)) == text.encode()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("é", "e\u0301"),  # NFC and NFD
        ("K", "\u212a"),  # the Kelvin sign is K in NFKC
        ("Straße", "STRASSE"),
        ("ab", "AB"),
        ("ab", " ab"),
        ("ab", "ab "),
        ("a  b", "a b"),
        ("a\r\nb", "a\nb"),
        ("ab", "\ufeffab"),
    ],
)
def test_fr6_nothing_is_normalized_folded_or_trimmed(one, other):
    tok = train(one, other, one, other, vocab_size=300)
    assert tok.encode(one) != tok.encode(other)
    assert tok.decode(tok.encode(one)) == one
    assert tok.decode(tok.encode(other)) == other
    assert b"".join(tok.pretokenize(one)) == one.encode()


def test_fr7_five_lines_of_ab_stop_after_one_merge():
    tok = train("ab\nab\nab\nab\nab", vocab_size=300)
    assert tok.pretokenize("ab\nab") == [b"ab", b"\n", b"ab"]
    assert pairs(tok) == [(97, 98)]
    assert tok.training.merge_counts == (5,)
    assert tok.training.stop == "no pairs"
    assert dict(tok.vocab.special_tokens) == {END: 257}


def test_fr7_encoding_does_not_merge_across_chunks_either():
    vocab = {byte: bytes([byte]) for byte in range(256)} | {256: b"b\n"}
    tok = Tokenizer.from_merges(vocab, [(b"b", b"\n")], special_tokens=[END], pattern=PATTERN)
    assert tok.encode("ab\nab") == [97, 98, 10, 97, 98]


# ---------------------------------------------------------------------- FR-8 to FR-12: merges


def test_fr8_training_starts_from_the_256_bytes_and_numbers_merges_from_256():
    tok = train(prose(500), vocab_size=300)
    assert [tok.vocab.tokens[byte] for byte in range(256)] == [bytes([b]) for b in range(256)]
    assert [new for *_, new in tok.vocab.merge_ids] == list(range(256, 300))


@pytest.mark.parametrize("size", [255, 1, 0, -7])
def test_fr9_a_size_below_256_raises_value_error_in_the_seeds_words(size):
    with pytest.raises(ValueError) as caught:
        train("ab", vocab_size=size)
    assert str(caught.value) == f"vocab_size must be >= 256, got {size}"


def test_fr9_a_size_of_256_gives_the_base_vocabulary_and_no_merges():
    tok = train("ab ab ab", vocab_size=256)
    assert tok.vocab.merge_ids == ()
    assert dict(tok.vocab.special_tokens) == {END: 256}
    assert (len(tok), tok.training.stop, tok.training.merges_learned) == (257, "size", 0)


def test_fr10_cab_ties_go_to_the_smallest_pair_and_not_to_the_first_seen():
    assert pairs(train("cab", vocab_size=257)) == [(97, 98)]


def test_fr10_a_higher_count_beats_a_smaller_pair():
    assert pairs(train("cab ca", vocab_size=257)) == [(99, 97)]


def test_fr10_ties_compare_the_right_part_after_the_left():
    assert pairs(train("ac ab", vocab_size=257)) == [(32, 97)]
    assert pairs(train("ac\nab", vocab_size=257)) == [(97, 98)]


@pytest.mark.parametrize("seed", range(4))
def test_fr10_many_ties_are_merged_in_order_whatever_their_order_in_the_corpus(seed):
    words = [f"a{right}" for right in "bcdefghijklm"] + [f"{left}z" for left in "bcdefghijklm"]
    expected = sorted((ord(left), ord(right)) for left, right in words)
    random.Random(seed).shuffle(words)
    assert pairs(train("\n".join(words), vocab_size=256 + len(words))) == expected


def test_fr10_a_triple_becomes_the_merged_pair_and_the_trailing_one():
    tok = train("xxx", vocab_size=258)
    assert pairs(tok) == [(120, 120), (256, 120)]
    assert tok.cut(257).encode("xxx") == [256, 120]
    assert tok.encode("xxx") == [257]
    assert tok.vocab.tokens[257] == b"xxx"


def test_fr10_every_adjacent_position_counts_overlapping_ones_too():
    # Two positions of (x, x) in each xxx: 2 + 2 beat the three of (a, b).
    tok = train("xxx\nab\nab\nxxx\nab", vocab_size=257)
    assert pairs(tok) == [(120, 120)]
    assert tok.training.merge_counts == (4,)


def test_fr10_chunks_that_become_the_same_add_their_counts():
    tok = byteweld.train(
        byteweld.Counts({b"abc": 3, b"xbc": 2, b"qr": 4}), vocab_size=258, recipe="bpetite"
    )
    assert pairs(tok) == [(98, 99), (113, 114)]
    assert tok.training.merge_counts == (5, 4)


def test_fr11_stopping_early_is_a_result_and_the_special_takes_the_smaller_id():
    tok = train("ab", vocab_size=1000)
    assert (tok.training.stop, tok.training.merges_learned) == ("no pairs", 1)
    assert dict(tok.vocab.special_tokens) == {END: 257}
    assert len(tok) == 258
    assert "1 of 744 merges" in str(tok.training)


def test_fr11_an_empty_corpus_gives_the_base_vocabulary():
    for documents in ((), ("",), ("a",)):
        tok = train(*documents, vocab_size=300)
        assert (tok.vocab.merge_ids, tok.training.stop) == ((), "no pairs")
        assert dict(tok.vocab.special_tokens) == {END: 256}


def test_fr12_the_same_corpus_and_size_give_the_same_artifact_bytes_for_any_threads(tmp_path):
    documents = [prose(40, seed) for seed in range(150)]
    files = {}
    for threads in (1, 2, 7, None):
        files[threads] = tmp_path / f"{threads}.json"
        tok = train(*documents, vocab_size=700, num_threads=threads)
        tok.save(files[threads], format="bpetite")
    assert len({file.read_bytes() for file in files.values()}) == 1


def test_fr12_the_artifact_bytes_do_not_depend_on_the_hash_seed(tmp_path):
    program = (
        "import sys, byteweld\n"
        "tok = byteweld.train(iter([sys.argv[1]]), vocab_size=400, recipe='bpetite')\n"
        "tok.save(sys.argv[2], format='bpetite')\n"
    )
    made = []
    for seed in ("0", "1", "12345"):
        file = tmp_path / f"{seed}.json"
        subprocess.run(
            [sys.executable, "-c", program, prose(800), str(file)],
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=True,
            timeout=60,
        )
        made.append(file.read_bytes())
    assert made[0] == made[1] == made[2]


# ---------------------------------------------------------------------- FR-13 to FR-15: the special


def test_fr13_the_special_token_has_the_first_id_after_the_merges_and_its_bytes_are_there():
    tok = train(prose(300), vocab_size=290)
    assert tok.vocab.special_tokens[END] == tok.eot_token == 290
    assert tok.decode_bytes([290]) == END.encode()
    assert tok.encode(f"a{END}b", allowed_special="all") == [97, 290, 98]


def test_fr14_there_is_no_other_special_token():
    assert list(train("ab", vocab_size=257).vocab.special_tokens) == [END]
    with pytest.raises(UnsupportedError, match="FR-14"):
        train("ab", vocab_size=257, special_tokens=["<|pad|>"])


def test_fr15_the_special_token_in_the_corpus_is_ordinary_text():
    marked = train(f"ab{END}ab{END}ab", vocab_size=280)
    plain = train("ab ab ab", vocab_size=280)
    assert marked.vocab.merges != plain.vocab.merges
    assert b"endoftext" in marked.vocab.ids
    assert b"<|" in marked.vocab.ids
    counts = byteweld.count(iter([f"ab{END}ab"]), recipe="bpetite")
    assert dict(counts.items()) == {b"ab": 2, b"<|": 1, b"endoftext": 1, b"|>": 1}


@given(TEXTS)
def test_encoding_then_decoding_gives_the_text_back(text):
    assert SOME_MERGES.decode(SOME_MERGES.encode(text, disallowed_special=())) == text


# ---------------------------------------------------------------------- progress


def events(corpus: str, vocab_size: int) -> list[TrainingEvent]:
    heard: list[TrainingEvent] = []
    train(corpus, vocab_size=vocab_size, progress=heard.append)
    return heard


def test_progress_is_start_then_every_hundredth_merge_then_complete():
    assert events(prose(4000), 256 + 250) == [
        TrainingEvent("start", 0, 250),
        TrainingEvent("merge", 100, 250),
        TrainingEvent("merge", 200, 250),
        TrainingEvent("complete", 250, 250),
    ]


def test_progress_of_a_short_training_is_start_and_complete():
    assert events("ab ab ab", 258) == [
        TrainingEvent("start", 0, 2),
        TrainingEvent("complete", 2, 2),
    ]
    assert events("ab", 256) == [TrainingEvent("start", 0, 0), TrainingEvent("complete", 0, 0)]


def test_progress_of_an_early_stop_completes_below_the_plan():
    assert events("ab", 300) == [TrainingEvent("start", 0, 44), TrainingEvent("complete", 1, 44)]


# ---------------------------------------------------------------------- the artifact, schema v1


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    file = tmp_path / "ab.json"
    train("ab ab ab", vocab_size=258).save(file, format="bpetite")
    return file


def test_the_artifact_of_ab_ab_ab_has_the_seeds_size_and_digest(artifact):
    data = artifact.read_bytes()
    assert len(data) == 3170
    assert hashlib.sha256(data).hexdigest() == AB_SHA256


def test_the_artifact_has_six_sorted_keys_no_spaces_and_no_final_newline(artifact):
    text = artifact.read_text("ascii")
    value = json.loads(text)
    assert list(value) == [
        "mergeable_vocab_size",
        "merges",
        "pretokenizer_pattern",
        "schema_version",
        "special_tokens",
        "vocab",
    ]
    assert text == json.dumps(value, sort_keys=True, separators=(",", ":"))
    assert value["mergeable_vocab_size"] == 258
    assert value["merges"] == [[97, 98], [32, 256]]
    assert value["pretokenizer_pattern"] == PATTERN
    assert value["schema_version"] == 1
    assert value["special_tokens"] == {END: 258}
    assert value["vocab"]["257"] == [32, 97, 98]
    assert value["vocab"]["258"] == list(END.encode())


def test_a_loaded_artifact_is_the_tokenizer_that_was_saved(artifact):
    tok = train("ab ab ab", vocab_size=258)
    loaded = byteweld.load(artifact)
    assert byteweld.recognize(artifact) == "bpetite"
    assert loaded == tok
    assert loaded.encode("ab ab ab") == [256, 257, 257]


def test_saving_overwrites_only_on_request(artifact):
    before = artifact.read_bytes()
    other = train("xyz xyz", vocab_size=258)
    with pytest.raises(FileExistsError):
        other.save(artifact, format="bpetite")
    assert artifact.read_bytes() == before
    other.save(artifact, format="bpetite", overwrite=True)
    assert byteweld.load(artifact) == other
    assert {p.name for p in artifact.parent.iterdir()} == {"ab.json", "ab.training.json"}


def _set(key: str, value: object) -> Callable[[dict[str, Any]], None]:
    return lambda artifact: artifact.__setitem__(key, value)


def _set_in(key: str, inner: Any, value: object) -> Callable[[dict[str, Any]], None]:
    return lambda artifact: artifact[key].__setitem__(inner, value)


WRONG: dict[str, Callable[[dict[str, Any]], None]] = {
    "version 2": _set("schema_version", 2),
    "version true": _set("schema_version", True),
    "version 1.0": _set("schema_version", 1.0),
    "an extra key": _set("name", "ab"),
    "another pattern": _set("pretokenizer_pattern", r"\w+"),
    "a wrong size": _set("mergeable_vocab_size", 257),
    "a size that is a bool": _set("mergeable_vocab_size", True),
    "merges that are an object": _set("merges", {}),
    "a merge of three": _set_in("merges", 0, [97, 98, 99]),
    "a merge of a bool": _set_in("merges", 0, [True, 98]),
    "a merge of text": _set_in("merges", 0, ["97", "98"]),
    "a merge of a later id": _set_in("merges", 0, [97, 257]),
    "a merge of itself": _set_in("merges", 1, [32, 257]),
    "a merge of the special": _set_in("merges", 1, [32, 258]),
    "a merge of a negative id": _set_in("merges", 0, [-1, 98]),
    "a vocab that is a list": _set("vocab", []),
    "a vocab without an id": lambda artifact: artifact["vocab"].pop("7"),
    "a vocab with an id too many": _set_in("vocab", "259", [97]),
    "an id with a zero before it": lambda a: a["vocab"].__setitem__("097", a["vocab"].pop("97")),
    "an id with a plus": lambda a: a["vocab"].__setitem__("+97", a["vocab"].pop("97")),
    "an id in other digits": lambda a: a["vocab"].__setitem__("٩٧", a["vocab"].pop("97")),
    "a byte above 255": _set_in("vocab", "256", [97, 256]),
    "a byte that is a bool": _set_in("vocab", "1", [True]),
    "bytes that are text": _set_in("vocab", "256", "ab"),
    "bytes that are not the concatenation": _set_in("vocab", "257", [32, 98, 97]),
    "a base byte that is another": _set_in("vocab", "97", [98]),
    "a special of other bytes": _set_in("vocab", "258", [97]),
    "no special": _set("special_tokens", {}),
    "another special": _set("special_tokens", {"<|pad|>": 258}),
    "two specials": _set("special_tokens", {END: 258, "<|pad|>": 259}),
    "the special at another id": _set("special_tokens", {END: 257}),
    "the special at a bool": _set("special_tokens", {END: True}),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_artifact_is_rejected_on_loading(artifact, name):
    value = json.loads(artifact.read_text())
    WRONG[name](value)
    artifact.write_text(json.dumps(value))
    with pytest.raises(FormatError) as caught:
        byteweld.load(artifact)
    assert caught.value.path == str(artifact)


@pytest.mark.parametrize("pair", [[257, 98], [32, 257], [257, 257], [-1, 98], [98, -1]])
def test_a_merge_takes_ids_that_exist_before_it(artifact, pair):
    value = json.loads(artifact.read_text())
    value["merges"][1] = pair
    artifact.write_text(json.dumps(value))
    with pytest.raises(FormatError, match=r"makes id 257; expected ids in 0\.\.256"):
        byteweld.load(artifact)


@pytest.mark.parametrize(
    "key",
    [
        "mergeable_vocab_size",
        "merges",
        "pretokenizer_pattern",
        "schema_version",
        "special_tokens",
        "vocab",
    ],
)
def test_a_missing_key_is_a_key_error_and_a_format_error(artifact, key):
    value = json.loads(artifact.read_text())
    del value[key]
    artifact.write_text(json.dumps(value))
    with pytest.raises(KeyError, match=key) as caught:
        byteweld.load(artifact)
    assert isinstance(caught.value, MissingKeyError)


def test_text_that_is_not_json_in_utf8_is_rejected(artifact):
    good = artifact.read_bytes()
    broken = {
        "not UTF-8": good.replace(b"endoftext", b"endof\xff\xff"),
        "not JSON": good[:-1],
        "more after it": good + b"{}",
        "a repeated key": good.replace(b'{"', b'{"schema_version":1,"', 1),
        "a repeated id": good.replace(b'"vocab":{', b'"vocab":{"0":[0],', 1),
        "NaN": good.replace(b'"schema_version":1', b'"schema_version":NaN'),
        "Infinity": good.replace(b"[97,98]", b"[97,Infinity]", 1),
    }
    for what, data in broken.items():
        assert data != good, what
        artifact.write_bytes(data)
        with pytest.raises(FormatError):
            byteweld.load(artifact)


def test_an_artifact_cannot_hold_what_the_seed_does_not_have(tmp_path):
    tok = byteweld.train(iter(["ab"]), vocab_size=262, recipe="ck")
    with pytest.raises(UnsupportedError, match="bpetite"):
        tok.save(tmp_path / "ck.json", format="bpetite")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("left", "right"), [(257, 99), (99, 257)])
def test_an_artifact_cannot_hold_a_merge_of_a_later_id(tmp_path, left, right):
    tokens = {byte: bytes([byte]) for byte in range(256)} | {257: b"ab", 258: END.encode()}
    tokens[256] = tokens[left] + tokens[right]
    vocab = Vocabulary(
        tokens,
        [(left, right, 256), (97, 98, 257)],
        special_tokens={END: 258},
        pattern=PATTERN,
    )
    with pytest.raises(UnsupportedError, match=r"merge 0 makes id 256 .*, not from earlier ids"):
        Tokenizer(vocab).save(tmp_path / "x.json", format="bpetite")


def test_the_commands_train_encode_and_decode_map_one_to_one(tmp_path):
    def command(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "byteweld", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    (tmp_path / "corpus.txt").write_text("ab ab ab")
    recipe = ["--recipe", "bpetite", "--vocab-size", "258", "--format", "bpetite"]
    command("train", "corpus.txt", *recipe, "--out", "ab.json")
    digest = hashlib.sha256((tmp_path / "ab.json").read_bytes()).hexdigest()
    assert digest == AB_SHA256
    ids = command("encode", "--tokenizer", "ab.json", "corpus.txt")
    assert ids.split() == ["256", "257", "257"]
    (tmp_path / "ids.txt").write_text(ids)
    assert command("decode", "--tokenizer", "ab.json", "ids.txt") == "ab ab ab"
