"""Real vocabularies, hostile texts: the shared zoo, every code point, kinds of characters in a row.

Ids == those of the real tiktoken (rank files) and the real tokenizers (tokenizer.json), which read
the same files. The longest texts are compared with frozen answers.
"""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
import unicodedata
from functools import cache, cached_property
from itertools import groupby, product

import pytest

import byteweld
from byteweld import peers, proof
from tests.helpers import frozen

pytest.importorskip("tiktoken", reason="the real tiktoken is not installed")
pytest.importorskip("tokenizers", reason="the real tokenizers is not installed")

# One per way of splitting; the others are similar to one of these, and are slow tests.
RANKS = ["r50k_base", "cl100k_base", "o200k_base", "qwen3_6", "kimi_k2"]
FILES = ["qwen2_5", "deepseek_v3", "falcon", "starcoder"]
MORE_RANKS = ["llama3", "qwen"]
MORE_FILES = ["gpt2", "command_r_plus"]
NAMES = [*(("tiktoken", name) for name in RANKS), *(("hf", name) for name in FILES)]
MORE_NAMES = [*(("tiktoken", name) for name in MORE_RANKS), *(("hf", name) for name in MORE_FILES)]

# One or two of every kind of character that known patterns distinguish, and of those that could be
# taken for another kind.
KINDS = [
    *("a", "A", "s", "é", "ſ", "ǅ", "ʰ", "漢", "ع"),  # cased, titlecase, modifier, Han, other
    *("\u0301", "\u0903"),  # marks
    *("1", "٣", "½", "Ⅷ"),  # numbers: decimal, other, letter
    *("'", "’", ".", "/", "$", "🙂"),  # punctuation and symbols
    *(" ", "\t", "\n", "\r", "\u00a0", "\u2028"),  # whitespace
    *("\0", "\u200b", "\ue000", "\u0378"),  # control, format, private, unassigned
]

# A code point in its contexts. A document has hundreds of them in a row, so each form ends with
# something that separates it from the next.
CONTEXTS = ("a{0}b\n;", " {0}{0}\n", "{0}{0} ", "{0}'s\n", "1{0}2\n", "{0}\n{0};", "\n{0}\n.")


class Pair:
    """A vocabulary in byteweld and in its peer, both from the same file."""

    def __init__(self, tok, entry, file, turn):
        self.tok = tok
        self.turn = turn
        self._file = file
        self._pattern = entry.get("pat_str")

    @cached_property
    def peer(self):
        kind = byteweld.recognize(self._file)
        return peers.open_peer(self._file, kind, self.tok.vocab, pattern=self._pattern)

    def check(self, texts, *, specials=False):
        """Compare both sides, and report the first difference."""
        texts = [text.encode() for text in texts]
        given = {"allowed_special": "all"} if specials else {"disallowed_special": ()}
        ours = self.tok.encode_ragged(texts, **given)
        question = frozen.digest_texts(self._file, texts, specials)
        answer = frozen.digest(*(array.tobytes() for array in ours))
        if frozen.is_known(question, answer):
            return
        theirs, _ = dataclasses.replace(self.peer, specials=specials).encode(texts)
        position = proof.first_difference(ours, theirs)
        if position is not None:
            pytest.fail(self.words(texts[position.text], position, ours, theirs))
        frozen.freeze(question, answer)

    def words(self, text, position, *both):
        some = slice(max(0, position.token - 3), position.token + 8)
        ours, theirs = (proof.ids_of(ids, position.text).tolist() for ids in both)
        start = len(b"".join(map(self.tok.vocab.tokens.get, ours[: position.token])))
        around = text[max(0, start - 20) : start + 40].decode(errors="replace")
        return (
            f"near byte {start}, in {around!a}: token {position.token} on, "
            f"ours {ours[some]}, {self.peer.name} {theirs[some]}"
        )


@pytest.fixture(
    scope="module",
    params=[*NAMES, *(pytest.param(key, marks=pytest.mark.slow) for key in MORE_NAMES)],
    ids="-".join,
)
def pair(request, load, unpacked):
    return Pair(
        load(*request.param), *unpacked(*request.param), [*NAMES, *MORE_NAMES].index(request.param)
    )


def in_contexts(code_points):
    """Documents with code points in every context, a few hundred per document."""
    characters = [chr(code) for code in code_points if not 0xD800 <= code < 0xE000]
    for start in range(0, len(characters), 512):
        some = characters[start : start + 512]
        for form in CONTEXTS:
            yield "".join(map(form.format, some))


def in_one_context(code_points, turn):
    """Documents with each code point in one of the contexts, in turn."""
    forms = [CONTEXTS[(n + turn) % len(CONTEXTS)].format for n in range(len(CONTEXTS))]
    codes = [code for code in code_points if not 0xD800 <= code < 0xE000]
    for start in range(0, len(codes), 4096):
        some = codes[start : start + 4096]
        yield "".join(forms[code % len(CONTEXTS)](chr(code)) for code in some)


# ---------------------------------------------------------------------- the zoo


def zoo_texts(shared):
    for path in sorted((shared / "nasty").glob("*/*")):
        if path.parent.name not in ("long", "invalid_utf8"):
            yield path.read_bytes().decode()


def test_every_text_of_the_zoo_has_the_peers_ids(pair, shared):
    texts = list(zoo_texts(shared))
    assert len(texts) > 90
    pair.check(texts)
    pair.check(texts, specials=True)


def test_every_line_of_the_zoo_has_the_peers_ids_alone(pair, shared):
    texts = zoo_texts(shared)
    some = {line for text in texts if len(text) < 20_000 for line in text.splitlines(keepends=True)}
    assert len(some) > 1000
    pair.check(sorted(some))
    pair.check(sorted(some), specials=True)


def test_invalid_utf8_has_the_ids_of_its_valid_parts_and_round_trips(pair, shared):
    for path in sorted((shared / "nasty" / "invalid_utf8").glob("*.bin")):
        raw = path.read_bytes()
        pair.check([raw.decode(errors="replace"), raw.decode(errors="ignore")])
        if not pair.tok.vocab.extras:  # no normalizer, and a token for every byte
            assert pair.tok.decode_bytes(pair.tok.encode_ordinary(raw)) == raw, path.name


# ---------------------------------------------------------------------- every code point


@cache
def edges_and_a_sample():
    """The ends and some others of every range of code points of one category."""
    found = set()
    start = 0
    for _, same in groupby(range(0x110000), lambda code: unicodedata.category(chr(code))):
        end = start + sum(1 for _ in same)
        found.update(range(start, end, 101), range(start, end)[:4], range(start, end)[-4:])
        start = end
    return sorted(found)


def test_a_sample_of_all_code_points_has_the_peers_ids_in_every_context(pair):
    some = edges_and_a_sample()
    assert len(some) > 20_000
    pair.check(in_contexts(some))


def test_each_code_point_of_the_first_planes_has_the_peers_ids_in_one_context(pair):
    pair.check(in_one_context(range(0x20000), pair.turn))


@pytest.mark.slow
@pytest.mark.parametrize("plane", range(17))
def test_every_code_point_has_the_peers_ids_in_every_context(pair, plane):
    pair.check(in_contexts(range(plane << 16, (plane + 1) << 16)))


def test_code_points_alone_have_the_peers_ids(pair):
    pair.check([chr(code) for code in range(0x3000)])


@pytest.mark.slow
@pytest.mark.parametrize("plane", range(17))
def test_every_code_point_alone_has_the_peers_ids(pair, plane):
    codes = range(plane << 16, (plane + 1) << 16)
    pair.check([chr(code) for code in codes if not 0xD800 <= code < 0xE000])


# ---------------------------------------------------------------------- kinds of characters


def test_every_row_of_up_to_three_kinds_of_characters_has_the_peers_ids(pair):
    for length in (1, 2, 3):
        pair.check(map("".join, product(KINDS, repeat=length)))


@pytest.mark.slow
def test_every_row_of_four_kinds_has_the_peers_ids_between_words(pair):
    for first in KINDS:
        rows = map("".join, product(KINDS, repeat=3))
        pair.check("".join(f"x{first}{row}\n;" for row in some) for some in _in_lists(rows, 500))


def _in_lists(rows, size):
    every = list(rows)
    return [every[start : start + size] for start in range(0, len(every), size)]


# ---------------------------------------------------------------------- very long texts

LONG = [("hf", "qwen2_5"), ("tiktoken", "o200k_base")]
MORE_LONG = [
    *(("tiktoken", name) for name in ("r50k_base", "cl100k_base", "qwen")),
    *(("hf", name) for name in ("gpt2", "gpt4")),
]


@pytest.mark.parametrize(
    "key",
    [*LONG, *(pytest.param(key, marks=pytest.mark.slow) for key in MORE_LONG)],
    ids="-".join,
)
def test_very_long_texts_have_their_frozen_ids(key, load, shared):
    tok = load(*key)
    name = key[1] if key[0] == "tiktoken" else f"hf_{key[1]}"
    record = json.loads((shared / "golden" / "long_reference.json").read_bytes())["results"]
    answers = [answer for answer in record if answer["vocab"] == name]
    assert answers
    for answer in answers:
        raw = gzip.decompress((shared / "nasty" / "long" / f"{answer['file']}.gz").read_bytes())
        ids = tok.encode_ordinary(raw)
        if "sha256" in answer:  # the peer itself gave up on some
            assert len(ids) == answer["n"], answer["file"]
            digest = hashlib.sha256(" ".join(map(str, ids)).encode()).hexdigest()
            assert digest == answer["sha256"], answer["file"]
        if not tok.vocab.normalizer:
            assert tok.decode_bytes(ids) == raw, answer["file"]
