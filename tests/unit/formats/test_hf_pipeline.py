"""Pipelines of tokenizer.json, handmade and random, in the real `tokenizers` and in byteweld.

Each file is opened by the real library, read by us, written by us and opened by the library again:
all give the same ids, with special tokens and with them as plain text.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byteweld import Tokenizer, formats, patterns
from byteweld._byte_letters import BYTE_TO_CHAR, bytes_to_chars
from byteweld.errors import UnsupportedError
from byteweld.formats._hf_pipeline import _FORM_NAMES, DIGITS, PUNCTUATION
from byteweld.vocab import AddedToken, NormalForm, Replace, Split, Vocabulary
from tests.helpers import hf_files
from tests.helpers.hf_files import Part, added, byte_level, replace, sequence, split
from tests.helpers.strategies import examples

tokenizers = pytest.importorskip("tokenizers", reason="the real tokenizers is not installed")

WORDS = "the The THE then there's it's café naïve ﬁne 日本語 ½ 12345 a1b2 x.y,z! ¿que? <s> <t>"
HARD_TEXTS = [
    "",
    " ",
    "\n",
    "the",
    " the  the\n\nthe\t",
    "a\r\nb \r\n c",
    "<s>the<s> <t>  <t>the <m> the<m>THE <w>x <w> x<w>y",
    "cafe\u0301 CAFÉ ﬁne ǅ ΑΣ \u1e9b\u0323 \uac01 \u1100\u1161\u11a8",
    "１２３ ½ ² Ⅷ 12345 1 2",
    "«quoted» — dash… (paren) $5 +1 <tag> ^_^ 日本。語",
    "\x00\x7f\x85\xa0\u3000\u200b\u2028",
    "🦊👩‍👩‍👧 \U000e0041 \uffff \U00011de0\U00016ff4",
    "õö÷ éÀ Ġ Ċ é",
    WORDS,
]
ALPHABET = "the THE 's<>mw\n\t .,!1½²é\u0301ﬁ日õ🦊\u200b"


def model(**changes: Any) -> Part:
    """Return a model with merges inside and across words."""
    vocab = {BYTE_TO_CHAR[byte]: byte for byte in range(256)}
    merges: list[list[str]] = []
    rng = random.Random(3)
    letters = bytes_to_chars((WORDS + "  \n\n" + WORDS.lower()).encode())
    pieces = list(letters)
    while len(merges) < 120:
        index = rng.randrange(len(pieces) - 1)
        pair = pieces[index : index + 2]
        if pair[0] + pair[1] not in vocab:
            vocab[pair[0] + pair[1]] = len(vocab)
            merges.append(pair)
        pieces[index : index + 2] = [pair[0] + pair[1]]
        if len(pieces) < 20:
            pieces = list(letters)
    return {"type": "BPE", "unk_token": None, "vocab": vocab, "merges": merges} | changes


def document(**parts: Any) -> Part:
    return hf_files.document(**({"model": model()} | parts))


def number_added(value: Part) -> None:
    """Give the added tokens of a file the ids that the library gives them."""
    vocab = value["model"]["vocab"]
    next_id = len(vocab)
    for token in value["added_tokens"]:
        token["id"] = vocab.get(token["content"], next_id)
        next_id += token["content"] not in vocab


Encode = Callable[[str], list[int] | None]


def encoder(real: Any) -> Encode:
    """Return the encoder of a real tokenizer; it returns None for a text on which it panics.

    It panics if one added token takes the whitespace that another starts with.
    """

    def encode(text: str) -> list[int] | None:
        try:
            ids: list[int] = real.encode(text, add_special_tokens=False).ids
        except BaseException as error:
            if "bad split" in str(error):
                return None
            raise
        return ids

    return encode


def encoders(text: str) -> list[Encode]:
    """Return a real tokenizer's encoders, with special tokens and with them as plain text."""
    found = []
    for plain in (False, True):
        real = tokenizers.Tokenizer.from_str(text)
        real.encode_special_tokens = plain
        found.append(encoder(real))
    return found


def check(value: Part, folder: Path, texts: list[str]) -> Vocabulary:
    """Check that the library, what we read, and what we write from it give the same ids."""
    number_added(value)
    path, again = folder / "given.json", folder / "again.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    vocab = formats.load(path, format="huggingface")
    formats.save(vocab, again, overwrite=True, format="huggingface")
    assert formats.load(again, format="huggingface") == vocab
    theirs = encoders(path.read_text("utf-8"))
    written = encoders(again.read_text("utf-8"))
    tok = Tokenizer(vocab)
    for text in texts:
        special, plain = (encode(text) for encode in theirs)
        assert [encode(text) for encode in written] == [special, plain], repr(text)
        if special is not None:
            assert tok.encode(text, allowed_special="all") == special, repr(text)
        if plain is not None:
            assert tok.encode_ordinary(text) == plain, repr(text)
    return vocab


# ---------------------------------------------------------------------- the pre-tokenizer


@pytest.mark.parametrize(
    "steps",
    [
        [byte_level(use_regex=True, add_prefix_space=True)],
        [byte_level(add_prefix_space=True)],
        [split("Regex", r"\s+"), byte_level(add_prefix_space=True, use_regex=True)],
        [{"type": "Digits", "individual_digits": True}, byte_level(use_regex=True)],
        [{"type": "Digits", "individual_digits": False}, byte_level()],
        [byte_level(use_regex=True), {"type": "Digits", "individual_digits": False}],
        [byte_level(), {"type": "Digits", "individual_digits": True}, split("Regex", "Ġ+")],
        [{"type": "Punctuation"}, byte_level()],
        [{"type": "Punctuation", "behavior": "Contiguous"}, byte_level(use_regex=True)],
        [{"type": "Punctuation", "behavior": "MergedWithNext"}, byte_level()],
        [byte_level(), {"type": "Punctuation", "behavior": "Removed"}],
        [split("String", "the"), byte_level()],
        [split("Regex", "the", "Removed"), byte_level()],
        [split("String", ".", "MergedWithPrevious"), byte_level()],
        [split("String", "a+b(c)[d]{e}^$|\\?*", "Removed"), split("String", "-&~#"), byte_level()],
        [
            split("String", "\n", "MergedWithNext"),
            split("String", "\u200b", "Removed"),
            byte_level(),
        ],
        [split("Regex", r"\p{N}{1,3}"), split("Regex", patterns.CK), byte_level()],
        [split("Regex", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"), byte_level()],
        [split("Regex", "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"), byte_level()],
        [split("Regex", "[\r\n]"), split("Regex", r"\s?\p{L}+"), byte_level()],
        [
            split(
                "Regex",
                "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?"
                "[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
            ),
            byte_level(),
        ],
        [
            split("Regex", r"<\|eot\|>|'s|'t|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+", "Removed", True),
            byte_level(),
        ],
        [sequence(split("Regex", " "), sequence(sequence(), byte_level()))],
    ],
)
def test_chains_of_steps_have_the_librarys_ids(tmp_path: Path, steps: list[Part]) -> None:
    for one in {len(steps) == 1, False}:
        value = document(pre_tokenizer=steps[0] if one else sequence(*steps))
        check(value, tmp_path, [*HARD_TEXTS, "a+b(c)[d]{e}^$|\\?*x-&~#y"])


@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize(
    "behavior", ["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
)
def test_every_behavior_has_the_librarys_ids(tmp_path: Path, behavior: str, invert: bool) -> None:
    for pattern in (r"[\p{L}']+", " ", r"the|\s", r"\p{N}"):
        steps = [split("Regex", pattern, behavior, invert), byte_level()]
        check(document(pre_tokenizer=sequence(*steps)), tmp_path, HARD_TEXTS)


def members(step: Any) -> set[int]:
    """Return the characters that a pre-tokenizer isolates."""
    points = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000 and c != 97]
    found = set()
    for start in range(0, len(points), 5000):
        text = "".join(f"a{chr(c)}" for c in points[start : start + 5000])
        pieces = step.pre_tokenize_str(text + "a")
        found |= {ord(piece) for piece, (begin, _) in pieces if begin % 2 and len(piece) == 1}
    return found


@pytest.mark.parametrize(
    ("pattern", "step"),
    [
        (DIGITS, tokenizers.pre_tokenizers.Digits(individual_digits=True)),
        (PUNCTUATION, tokenizers.pre_tokenizers.Punctuation("isolated")),
    ],
)
def test_the_classes_of_digits_and_punctuation_are_the_librarys(pattern: str, step: Any) -> None:
    real = members(step)
    assert members(tokenizers.pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated")) == real
    vocab = Vocabulary({byte: bytes([byte]) for byte in range(256)}, pattern=pattern)
    regex = pytest.importorskip("regex")
    ours = regex.compile(vocab.pattern)
    assert {c for c in range(0x110000) if ours.fullmatch(chr(c))} == real


def test_digits_and_punctuation_are_written_as_themselves(tmp_path: Path) -> None:
    steps = [
        {"type": "Punctuation", "behavior": "Contiguous"},
        {"type": "Digits", "individual_digits": False},
        byte_level(),
    ]
    vocab = check(document(pre_tokenizer=sequence(*steps)), tmp_path, ["a.1"])
    assert vocab.steps == (Split(PUNCTUATION, "contiguous"), Split(DIGITS, "contiguous"))
    written = json.loads((tmp_path / "again.json").read_text("utf-8"))
    assert written["pre_tokenizer"]["pretokenizers"] == steps


@pytest.mark.parametrize(
    "steps",
    [
        ["prefix-space", Split(" +", "removed")],
        ["prefix-space", "prefix-space"],
        ["byte-letters", "prefix-space"],
    ],
)
def test_steps_that_no_byte_level_makes_are_refused(tmp_path: Path, steps: list[Any]) -> None:
    vocab = Vocabulary({byte: bytes([byte]) for byte in range(256)}, steps=steps)
    with pytest.raises(
        UnsupportedError, match=r"step '.*' is not where a ByteLevel can express it"
    ):
        formats.save(vocab, tmp_path / "t.json", format="huggingface")


# ---------------------------------------------------------------------- the normalizer


def test_every_named_normalizer_has_a_type_in_the_file() -> None:
    assert sorted(map(str, _FORM_NAMES)) == sorted(get_args(NormalForm))


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([{"type": "NFC"}], ("nfc",)),
        ([{"type": "NFD"}], ("nfd",)),
        ([{"type": "NFKC"}, {"type": "Lowercase"}], ("nfkc", "lowercase")),
        ([{"type": "NFKD"}], ("nfkd",)),
        ([replace("Regex", r"\s+", " "), {"type": "NFC"}], (Replace(r"\s+", " "), "nfc")),
        ([replace("String", ".", "")], (Replace(r"\.", ""),)),
        ([replace("String", "the", "THE the")], (Replace("(?:the)", "THE the"),)),
        ([], ()),
    ],
)
def test_normalizers_have_the_librarys_ids(
    tmp_path: Path, steps: list[Part], expected: tuple[Any, ...]
) -> None:
    whole = {"type": "Sequence", "normalizers": steps}
    for normalizer in [whole, {"type": "Sequence", "normalizers": [whole]}, *steps[:1]]:
        value = document(normalizer=normalizer)
        value["added_tokens"] = [added("<s>"), added("The", special=False, normalized=True)]
        vocab = check(value, tmp_path, HARD_TEXTS)
        assert vocab.normalizer == (expected if "normalizers" in normalizer else expected[:1])


# ---------------------------------------------------------------------- added tokens

FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")


@pytest.mark.parametrize("flag", FLAGS)
def test_each_flag_of_an_added_token_has_the_librarys_ids(tmp_path: Path, flag: str) -> None:
    texts = ["<m>", "<w>", "the", "é", "  ", "日本"]
    value = document()
    value["added_tokens"] = [
        added(text, **(dict.fromkeys(FLAGS, False) | {flag: True})) for text in texts
    ]
    if flag == "special":  # then é is a special token and the letter of byte E9
        value["added_tokens"].pop(3)
    vocab = check(value, tmp_path, [*HARD_TEXTS, "x <m> <m>\ty the<w>the  é  日本"])
    assert ("added token flags" in vocab.extras) == (flag != "special")


def test_normalized_makes_no_difference_if_all_tokens_have_it_and_nothing_normalizes(
    tmp_path: Path,
) -> None:
    value = document()
    value["added_tokens"] = [added("<s>", normalized=True), added("<t>", normalized=True)]
    vocab = check(value, tmp_path, HARD_TEXTS)
    assert all(token.is_plain for token in vocab.added_tokens)
    value["added_tokens"][0]["normalized"] = False
    vocab = check(value, tmp_path, [*HARD_TEXTS, "<t<s>>"])
    assert [token.normalized for token in vocab.added_tokens] == [False, True]


def test_an_added_token_may_be_an_ordinary_token_too(tmp_path: Path) -> None:
    value = document()
    made = value["model"]["merges"][0]
    joined = "".join(made)
    value["added_tokens"] = [
        added("õ", special=False, normalized=True),
        added("a", special=True),
        added(joined, special=False),
    ]
    vocab = check(value, tmp_path, [*HARD_TEXTS, joined, f"x{joined}y"])
    assert vocab.tokens[0xF5] == b"\xf5"
    assert AddedToken("õ", 0xF5, special=False, normalized=True) in vocab.added_tokens
    assert vocab.ids[b"a"] == vocab.special_tokens["a"] == 97


def test_added_tokens_stay_out_of_a_model_that_looks_up_whole_pretokens(tmp_path: Path) -> None:
    value = document(pre_tokenizer=byte_level(), model=model(ignore_merges=True))
    value["added_tokens"] = [added("<new>"), added("<newer>")]
    check(value, tmp_path, ["<new>", "<newer>", "x<new>"])
    written = json.loads((tmp_path / "again.json").read_text("utf-8"))
    assert "<new>" not in written["model"]["vocab"]
    # The unk token stays, or the library would fail on unknown text.
    vocab = {text: n for n, text in enumerate(t for t in model()["vocab"] if "!" not in t)}
    merges = [pair for pair in model()["merges"] if "".join(pair) in vocab]
    value["model"] = model(
        vocab=vocab | {"<unk>": len(vocab)}, merges=merges, unk_token="<unk>", ignore_merges=True
    )
    value["added_tokens"] = [added("<unk>")]
    check(value, tmp_path, ["x!<unk>y", "!"])


# ---------------------------------------------------------------------- alphabets


@pytest.mark.parametrize("unk", [None, "<unk>"])
def test_bytes_without_a_token_are_unknown_or_dropped(tmp_path: Path, unk: str | None) -> None:
    whole = model()
    gone = {BYTE_TO_CHAR[b] for b in (0xC3, 0xA9, 0x21, 0xE6, 0x0A)}
    merges = [pair for pair in whole["merges"] if not gone & set("".join(pair))]
    kept = {text: i for text, i in whole["vocab"].items() if not gone & set(text)}
    vocab = {text: n for n, text in enumerate(kept)}
    if unk:
        vocab[unk] = len(vocab)
    for ignore_merges in (False, True):
        value = document(
            model=model(vocab=vocab, merges=merges, unk_token=unk, ignore_merges=ignore_merges)
        )
        value["added_tokens"] = [added("<|unk|>")]  # a name alone does not declare unk
        found = check(value, tmp_path, HARD_TEXTS)
        assert found.alphabet == "partial"
        assert found.roles == ({"unk": vocab[unk]} if unk else {})


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"unk_token": "<unk>"}, "is not in the vocabulary; the library fails"),
        ({"unk_token": "!", "fuse_unk": True}, "fuse_unk"),
        ({"byte_fallback": True}, "byte_fallback"),
    ],
)
def test_models_in_which_unknown_bytes_become_other_tokens_are_refused(
    tmp_path: Path, change: Part, named: str
) -> None:
    value = document(model=model(**change))
    vocab = value["model"]["vocab"]
    vocab["<0xC3>"] = vocab.pop("ÿ")
    path = tmp_path / "t.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    with pytest.raises(UnsupportedError, match=named):
        formats.load(path, format="huggingface")


def test_tokens_that_are_not_in_byte_letters_are_kept_and_no_text_becomes_them(
    tmp_path: Path,
) -> None:
    value = document()
    vocab, merges = value["model"]["vocab"], value["model"]["merges"]
    size = len(vocab)
    vocab |= {"日": size, "→": size + 1, bytes_to_chars("→".encode()): size + 2}
    first, second, third = bytes_to_chars("→".encode())
    if first + second not in vocab:
        vocab[first + second] = size + 3
        merges.append([first, second])
    merges.append([first + second, third])
    found = check(value, tmp_path, [*HARD_TEXTS, "→日→"])
    assert found.tokens[size] == "日".encode()
    assert found.twins == {size + 1}


# ---------------------------------------------------------------------- the post-processor


def template(single: str, tokens: dict[str, int]) -> Any:
    return tokenizers.processors.TemplateProcessing(
        single=single, pair="$A $B", special_tokens=list(tokens.items())
    )


@pytest.mark.parametrize(
    ("make", "expected", "roles"),
    [
        (lambda: template("[A] $A", {"[A]": 65}), ((65,), ()), {"bos": 65}),
        (
            lambda: template("[A] [B] $A [C] [B]", {"[A]": 65, "[B]": 66, "[C]": 67}),
            ((65, 66), (67, 66)),
            {"bos": 65, "eos": 66},
        ),
        (
            lambda: tokenizers.processors.RobertaProcessing(("[B]", 66), ("[A]", 65)),
            ((65,), (66,)),
            {"bos": 65, "eos": 66},
        ),
        (
            lambda: tokenizers.processors.BertProcessing(("[B]", 66), ("[A]", 65)),
            ((65,), (66,)),
            {"bos": 65, "eos": 66},
        ),
        (
            lambda: tokenizers.processors.Sequence(
                [tokenizers.processors.ByteLevel(), template("$A [B]", {"[B]": 66})]
            ),
            ((), (66,)),
            {"eos": 66},
        ),
        (lambda: tokenizers.processors.ByteLevel(), ((), ()), {}),
    ],
)
def test_what_a_post_processor_adds_is_a_template(
    tmp_path: Path, make: Callable[[], Any], expected: Any, roles: dict[str, int]
) -> None:
    real = tokenizers.Tokenizer.from_str(json.dumps(document()))
    real.post_processor = make()
    vocab = check(json.loads(real.to_str()), tmp_path, HARD_TEXTS)
    assert vocab.template == expected
    assert vocab.roles == roles
    again = tokenizers.Tokenizer.from_file(str(tmp_path / "again.json"))
    for text in HARD_TEXTS:
        ids = [*expected[0], *real.encode(text, add_special_tokens=False).ids, *expected[1]]
        assert real.encode(text).ids == again.encode(text).ids == ids


def test_tokens_added_twice_are_refused(tmp_path: Path) -> None:
    one = json.loads(template("[A] $A", {"[A]": 65}).__getstate__())
    value = document(post_processor={"type": "Sequence", "processors": [one, one]})
    path = tmp_path / "t.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    with pytest.raises(UnsupportedError, match="adds tokens twice"):
        formats.load(path, format="huggingface")


# ---------------------------------------------------------------------- at random

BEHAVIORS = st.sampled_from(
    ["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
)
PATTERNS = st.sampled_from(
    [r"\s+", " ", r"\p{L}+", r"\p{N}{1,2}", "[the]+", r"(?i:'s|'t)", r".(?!\s)", patterns.CK]
)
SPLITS = st.one_of(
    st.builds(split, st.just("Regex"), PATTERNS, BEHAVIORS, st.booleans()),
    st.builds(split, st.just("String"), st.sampled_from(["t", ".", "he", "\n"]), BEHAVIORS),
    st.builds(lambda b: {"type": "Digits", "individual_digits": b}, st.booleans()),
    st.builds(lambda b: {"type": "Punctuation", "behavior": b}, BEHAVIORS),
)
NORMALIZERS = st.sampled_from(
    [
        *({"type": name} for name in _FORM_NAMES.values()),
        replace("Regex", r"\s+", " "),
        replace("String", "e", "é"),
        replace("Regex", "[<>]", ""),
    ]
)
ADDED = st.builds(
    lambda text, flags: added(text, **dict(zip(FLAGS, flags, strict=True))),
    st.sampled_from(["<s>", "<m>", "the", " the", "th", "ﬁ", "日", "  ", "\n", "<s><m>", "e", "!"]),
    st.tuples(*[st.booleans()] * len(FLAGS)),
)


def is_ambiguous(value: Part) -> bool:
    """Whether two added tokens are equal once normalized: the library then takes either."""
    if not value["normalizer"]["normalizers"]:
        return False
    real = tokenizers.Tokenizer.from_str(json.dumps(value))
    texts = [t["content"] for t in value["added_tokens"] if t["normalized"]]
    return len({real.normalizer.normalize_str(text) for text in texts}) < len(texts)


@examples(150)
@given(
    normalizers=st.lists(NORMALIZERS, max_size=3),
    before=st.lists(SPLITS, max_size=2),
    level=st.builds(
        lambda p, r: byte_level(add_prefix_space=p, use_regex=r), st.booleans(), st.booleans()
    ),
    after=st.lists(SPLITS, max_size=2),
    tokens=st.lists(ADDED, max_size=5, unique_by=lambda token: str(token["content"])),
    gone=st.sets(st.sampled_from(b"!\n\xc3\xe6e "), max_size=2),
    unk=st.booleans(),
    ignore_merges=st.booleans(),
    texts=st.lists(st.text(ALPHABET, max_size=30), min_size=3, max_size=6),
)
def test_random_pipelines_have_the_librarys_ids(
    tmp_path: Path,
    normalizers: list[Part],
    before: list[Part],
    level: Part,
    after: list[Part],
    tokens: list[Part],
    gone: set[int],
    unk: bool,
    ignore_merges: bool,
    texts: list[str],
) -> None:
    whole = model()
    lost = {BYTE_TO_CHAR[byte] for byte in gone}
    kept = [text for text in whole["vocab"] if not lost & set(text)]
    vocab = {text: n for n, text in enumerate([*kept, *["<unk>"] * unk])}
    merges = [pair for pair in whole["merges"] if "".join(pair) in vocab]
    value = document(
        model=model(
            vocab=vocab,
            merges=merges,
            unk_token="<unk>" if unk else None,
            ignore_merges=ignore_merges,
        ),
        normalizer={"type": "Sequence", "normalizers": normalizers},
        pre_tokenizer=sequence(*before, level, *after),
        added_tokens=tokens,
    )
    if is_ambiguous(value):
        return
    try:
        check(value, tmp_path, [*texts, "".join(t["content"] for t in tokens).join(texts)])
    except UnsupportedError as error:  # an added token is also an ordinary one in a way we refuse
        assert "token '" in str(error)
