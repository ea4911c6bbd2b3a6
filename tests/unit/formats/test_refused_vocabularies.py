"""Vocabularies that a format cannot hold are refused with the reason, and nothing is written."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from byteweld import formats, patterns
from byteweld.errors import UnsupportedError
from byteweld.vocab import ASCII_BYTES, Vocabulary
from tests.helpers import exports, sections
from tests.helpers.vocabularies import BYTES, ENDOFTEXT


def made(
    more: dict[int, bytes | str] | None = None,
    *merges: tuple[int, int, int],
    base: dict[int, bytes | str] | dict[int, bytes] = BYTES,
    **traits: Any,
) -> Vocabulary:
    """Return a vocabulary with more tokens than the base; a special token is given as text."""
    given = {**base, **(more or {})}
    texts = {token: i for i, token in given.items() if isinstance(token, str)}
    tokens = {i: t.encode() if isinstance(t, str) else t for i, t in given.items()}
    return Vocabulary(tokens, merges, **({"special_tokens": texts} | traits))


def after(*texts: str) -> dict[int, bytes | str]:
    """Return special tokens with the first ids, and the bytes after them."""
    return dict(enumerate([*texts, *BYTES.values()]))


bpe1 = partial(
    made, base={**BYTES, **{i: t for t, i in sections.SPECIALS.items()}}, roles=sections.ROLES
)
bpetite = partial(made, pattern=patterns.GPT2)
ck = partial(made, base=after(*exports.BUILT_IN), roles=exports.ROLES, pattern=patterns.GPT2)
tekken = partial(made, base=after("<a>", "<b>"), pattern=patterns.GPT2)

ASCII = {n: bytes([byte]) for n, byte in enumerate(ASCII_BYTES)}
VERSIONS = [b"#versions"[:length] for length in range(2, 10)]
REFUSED: dict[str, dict[str, Vocabulary]] = {
    "bpe1": {
        "its pattern is empty": bpe1(pattern=""),
        "has ignore_merges": bpe1(ignore_merges=True),
        "ranked by id": bpe1(ranking="ranks"),
        "alphabet is 'ascii'": bpe1(alphabet="ascii"),
        "special tokens are []": made(),
        "'<|x|>'], not exactly": bpe1({260: "<|x|>"}),
        "role pad is None, not the id of '<|pad|>'": bpe1(
            roles={role: i for role, i in sections.ROLES.items() if role != "pad"}
        ),
        "role bos is 257, not the id of '<|bos|>'": bpe1(roles=sections.ROLES | {"bos": 257}),
        "byte 0x00 has id 1": bpe1({0: b"\1", 1: b"\0"}),
        "a gap at 260": bpe1({261: b"ab"}),
        "merge 6 uses id 256, which is also a special token": bpe1(
            {260: b"<|", 261: b"bo", 262: b"s|", 263: b"bos|", 264: b"<|bos|", 265: b"|>"},
            *((60, 124, 260), (98, 111, 261), (115, 124, 262), (261, 262, 263)),
            *((260, 263, 264), (124, 62, 265), (264, 62, 256)),
        ),
    },
    "bpetite": {
        "pattern is None": bpetite({256: ENDOFTEXT}, pattern=None),
        "pattern is '[a-z]+'": bpetite({256: ENDOFTEXT}, pattern="[a-z]+"),
        "ignore_merges": bpetite({256: b"ab", 257: ENDOFTEXT}, (97, 98, 256), ignore_merges=True),
        "ranked by id": bpetite({256: ENDOFTEXT}, ranking="ranks"),
        "alphabet is 'ascii'": bpetite({256: ENDOFTEXT}, alphabet="ascii"),
        "roles": bpetite({256: ENDOFTEXT}, roles={"eos": 256}),
        "special tokens are []": bpetite(),
        "special tokens are ['<|endoftext|>', '<|x|>']": bpetite({256: ENDOFTEXT, 257: "<|x|>"}),
        "byte 0x00 has id 1": bpetite({0: b"\1", 1: b"\0", 256: ENDOFTEXT}),
        "merge 0 makes id 257": bpetite({256: ENDOFTEXT, 257: b"ab"}, (97, 98, 257)),
        "expected both parts in 0": bpetite(
            {256: b"abc", 257: b"bc", 258: ENDOFTEXT}, (97, 257, 256), (98, 99, 257)
        ),
        "has id 300, not 256": bpetite({300: ENDOFTEXT}),
        "token 257, b'ab', is not made by a merge": bpetite({256: ENDOFTEXT, 257: b"ab"}),
    },
    "ck": {
        "its pattern is None; the export has no field": ck(pattern=None),
        "its pattern is '[a-z]+'; the export has no field": ck(pattern="[a-z]+"),
        "it may only be 'gpt2', 'ck', 'ck-runtime'": ck(pattern=patterns.O200K),
        "for the alphabet 'ascii' it may only be None": exports.make(
            ascii_only=True, pattern=patterns.GPT2
        ),
        "it has ignore_merges": ck(ignore_merges=True),
        "it is ranked by id": ck(ranking="ranks"),
        "its roles are {}": ck(roles={}),
        "its roles are {'bos': 1, 'eos': 2, 'pad': 2, 'unk': 0}": ck(
            roles=exports.ROLES | {"pad": 2}
        ),
        "special token '<|unk|>' has id None": made(pattern=patterns.GPT2),
        "special token '<|bos|>' has id 2": ck({1: "<|eos|>", 2: "<|bos|>"}),
        "special token '<x>' has id 260, not 4": ck({260: "<x>"}),
        "special token 'a\\x00b' has a NUL": ck(base=after(*exports.BUILT_IN, "a\0b")),
        "byte 0x00 has id 5, not 4": ck({4: b"\1", 5: b"\0"}),
        "byte 0x09 has id None, not 4": ck(
            base=dict(enumerate(exports.BUILT_IN)), alphabet="ascii", pattern=None
        ),
        "merge 0 makes id 261, not 260": ck(
            {260: b"cd", 261: b"ab"}, (101, 102, 261), (103, 104, 260)
        ),
        "merge 0 makes id 260 from 101 and 261": ck(
            {260: b"abc", 261: b"bc"}, (101, 261, 260), (102, 103, 261)
        ),
        "token 260, b'ab', is not made by a merge": ck({260: b"ab"}),
    },
    "tekken": {
        "it has no pattern": tekken(pattern=None),
        "a gap before 3": tekken(base={0: "<a>", 1: "<b>", **{3 + b: t for b, t in BYTES.items()}}),
        "its roles are {'bos': 0}; in tekken they follow from names": tekken(roles={"bos": 0}),
        "merge 1 makes id 258": tekken({259: b"ab", 258: b"bc"}, (99, 100, 259), (100, 101, 258)),
        "do not have the first ids": made({256: "<a>"}, pattern=patterns.GPT2),
        "token 0 is b'\\x01'; after the special tokens come the 256 bytes": made(
            {0: b"\1", 1: b"\0"}, pattern=patterns.GPT2
        ),
    },
    "huggingface": {
        # Each of the first three is also the letter of a byte.
        **{f"special token {text!r}": made({300: text}) for text in "éaĠ"},
        "special token 'Ġthe'": made({300: "Ġthe"}, ignore_merges=True),
        "shares its id": made({256: b" a"}, (32, 97, 256), special_tokens={" a": 256}),
        "outside": made({200: b"\0"}, base=ASCII, alphabet="ascii"),
        "has no token": Vocabulary({0: b"a"}, alphabet="ascii"),
    },
    "tiktoken": {
        "merge 1 makes id 256": made({256: b"bc", 257: b"ab"}, (97, 98, 257), (98, 99, 256)),
        "cannot be made by merging": made({256: b"abc"}),
        "token 256, b'ab', from different parts": made({256: b"ab"}),
        "token 258, b'abc'": made(
            {256: b"ab", 257: b"bc", 258: b"abc"}, (97, 98, 256), (98, 99, 257), (97, 257, 258)
        ),
        "alphabet": Vocabulary({0: b"a"}, alphabet="ascii"),
    },
    "gpt2": {
        "alphabet": Vocabulary({0: b"a"}, alphabet="ascii"),
        "no merge list": made(ranking="ranks"),
        "ignore_merges": made(ignore_merges=True),
        "special token 'é'": made({256: "é"}),
        # Readers would take this merge for a comment.
        "'#version s'": made(
            dict(enumerate(VERSIONS, 256)),
            *((255 + n if n else ord("#"), word[-1], 256 + n) for n, word in enumerate(VERSIONS)),
        ),
    },
}


@pytest.mark.parametrize(
    ("format", "reason"), [(format, reason) for format in REFUSED for reason in REFUSED[format]]
)
def test_what_a_format_cannot_hold_is_refused_with_the_reason(
    tmp_path: Path, format: str, reason: str
) -> None:
    with pytest.raises(UnsupportedError, match=re.escape(reason)):
        formats.save(REFUSED[format][reason], tmp_path / "x", format=format)
    assert list(tmp_path.iterdir()) == []
