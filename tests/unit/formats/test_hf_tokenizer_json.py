"""tokenizer.json: the real `tokenizers` reads what we write with our ids, and the reverse."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byteweld import formats, patterns, reference
from byteweld._byte_letters import BYTE_TO_CHAR
from byteweld.errors import (
    ByteweldError,
    FormatError,
    MissingKeyError,
    UnsupportedError,
    VocabularyError,
)
from byteweld.formats import hf_tokenizer_json as hf
from byteweld.vocab import Split, Vocabulary
from tests.helpers import hf_files
from tests.helpers.growth import least_growth
from tests.helpers.hf_files import added, byte_level, replace, sequence, split
from tests.helpers.strategies import examples

load = partial(formats.load, format="huggingface")
save = partial(formats.save, format="huggingface")

BYTES = {byte: bytes([byte]) for byte in range(256)}
OWN_PATTERN = r"\p{Lu}\p{Ll}++|\d{1,3}|(?:ab|c)+|[^\S\r\n]+|(?<=a)b|.(?!\s)"
ALL_PATTERNS = [
    *(None, OWN_PATTERN),
    *(pattern for pattern in patterns.PATTERNS.values() if not patterns.is_over_bytes(pattern)),
]
WORDS = (
    "low lower lowest newest widest the then there's it's I'M 'S don't 12345 été naïve 日本語 🦊"
)
HARD_TEXTS = [
    "",
    " ",
    "\x00",
    "a" * 300,
    " " * 64 + "\n\n" + "\t" * 9,
    "a\r\nb\r\n\r\n  c\n ",
    "I'M 'S 'ſ 'LL we'Ve",
    "e\u0301 \u202eright to left\u202c \ufeff bom",
    "🦊👩‍👩‍👧 \U000e0041 \uffff",
    "x<|eot|>y<|eot|><|eot|>z <|eo t|> <|eot|",
    "\u2028\u2029\x85\xa0\u3000",
    WORDS,
]
ASCII_CHARACTERS = "\t\n\r" + "".join(map(chr, range(0x20, 0x7F)))


def grow(base: dict[int, bytes], pairs: list[tuple[int, int]], **kwargs: Any) -> Vocabulary:
    """Return a vocabulary whose merges join tokens picked by number, if that makes a new one."""
    tokens = dict(base)
    order = list(tokens)
    known = set(tokens.values())
    merges = []
    for left, right in pairs:
        a, b = order[left % len(order)], order[right % len(order)]
        joined = tokens[a] + tokens[b]
        if joined in known or len(joined) > 24:
            continue
        new = max(tokens) + 1
        tokens[new] = joined
        order.append(new)
        known.add(joined)
        merges.append((a, b, new))
    specials = kwargs.pop("specials", ())
    special_tokens = {text: max(tokens) + 1 + n for n, text in enumerate(specials)}
    tokens |= {i: text.encode() for text, i in special_tokens.items()}
    return Vocabulary(tokens, merges, special_tokens=special_tokens, **kwargs)


def words_vocabulary(**kwargs: Any) -> Vocabulary:
    """Return a small vocabulary with merges inside and across words, emoji and whitespace."""
    rng = random.Random(7)
    data = (WORDS + "  \n\n\t").encode()
    pairs = [(data[i], data[i + 1]) for i in rng.sample(range(len(data) - 1), len(data) - 1)]
    pairs += [(rng.randrange(256, 330), rng.randrange(256, 330)) for _ in range(60)]
    return grow(BYTES, pairs, **kwargs)


def real(vocab: Vocabulary, folder: Path) -> Any:
    """Write a vocabulary and open it in the real library."""
    tokenizers = pytest.importorskip("tokenizers")
    path = folder / "tokenizer.json"
    save(vocab, path, overwrite=True)
    return tokenizers.Tokenizer.from_file(str(path))


def same_ids(vocab: Vocabulary, tokenizer: Any, text: str) -> None:
    ours = reference.encode(vocab, text, allowed_special="all")
    assert tokenizer.encode(text).ids == ours, repr(text)


def document(**model: Any) -> dict[str, Any]:
    """Return the smallest valid file, with changes to its model."""
    letters = {BYTE_TO_CHAR[byte]: byte for byte in range(256)}
    vocab = letters | {"ab": 256, "Ġab": 257}
    plain = {"type": "BPE", "unk_token": None, "vocab": vocab, "merges": ["a b", "Ġ ab"]}
    return hf_files.document(plain | model)


def read(value: object, folder: Path) -> Vocabulary:
    path = folder / "given.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return load(path)


def template(*pieces: str, ids: dict[str, list[int]] | None = None) -> dict[str, Any]:
    """Return a TemplateProcessing for one text: `$A` is the text, other pieces are tokens."""
    ids = {piece: [97] for piece in pieces} if ids is None else ids
    return {
        "type": "TemplateProcessing",
        "single": [
            {"Sequence": {"id": piece[1:], "type_id": 0}}
            if piece[0] == "$"
            else {"SpecialToken": {"id": piece, "type_id": 0}}
            for piece in pieces
        ],
        "pair": [],
        "special_tokens": {
            name: {"id": name, "ids": ids[name], "tokens": [name] * len(ids[name])} for name in ids
        },
    }


# ---------------------------------------------------------------------- writing


@pytest.mark.parametrize("pattern", ALL_PATTERNS)
@pytest.mark.parametrize("ignore_merges", [False, True])
def test_the_real_library_gives_our_ids_on_hard_texts(
    tmp_path: Path, pattern: str | None, ignore_merges: bool
) -> None:
    vocab = words_vocabulary(
        pattern=pattern, ignore_merges=ignore_merges, specials=["<|eot|>", "<|eo", "日 本"]
    )
    tokenizer = real(vocab, tmp_path)
    for text in HARD_TEXTS:
        same_ids(vocab, tokenizer, text)
        assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text
    assert load(tmp_path / "tokenizer.json") == vocab


@examples(60)
@given(
    pairs=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=40),
    pattern=st.sampled_from(ALL_PATTERNS),
    ignore_merges=st.booleans(),
    specials=st.sets(st.text(" ab<|é\n", min_size=2, max_size=5), max_size=3),
    texts=st.lists(st.text("ab c\n'<|é1日", max_size=60), min_size=3, max_size=6),
)
def test_the_real_library_gives_our_ids_on_random_vocabularies(
    tmp_path: Path,
    pairs: list[tuple[int, int]],
    pattern: str | None,
    ignore_merges: bool,
    specials: set[str],
    texts: list[str],
) -> None:
    # Letters that occur in the texts come first, so that small numbers pick them.
    first = b"ab c\n'<|\xc3\xa91\xe6\x97\xa5"
    order = [*dict.fromkeys(first), *(b for b in range(256) if b not in first)]
    vocab = grow(
        dict(enumerate(bytes([byte]) for byte in order)),
        pairs,
        pattern=pattern,
        ignore_merges=ignore_merges,
        specials=sorted(specials),
    )
    try:
        tokenizer = real(vocab, tmp_path)
    except UnsupportedError as error:  # `ab` may be a special token and an ordinary one
        assert "special token" in str(error)
        return
    for text in [*texts, "".join(sorted(specials)).join(texts)]:
        same_ids(vocab, tokenizer, text)
    assert load(tmp_path / "tokenizer.json") == vocab


@examples(80)
@given(
    tokens=st.lists(st.text("ab ", min_size=2, max_size=7), unique=True, max_size=25),
    pattern=st.sampled_from([None, patterns.GPT2, patterns.O200K]),
    texts=st.lists(st.text("ab ", max_size=50), min_size=4, max_size=8),
)
def test_a_vocabulary_ranked_by_id_is_written_as_merges_with_the_same_ids(
    tmp_path: Path, tokens: list[str], pattern: str | None, texts: list[str]
) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    table = dict(enumerate([*BYTES.values(), *(text.encode() for text in tokens)]))
    vocab = Vocabulary(table, pattern=pattern, ranking="ranks")
    tokenizer = real(vocab, tmp_path)
    peer = tiktoken.Encoding(
        "peer",
        pat_str=pattern or r"(?s).+",
        mergeable_ranks={token: rank for rank, token in table.items()},
        special_tokens={},
    )
    again = load(tmp_path / "tokenizer.json")
    for text in [*texts, *tokens]:
        same_ids(vocab, tokenizer, text)
        same_ids(again, tokenizer, text)
        assert tokenizer.encode(text).ids == peer.encode_ordinary(text)


def test_overlapping_ways_to_make_a_token_are_merged_as_in_tiktoken(tmp_path: Path) -> None:
    table = dict(enumerate([*BYTES.values(), b"aba", b"ba", b"ab", b"bab", b"abab", b"babab"]))
    vocab = Vocabulary(table, ranking="ranks")
    tokenizer = real(vocab, tmp_path)
    for size in range(2, 14):
        for bits in range(1 << min(size, 9)):
            same_ids(vocab, tokenizer, "".join("ab"[bits >> n & 1] for n in range(size)))


@pytest.mark.parametrize("pattern", [None, patterns.GPT2, r"[a-z]+|\s+"])
@pytest.mark.parametrize("ignore_merges", [False, True])
def test_the_ascii_alphabet_gives_one_unk_for_each_other_character(
    tmp_path: Path, pattern: str | None, ignore_merges: bool
) -> None:
    of = {character: 4 + n for n, character in enumerate(ASCII_CHARACTERS)}
    base = {n: character.encode() for character, n in of.items()} | {0: b"<|unk|>"}
    vocab = Vocabulary(
        base | {102: b"th", 103: b"the", 104: b"e ", 105: b"zz"},
        [(of["t"], of["h"], 102), (102, of["e"], 103), (of["e"], of[" "], 104)],
        special_tokens={"<|unk|>": 0},
        roles={"unk": 0},
        alphabet="ascii",
        pattern=pattern,
        ignore_merges=ignore_merges,
    )
    tokenizer = real(vocab, tmp_path)
    for text in ["the the", "thé the é", "日本 the", "zz the zz", "<|unk|>the\x00\x7f", "zz"]:
        same_ids(vocab, tokenizer, text)
    assert tokenizer.decode(tokenizer.encode("the the zz\n").ids) == "the the zz\n"
    assert load(tmp_path / "tokenizer.json") == vocab
    assert not (tmp_path / "tokenizer.json.byteweld.json").exists()


def test_an_ascii_vocabulary_without_unk_makes_the_library_refuse_other_characters(
    tmp_path: Path,
) -> None:
    vocab = Vocabulary({n: c.encode() for n, c in enumerate(ASCII_CHARACTERS)}, alphabet="ascii")
    tokenizer = real(vocab, tmp_path)
    same_ids(vocab, tokenizer, "plain text")
    with pytest.raises(Exception, match="not found in the vocabulary"):
        tokenizer.encode("é")
    assert load(tmp_path / "tokenizer.json") == vocab


@pytest.mark.parametrize("pattern", ALL_PATTERNS)
def test_the_real_library_gives_our_ids_on_hostile_files(
    tmp_path: Path, shared: Path, pattern: str | None
) -> None:
    vocab = words_vocabulary(pattern=pattern, specials=["<|endoftext|>"])
    tokenizer = real(vocab, tmp_path)
    files = sorted(p for p in (shared / "nasty").rglob("*.txt") if p.stat().st_size < 40_000)
    assert files
    for path in files:
        text = path.read_bytes().decode("utf-8", "replace")
        # The reference is quadratic in a pre-token's length, so whole texts are shortened.
        same_ids(vocab, tokenizer, text[: 600 if pattern is None else 6000])


# ---------------------------------------------------------------------- roles and the sidecar


def test_the_four_names_of_ck_need_no_sidecar(tmp_path: Path) -> None:
    names = ["<|unk|>", "<|bos|>", "<|eos|>", "<|pad|>"]
    tokens = {n: name.encode() for n, name in enumerate(names)}
    tokens |= {4 + byte: token for byte, token in BYTES.items()}
    special_tokens = {name: n for n, name in enumerate(names)}
    vocab = Vocabulary(
        tokens, special_tokens=special_tokens, roles={"unk": 0, "bos": 1, "eos": 2, "pad": 3}
    )
    save(vocab, tmp_path / "a.json")
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]
    assert load(tmp_path / "a.json") == vocab
    without = Vocabulary(tokens, special_tokens=special_tokens)
    save(without, tmp_path / "b.json")
    assert load(tmp_path / "b.json") == without


# ---------------------------------------------------------------------- what cannot be written


@pytest.mark.parametrize(
    ("pattern", "construct"),
    [
        (r"\p{N}{1,3}+|.", r"possessive repeat '\{1,3\}\+'"),
        (r"\s+$|.", r"'\$'"),
        (r"^a|.", r"'\^'"),
        (r"\w+|.", r"\\w"),
        (r"(?i)a|.", r"\(\?i"),
        (r"(?i:stra)|.", r"\(\?i"),
        (r"(?m:a.)", r"\(\?m"),
        (r"(a)\1|.", r"\\1"),
        (r"a*|b", "a match of the empty string"),
        (r"(?=a)|b", "a match of the empty string"),
        (r"a{3}?|.", r"\{3\}\?"),
        (r"a{,3}|.", "construct"),
        (r"(?:a?)+b", "can match the empty string"),
        (r"(?:(?!a))?b", "can match the empty string"),
        (r"\xe9|.", "construct"),
        (r"\pL|.", "construct"),
        (r"\p{Script=Han}|.", "construct"),
        (r"\p{Zyyy}|.", "the property 'Zyyy'"),
        (r"[[:alpha:]]+|.", "construct"),
        (r"(?<=a+)b|.", "lookbehind"),
        (r"(?P<n>a)|.", r"\(\?P"),
        (r"a{2000}|.", "above 1000"),
        (r"(a", r"without '\)'"),
        (r"a)", r"without '\('"),
        (r"a**|.", "with nothing to repeat"),
        ("(" * 80 + "a" + ")" * 80, "50 others"),
    ],
)
def test_patterns_that_oniguruma_reads_differently_are_refused_by_construct(
    tmp_path: Path, pattern: str, construct: str
) -> None:
    with pytest.raises(UnsupportedError, match=construct):
        save(Vocabulary(BYTES, pattern=pattern), tmp_path / "t.json")
    given_file = document()
    given_file["pre_tokenizer"] = sequence(split("Regex", pattern), byte_level())
    with pytest.raises(UnsupportedError, match=construct):
        read(given_file, tmp_path)


@pytest.mark.parametrize(
    "vocab",
    [
        Vocabulary(BYTES | {256: b"ab"}, [(97, 98, 256)], special_tokens={"ab": 256}),
        # Without ignore_merges, the pre-token b" the" is not looked up in these letters.
        Vocabulary(BYTES | {256: "Ġthe".encode()}, special_tokens={"Ġthe": 256}),
    ],
)
def test_a_special_token_may_look_like_a_learned_one(tmp_path: Path, vocab: Vocabulary) -> None:
    tokenizer = real(vocab, tmp_path)
    same_ids(vocab, tokenizer, "cabab b Ġthe the")
    assert load(tmp_path / "tokenizer.json") == vocab


# ---------------------------------------------------------------------- reading


def test_the_librarys_own_training_is_read_with_its_ids(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|eot|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([WORDS] * 5, trainer)
    tokenizer.save(str(tmp_path / "theirs.json"))
    vocab = load(tmp_path / "theirs.json")
    assert vocab.pattern == patterns.GPT2
    assert vocab.special_tokens == {"<|eot|>": 0}
    assert len(vocab.merge_ids) > 50
    for text in HARD_TEXTS:
        same_ids(vocab, tokenizer, text)


def test_string_merges_and_pair_merges_are_the_same(tmp_path: Path) -> None:
    pairs = document(merges=[["a", "b"], ["Ġ", "ab"]])
    assert read(document(), tmp_path) == read(pairs, tmp_path)


def test_a_string_merge_that_looks_like_a_version_line_is_skipped_as_the_library_does(
    tmp_path: Path,
) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    value = document()
    word = "#version"
    model = value["model"]
    model["vocab"] |= {word[: n + 2]: 300 + n for n in range(7)} | {word + "s": 310}
    growing = [(word[: n + 1], word[n + 1]) for n in range(7)]
    for merges in (
        [*(f"{a} {b}" for a, b in growing), f"{word} s"],
        [*map(list, growing), [word, "s"]],
    ):
        model["merges"] = merges
        tokenizer = tokenizers.Tokenizer.from_str(json.dumps(value))
        vocab = read(value, tmp_path)
        assert len(vocab.merge_ids) == len(merges) - (type(merges[0]) is str)
        vocab = Vocabulary(vocab.tokens, vocab.merge_ids)  # the pattern would split after #
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(
            add_prefix_space=False, use_regex=False
        )
        same_ids(vocab, tokenizer, "#versions")


def test_added_tokens_outside_the_vocabulary_have_the_id_that_the_library_gives(
    tmp_path: Path,
) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    value = document()
    value["added_tokens"] = [added("<s>", 258), added("<t>", 259)]
    vocab = read(value, tmp_path)
    assert vocab.special_tokens == {"<s>": 258, "<t>": 259}
    same_ids(vocab, tokenizers.Tokenizer.from_str(json.dumps(value)), "ab<t> ab<s>")
    # A file may claim other ids; the library warns and assigns its own.
    value["added_tokens"] = [added("<s>", 300), added("Ġab", 301, special=False), added("<t>", 7)]
    theirs = tokenizers.Tokenizer.from_str(json.dumps(value))
    assert theirs.encode("<s>Ġab<t>").ids == [258, 257, 259]
    assert {t.text: t.id for t in read(value, tmp_path).added_tokens} == {
        "<s>": 258,
        "Ġab": 257,
        "<t>": 259,
    }


def test_an_old_file_without_type_and_use_regex_is_read(tmp_path: Path) -> None:
    value = document()
    del value["model"]["type"]
    del value["pre_tokenizer"]["use_regex"]
    value["added_tokens"] = [added("<s>", 258, normalized=True)]
    assert read(value, tmp_path).pattern == patterns.GPT2


@pytest.mark.parametrize("pattern", [patterns.GPT2, patterns.CL100K, patterns.O200K, patterns.CK])
def test_removing_what_does_not_match_changes_nothing_if_everything_matches(
    tmp_path: Path, pattern: str
) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    value = document()
    steps = [split("Regex", pattern, "Removed", True), byte_level()]
    value["pre_tokenizer"] = sequence(*steps)
    vocab = read(value, tmp_path)
    assert vocab.pattern == pattern
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(value))
    for text in HARD_TEXTS:
        same_ids(vocab, tokenizer, text)


@pytest.mark.parametrize(
    "pattern",
    [
        r"[a-z]+",
        r"\p{L}+|\p{N}+|[^\s\p{L}\p{N}]+",
        r"\p{L}+|\p{N}+|[^\s\p{L}\p{N}]+|\s+(?!\S)",
        r"\p{L}{2,}|\p{N}+|[^\s\p{L}\p{N}]+|\s+",
        r"\s?+\p{L}+|\s?+\s|\p{N}+|[^\s\p{L}\p{N}]+",
        r"\p{L}+a|\p{N}+|[^\s\p{L}\p{N}]+|\s+",
        r"(?:\p{L}+|\p{N}+|[^\s\p{L}\p{N}]+|\s+)b",
    ],
)
def test_removing_what_does_not_match_is_a_step_otherwise(tmp_path: Path, pattern: str) -> None:
    value = document()
    steps = [split("Regex", pattern, "Removed", True), byte_level()]
    value["pre_tokenizer"] = sequence(*steps)
    vocab = read(value, tmp_path)
    assert vocab.pattern is None
    assert vocab.steps == (Split(pattern, "removed", invert=True),)


def test_the_file_of_ck_is_read_with_its_own_byte_letters(tmp_path: Path) -> None:
    names = ["<|unk|>", "<|bos|>", "<|eos|>", "<|pad|>"]
    letter = {b: chr(b) if 0x21 <= b <= 0x7E or b >= 0xA1 else chr(0x100 + b) for b in range(256)}
    vocab = {name: n for n, name in enumerate(names)}
    vocab |= {letter[b]: 4 + b for b in range(256)} | {letter[0xC3] + letter[0xA0]: 260}
    value = document(
        vocab=vocab,
        merges=[f"{letter[0xC3]} {letter[0xA0]}"],
        unk_token="<|unk|>",
        byte_fallback=True,
    )
    value["added_tokens"] = [added(name, n) for n, name in enumerate(names)]
    value["pre_tokenizer"] = sequence(split("Regex", patterns.CK), byte_level())
    found = read(value, tmp_path)
    assert found.pattern == patterns.CK
    assert found.tokens[260] == "à".encode()
    assert found.tokens[4 + 0xAD] == b"\xad"
    assert found.tokens[4 + 0x7F] == b"\x7f"
    assert found.roles == {"unk": 0, "bos": 1, "eos": 2, "pad": 3}
    assert found.special_tokens == {name: n for n, name in enumerate(names)}


Change = Callable[[dict[str, Any]], object]


def changed(*keys: str | int, to: object) -> Change:
    """Return a change that sets a value deep in a file."""

    def change(value: Any) -> None:
        for key in keys[:-1]:
            value = value[key]
        value[keys[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (changed("normalizer", to={"type": "Strip"}), "uses 'Strip'"),
        (changed("normalizer", to={"type": "NFC", "novel": 1}), "'novel'"),
        (
            changed("normalizer", to={"type": "Sequence", "normalizers": [{"type": "Prepend"}]}),
            "uses 'Prepend'",
        ),
        (changed("normalizer", to=replace("Regex", "$")), "end of a line"),
        (changed("normalizer", to=replace("Glob", "*")), "Glob"),
        (changed("truncation", to={"max_length": 1}), "truncation"),
        (changed("padding", to={"strategy": "BatchLongest"}), "padding"),
        (changed("post_processor", to={"type": "Other"}), "Other"),
        (changed("post_processor", to=template("$B")), "one text has the piece"),
        (changed("post_processor", to=template("$A", "$A")), "the text 2 times"),
        (changed("post_processor", to=template("a")), "the text 0 times"),
        (changed("decoder", to={"type": "WordPiece"}), "WordPiece"),
        (changed("pre_tokenizer", to={"type": "Metaspace"}), "Metaspace"),
        (changed("pre_tokenizer", to={"type": "Digits", "other": 1}), "'other'"),
        (changed("pre_tokenizer", to=split("Glob", " ")), "Glob"),
        (
            changed("pre_tokenizer", to=sequence(byte_level(), byte_level())),
            "ByteLevel twice",
        ),
        (changed("model", "type", to="Unigram"), "Unigram"),
        (changed("model", "dropout", to=0.1), "dropout"),
        (changed("model", "end_of_word_suffix", to="</w>"), "a different token at the end"),
        (changed("model", "continuing_subword_prefix", to="##"), "a different token at the start"),
        (changed("model", "novel", to=1), "'novel'"),
        (changed("novel", to=1), "'novel'"),
        (changed("added_tokens", to=[added("é", 0xE9)]), "byte letters"),
        (changed("added_tokens", to=[added("Ġab", 257)]), "byte letters"),
        (lambda value: value["model"]["vocab"].update({" ": 300}), "byte letters"),
        (
            lambda value: value["model"].update(
                ignore_merges=True, vocab=value["model"]["vocab"] | {"▁x": 300}
            ),
            "byte letters",
        ),
    ],
)
def test_what_is_not_understood_is_refused_by_name(
    tmp_path: Path, change: Change, named: str
) -> None:
    value = document()
    read(value, tmp_path)
    change(value)
    with pytest.raises(UnsupportedError, match=named):
        read(value, tmp_path)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (changed("version", to="2.0"), "version is '2.0'"),
        (changed("added_tokens", to={}), "'added_tokens' is"),
        (changed("added_tokens", to=[added("", 258)]), "expected a non-empty string"),
        (changed("added_tokens", to=[added("<s>", 258)] * 2), "listed twice"),
        (changed("added_tokens", to=[added("<s>", True)]), "expected an integer"),
        (changed("post_processor", to=template("$A", "x", ids={})), "'special_tokens' do not"),
        (changed("post_processor", to=template("$A", "x", ids={"x": [-1]})), "the id -1"),
        (
            changed("post_processor", to=template("$A", "x", ids={"x": [900]})),
            "which is not a token",
        ),
        (changed("post_processor", to={"type": "TemplateProcessing"}), "no key 'special_tokens'"),
        (changed("post_processor", to={"type": "BertProcessing", "cls": ["x"]}), "'cls' is"),
        (changed("pre_tokenizer", to=split("Regex", "a|.", "Odd")), "expected one of Isolated"),
        (changed("pre_tokenizer", to=split("String", "")), "expected a non-empty string"),
        (changed("added_tokens", to=[{"id": 1, "content": "x"}]), "no key 'single_word'"),
        (changed("model", to=[]), "model is"),
        (changed("model", "vocab", to=[]), "the vocabulary is"),
        (changed("model", "vocab", "zz", to=-1), "the id -1"),
        (changed("model", "vocab", "zz", to="7"), "the id .7."),
        (changed("model", "vocab", "zz", to=1.0), "the id 1.0"),
        (changed("model", "vocab", "zz", to=2**32), "expected an integer"),
        (changed("model", "vocab", "zz", to=97), "the same id 97"),
        (changed("model", "merges", to={}), "'merges' is"),
        (changed("model", "merges", to=["a b", ["Ġ", "ab"]]), "merge 1 is"),
        (changed("model", "merges", to=["a b c"]), "merge 0 is .a b c."),
        (changed("model", "merges", to=["a b", "a b"]), "merges 0 and 1"),
        (changed("model", "merges", to=[["Ġth", "e"]]), r"\('Ġth', 'e'\) but 'Ġth' is not in"),
        (changed("model", "merges", to=[["a", 1]]), "merge 0 is"),
        (changed("model", "unk_token", to=3), "unk_token of the model is 3"),
        (changed("model", "ignore_merges", to=1), "ignore_merges of the model is 1"),
        (changed("pre_tokenizer", to="ByteLevel"), "pre_tokenizer is"),
        (changed("pre_tokenizer", "use_regex", to=None), "use_regex of"),
        (changed("pre_tokenizer", "add_prefix_space", to=0), "add_prefix_space of"),
    ],
)
def test_what_is_wrong_is_a_format_error_with_the_path(
    tmp_path: Path, change: Change, named: str
) -> None:
    value = document()
    change(value)
    with pytest.raises(FormatError, match=named) as caught:
        read(value, tmp_path)
    assert caught.value.path == str(tmp_path / "given.json")


def test_missing_parts_are_missing_keys(tmp_path: Path) -> None:
    for key in ("vocab", "merges"):
        value = document()
        del value["model"][key]
        with pytest.raises(MissingKeyError, match=key):
            read(value, tmp_path)


def small_file() -> bytes:
    value = document(unk_token="<s>")
    value["added_tokens"] = [added("<s>", 258)]
    value["model"]["vocab"]["<s>"] = 258
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def survives(path: Path, data: bytes) -> bool:
    """Read damaged bytes; any error but those that a reader may raise fails the test."""
    path.write_bytes(data)
    hf.recognize(path, data)
    try:
        load(path)
    except (FormatError, UnsupportedError, VocabularyError) as error:
        assert isinstance(error, ByteweldError) and str(error)
        return False
    return True


WRONG_VALUES: list[Any] = [None, True, 0, -1, 1.5, "", "x", [], {}, [[]], {"type": "x"}, 2**40]


def test_wrong_values_anywhere_are_refused_or_harmless(tmp_path: Path) -> None:
    whole = json.loads(small_file())
    whole["model"]["merges"] = [["a", "b"], ["Ġ", "ab"]]

    def paths(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for number, (key, inner) in enumerate(items):
            if number > 12:  # 256 bytes are one case
                return
            yield (*path, key)
            if isinstance(inner, dict | list):
                yield from paths(inner, (*path, key))

    for where in paths(whole, ()):
        for wrong in WRONG_VALUES:
            value = json.loads(json.dumps(whole))
            changed(*where, to=wrong)(value)
            survives(tmp_path / "t.json", json.dumps(value).encode())


# ---------------------------------------------------------------------- recognition and real files


def test_recognition_is_by_the_keys_of_the_outer_object() -> None:
    path = Path("any")
    assert hf.recognize(path, small_file())
    assert hf.recognize(path, b'{"version":"1.0","model":{"type":"BPE"')
    assert hf.recognize(path, b'{"version":"1.0", "truncation": null, "added_tokens": [')
    assert not hf.recognize(path, b'{"model": 17, "padding": 18, "a": {"model": {}}}')
    assert not hf.recognize(path, b'{"config": {"pattern": "x"}, "vocab": []}')
    assert not hf.recognize(path, b"")
    assert not hf.recognize(path, b"BPE1" + bytes(range(256)))


def test_recognition_takes_linear_time() -> None:
    def recognize(size: int) -> None:
        for head in (b'{"' + b'\\"' * size, b'{"a":' * (size // 2), b'{"model"' * (size // 4)):
            assert not hf.recognize(Path("any"), head)

    assert least_growth(recognize, 4000, 32_000, limit=24) < 24


def unpack(shared: Path, name: str, folder: Path) -> Path:
    path = folder / name.rpartition("/")[2]
    path.write_bytes(gzip.decompress((shared / "vocabs" / f"{name}.gz").read_bytes()))
    return path


@pytest.mark.parametrize("name", ["gpt2", "text_davinci002", "gpt4", "gpt4o"])
def test_real_files_are_read_exactly_and_written_again_with_the_same_ids(
    tmp_path: Path, shared: Path, name: str
) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    path = unpack(shared, f"hf/{name}.tokenizer.json", tmp_path)
    vocab = load(path)
    theirs = tokenizers.Tokenizer.from_file(str(path))
    save(vocab, tmp_path / "ours.json")
    ours = tokenizers.Tokenizer.from_file(str(tmp_path / "ours.json"))
    for text in [*HARD_TEXTS, (shared / "nasty/text/contractions.txt").read_text("utf-8")[:4000]]:
        same_ids(vocab, theirs, text)
        same_ids(vocab, ours, text)
    assert load(tmp_path / "ours.json") == vocab


def test_the_old_layout_of_a_file_is_the_same_vocabulary(tmp_path: Path, shared: Path) -> None:
    old = load(unpack(shared, "hf/gpt2_legacy.tokenizer.json", tmp_path))
    assert old == load(unpack(shared, "hf/gpt2.tokenizer.json", tmp_path))


def test_a_real_rank_file_is_written_with_the_ids_of_tiktoken(tmp_path: Path, shared: Path) -> None:
    import base64

    tiktoken = pytest.importorskip("tiktoken")
    lines = unpack(shared, "tiktoken/llama3.tiktoken", tmp_path).read_bytes().splitlines()
    ranks = {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, lines)}
    pattern = patterns.CK.replace(r"\p{N}+", r"\p{N}{1,3}")
    vocab = Vocabulary(
        {rank: token for token, rank in ranks.items()}, pattern=pattern, ranking="ranks"
    )
    tokenizer = real(vocab, tmp_path)
    peer = tiktoken.Encoding("l", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    texts = [p.read_bytes().decode("utf-8", "replace") for p in (shared / "nasty").rglob("*.txt")]
    for text in [*HARD_TEXTS, *(text[:100_000] for text in texts)]:
        assert tokenizer.encode(text).ids == peer.encode_ordinary(text)
