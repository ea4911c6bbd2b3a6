"""ck's binary export `ck.bpe.binary.v1`: a folder of three flat tables and a JSON with their sizes.

Reading checks every byte, and accepts ck's own byte letters or GPT-2's. Writing gives the four
files that ck's runtime reads, the JSON last. docs/formats/ck-binary.md has the byte tables.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, NoReturn

from byteweld import patterns
from byteweld._byte_letters import BYTE_TO_CHAR, CK_BYTE_TO_CHAR
from byteweld._files import read_regular, read_start
from byteweld.errors import FormatError, VocabularyError
from byteweld.formats._json import (
    MAX_FILE_BYTES,
    check_version,
    parse_object,
    read_fields,
    show,
    wrong,
)
from byteweld.formats._limits import (
    NotHeldError,
    check_bytes,
    check_merge_list,
    check_merged_ids,
    check_no_more,
)
from byteweld.vocab import ASCII_BYTES, AddedToken, VocabAlphabet, Vocabulary

ByteMap = Literal["ck", "gpt2"]

OPTIONS: Final = ("pattern",)  # of `load`; None is a pattern

META: Final = "tokenizer_meta.json"
FILES: Final[Mapping[str, str]] = {  # key of the JSON -> file; ck's loader accepts no other names
    "offsets": "vocab_offsets.bin",
    "strings": "vocab_strings.bin",
    "merges": "vocab_merges.bin",
}
NAMES: Final = (META, *FILES.values())
BUILT_IN: Final = ("<|unk|>", "<|bos|>", "<|eos|>", "<|pad|>")  # ids 0 to 3
_ROLES: Final = {"unk": 0, "bos": 1, "eos": 2, "pad": 3}

# What a vocabulary of bytes may have: the patterns of ck's two tokenizer.json and its runtime's.
_PATTERNS: Final = (patterns.GPT2, patterns.CK, patterns.CK_RUNTIME)

_SCHEMA: Final = "ck.bpe.binary.v1"
_META_LIMIT: Final = 1 << 16  # several times the size of three paths of 4096 bytes
_INT32_MAX: Final = 2**31 - 1
_MERGE_BYTES: Final = struct.calcsize("<3i")

_LETTERS: Final[Mapping[str, Mapping[int, str]]] = {
    "ck": CK_BYTE_TO_CHAR,
    "gpt2": BYTE_TO_CHAR,
    "ascii": {byte: chr(byte) for byte in ASCII_BYTES},
}


class _Meta(NamedTuple):
    schema: str
    mode: Literal["bytelevel_bpe", "ascii_bpe"]
    vocab_size: int
    num_merges: int
    num_reserved_special_tokens: int
    max_piece_bytes: int
    offsets: str
    strings: str
    merges: str

    @property
    def alphabet(self) -> VocabAlphabet:
        return "ascii" if self.mode == "ascii_bpe" else "bytes"

    @property
    def first_byte_id(self) -> int:
        return len(BUILT_IN) + self.num_reserved_special_tokens

    @property
    def first_merge_id(self) -> int:
        return self.vocab_size - self.num_merges


class _Texts(NamedTuple):
    """The text of every token, as in the strings file."""

    raw: list[bytes]
    offsets: tuple[int, ...]
    path: Path

    def fail(self, token_id: int, message: str) -> NoReturn:
        raise FormatError(message, path=self.path, offset=self.offsets[token_id])

    def decode(self, token_id: int) -> str:
        try:
            return self.raw[token_id].decode("utf-8")
        except UnicodeDecodeError as error:
            found = show(self.raw[token_id])
            self.fail(token_id, f"token {token_id} is {found}; expected UTF-8 ({error.reason})")


def recognize(path: Path, head: bytes) -> bool:
    """Whether `path` is a folder whose tokenizer_meta.json has ck's schema, in any version."""
    if head:
        return False
    try:
        return b'"ck.bpe.binary.' in read_start(path / META, _META_LIMIT)
    except (OSError, ValueError):
        return False


# ---------------------------------------------------------------------- reading


def load(path: Path, **given: Any) -> Vocabulary:
    """Read an export; anything that the schema does not allow is a FormatError.

    The export has no pattern. By default the vocabulary gets that of ck's runtime; pass `pattern`
    for another, such as the one that the vocabulary had before it was saved.
    """
    return load_with_map(path, **given)[0]


def load_with_map(path: Path, **given: Any) -> tuple[Vocabulary, ByteMap]:
    """Read an export and how it writes bytes as letters ("ck" for ASCII, which needs none)."""
    meta = _read_meta(path / META)
    offsets = _read_table(path / FILES["offsets"], "<i", meta.vocab_size, "vocab_size")
    merges = _read_table(path / FILES["merges"], "<3i", meta.num_merges, "num_merges")
    texts = _read_texts(path / FILES["strings"], [offset for (offset,) in offsets])
    byte_map = _find_byte_map(texts, meta)
    tokens = _read_tokens(texts, meta, _LETTERS["ascii" if meta.alphabet == "ascii" else byte_map])
    special_tokens = [(tokens[i].decode(), i) for i in range(meta.first_byte_id)]
    try:
        vocab = Vocabulary(
            tokens,
            merges,
            added_tokens=[AddedToken(text, i) for text, i in special_tokens],
            pattern=given.get("pattern", _pattern_of(meta.alphabet)),
            roles=_ROLES,
            alphabet=meta.alphabet,
        )
        check_merged_ids(vocab, meta.first_byte_id, meta.first_merge_id)
    except VocabularyError as error:
        if error.merge is None:
            texts.fail(error.token_id or 0, str(error))
        at = error.merge * _MERGE_BYTES
        raise FormatError(str(error), path=path / FILES["merges"], offset=at) from None
    return vocab, byte_map


def _pattern_of(alphabet: VocabAlphabet) -> str | None:
    """Return the pattern of ck's runtime, which is not in the export."""
    return patterns.CK_RUNTIME if alphabet == "bytes" else None


def _read_meta(path: Path) -> _Meta:
    meta = parse_object(read_regular(path, _META_LIMIT), path)
    check_version("schema", meta.get("schema", _SCHEMA), _SCHEMA, path)
    made = read_fields(_Meta, meta, path, bits=31)
    for key, name in FILES.items():
        _check_file_name(key, getattr(made, key), name, path)
    base = len(ASCII_BYTES) if made.mode == "ascii_bpe" else 256
    expected = made.first_byte_id + base + made.num_merges
    if made.vocab_size != expected:
        raise FormatError(
            f"vocab_size is {made.vocab_size}; expected {expected}: {len(BUILT_IN)} built-in and "
            f"{made.num_reserved_special_tokens} reserved special tokens, {base} bytes and "
            f"{made.num_merges} merges",
            path=path,
        )
    return made


def _check_file_name(key: str, found: str, name: str, path: Path) -> None:
    """Accept the plain name, or a path that ends with it: ck-bpe-train records where it wrote.

    The path is never followed: the file is opened beside the JSON, as ck's own loader does.
    """
    *folders, last = found.split("/")
    if last != name or ".." in folders:
        raise wrong(key, found, f"{name!r}, a file beside {META}", path)


def _read_data(path: Path, limit: int) -> bytes:
    """Read a data file, which must exist and not exceed a limit."""
    try:
        return read_regular(path, limit)
    except FileNotFoundError as error:
        raise FormatError(f"the file is missing; {META} needs it", path=path) from error
    except IsADirectoryError:
        raise FormatError("expected a regular file, found a folder", path=path) from None


def _read_table(path: Path, record: str, count: int, key: str) -> list[tuple[int, ...]]:
    size = count * struct.calcsize(record)
    data = _read_data(path, size)
    if len(data) != size:
        raise FormatError(
            f"the file has {len(data)} bytes; expected {size} bytes, for {key} {count}", path=path
        )
    return list(struct.iter_unpack(record, data))


def _read_texts(path: Path, offsets: list[int]) -> _Texts:
    """Split the strings file at its NULs and check the offsets."""
    data = _read_data(path, MAX_FILE_BYTES)
    found = data.count(b"\0")
    if found != len(offsets) or not data.endswith(b"\0"):
        raise FormatError(
            f"the file has {found} NUL bytes and ends with {data[-1:]!r}; "
            f"expected {len(offsets)} strings, each ended by a NUL",
            path=path,
        )
    raw = data[:-1].split(b"\0")
    start = 0
    for token_id, (text, offset) in enumerate(zip(raw, offsets, strict=True)):
        if offset != start:
            raise FormatError(
                f"token {token_id} is at {offset}; expected {start}, after the previous one",
                path=path.with_name(FILES["offsets"]),
                offset=4 * token_id,
            )
        if not text:
            raise FormatError(f"the text of token {token_id} is empty", path=path, offset=start)
        start += len(text) + 1
    return _Texts(raw, tuple(offsets), path)


def _find_byte_map(texts: _Texts, meta: _Meta) -> ByteMap:
    """Tell the two maps apart by byte 0x7F, the first that differs; `_read_tokens` checks all."""
    if meta.alphabet == "ascii":
        return "ck"
    _refuse_overlap(texts, meta)
    found = texts.decode(meta.first_byte_id + 0x7F)
    return "gpt2" if found == BYTE_TO_CHAR[0x7F] else "ck"


def _refuse_overlap(texts: _Texts, meta: _Meta) -> None:
    """Reject, with the reason, what ck-bpe-train writes for byte mode with reserved tokens.

    It gives reserved tokens the ids from 4, and then byte b the id 4 + b as well: the first bytes
    lose their ids, and the last ids stay unset and are written as `<|unk|>` twice.
    """
    count = meta.num_reserved_special_tokens
    if count == 0:
        return
    first = texts.raw[meta.first_byte_id]
    overlapped = CK_BYTE_TO_CHAR[count].encode() if count < 256 else (BUILT_IN[0] * 2).encode()
    if first == overlapped:
        texts.fail(
            meta.first_byte_id,
            f"the {count} reserved special tokens overlap the ids of bytes: token "
            f"{meta.first_byte_id} is {show(first.decode())}; expected byte 0x00 "
            f"(ck-bpe-train gives both the ids from {len(BUILT_IN)}, so bytes 0x00 to "
            f"0x{min(count, 256) - 1:02X} have no id); train again without reserved tokens, "
            "or with byteweld's recipe 'ck'",
        )


def _read_tokens(texts: _Texts, meta: _Meta, letters: Mapping[int, str]) -> dict[int, bytes]:
    """Return the bytes of every token: special tokens, the bytes of the mode in order, and merges.

    Special tokens are written as they are, the others in letters.
    """
    alphabet = sorted(letters.items())
    expected = dict(enumerate((text, "") for text in BUILT_IN)) | {
        token_id: (letter, f", byte 0x{byte:02X}")
        for token_id, (byte, letter) in enumerate(alphabet, meta.first_byte_id)
    }
    byte_of = {letter: byte for byte, letter in alphabet}
    tokens = {}
    for token_id, raw in enumerate(texts.raw):
        text = texts.decode(token_id)
        known, what = expected.get(token_id, (text, ""))
        if text != known:
            texts.fail(token_id, f"token {token_id} is {show(text)}; expected {known!r}{what}")
        if token_id < meta.first_byte_id:
            tokens[token_id] = raw
            continue
        strange = next((char for char in text if char not in byte_of), None)
        if strange is not None:
            texts.fail(
                token_id,
                f"token {token_id} is {show(text)}, and {strange!r} is not the letter of a byte",
            )
        tokens[token_id] = bytes(byte_of[char] for char in text)
    return tokens


# ---------------------------------------------------------------------- writing


def check(vocab: Vocabulary) -> None:
    """Raise NotHeldError for a vocabulary that the export cannot represent.

    Its pattern is lost, and may only be one of a few: ck's runtime, and `load`, split text in the
    runtime's own way (`held`).
    """
    check_merge_list(vocab)
    known = _PATTERNS if vocab.alphabet == "bytes" else [None]
    if vocab.pattern not in known:
        names = ", ".join(repr(patterns.pattern_name(pattern)) for pattern in known)
        raise NotHeldError(
            f"its pattern is {vocab.pattern!r}; the export has no field for one, and for the "
            f"alphabet {vocab.alphabet!r} it may only be {names}"
        )
    for token_id, text in enumerate(BUILT_IN):
        if vocab.special_tokens.get(text) != token_id:
            found = vocab.special_tokens.get(text)
            raise NotHeldError(f"its special token {text!r} has id {found}, not {token_id}")
    if dict(vocab.roles) != _ROLES:
        raise NotHeldError(f"its roles are {dict(vocab.roles)}, not {_ROLES}")
    for index, (text, token_id) in enumerate(vocab.special_tokens.items()):
        if "\0" in text:
            raise NotHeldError(f"its special token {show(text)} has a NUL, which ends a string")
        if token_id != index:
            raise NotHeldError(f"its special token {show(text)} has id {token_id}, not {index}")
    first_byte_id = len(vocab.special_tokens)
    alphabet = bytes(range(256)) if vocab.alphabet == "bytes" else ASCII_BYTES
    first_merge_id = check_bytes(vocab, alphabet, first_byte_id)
    check_no_more(vocab, check_merged_ids(vocab, first_byte_id, first_merge_id))
    # A letter has at most two bytes of UTF-8; the offsets are int32.
    if sum(2 * len(token) + 1 for token in vocab.tokens.values()) > _INT32_MAX:
        raise NotHeldError(f"its strings may exceed {_INT32_MAX} bytes, the largest offset")


def held(vocab: Vocabulary) -> Vocabulary:
    """Return the vocabulary with the pattern of ck's runtime, as `load` gives it."""
    pattern = _pattern_of(vocab.alphabet)
    if vocab.pattern == pattern:
        return vocab
    return Vocabulary(vocab.tokens, vocab.merge_ids, **vocab.traits() | {"pattern": pattern})


def files(vocab: Vocabulary, path: Path) -> list[Path]:
    """Return the four files of an export."""
    return [path / name for name in NAMES]


def render(vocab: Vocabulary, path: Path, *, max_piece_bytes: int = 0) -> dict[Path, bytes]:
    """Return the four files to write into the folder `path`.

    `max_piece_bytes` is recorded for readers: ck's limit on a token's bytes in letters, 0 for none.
    """
    if type(max_piece_bytes) is not int or not 0 <= max_piece_bytes <= _INT32_MAX:
        raise ValueError(f"max_piece_bytes is {max_piece_bytes!r}; it must be in 0..{_INT32_MAX}")
    letters = CK_BYTE_TO_CHAR if vocab.alphabet == "bytes" else {}
    num_special = len(vocab.special_tokens)
    texts = [
        token if token_id < num_special else token.decode("latin-1").translate(letters).encode()
        for token_id, token in vocab.tokens.items()
    ]
    offsets = []
    start = 0
    for text in texts:
        offsets.append(start)
        start += len(text) + 1
    meta = _Meta(
        schema=_SCHEMA,
        mode="bytelevel_bpe" if vocab.alphabet == "bytes" else "ascii_bpe",
        vocab_size=len(vocab.tokens),
        num_merges=len(vocab.merge_ids),
        num_reserved_special_tokens=num_special - len(BUILT_IN),
        max_piece_bytes=max_piece_bytes,
        **FILES,
    )
    return {
        path / FILES["offsets"]: struct.pack(f"<{len(offsets)}i", *offsets),
        path / FILES["strings"]: b"".join(text + b"\0" for text in texts),
        path / FILES["merges"]: b"".join(struct.pack("<3i", *merge) for merge in vocab.merge_ids),
        path / META: (json.dumps(meta._asdict(), indent=2) + "\n").encode("ascii"),
    }
