"""BPE1: a little-endian binary section of header, token records and merge records.

`load` and `render` are the format's; `read` and `to_bytes` are for a section in memory, in an open
file, or at an offset of a larger one. Version 2 adds a pattern, the fingerprint and a CRC-32C.

Reading checks every byte, and uses memory in proportion to the section's size, whatever its counts
say. Writing gives the canonical section. docs/formats/bpe1.md has the byte tables and the rules.
"""

from __future__ import annotations

import os
import reprlib
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Final, Literal, NamedTuple

from byteweld import formats
from byteweld._files import read_part
from byteweld.errors import FormatError, PatternError, UnsupportedError, VocabularyError
from byteweld.formats._json import MAX_FILE_BYTES, read_file
from byteweld.formats._limits import (
    NotHeldError,
    check_alphabet,
    check_bytes,
    check_merge_list,
    is_join,
)
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

_VOCAB_SIZE_AT: Final = 8  # offset in the header
_ROLES_AT: Final = 12  # offset of the ids of the roles
_PATTERN_LENGTH_AT: Final = _HEADER.size
_FINGERPRINT_AT: Final = _HEADER.size + 4
_PATTERN_AT: Final = _HEADER.size + _MORE.size
_IMPLICIT: Final = 256 + len(ROLES)  # bytes and special tokens need no token record
_BLOCK_BYTES: Final = 1 << 20  # how much of an open file is read at a time

_SPECIAL_TEXTS: Final[Mapping[str, str]] = {role: f"<|{role}|>" for role in ROLES}

_show = reprlib.repr  # a token may be as long as the file


class _Section(NamedTuple):
    """The bytes of a section, and where they are, for errors."""

    data: bytes
    path: str | os.PathLike[str] | None
    start: int  # offset in the file
    end: int  # where the records end: before the checksum, if there is one

    def error(self, message: str, offset: int) -> FormatError:
        return FormatError(message, path=self.path, offset=self.start + offset)


class _Header(NamedTuple):
    vocab_size: int
    roles: dict[str, int]
    token_count: int
    merge_count: int
    pattern_length: int
    fingerprint: str | None  # version 1 has none

    @property
    def size(self) -> int:
        """The offset of the first record."""
        return _HEADER.size if self.fingerprint is None else _PATTERN_AT + self.pattern_length


def recognize(path: Path, head: bytes) -> bool:
    """Whether a file starts with the magic; `load` checks the version."""
    return head.startswith(_MAGIC)


# ---------------------------------------------------------------------- reading


def load(path: Path, *, offset: int = 0, length: int | None = None) -> Vocabulary:
    """Read a section from a file; whatever is not allowed is a FormatError with its offset.

    A section inside a larger file starts at `offset` and has `length` bytes, or all up to the end.
    Only those are read. A file that is nothing but a section may be compressed.
    """
    _check_range(offset, length)
    if offset == 0 and length is None:
        return _parse(read_file(path), path, 0)
    data = read_part(path, offset, _limit(length))
    return _parse(_complete(data, length, path, offset), path, offset)


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
    _check_range(offset, length)
    if isinstance(source, (str, os.PathLike)):
        return load(Path(source), offset=offset or 0, length=length)
    if isinstance(source, (bytes, bytearray, memoryview)):
        start = offset or 0
        view = memoryview(source).cast("B")
        data = bytes(view[start : None if length is None else start + length])
        return _parse(_complete(data, length, None, start), None, start)
    return _read_open(source, offset, length)


def _read_open(file: BinaryIO, offset: int | None, length: int | None) -> Vocabulary:
    if not hasattr(file, "read"):
        raise TypeError(
            f"source is a {type(file).__name__}; expected bytes, a path or an open binary file"
        )
    if offset is not None:
        file.seek(offset)
    start = _position(file)
    name = getattr(file, "name", None)
    path = name if isinstance(name, (str, os.PathLike)) else None
    blocks: list[bytes] = []
    rest = _limit(length)
    while rest:
        block = file.read(min(rest, _BLOCK_BYTES))
        if not isinstance(block, bytes):
            raise TypeError(f"the file returned {block!r}; expected one that is open for bytes")
        if not block:
            break
        blocks.append(block)
        rest -= len(block)
    return _parse(_complete(b"".join(blocks), length, path, start), path, start)


def _position(file: BinaryIO) -> int:
    """Return the position of a file; 0 for a pipe, which has none."""
    try:
        return file.tell()
    except (AttributeError, OSError):
        return 0


def _check_range(offset: int | None, length: int | None) -> None:
    for name, value in (("offset", offset), ("length", length)):
        if value is not None and (type(value) is not int or value < 0):
            raise ValueError(f"{name} is {value!r}; it must be an integer of at least 0")


def _limit(length: int | None) -> int:
    """Return how many bytes to read: one more than the largest section tells a larger one."""
    most = MAX_FILE_BYTES + 1
    return most if length is None else min(length, most)


def _complete(
    data: bytes, length: int | None, path: str | os.PathLike[str] | None, start: int
) -> bytes:
    """Return the bytes of a section if all of them were there, and not too many."""
    if len(data) > MAX_FILE_BYTES:
        raise FormatError(
            f"the section has more than {MAX_FILE_BYTES} bytes, the most that is read",
            path=path,
            offset=start,
        )
    if length is not None and len(data) < length:
        raise FormatError(
            f"the section has {length} bytes, but only {len(data)} follow byte {start}",
            path=path,
            offset=start + len(data),
        )
    return data


def _parse(data: bytes, path: str | os.PathLike[str] | None, start: int) -> Vocabulary:
    """Parse a whole section, which starts at `start` in a file."""
    section, header = _read_header(_Section(data, path, start, len(data)))
    pattern = _read_pattern(section, header)
    tokens, offset = _read_tokens(section, header)
    merges, offset = _read_merges(section, offset, tokens, header)
    if offset != section.end:
        raise section.error(
            f"{section.end - offset} bytes follow the last merge record; expected none", offset
        )
    try:
        vocab = Vocabulary(
            tokens,
            merges,
            special_tokens={_SPECIAL_TEXTS[role]: i for role, i in header.roles.items()},
            pattern=pattern,
            roles=header.roles,
        )
    except PatternError as error:
        raise section.error(str(error), _PATTERN_AT) from error
    except VocabularyError as error:
        raise FormatError(str(error), path=path) from error
    if header.fingerprint is not None and vocab.fingerprint != header.fingerprint:
        raise section.error(
            f"the fingerprint is {header.fingerprint}, but the vocabulary that was read has "
            f"{vocab.fingerprint}; the section must be written again from its source",
            _FINGERPRINT_AT,
        )
    return vocab


def _read_header(section: _Section) -> tuple[_Section, _Header]:
    """Read the header, and check what can be checked before the tables; find where they end."""
    data = section.data
    if not data.startswith(_MAGIC):
        raise section.error(f"expected {_MAGIC!r}, found {data[:4]!r}", 0)
    if len(data) < _HEADER.size:
        raise section.error(
            f"the section ends inside the header, which has {_HEADER.size} bytes", len(data)
        )
    _, version, vocab_size, *role_ids, token_count, merge_count = _HEADER.unpack_from(data)
    pattern_length, fingerprint = 0, None
    records_at = _HEADER.size
    if version == 2:
        section = _check_checksum(section)
        pattern_length, digest = _MORE.unpack_from(data, _HEADER.size)
        fingerprint = digest.hex()
        records_at = _PATTERN_AT
        if pattern_length > section.end - records_at:
            raise section.error(
                f"the header claims a pattern of {pattern_length} bytes, "
                f"but {section.end - records_at} bytes follow it",
                _PATTERN_LENGTH_AT,
            )
        records_at += pattern_length
    elif version != 1:
        raise section.error(f"version is {version}; only 1 and 2 can be read", 4)
    least = token_count * (_TOKEN.size + 1) + merge_count * _MERGE.size
    if least > section.end - records_at:
        raise section.error(
            f"the header claims {token_count} tokens and {merge_count} merges, at least {least} "
            f"bytes, but {section.end - records_at} bytes follow it",
            records_at,
        )
    if not _IMPLICIT <= vocab_size <= _IMPLICIT + token_count:
        raise section.error(
            f"vocab_size is {vocab_size}; 256 bytes, {len(ROLES)} special tokens and {token_count} "
            f"token records make {_IMPLICIT} to {_IMPLICIT + token_count} ids",
            _VOCAB_SIZE_AT,
        )
    roles = dict(zip(ROLES, role_ids, strict=True))
    _check_roles(roles, vocab_size, section)
    return section, _Header(
        vocab_size, roles, token_count, merge_count, pattern_length, fingerprint
    )


def _check_checksum(section: _Section) -> _Section:
    """Check the CRC-32C of a section of version 2; return the section without it."""
    from byteweld import _native  # the engine, loaded only when it is needed

    least = _PATTERN_AT + _CHECKSUM.size
    end = len(section.data) - _CHECKSUM.size
    if len(section.data) < least:
        raise section.error(
            f"the section ends inside the header of version 2, which has {_PATTERN_AT} bytes and "
            f"is followed by a checksum of {_CHECKSUM.size}",
            len(section.data),
        )
    (expected,) = _CHECKSUM.unpack_from(section.data, end)
    found = _native.crc32c(section.data[:end])
    if found != expected:
        raise section.error(
            f"the checksum is 0x{expected:08X}, but that of the section is 0x{found:08X}; "
            "it is damaged or not complete",
            end,
        )
    return section._replace(end=end)


def _read_pattern(section: _Section, header: _Header) -> str | None:
    if header.pattern_length == 0:
        return None
    data = section.data[_PATTERN_AT : _PATTERN_AT + header.pattern_length]
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise section.error(
            f"the pattern is {_show(data)}; expected UTF-8 ({error.reason})",
            _PATTERN_AT + error.start,
        ) from None


def _check_roles(roles: Mapping[str, int], vocab_size: int, section: _Section) -> None:
    owners: dict[int, str] = {}
    for index, (role, token_id) in enumerate(roles.items()):
        offset = _ROLES_AT + 4 * index
        if not 256 <= token_id < vocab_size:
            raise section.error(
                f"{role} is id {token_id}; expected an id in 256..{vocab_size - 1}", offset
            )
        if token_id in owners:
            raise section.error(
                f"{owners[token_id]} and {role} are both id {token_id}; each needs its own", offset
            )
        owners[token_id] = role


def _read_tokens(section: _Section, header: _Header) -> tuple[dict[int, bytes], int]:
    """Read the token records; return every token by id, and the offset of the merge records."""
    tokens = {byte: bytes([byte]) for byte in range(256)}
    tokens |= {i: _SPECIAL_TEXTS[role].encode() for role, i in header.roles.items()}
    implicit = frozenset(tokens)
    owners = {bytes([byte]): byte for byte in range(256)}  # bytes -> id, of ordinary tokens
    listed: set[int] = set()
    offset = header.size
    for number in range(header.token_count):
        at = offset
        token_id, token, offset = _read_token(section, at, number)
        if token_id >= header.vocab_size:
            raise section.error(
                f"token record {number} has id {token_id}; the last id is {header.vocab_size - 1}",
                at,
            )
        if token_id in listed:
            raise section.error(
                f"token record {number} has id {token_id}, which an earlier record has", at
            )
        listed.add(token_id)
        if token_id in implicit:
            if token != tokens[token_id]:
                raise section.error(
                    f"token record {number} says that id {token_id} is {_show(token)}; "
                    f"it is always {tokens[token_id]!r}",
                    at,
                )
            continue
        if token in owners:
            raise section.error(
                f"ids {owners[token]} and {token_id} are both {_show(token)}; "
                "every token has one id",
                at,
            )
        owners[token] = token_id
        tokens[token_id] = token
    if len(tokens) != header.vocab_size:
        raise section.error(
            f"vocab_size is {header.vocab_size}, but the tables hold {len(tokens)} ids",
            _VOCAB_SIZE_AT,
        )
    return tokens, offset


def _read_token(section: _Section, at: int, number: int) -> tuple[int, bytes, int]:
    """Read one token record; return its id, its bytes and the offset after it."""
    if section.end - at < _TOKEN.size:
        raise section.error(f"the section ends inside token record {number}", at)
    token_id, length = _TOKEN.unpack_from(section.data, at)
    start = at + _TOKEN.size
    if not 1 <= length <= section.end - start:
        found = "an empty token" if length == 0 else f"a token of {length} bytes"
        raise section.error(
            f"token record {number} declares {found}; expected 1 to {section.end - start} bytes, "
            "the rest of the section",
            at + 4,
        )
    return token_id, section.data[start : start + length], start + length


def _read_merges(
    section: _Section, start: int, tokens: Mapping[int, bytes], header: _Header
) -> tuple[list[Merge], int]:
    """Read the merge records; return the merges in order of rank, and the offset after them."""
    end = start + header.merge_count * _MERGE.size
    if end > section.end:
        raise section.error(
            f"{header.merge_count} merge records need {end - start} bytes, "
            f"but {section.end - start} remain",
            start,
        )
    special = {token_id: role for role, token_id in header.roles.items()}
    by_rank: dict[int, Merge] = {}
    numbers: dict[tuple[int, int], int] = {}  # pair -> number of its record
    for number in range(header.merge_count):
        at = start + number * _MERGE.size
        left, right, new, rank = _MERGE.unpack_from(section.data, at)
        problem = _find_merge_problem(Merge(left, right, new), tokens, special)
        if problem is None and rank in by_rank:
            problem = f"an earlier record has the same rank {rank}"
        if problem is None and (left, right) in numbers:
            problem = f"record {numbers[left, right]} merges the same pair"
        if problem is not None:
            raise section.error(
                f"merge record {number} is ({left}, {right}) -> {new}, but {problem}", at
            )
        by_rank[rank] = Merge(left, right, new)
        numbers[left, right] = number
    return [by_rank[rank] for rank in sorted(by_rank)], end


def _find_merge_problem(
    merge: Merge, tokens: Mapping[int, bytes], special: Mapping[int, str]
) -> str | None:
    for part in merge:
        if part not in tokens:
            return f"{part} is not a token; the last id is {len(tokens) - 1}"
        if part in special:
            return f"{part} is the special token {_SPECIAL_TEXTS[special[part]]!r}"
    left, right, new = tokens[merge.left], tokens[merge.right], tokens[merge.new]
    if not is_join(new, left, right):
        return f"its parts make {_show(left + right)}, and {merge.new} is {_show(new)}"
    return None


# ---------------------------------------------------------------------- writing


def check(vocab: Vocabulary) -> None:
    """Raise NotHeldError for a vocabulary that the format cannot represent."""
    check_merge_list(vocab)
    check_alphabet(vocab)
    if vocab.pattern == "":
        raise NotHeldError("its pattern is empty, and a pattern of no bytes means none")
    if set(vocab.special_tokens) != set(_SPECIAL_TEXTS.values()):
        raise NotHeldError(
            f"its special tokens are {_show(list(vocab.special_tokens))}, "
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
            raise NotHeldError(f"merge {rank} uses id {min(shared)}, which is also a special token")
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
        from byteweld import _native  # as above

        section += _CHECKSUM.pack(_native.crc32c(section))
    return {path: section}
