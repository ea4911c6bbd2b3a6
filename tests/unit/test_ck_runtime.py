"""The pattern over bytes of ck's runtime: a table made by hand, an oracle, and every path."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import byteweld
from byteweld import PatternError, Tokenizer, UnsupportedError, Vocabulary, formats, reference
from byteweld.evaluation import pattern_engine
from byteweld.formats.dropping import drop
from byteweld.patterns import CK_RUNTIME, PATTERNS
from tests.helpers.strategies import examples
from tests.helpers.vocabularies import with_traits

NAME = "ck-runtime"
BYTES = {byte: bytes([byte]) for byte in range(256)}

# Pre-tokens as the pattern's alternatives give them, worked out by hand.
TABLE = {
    "": [],
    "hello": ["hello"],
    "hello world": ["hello", " world"],
    "don't": ["don", "'t"],  # one mark joins the letters after it
    "a--b": ["a", "--", "b"],  # several do not
    " <path": [" <", "path"],  # nor does one after a space
    "<path d": ["<path", " d"],
    '="#0f': ['="#', "0", "f"],
    "x12 34": ["x", "1", "2", " 3", "4"],  # digits one by one
    "a  b": ["a", " ", " b"],  # the last space goes with the letters
    "a   7": ["a", "  ", " 7"],
    "a   <": ["a", "   ", "<"],  # but not with marks
    "a  \n\n b": ["a", "  \n\n", " b"],
    "a \nb": ["a", " \n", "b"],
    ">\n\n<": [">\n\n", "<"],
    " >\n  <": [" >\n", "  ", "<"],
    "\n\nx": ["\n\n", "x"],
    "\t\ta\r\n": ["\t", "\t", "a", "\r", "\n"],
    " \t x": [" ", "\t", " x"],
    "  ": ["  "],
    "écrit": ["é", "crit"],  # two bytes are several marks
    "naïve": ["na", "ï", "ve"],
    "a é\n": ["a", " é\n"],
    "日本語 text": ["日本語", " text"],
    "a\x00b\x7fc": ["a", "\x00b", "\x7fc"],
}

# Written anew, from the alternatives of the runtime.
_MARK = rb"[^A-Za-z0-9 \n\t\r]"
ORACLE = re.compile(
    rb"(?:%b)?[A-Za-z]+|[0-9]| ?(?:%b)+\n*| +\n+| +(?= [A-Za-z0-9])| [A-Za-z]+| [0-9]| +|\n+|[\s\S]"
    % (_MARK, _MARK)
)

pieces = st.one_of(
    st.text(" \n\t\r", min_size=1, max_size=4),
    st.text("abXY", min_size=1, max_size=3),
    st.text("0123", min_size=1, max_size=3),
    st.text("<>=\"'/\0\x7f", min_size=1, max_size=3),
    st.text("é日😀\u00a0\u3000", min_size=1, max_size=2),
).map(str.encode)
hostile = st.one_of(pieces, st.binary(max_size=3))
raw_texts = st.lists(hostile, max_size=20).map(b"".join)


def expected(text: bytes) -> list[bytes]:
    return [match.group() for match in ORACLE.finditer(text)]


def trained(**options: object) -> Tokenizer:
    text = b'  <path d="M12 2L2"/>\n' * 4 + "naïve café 日本 the the\n\n".encode() * 4
    return byteweld.train(iter([text]), vocab_size=330, pattern=NAME, **options)


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return trained(special_tokens=["<|end|>"])


# ---------------------------------------------------------------------- the pattern


@pytest.mark.parametrize("text", TABLE, ids=ascii)
def test_the_table_made_by_hand(tok: Tokenizer, text: str) -> None:
    raw = text.encode()
    made = [piece.encode() for piece in TABLE[text]]
    assert expected(raw) == made
    assert reference.pretokenize(raw, NAME) == made
    assert tok.pretokenize(raw) == made


def test_bytes_that_are_not_utf8_are_marks(tok: Tokenizer) -> None:
    for raw, made in [
        (b"\xc3abc", [b"\xc3abc"]),  # half a character is one mark, and joins the letters
        (b"\xff\xfeab", [b"\xff\xfe", b"ab"]),
        (b"a \x80\n\n\x80b", [b"a", b" \x80\n\n", b"\x80b"]),
    ]:
        assert tok.pretokenize(raw) == reference.pretokenize(raw, NAME) == made


@examples(1000)
@given(raw_texts)
def test_engine_and_reference_split_as_the_oracle(tok: Tokenizer, raw: bytes) -> None:
    made = expected(raw)
    assert reference.pretokenize(raw, NAME) == made
    assert tok.pretokenize(raw) == made


def test_it_has_a_name_a_scanner_and_a_fingerprint_of_its_own(tok: Tokenizer) -> None:
    assert tok.vocab.pattern == PATTERNS[NAME] == CK_RUNTIME
    assert pattern_engine(tok) == "scanner"
    assert f"pattern '{NAME}'" in repr(tok)
    assert with_traits(tok.vocab, pattern="ck").fingerprint != tok.vocab.fingerprint


def test_a_misspelled_name_and_other_patterns_over_bytes_are_refused() -> None:
    with pytest.raises(PatternError, match=r"unknown pattern 'ck-runtme'.*did you mean 'ck-run"):
        Vocabulary({}, pattern="ck-runtme")
    for pattern in ("(?-u)[a-z]+", CK_RUNTIME + "|x"):
        with pytest.raises(PatternError, match="Changing Unicode mode"):
            Tokenizer.from_ranks({token: byte for byte, token in BYTES.items()}, pattern=pattern)


def test_a_split_step_never_takes_its_name() -> None:
    steps = (byteweld.Split(NAME, "removed"), byteweld.Split("[a-z]+"))
    made = Vocabulary(BYTES, steps=steps)
    assert made.steps[0] == byteweld.Split(f"(?:{NAME})", "removed")
    only = Vocabulary(BYTES, steps=(byteweld.Split(NAME),))
    assert only.pattern == f"(?:{NAME})"


# ---------------------------------------------------------------------- what can hold it


@pytest.mark.parametrize("name", ["tokenizer.json", "tekken.json"])
def test_formats_for_other_libraries_refuse_it_by_name(
    tmp_path: Path, tok: Tokenizer, name: str
) -> None:
    with pytest.raises(UnsupportedError, match="its pattern 'ck-runtime' matches bytes"):
        tok.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    dropped = drop(tok.vocab, ["pattern"])
    assert dropped.pattern is None
    if name == "tokenizer.json":
        Tokenizer(dropped).save(tmp_path / name)
        assert byteweld.load(tmp_path / name).vocab == dropped


@pytest.mark.parametrize(("name", "format"), [("r.tiktoken", None), ("folder", "gpt2")])
def test_our_own_sidecars_keep_it_and_so_does_the_cache(
    tmp_path: Path, tok: Tokenizer, name: str, format: str | None
) -> None:
    tok.save(tmp_path / name, format=format)
    for _ in range(2):  # the second load is from the cache
        loaded = byteweld.load(tmp_path / name, cache=tmp_path / "cache")
        assert loaded.vocab.pattern == CK_RUNTIME
        assert loaded.encode("a  b<é") == tok.encode("a  b<é")


def test_a_tokenizer_json_that_claims_it_is_refused(tmp_path: Path, tok: Tokenizer) -> None:
    formats.save(with_traits(tok.vocab, pattern="[a-z]+"), tmp_path / "tokenizer.json")
    text = (tmp_path / "tokenizer.json").read_text("utf-8")
    (tmp_path / "tokenizer.json").write_text(
        text.replace('"[a-z]+"', '"' + CK_RUNTIME.replace("\\", "\\\\") + '"'), "utf-8"
    )
    with pytest.raises(UnsupportedError, match="which Oniguruma and byteweld read differently"):
        byteweld.load(tmp_path / "tokenizer.json")


# ---------------------------------------------------------------------- ck's export


def test_an_export_loads_with_it_and_saves_and_loads_as_itself(tmp_path: Path) -> None:
    made = byteweld.train(iter(["ab ab  ab<ab"]), vocab_size=264, recipe="ck", min_frequency=1)
    made.save(tmp_path / "one", format="ck")
    loaded = byteweld.load(tmp_path / "one")
    assert (loaded.vocab.pattern, made.vocab.pattern) == (CK_RUNTIME, PATTERNS["gpt2"])
    assert loaded.vocab == formats.held(made.vocab, "one", "ck") != made.vocab
    Tokenizer(loaded.vocab).save(tmp_path / "two", format="ck")
    assert byteweld.load(tmp_path / "two").vocab == loaded.vocab
    assert byteweld.load(tmp_path / "two", pattern="gpt2").vocab == made.vocab


def test_the_training_of_an_export_is_found_and_can_be_cut_and_extended(tmp_path: Path) -> None:
    documents = ["ab ab  ab<ab abc abc"]
    made = byteweld.train(iter(documents), vocab_size=266, recipe="ck", min_frequency=1)
    made.save(tmp_path / "out", format="ck")
    loaded = byteweld.load(tmp_path / "out")
    assert loaded.training is not None
    assert loaded.training.merge_counts == made.training.merge_counts
    assert loaded.training.recipe.pattern is None
    assert loaded.cut(262).vocab == formats.held(made.cut(262).vocab, "out", "ck")
    # The recipe trains without a pattern, also when it extends what was loaded.
    bare = Tokenizer(loaded.vocab)
    longer = byteweld.train(
        iter(["x y x y x y"]), vocab_size=268, recipe="ck", start=bare, min_frequency=1
    )
    assert longer.vocab.pattern == CK_RUNTIME
    assert b"x y" in longer.vocab.ids


def test_a_recipe_can_train_for_the_runtime(tmp_path: Path) -> None:
    made = byteweld.train(
        iter(["ab ab  ab<ab"]), vocab_size=264, recipe="ck", encode_pattern=NAME, min_frequency=1
    )
    made.save(tmp_path / "out", format="ck")
    loaded = byteweld.load(tmp_path / "out")
    assert loaded.vocab == made.vocab
    assert loaded.training.recipe == made.training.recipe


def test_what_an_export_cannot_hold_has_no_held_form() -> None:
    steps = (byteweld.Split("a", "removed"), byteweld.Split("b"))
    for vocab in (Vocabulary(BYTES, steps=steps), Vocabulary(BYTES, pattern="gpt2")):
        with pytest.raises(UnsupportedError, match="cannot hold"):
            formats.held(vocab, "out", "ck")


def test_unstable_encoding_is_refused_because_it_follows_tiktoken():
    tok = byteweld.train(
        documents=["ab ab"], vocab_size=262, recipe="ck", encode_pattern="ck-runtime"
    )
    with pytest.raises(byteweld.VocabularyError, match="whose patterns match characters"):
        tok.encode_with_unstable("ab")
