"""ck's binary exports, valid or not, by docs/formats/ck-binary.md, for both readers."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any, NamedTuple

from byteweld import Vocabulary, patterns

BUILT_IN = ["<|unk|>", "<|bos|>", "<|eos|>", "<|pad|>"]
ROLES = {"unk": 0, "bos": 1, "eos": 2, "pad": 3}
ASCII = bytes([9, 10, 13, *range(32, 127)])
META, OFFSETS, STRINGS, MERGES = (
    *("tokenizer_meta.json", "vocab_offsets.bin", "vocab_strings.bin", "vocab_merges.bin"),
)
NAMES = (META, OFFSETS, STRINGS, MERGES)
LAST = 2**31 - 1

# As the seed describes them: 0x21-0x7E and 0xA1-0xFF are themselves, the others are shifted.
CK_MAP = {b: chr(b) if 0x21 <= b <= 0x7E or b >= 0xA1 else chr(0x100 + b) for b in range(256)}

Files = dict[str, bytes]


def make(
    pairs: list[tuple[int, int]] | None = None,
    *,
    reserved: list[str] | None = None,
    ascii_only: bool = False,
    **changes: Any,
) -> Vocabulary:
    """Return the vocabulary that ck has after these merges."""
    texts = BUILT_IN + (reserved or [])
    tokens = {token_id: text.encode() for token_id, text in enumerate(texts)}
    for byte in ASCII if ascii_only else bytes(range(256)):
        tokens[len(tokens)] = bytes([byte])
    merges = []
    for left, right in pairs or []:
        merges.append((left, right, len(tokens)))
        tokens[len(tokens)] = tokens[left] + tokens[right]
    options: dict[str, Any] = {
        "special_tokens": {text: token_id for token_id, text in enumerate(texts)},
        "roles": ROLES,
        "pattern": None if ascii_only else patterns.CK_RUNTIME,
        "alphabet": "ascii" if ascii_only else "bytes",
    }
    return Vocabulary(tokens, merges, **(options | changes))


AB = make([(101, 102), (36, 260), (101, 101)])
AB_ASCII = make([(72, 73), (7, 102)], ascii_only=True)


def texts_of(vocab: Vocabulary, letters: dict[int, str] | None = None) -> list[bytes]:
    """Return a vocabulary's tokens as text, by default with ck's letters for bytes."""
    special = len(vocab.special_tokens)
    if letters is None:
        letters = CK_MAP if vocab.alphabet == "bytes" else {byte: chr(byte) for byte in ASCII}
    return [
        token if i < special else "".join(letters[b] for b in token).encode()
        for i, token in vocab.tokens.items()
    ]


def export(texts: list[bytes], merges: list[tuple[int, ...]], /, **meta: Any) -> Files:
    """Return the files of an export, valid or not, in the layout of ck-bpe-train."""
    starts = [0]
    for text in texts:
        starts.append(starts[-1] + len(text) + 1)
    value = {
        "schema": "ck.bpe.binary.v1",
        "mode": "bytelevel_bpe",
        "vocab_size": len(texts),
        "num_merges": len(merges),
        "num_reserved_special_tokens": 0,
        "max_piece_bytes": 0,
        "offsets": OFFSETS,
        "strings": STRINGS,
        "merges": MERGES,
    } | meta
    return {
        META: (json.dumps(value, indent=2) + "\n").encode(),
        OFFSETS: struct.pack(f"<{len(texts)}i", *starts[:-1]),
        STRINGS: b"".join(text + b"\0" for text in texts),
        MERGES: b"".join(struct.pack("<3i", *merge) for merge in merges),
    }


def export_of(vocab: Vocabulary, **changes: Any) -> Files:
    """Return the files of a vocabulary's export."""
    mode = "bytelevel_bpe" if vocab.alphabet == "bytes" else "ascii_bpe"
    merges = [tuple(merge) for merge in vocab.merge_ids]
    return export(texts_of(vocab), merges, **{"mode": mode, **changes})


def write(folder: Path, files: Files) -> Path:
    """Write an export."""
    folder.mkdir(exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


class Refused(NamedTuple):
    """An export that is refused, with the file, words and offset of Python's error."""

    files: Files
    file: str
    words: str
    offset: int | None = None


def _json(old: bytes, new: bytes, words: str) -> Refused:
    good = export_of(AB)
    assert old in good[META]
    return Refused(good | {META: good[META].replace(old, new)}, META, words)


def _value(key: str, value: object, words: str | None = None) -> Refused:
    return Refused(export_of(AB, **{key: value}), META, words or f"{key}: expected")


def _text(token_id: int, text: bytes, words: str, vocab: Vocabulary = AB) -> Refused:
    texts = texts_of(vocab)
    texts[token_id] = text
    merges = [tuple(merge) for merge in vocab.merge_ids]
    mode = "bytelevel_bpe" if vocab.alphabet == "bytes" else "ascii_bpe"
    offset = sum(len(before) + 1 for before in texts[:token_id])
    return Refused(export(texts, merges, mode=mode), STRINGS, words, offset)


def _merge(rank: int, merge: tuple[int, int, int], words: str) -> Refused:
    good = export_of(AB)
    data = bytearray(good[MERGES])
    struct.pack_into("<3i", data, 12 * rank, *merge)
    return Refused(good | {MERGES: bytes(data)}, MERGES, words, 12 * rank)


def _offset(value: int) -> Refused:
    good = export_of(AB)
    data = good[OFFSETS][:4] + struct.pack("<i", value) + good[OFFSETS][8:]
    return Refused(good | {OFFSETS: data}, OFFSETS, f"token 1 is at {value}; expected 8", 4)


def _longer(name: str, extra: bytes) -> Refused:
    good = export_of(AB)
    return Refused(good | {name: good[name] + extra}, name, "the file has")


_ELSEWHERE = (
    *("{}.bak", "../{}", "../../etc/{}", "a/../{}", "..\\{}", "folder\\{}", "{}/", "{}/passwd"),
    *("/etc/passwd", "..", ".", "", "{}\0", "my_{}", None, 1, True, ["{}"]),
)
_COUNTS = ("vocab_size", "num_merges", "num_reserved_special_tokens", "max_piece_bytes")

REFUSED: dict[str, Refused] = {
    "another key": _json(b'"schema"', b'"scheme"', "key 'schema' is missing"),
    "an unknown key": _value("note", 1, "unknown key 'note'"),
    "a repeated key": _json(b'"mode"', b'"num_merges": 3,\n  "mode"', "'num_merges' is repeated"),
    "no object": _json(b"{", b"[", "expected JSON"),
    "two ends": _json(b"}", b"}}", "expected JSON"),
    "an end after a comma": _json(b"}", b",}", "expected JSON"),
    "a number with a zero": _json(b'"num_merges": 3', b'"num_merges": 03', "expected JSON"),
    "a large JSON": _json(b"}", b" " * 1_000_000 + b"}", "expected at most 65536"),
    "billions of tokens": _json(
        b'"vocab_size": 263,\n  "num_merges": 3',
        b'"vocab_size": %d,\n  "num_merges": %d' % (LAST, LAST - 260),
        "expected 8589934588 bytes, for vocab_size 2147483647",
    )._replace(file=OFFSETS),
    **{
        f"schema {v!r}": _value("schema", v, "schema is") for v in ("ck.bpe.binary.v2", "", None, 1)
    },
    **{f"mode {v!r}": _value("mode", v) for v in ("bytelevel", "", None, 1, ["ascii_bpe"])},
    **{
        f"{key} {v!r:.9}": _value(key, v)
        for key in _COUNTS
        for v in (True, 1.0, "3", None, -1, 2**31, 2**32 + 3, [3], 10**400)
    },
    **{
        f"{key} is {v}": _value(key, v, "special tokens, 256 bytes and")
        for key, v in (
            *(("vocab_size", 262), ("vocab_size", LAST), ("num_merges", 2), ("num_merges", 0)),
            *(("num_merges", LAST), ("num_reserved_special_tokens", 1)),
        )
    },
    "the other mode": _value("mode", "ascii_bpe", "special tokens, 98 bytes and"),
    **{
        f"{key} {wrong!r}": (
            _value(key, wrong.format(f"vocab_{key}.bin"), f"{key} is")
            if isinstance(wrong, str)
            else _value(key, wrong)
        )
        for key in ("offsets", "strings", "merges")
        for wrong in _ELSEWHERE
    },
    **{
        f"{extra!r} after {name}": _longer(name, extra)
        for name in NAMES[1:]
        for extra in (b"\0", b"\0\0\0\0", b"a", bytes(12))
    },
    **{f"offset {value}": _offset(value) for value in (-1, 0, 7, 9, LAST)},
    "an empty text": _text(101, b"", "the text of token 101 is empty"),
    "another built-in token": _text(1, b"<s>", "token 1 is '<s>'; expected '<|bos|>'"),
    "a built-in token that is not UTF-8": _text(3, b"\xff", "token 3 is b'\\xff'; expected UTF-8"),
    "another byte": _text(101, b"b", "token 101 is 'b'; expected 'a', byte 0x61"),
    "a raw space for a byte": _text(36, b" ", "expected 'Ġ', byte 0x20"),
    "a byte in the other letters": _text(4 + 0xAD, "ń".encode(), "expected '\\xad', byte 0xAD"),
    "the deciding byte in the other letters": _text(4 + 0x7F, "ġ".encode(), "byte 0x80")._replace(
        offset=None
    ),  # the next byte is wrong
    "a byte that is not UTF-8": _text(4 + 0x7F, b"\x7f\x80", "expected UTF-8"),
    "a merged token that is not UTF-8": _text(261, b"\xc4", "expected UTF-8"),
    "an unknown letter": _text(261, "Ġaβ".encode(), "'β' is not the letter of a byte"),
    "a raw space in a merged token": _text(261, b" ab", "' ' is not the letter of a byte"),
    "a raw DEL in a merged token": _text(261, b"\x7f", "'\\x7f' is not the letter of a byte"),
    "ASCII, a space for a tab": _text(4, b" ", "token 4 is", AB_ASCII),
    "ASCII, a letter for a space": _text(7, b"\xc4\xa0", "token 7 is", AB_ASCII),
    "ASCII, another letter": _text(102, "é".encode(), "token 102 is", AB_ASCII),
    "an output that is not the next id": _merge(
        0, (101, 102, 261), "merge 0 makes b'a' + b'b', but token 261 is b' ab'"
    ),
    "outputs out of order": _merge(
        1, (36, 260, 260), "merge 1 makes b' ' + b'ab', but token 260 is b'ab'"
    ),
    "a special token as part": _merge(0, (3, 102, 260), "3 is the special token b'<|pad|>'"),
    "a special token as right part": _merge(0, (101, 3, 260), "3 is the special token b'<|pad|>'"),
    "itself as right part": _merge(
        0, (101, 260, 260), "makes b'a' + b'ab', but token 260 is b'ab'"
    ),
    "a negative part": _merge(0, (101, -1, 260), "-1 is not a token"),
    "a later part": _merge(1, (36, 262, 261), "makes b' ' + b'aa', but token 261 is b' ab'"),
    "itself as part": _merge(1, (261, 102, 261), "makes b' ab' + b'b', but token 261 is b' ab'"),
    "other bytes": _merge(2, (101, 102, 262), "makes b'a' + b'b', but token 262 is b'aa'"),
}
