"""Vocabulary: what it accepts, what it refuses and how it says so, and that it is immutable."""

from __future__ import annotations

import inspect
import pickle

import pytest

from byteweld import (
    PATTERNS,
    AddedToken,
    Replace,
    Split,
    Tokenizer,
    Vocabulary,
    VocabularyError,
)
from byteweld.vocab import TRAITS, Merge

BYTES = {byte: bytes([byte]) for byte in range(256)}
SMALL = Vocabulary(
    BYTES | {256: b"ab", 257: b"<s>", 258: b"abc"},
    [(97, 98, 256), (256, 99, 258)],
    special_tokens={"<s>": 257},
    pattern=PATTERNS["gpt2"],
    roles={"bos": 257},
)


def changed(**changes):
    """SMALL with some arguments changed."""
    arguments = {
        "tokens": dict(SMALL.tokens),
        "merge_ids": SMALL.merge_ids,
        "special_tokens": dict(SMALL.special_tokens),
        "pattern": SMALL.pattern,
        "roles": dict(SMALL.roles),
    }
    return Vocabulary(**(arguments | changes))


def test_a_vocabulary_shows_its_tokens_merges_and_special_tokens():
    assert SMALL.merges == [(b"a", b"b"), (b"ab", b"c")]
    assert SMALL.merge_ids[1] == Merge(left=256, right=99, new=258)
    assert SMALL.tokens[258] == b"abc"
    assert SMALL.ids[b"abc"] == 258
    assert len(SMALL) == 259
    assert dict(SMALL.special_tokens) == {"<s>": 257}
    assert "259 tokens, 2 merges, 1 special" in repr(SMALL)
    assert SMALL.fingerprint[:8] in repr(SMALL)


def test_tokens_are_in_order_of_id_however_they_were_given():
    backwards = dict(sorted(SMALL.tokens.items(), reverse=True))
    assert list(changed(tokens=backwards).tokens) == list(range(259))
    assert changed(tokens=backwards) == SMALL


def test_special_tokens_are_not_ordinary_tokens():
    assert b"<s>" not in SMALL.ids
    assert 257 not in dict(SMALL.ordinary())
    assert len(dict(SMALL.ordinary())) == 258


def test_a_special_token_may_have_the_bytes_of_an_ordinary_one():
    vocab = Vocabulary(BYTES | {256: b"a"}, special_tokens={"a": 256})
    assert vocab.ids[b"a"] == 97


def test_a_special_token_may_share_the_id_of_a_merge_as_in_hugging_face():
    vocab = Vocabulary(BYTES | {256: b"ab"}, [(97, 98, 256)], special_tokens={"ab": 256})
    assert vocab.ids[b"ab"] == 256


def test_several_merges_may_build_one_token():
    tokens = BYTES | {256: b"ab", 257: b"bc", 258: b"abc"}
    merges = [(97, 98, 256), (98, 99, 257), (256, 99, 258), (97, 257, 258)]
    assert len(Vocabulary(tokens, merges).merge_ids) == 4


def test_ids_may_have_gaps_and_be_large():
    assert len(Vocabulary(BYTES | {100_000: b"ab"}, [(97, 98, 100_000)])) == 257


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tokens": BYTES | {256: b""}}, "token 256 is b''"),
        ({"tokens": BYTES | {256: "ab"}}, "token 256 is 'ab'"),
        ({"tokens": BYTES | {-1: b"ab"}}, "-1"),
        ({"tokens": BYTES | {2**32 - 1: b"ab"}}, str(2**32 - 1)),
        ({"tokens": BYTES | {1.5: b"ab"}}, "1.5"),
        ({"tokens": {**BYTES, 300: b"a"}}, "ids 97 and 300 are both b'a'"),
        ({"tokens": {k: v for k, v in BYTES.items() if k != 65}}, "0x41"),
        ({"special_tokens": {"<s>": 999}}, "special token '<s>' has id 999"),
        ({"special_tokens": {"<t>": 257}}, "special token '<t>' has id 257"),
        ({"special_tokens": {"<s>": 97}}, "special token '<s>' has id 97"),
        ({"roles": {"bos": 999}}, "role 'bos' is id 999"),
        ({"roles": {"cls": 257}}, "unknown roles"),
        ({"merge_ids": [(97, 98, 300)]}, "merge 0 is .97, 98. -> 300, but 300 is not a token"),
        ({"merge_ids": [(97, 300, 256)]}, "300 is not a token"),
        ({"merge_ids": [(97, 99, 256)]}, "merge 0 makes b'a' . b'c', but token 256 is b'ab'"),
        ({"merge_ids": [(97, 98, 256), (97, 98, 256)]}, "merges 0 and 1"),
        ({"merge_ids": [(257, 98, 256)]}, "257 is the special token b'<s>'"),
        ({"alphabet": "utf-8"}, "alphabet is 'utf-8'"),
        ({"ranking": "rank"}, "ranking is 'rank'"),
        ({"ranking": "ranks"}, "ranked by id has no merge list"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_vocabulary_that_breaks_its_rules_is_refused_by_name(change, words):
    if "tokens" in change:
        change |= {"merge_ids": (), "special_tokens": {}, "roles": {}}
    with pytest.raises(VocabularyError, match=words):
        changed(**change)


@pytest.mark.parametrize(
    "change",
    [
        {"tokens": [b"a", b"b"]},
        {"tokens": None},
        {"tokens": BYTES | {"256": b"ab"}, "merge_ids": (), "special_tokens": {}, "roles": {}},
        {"special_tokens": ["<s>"]},
        {"merge_ids": [(97, 98)]},
        {"pattern": 5},
    ],
    ids=["list of tokens", "no tokens", "id of str", "list of specials", "pair", "number"],
)
def test_arguments_of_the_wrong_type_are_type_or_vocabulary_errors(change):
    with pytest.raises((TypeError, VocabularyError)):
        changed(**change)


def test_an_ascii_vocabulary_needs_no_token_for_other_bytes():
    assert len(Vocabulary({0: b"a"}, alphabet="ascii")) == 1
    with pytest.raises(VocabularyError, match="255 of 256 bytes"):
        Vocabulary({0: b"a"})


@pytest.mark.parametrize(
    "name", ["tokens", "pattern", "merge_ids", "special_tokens", "ids", "other"]
)
def test_a_vocabulary_cannot_be_changed(name):
    vocab = changed()
    with pytest.raises(AttributeError):
        setattr(vocab, name, {})
    assert vocab == SMALL


def test_the_mappings_of_a_vocabulary_cannot_be_changed():
    given = dict(SMALL.tokens)
    vocab = changed(tokens=given)
    given[97] = b"z"
    assert vocab == SMALL
    for mapping in (vocab.tokens, vocab.special_tokens, vocab.roles, vocab.ids):
        with pytest.raises(TypeError):
            mapping["new"] = 1  # type: ignore[index]


# ---------------------------------------------------------------------- fingerprint


def test_a_fingerprint_is_sixty_four_hex_digits_and_stays():
    assert len(SMALL.fingerprint) == 64 and int(SMALL.fingerprint, 16) >= 0
    assert changed().fingerprint == SMALL.fingerprint
    assert hash(changed()) == hash(SMALL)


@pytest.mark.parametrize(
    "change",
    [
        {"pattern": None},
        {"pattern": PATTERNS["o200k"]},
        {"merge_ids": SMALL.merge_ids[:1]},
        {"merge_ids": SMALL.merge_ids[::-1]},
        {"special_tokens": {}, "roles": {}},
        {"ignore_merges": True},
        {"tokens": dict(SMALL.tokens) | {259: b"zz"}},
    ],
    ids=str,
)
def test_everything_that_can_change_an_id_changes_the_fingerprint(change):
    other = changed(**change)
    assert other.fingerprint != SMALL.fingerprint
    assert other != SMALL


@pytest.mark.parametrize("roles", [{}, {"eos": 257}, dict.fromkeys(["bos", "pad", "unk"], 257)])
def test_roles_change_no_id_and_so_no_fingerprint(roles):
    other = changed(roles=roles)
    assert other.fingerprint == SMALL.fingerprint
    assert other != SMALL  # but they are part of the value


@pytest.mark.parametrize("alphabet", ["ascii", "partial"])
def test_unk_decides_ids_where_text_can_lack_a_token(alphabet):
    def made(**roles):
        vocab = Vocabulary(BYTES | {256: b"<u>"}, roles=roles, alphabet=alphabet)
        return vocab.fingerprint

    assert made() == made(bos=256) != made(unk=256) == made(unk=256, eos=256)


def test_fingerprints_are_the_same_in_every_version():
    merged = (BYTES | {256: b"ab"}, [(97, 98, 256)])
    chain = [Split(r"\d", "removed"), "prefix-space"]
    found = [
        Vocabulary(*merged),
        Vocabulary(*merged, pattern="gpt2"),
        Vocabulary(*merged, steps=chain),
        Vocabulary(*merged, normalizer=["nfc", Replace("a", "b")]),
        Vocabulary(merged[0], ranking="ranks"),
        Vocabulary(*merged, ignore_merges=True),
        Vocabulary(*merged, template=((1,), (2,))),
    ]
    assert [vocab.fingerprint[:16] for vocab in found] == [
        "eb5dd269c12a522c",
        "598120a8cbf5db58",
        "2499ae868dab07f6",
        "03a828e25722f70e",
        "d8551d24b879ec7e",
        "e2e8ebe99f1771e9",
        "3a512d18bed57ef8",
    ]


def test_every_trait_is_an_argument_of_the_constructor_and_survives_pickling():
    given = {
        "added_tokens": (AddedToken("<u>", 256, lstrip=True),),
        "pattern": PATTERNS["gpt2"],
        "steps": (Split(r"\d", "removed"), "prefix-space"),
        "normalizer": ("nfc", Replace("a+", "b")),
        "template": ((1,), (2,)),
        "roles": {"unk": 256},
        "alphabet": "partial",
        "ranking": "ranks",
        "ignore_merges": True,
    }
    assert given.keys() == set(TRAITS)
    assert {"self", "tokens", "merge_ids", "special_tokens", *given} == {
        *inspect.signature(Vocabulary.__init__).parameters
    }
    for without in ("steps", "pattern"):  # one of the two
        traits = {name: value for name, value in given.items() if name != without}
        vocab = Vocabulary(BYTES | {256: b"<u>"}, **traits)
        assert traits.items() <= vocab.traits().items()
        assert pickle.loads(pickle.dumps(vocab)).traits() == vocab.traits()


def test_byte_letters_that_no_step_sees_make_no_difference():
    chain = [Split(r"\d"), "byte-letters"]
    assert Vocabulary(BYTES, steps=chain) == Vocabulary(BYTES, pattern=r"\d")


def test_a_token_with_the_bytes_of_a_made_token_is_its_twin_and_never_produced() -> None:
    tokens = BYTES | {256: b"ab", 300: b"ab"}
    vocab = Vocabulary(tokens, [(97, 98, 300)])
    assert vocab.twins == {256}
    assert vocab.ids[b"ab"] == 300
    assert "twin tokens" in vocab.extras
    with pytest.raises(VocabularyError, match="a twin of another token"):
        Vocabulary(tokens | {301: b"abc"}, [(97, 98, 300), (256, 99, 301)])
    with pytest.raises(VocabularyError, match="ids 256 and 300 are both b'ab'"):
        Vocabulary(tokens)  # no merge says which of the two text becomes


def test_the_order_of_special_tokens_that_share_an_id_changes_nothing() -> None:
    tokens = BYTES | {256: b"<a>"}
    one = Vocabulary(tokens, special_tokens={"<a>": 256, "<b>": 256})
    assert one == Vocabulary(tokens, special_tokens={"<b>": 256, "<a>": 256})


def test_a_split_by_a_bare_word_is_a_split_by_that_word() -> None:
    assert Vocabulary(BYTES, steps=[Split("cl100k")]).pattern == "(?:cl100k)"
    chain = Vocabulary(BYTES, steps=[Split("a", "removed"), "byte-letters"]).steps
    assert chain == (Split("(?:a)", "removed"),)  # no step sees the letters


def test_inverting_a_split_that_treats_both_the_same_changes_nothing() -> None:
    for behavior in ("isolated", "contiguous"):
        one = Vocabulary(BYTES, steps=[Split(r"\d", behavior, True), "byte-letters"])
        assert one == Vocabulary(BYTES, steps=[Split(r"\d", behavior), "byte-letters"])


def test_two_added_tokens_that_are_equal_when_normalized_are_refused() -> None:
    tokens = BYTES | {256: b"HTTP", 257: b"http"}
    added = [AddedToken(t, i, normalized=True) for t, i in (("HTTP", 256), ("http", 257))]
    vocab = Vocabulary(tokens, added_tokens=added, normalizer=["lowercase"])
    with pytest.raises(VocabularyError, match="the same text when normalized"):
        Tokenizer(vocab)


def test_the_spelling_of_a_pattern_changes_no_fingerprint() -> None:
    def fingerprint(pattern: str) -> str:
        return Vocabulary(BYTES, pattern=pattern).fingerprint

    mine = r"'(?:s|d)|[ ]?\p{L}+|[0-9]{1,4}|\s+(?!\S)|\s+|[^\s\p{L}]"
    spelled = r"(?:'s|'d)| ?[\p{L}]+|[0-9]{1,4}|\s++$|\s+(?!\S)|\s|[^\s\p{L}]"
    assert fingerprint(mine) == fingerprint(spelled)
    assert fingerprint(mine) != fingerprint(mine.replace("{1,4}", "{1,3}"))


# ---------------------------------------------------------------------- ambiguous ids


def test_ambiguous_ids_are_special_ids_that_text_may_become():
    tokens = BYTES | {256: b"ab", 257: b"<s>", 258: b"cd"}
    merges = [(97, 98, 256)]

    def ambiguous(**more):
        return Vocabulary(tokens, merges, **more).ambiguous_ids

    assert ambiguous() == ambiguous(special_tokens={"<s>": 257}) == frozenset()
    assert ambiguous(special_tokens={"<s>": 257, "ab": 256}) == {256}
    assert ambiguous(special_tokens={"a": 97}) == {97}
    # Without a merge, the token belongs to the special token alone.
    assert ambiguous(special_tokens={"cd": 258}) == frozenset()
    others = [AddedToken("<s>", 257), AddedToken("<t>", 257, special=False)]
    assert ambiguous(added_tokens=others) == {257}
    assert ambiguous(added_tokens=[AddedToken("ab", 256, special=False)]) == frozenset()
    # Two special tokens with one id are "shared ids", which nobody can forge.
    both = Vocabulary(tokens, merges, special_tokens={"<s>": 257, "<t>": 257})
    assert both.extras == ("shared ids",) and not both.ambiguous_ids
