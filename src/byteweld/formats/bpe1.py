"""BPE1: a little-endian binary section of header, token records and merge records.

`load` and `render` are the format's; `read` and `to_bytes` are for a section in memory, in an open
file, or at an offset of a larger one. Version 2 adds a pattern, the fingerprint and a CRC-32C.

Reading checks every byte, and uses memory in proportion to the section's size, whatever its counts
say. Writing gives the canonical section. docs/formats/bpe1.md has the byte tables and the rules.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final, Literal, NamedTuple, NoReturn

from byteweld import formats
from byteweld._files import read_part
from byteweld.errors import FormatError, PatternError, UnsupportedError, VocabularyError
from byteweld.formats._json import MAX_FILE_BYTES, read_file, show
from byteweld.formats._limits import NotHeldError, check_alphabet, check_bytes, check_merge_list
from byteweld.patterns import pattern_name
from byteweld.vocab import ROLES, Merge, Vocabulary

Version = Literal[1, 2]
Buffer = bytes | bytearray | memoryview

_MAGIC: Final = b"BPE1"
_HEADER: Final = struct.Struct("<4s8I")  # magic, version, vocab_size, bos, eos, pad, unk, counts
_MORE: Final = struct.Struct("<I32s")  # in version 2, after it: length of the pattern, fingerprint
_TOKEN: Final = struct.Struct("<2I")  # id, length; the bytes follow
_MERGE: Final = struct.Struct("<4I")  # left, right, output, rank
_CHECKSUM: Final = struct.Struct("<I")  # in version 2, at the end: the CRC-32C of all before it

# Offsets of fields, for errors.
_VERSION_AT: Final = 4
_VOCAB_SIZE_AT: Final = 8
_ROLES_AT: Final = 12
_PATTERN_LENGTH_AT: Final = _HEADER.size
_FINGERPRINT_AT: Final = _HEADER.size + 4
_PATTERN_AT: Final = _HEADER.size + _MORE.size

_IMPLICIT: Final = 256 + len(ROLES)  # bytes and special tokens need no token record
_BLOCK_BYTES: Final = 1 << 20  # how much of an open file is read at a time
_SPECIAL_TEXTS: Final[Mapping[str, str]] = {role: f"<|{role}|>" for role in ROLES}


class _Section:
    """The bytes of a section, and where they are, for errors."""

    def __init__(self, data: bytes, path: str | os.PathLike[str] | None, start: int) -> None:
        self.data = data
        self.path = path
        self.start = start  # offset in the file
        self.end = len(data)  # of the records: before the checksum, if there is one

    def fail(self, message: str, offset: int) -> NoReturn:
        raise FormatError(message, path=self.path, offset=self.start + offset)


class _Header(NamedTuple):
    vocab_size: int
    roles: dict[str, int]
    token_count: int
    merge_count: int
    records_at: int  # the offset of the first record
    fingerprint: str | None  # version 1 has none


def recognize(path: Path, head: bytes) -> bool:
    """Whether a file starts with the magic; `load` checks the version."""
    return head.startswith(_MAGIC)


# ---------------------------------------------------------------------- reading


def load(path: Path, *, offset: int = 0, length: int | None = None) -> Vocabulary:
    """Read a section from a file; whatever is not allowed is a FormatError with its offset.

    A section inside a larger file starts at `offset` and has `length` bytes, or all up to the end.
    Only those are read. A file that is nothing but a section may be compressed.
    """
    return read(path, offset=offset, length=length)


def read(
    source: str | os.PathLike[str] | Buffer | BinaryIO,
    *,
    offset: int | None = None,
    length: int | None = None,
) -> Vocabulary:
    """Read a section from bytes, from an open binary file, or from a path.

    It starts at `offset` from the start of the source, or, in an open file and if `offset` is None,
    at the current position, so that a pipe can be read as well. It has `length` bytes, or all up to
    the end of the source; an open file is then positioned after it.

    >>> vocab = Vocabulary(
    ...     {b: bytes([b]) for b in range(256)}
    ...     | {256: b"<|bos|>", 257: b"<|eos|>", 258: b"<|pad|>", 259: b"<|unk|>"},
    ...     special_tokens={"<|bos|>": 256, "<|eos|>": 257, "<|pad|>": 258, "<|unk|>": 259},
    ...     roles={"bos": 256, "eos": 257, "pad": 258, "unk": 259},
    ... )
    >>> section = to_bytes(vocab)
    >>> read(b"container" + section + b"more", offset=9, length=len(section)) == vocab
    True
    """
    for name, value in (("offset", offset), ("length", length)):
        if value is not None and (type(value) is not int or value < 0):
            raise ValueError(f"{name} is {value!r}; it must be an integer of at least 0")
    start = offset or 0
    path: str | os.PathLike[str] | None = None
    # One byte more than the largest section distinguishes a larger one.
    limit = min(MAX_FILE_BYTES + 1, MAX_FILE_BYTES + 1 if length is None else length)
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        whole = start == 0 and length is None
        data = read_file(path) if whole else read_part(path, start, limit)
    elif isinstance(source, Buffer):
        data = bytes(memoryview(source).cast("B")[start : start + limit])
    elif hasattr(source, "read"):
        if offset is not None:
            source.seek(offset)
        start = _position(source)
        named = getattr(source, "name", None)
        path = named if isinstance(named, (str, os.PathLike)) else None
        data = b"".join(_blocks(source, limit))
    else:
        raise TypeError(
            f"source is a {type(source).__name__}; expected bytes, a path or an open binary file"
        )
    section = _Section(data, path, start)
    if len(data) > MAX_FILE_BYTES:
        section.fail(f"the section has more than {MAX_FILE_BYTES} bytes, the most that is read", 0)
    if length is not None and len(data) < length:
        section.fail(
            f"the section has {length} bytes, but only {len(data)} follow byte {start}", len(data)
        )
    return _parse(section)


def _position(file: BinaryIO) -> int:
    """Return the position of a file; 0 for a pipe, which has none."""
    try:
        return file.tell()
    except (AttributeError, OSError):
        return 0


def _blocks(file: BinaryIO, limit: int) -> Iterator[bytes]:
    while limit:
        block = file.read(min(limit, _BLOCK_BYTES))
        if not isinstance(block, bytes):
            raise TypeError(f"the file returned {block!r}; expected one that is open for bytes")
        if not block:
            break
        yield block
        limit -= len(block)


def _parse(section: _Section) -> Vocabulary:
    header = _read_header(section)
    pattern = _read_pattern(section, header)
    tokens, tokens_at, merges_at = _read_tokens(section, header)
    merges = _read_merges(section, header, merges_at)
    try:
        vocab = Vocabulary(
            tokens,
            [merge for merge, _ in merges],
            special_tokens={_SPECIAL_TEXTS[role]: i for role, i in header.roles.items()},
            pattern=pattern,
            roles=header.roles,
        )
        check(vocab)
    except PatternError as error:
        section.fail(str(error), _PATTERN_AT)
    except VocabularyError as error:
        if error.merge is not None:
            section.fail(str(error), merges[error.merge][1])
        section.fail(str(error), tokens_at.get(error.token_id, header.records_at))
    if header.fingerprint not in (None, vocab.fingerprint):
        section.fail(
            f"the fingerprint is {header.fingerprint}, but the vocabulary that was read has "
            f"{vocab.fingerprint}; the section must be written again from its source",
            _FINGERPRINT_AT,
        )
    return vocab


def _read_header(section: _Section) -> _Header:
    """Read the header, and check what can be checked before the tables."""
    data = section.data
    if not data.startswith(_MAGIC):
        section.fail(f"expected {_MAGIC!r}, found {data[:4]!r}", 0)
    if len(data) < _HEADER.size:
        section.fail(
            f"the section ends inside the header, which has {_HEADER.size} bytes", len(data)
        )
    _, version, vocab_size, *role_ids, token_count, merge_count = _HEADER.unpack_from(data)
    records_at, fingerprint = _HEADER.size, None
    if version == 2:
        _check_checksum(section)
        pattern_length, digest = _MORE.unpack_from(data, _HEADER.size)
        rest = section.end - _PATTERN_AT
        if pattern_length > rest:
            section.fail(
                f"the header claims a pattern of {pattern_length} bytes, "
                f"but {rest} bytes follow it",
                _PATTERN_LENGTH_AT,
            )
        records_at, fingerprint = _PATTERN_AT + pattern_length, digest.hex()
    elif version != 1:
        section.fail(f"version is {version}; only 1 and 2 can be read", _VERSION_AT)
    least = token_count * (_TOKEN.size + 1) + merge_count * _MERGE.size
    if least > section.end - records_at:
        section.fail(
            f"the header claims {token_count} tokens and {merge_count} merges, at least {least} "
            f"bytes, but {section.end - records_at} bytes follow it",
            records_at,
        )
    if not _IMPLICIT <= vocab_size <= _IMPLICIT + token_count:
        section.fail(
            f"vocab_size is {vocab_size}; 256 bytes, {len(ROLES)} special tokens and {token_count} "
            f"token records make {_IMPLICIT} to {_IMPLICIT + token_count} ids",
            _VOCAB_SIZE_AT,
        )
    owners: dict[int, str] = {}
    for index, (role, token_id) in enumerate(zip(ROLES, role_ids, strict=True)):
        at = _ROLES_AT + 4 * index
        if not 256 <= token_id < vocab_size:
            section.fail(f"{role} is id {token_id}; expected an id in 256..{vocab_size - 1}", at)
        if owners.setdefault(token_id, role) != role:
            section.fail(
                f"{owners[token_id]} and {role} are both id {token_id}; each needs its own", at
            )
    roles = {role: token_id for token_id, role in owners.items()}
    return _Header(vocab_size, roles, token_count, merge_count, records_at, fingerprint)


def _check_checksum(section: _Section) -> None:
    """Check the CRC-32C of a section of version 2, which is after its records."""
    from byteweld import _native  # the engine, loaded only when it is needed

    section.end -= _CHECKSUM.size
    if section.end < _PATTERN_AT:
        section.fail(
            f"the section ends inside the header of version 2, which has {_PATTERN_AT} bytes and "
            f"is followed by a checksum of {_CHECKSUM.size}",
            len(section.data),
        )
    (expected,) = _CHECKSUM.unpack_from(section.data, section.end)
    found = _native.crc32c(section.data[: section.end])
    if found != expected:
        section.fail(
            f"the checksum is 0x{expected:08X}, but that of the section is 0x{found:08X}; "
            "it is damaged or not complete",
            section.end,
        )


def _read_pattern(section: _Section, header: _Header) -> str | None:
    data = section.data[_PATTERN_AT : header.records_at]
    try:
        return data.decode("utf-8") or None
    except UnicodeDecodeError as error:
        section.fail(
            f"the pattern is {show(data)}; expected UTF-8 ({error.reason})",
            _PATTERN_AT + error.start,
        )


def _read_tokens(
    section: _Section, header: _Header
) -> tuple[dict[int, bytes], dict[int | None, int], int]:
    """Return every token by id, the offsets of their records, and that of the merge records."""
    implicit = {byte: bytes([byte]) for byte in range(256)}
    implicit |= {i: _SPECIAL_TEXTS[role].encode() for role, i in header.roles.items()}
    tokens = dict(implicit)
    offsets: dict[int | None, int] = {}
    at = header.records_at
    for number in range(header.token_count):
        token_id, token = _read_token(section, at, number)
        problem = None
        if token_id >= header.vocab_size:
            problem = f"has id {token_id}; the last id is {header.vocab_size - 1}"
        elif token_id in offsets:
            problem = f"has id {token_id}, which an earlier record has"
        elif implicit.get(token_id, token) != token:
            problem = (
                f"says that id {token_id} is {show(token)}; it is always {implicit[token_id]!r}"
            )
        if problem is not None:
            section.fail(f"token record {number} {problem}", at)
        tokens[token_id] = token
        offsets[token_id] = at
        at += _TOKEN.size + len(token)
    if len(tokens) != header.vocab_size:
        section.fail(
            f"vocab_size is {header.vocab_size}, but the tables hold {len(tokens)} ids",
            _VOCAB_SIZE_AT,
        )
    return tokens, offsets, at


def _read_token(section: _Section, at: int, number: int) -> tuple[int, bytes]:
    """Return the id and the bytes of one token record."""
    start = at + _TOKEN.size
    if start > section.end:
        section.fail(f"the section ends inside token record {number}", at)
    token_id, length = _TOKEN.unpack_from(section.data, at)
    if not 1 <= length <= section.end - start:
        found = "an empty token" if length == 0 else f"a token of {length} bytes"
        section.fail(
            f"token record {number} declares {found}; expected 1 to {section.end - start} bytes, "
            "the rest of the section",
            at + 4,
        )
    return token_id, section.data[start : start + length]


def _read_merges(section: _Section, header: _Header, start: int) -> list[tuple[Merge, int]]:
    """Return the merges, each with the offset of its record, in order of rank."""
    end = start + header.merge_count * _MERGE.size
    if end > section.end:
        section.fail(
            f"{header.merge_count} merge records need {end - start} bytes, "
            f"but {section.end - start} remain",
            start,
        )
    by_rank: dict[int, tuple[Merge, int]] = {}
    for at in range(start, end, _MERGE.size):
        *merge, rank = _MERGE.unpack_from(section.data, at)
        if rank in by_rank:
            number = (at - start) // _MERGE.size
            section.fail(f"merge record {number} has rank {rank}, as has an earlier record", at)
        by_rank[rank] = (Merge(*merge), at)
    if end != section.end:
        section.fail(f"{section.end - end} bytes follow the last merge record; expected none", end)
    return [by_rank[rank] for rank in sorted(by_rank)]


# ---------------------------------------------------------------------- writing


def check(vocab: Vocabulary) -> None:
    """Raise NotHeldError for a vocabulary that the format cannot represent."""
    check_merge_list(vocab)
    check_alphabet(vocab)
    if vocab.pattern == "":
        raise NotHeldError("its pattern is empty, and a pattern of no bytes means none")
    if set(vocab.special_tokens) != set(_SPECIAL_TEXTS.values()):
        raise NotHeldError(
            f"its special tokens are {show(list(vocab.special_tokens))}, "
            f"not exactly {', '.join(_SPECIAL_TEXTS.values())}"
        )
    for role, text in _SPECIAL_TEXTS.items():
        if vocab.roles.get(role) != vocab.special_tokens[text]:
            raise NotHeldError(
                f"its role {role} is {vocab.roles.get(role)}, not the id of {text!r}"
            )
    check_bytes(vocab, range(256), 0)
    if max(vocab.tokens) != len(vocab.tokens) - 1:
        gap = next(i for i in range(len(vocab.tokens)) if i not in vocab.tokens)
        raise NotHeldError(f"its ids have a gap at {gap}")
    special_ids = set(vocab.special_tokens.values())
    for rank, merge in enumerate(vocab.merge_ids):
        shared = special_ids.intersection(merge)
        if shared:
            raise NotHeldError(
                f"merge {rank} uses id {min(shared)}, which is also a special token", merge=rank
            )
    if any(len(token) >= 2**32 for token in vocab.tokens.values()):
        raise NotHeldError("it has a token of 4 GiB or more")


def to_bytes(vocab: Vocabulary, *, version: Version | None = None) -> bytes:
    """Return the section that is saved; UnsupportedError if BPE1 cannot represent the vocabulary.

    By default it has version 1, or version 2 if the vocabulary has a pattern, which version 1
    cannot hold.
    """
    formats.check(vocab, "", "bpe1")
    (section,) = render(vocab, Path(), version=version).values()
    return section


def render(vocab: Vocabulary, path: Path, *, version: Version | None = None) -> dict[Path, bytes]:
    """Return the section to write."""
    if version is None:
        version = 1 if vocab.pattern is None else 2
    elif type(version) is not int or version not in (1, 2):
        raise ValueError(f"version is {version!r}; it must be 1, 2 or None")
    if version == 1 and vocab.pattern is not None:
        raise UnsupportedError(
            f"BPE1 version 1 cannot hold this vocabulary: its pattern is {vocab.pattern!r}, but "
            "the section has no field for one; version 2 has"
        )
    role_ids = [vocab.roles[role] for role in ROLES]
    records = [(i, token) for i, token in vocab.tokens.items() if i > 255 and i not in role_ids]
    merges = vocab.merge_ids
    parts = [_HEADER.pack(_MAGIC, version, len(vocab.tokens), *role_ids, len(records), len(merges))]
    if version == 2:
        # A name is shorter, and can be recognized without parsing an expression.
        pattern = (pattern_name(vocab.pattern) or vocab.pattern or "").encode()
        parts += [_MORE.pack(len(pattern), bytes.fromhex(vocab.fingerprint)), pattern]
    parts += [_TOKEN.pack(token_id, len(token)) + token for token_id, token in records]
    parts += [_MERGE.pack(*merge, rank) for rank, merge in enumerate(merges)]
    section = b"".join(parts)
    if version == 2:
        from byteweld import _native  # the engine, loaded only when it is needed

        section += _CHECKSUM.pack(_native.crc32c(section))
    return {path: section}
