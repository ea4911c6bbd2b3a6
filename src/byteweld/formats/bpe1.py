"""BPE1: a little-endian binary section of header, token records and merge records.

Reading checks every byte, and uses memory in proportion to the file's size, whatever its counts
say. Writing gives the canonical section. docs/formats/bpe1.md has the byte tables and the rules.
"""

from __future__ import annotations

import reprlib
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from byteweld._saves import NO_FILES, write_together
from byteweld.errors import FormatError, VocabularyError
from byteweld.formats._json import read_file
from byteweld.formats._limits import (
    find_alphabet_obstacle,
    find_byte_obstacle,
    find_merge_list_obstacle,
    is_join,
    refuse,
)
from byteweld.vocab import ROLES, Merge, Vocabulary

_MAGIC: Final = b"BPE1"
_VERSION: Final = 1
_HEADER: Final = struct.Struct("<4s8I")  # magic, version, vocab_size, bos, eos, pad, unk, counts
_TOKEN: Final = struct.Struct("<2I")  # id, length; the bytes follow
_MERGE: Final = struct.Struct("<4I")  # left, right, output, rank

_VOCAB_SIZE_AT: Final = 8  # offset in the header
_ROLES_AT: Final = 12  # offset of the ids of the roles
_IMPLICIT: Final = 256 + len(ROLES)  # bytes and special tokens need no token record

_SPECIAL_TEXTS: Final[Mapping[str, str]] = {role: f"<|{role}|>" for role in ROLES}

_show = reprlib.repr  # a token may be as long as the file


class _Header(NamedTuple):
    vocab_size: int
    roles: dict[str, int]
    token_count: int
    merge_count: int


def recognize(path: Path, head: bytes) -> bool:
    """Whether a file starts with the magic; `load` checks the version."""
    return head.startswith(_MAGIC)


# ---------------------------------------------------------------------- reading


def load(path: Path) -> Vocabulary:
    """Read a section; anything that version 1 does not allow is a FormatError with its offset."""
    data = read_file(path)
    header = _read_header(data, path)
    tokens, offset = _read_tokens(data, header, path)
    merges, offset = _read_merges(data, offset, tokens, header, path)
    if offset != len(data):
        raise FormatError(
            f"{len(data) - offset} bytes follow the last merge record; expected none",
            path=path,
            offset=offset,
        )
    try:
        return Vocabulary(
            tokens,
            merges,
            special_tokens={_SPECIAL_TEXTS[role]: i for role, i in header.roles.items()},
            roles=header.roles,
        )
    except VocabularyError as error:
        raise FormatError(str(error), path=path) from error


def _read_header(data: bytes, path: Path) -> _Header:
    """Read the header, and check what can be checked before the tables."""
    if not data.startswith(_MAGIC):
        raise FormatError(f"expected {_MAGIC!r}, found {data[:4]!r}", path=path, offset=0)
    if len(data) < _HEADER.size:
        raise FormatError(
            f"the file ends inside the header, which has {_HEADER.size} bytes",
            path=path,
            offset=len(data),
        )
    _, version, vocab_size, *role_ids, token_count, merge_count = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise FormatError(f"version is {version}; only {_VERSION} can be read", path=path, offset=4)
    least = token_count * (_TOKEN.size + 1) + merge_count * _MERGE.size
    if least > len(data) - _HEADER.size:
        raise FormatError(
            f"the header claims {token_count} tokens and {merge_count} merges, at least {least} "
            f"bytes, but {len(data) - _HEADER.size} bytes follow it",
            path=path,
            offset=_HEADER.size,
        )
    if not _IMPLICIT <= vocab_size <= _IMPLICIT + token_count:
        raise FormatError(
            f"vocab_size is {vocab_size}; 256 bytes, {len(ROLES)} special tokens and {token_count} "
            f"token records make {_IMPLICIT} to {_IMPLICIT + token_count} ids",
            path=path,
            offset=_VOCAB_SIZE_AT,
        )
    roles = dict(zip(ROLES, role_ids, strict=True))
    _check_roles(roles, vocab_size, path)
    return _Header(vocab_size, roles, token_count, merge_count)


def _check_roles(roles: Mapping[str, int], vocab_size: int, path: Path) -> None:
    owners: dict[int, str] = {}
    for index, (role, token_id) in enumerate(roles.items()):
        offset = _ROLES_AT + 4 * index
        if not 256 <= token_id < vocab_size:
            raise FormatError(
                f"{role} is id {token_id}; expected an id in 256..{vocab_size - 1}",
                path=path,
                offset=offset,
            )
        if token_id in owners:
            raise FormatError(
                f"{owners[token_id]} and {role} are both id {token_id}; each needs its own",
                path=path,
                offset=offset,
            )
        owners[token_id] = role


def _read_tokens(data: bytes, header: _Header, path: Path) -> tuple[dict[int, bytes], int]:
    """Read the token records; return every token by id, and the offset of the merge records."""
    tokens = {byte: bytes([byte]) for byte in range(256)}
    tokens |= {i: _SPECIAL_TEXTS[role].encode() for role, i in header.roles.items()}
    implicit = frozenset(tokens)
    owners = {bytes([byte]): byte for byte in range(256)}  # bytes -> id, of ordinary tokens
    listed: set[int] = set()
    offset = _HEADER.size
    for number in range(header.token_count):
        at = offset
        token_id, token, offset = _read_token(data, at, number, path)
        if token_id >= header.vocab_size:
            raise FormatError(
                f"token record {number} has id {token_id}; the last id is {header.vocab_size - 1}",
                path=path,
                offset=at,
            )
        if token_id in listed:
            raise FormatError(
                f"token record {number} has id {token_id}, which an earlier record has",
                path=path,
                offset=at,
            )
        listed.add(token_id)
        if token_id in implicit:
            if token != tokens[token_id]:
                raise FormatError(
                    f"token record {number} says that id {token_id} is {_show(token)}; "
                    f"it is always {tokens[token_id]!r}",
                    path=path,
                    offset=at,
                )
            continue
        if token in owners:
            raise FormatError(
                f"ids {owners[token]} and {token_id} are both {_show(token)}; "
                "every token has one id",
                path=path,
                offset=at,
            )
        owners[token] = token_id
        tokens[token_id] = token
    if len(tokens) != header.vocab_size:
        raise FormatError(
            f"vocab_size is {header.vocab_size}, but the tables hold {len(tokens)} ids",
            path=path,
            offset=_VOCAB_SIZE_AT,
        )
    return tokens, offset


def _read_token(data: bytes, at: int, number: int, path: Path) -> tuple[int, bytes, int]:
    """Read one token record; return its id, its bytes and the offset after it."""
    if len(data) - at < _TOKEN.size:
        raise FormatError(f"the file ends inside token record {number}", path=path, offset=at)
    token_id, length = _TOKEN.unpack_from(data, at)
    start = at + _TOKEN.size
    if not 1 <= length <= len(data) - start:
        found = "an empty token" if length == 0 else f"a token of {length} bytes"
        raise FormatError(
            f"token record {number} declares {found}; expected 1 to {len(data) - start} bytes, "
            "the rest of the file",
            path=path,
            offset=at + 4,
        )
    return token_id, data[start : start + length], start + length


def _read_merges(
    data: bytes, start: int, tokens: Mapping[int, bytes], header: _Header, path: Path
) -> tuple[list[Merge], int]:
    """Read the merge records; return the merges in order of rank, and the offset after them."""
    end = start + header.merge_count * _MERGE.size
    if end > len(data):
        raise FormatError(
            f"{header.merge_count} merge records need {end - start} bytes, "
            f"but {len(data) - start} remain",
            path=path,
            offset=start,
        )
    special = {token_id: role for role, token_id in header.roles.items()}
    by_rank: dict[int, Merge] = {}
    numbers: dict[tuple[int, int], int] = {}  # pair -> number of its record
    for number in range(header.merge_count):
        at = start + number * _MERGE.size
        left, right, new, rank = _MERGE.unpack_from(data, at)
        problem = _find_merge_problem(Merge(left, right, new), tokens, special)
        if problem is None and rank in by_rank:
            problem = f"an earlier record has the same rank {rank}"
        if problem is None and (left, right) in numbers:
            problem = f"record {numbers[left, right]} merges the same pair"
        if problem is not None:
            raise FormatError(
                f"merge record {number} is ({left}, {right}) -> {new}, but {problem}",
                path=path,
                offset=at,
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
    """Raise UnsupportedError for a vocabulary that the format cannot represent."""
    refuse("BPE1", _find_obstacle(vocab))


def save(
    vocab: Vocabulary,
    path: Path,
    *,
    overwrite: bool = False,
    beside: Mapping[Path, bytes] = NO_FILES,
) -> None:
    """Write a section; raises UnsupportedError if BPE1 cannot represent the vocabulary."""
    check(vocab)
    role_ids = [vocab.roles[role] for role in ROLES]
    records = [(i, token) for i, token in vocab.tokens.items() if i > 255 and i not in role_ids]
    parts = [
        _HEADER.pack(
            _MAGIC, _VERSION, len(vocab.tokens), *role_ids, len(records), len(vocab.merge_ids)
        )
    ]
    parts += [_TOKEN.pack(token_id, len(token)) + token for token_id, token in records]
    parts += [_MERGE.pack(*merge, rank) for rank, merge in enumerate(vocab.merge_ids)]
    write_together({**beside, path: b"".join(parts)}, overwrite=overwrite)


def _find_obstacle(vocab: Vocabulary) -> str | None:
    """Return why BPE1 cannot represent a vocabulary, or None."""
    obstacle = find_merge_list_obstacle(vocab) or find_alphabet_obstacle(vocab)
    if obstacle is not None:
        return obstacle
    if vocab.pattern is not None:
        return f"its pattern is {vocab.pattern!r}, but the section has no field for one"
    if set(vocab.special_tokens) != set(_SPECIAL_TEXTS.values()):
        return (
            f"its special tokens are {_show(list(vocab.special_tokens))}, "
            f"not exactly {', '.join(_SPECIAL_TEXTS.values())}"
        )
    for role, text in _SPECIAL_TEXTS.items():
        if vocab.roles.get(role) != vocab.special_tokens[text]:
            return f"its role {role} is {vocab.roles.get(role)}, not the id of {text!r}"
    return _find_layout_obstacle(vocab)


def _find_layout_obstacle(vocab: Vocabulary) -> str | None:
    """Check the ids: bytes 0..255, no gaps, and special tokens that no merge uses."""
    obstacle = find_byte_obstacle(vocab, range(256), 0)
    if obstacle is not None:
        return obstacle
    if max(vocab.tokens) != len(vocab.tokens) - 1:
        gap = next(i for i in range(len(vocab.tokens)) if i not in vocab.tokens)
        return f"its ids have a gap at {gap}"
    special_ids = set(vocab.special_tokens.values())
    for rank, merge in enumerate(vocab.merge_ids):
        shared = special_ids.intersection(merge)
        if shared:
            return f"merge {rank} uses id {min(shared)}, which is also a special token"
    if any(len(token) >= 2**32 for token in vocab.tokens.values()):
        return "it has a token of 4 GiB or more"
    return None
