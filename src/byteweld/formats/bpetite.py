"""bpetite's artifact, schema v1: a JSON object with tokens as lists of bytes and merges as pairs.

Reading checks every value. Writing gives the same bytes as bpetite.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from byteweld import patterns
from byteweld.errors import FormatError
from byteweld.formats._json import parse_object, read_file, require_exactly, show
from byteweld.formats._limits import (
    NotHeldError,
    check_alphabet,
    check_bytes,
    check_merge_list,
    check_merged_ids,
    check_no_more,
)
from byteweld.vocab import Merge, Vocabulary

END_OF_TEXT: Final = "<|endoftext|>"

_SCHEMA_VERSION: Final = 1
_FIRST_MERGE_ID: Final = 256
_KEYS: Final = (
    "mergeable_vocab_size",
    "merges",
    "pretokenizer_pattern",
    "schema_version",
    "special_tokens",
    "vocab",
)
_FIRST_KEY: Final = re.compile(rb'[ \t\r\n]*\{[ \t\r\n]*"(?:%s)"' % "|".join(_KEYS).encode())
_CANONICAL_ID: Final = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)


def recognize(path: Path, head: bytes) -> bool:
    """Whether a file starts with one of the six keys and has a key that only bpetite uses."""
    own = b'"mergeable_vocab_size"' in head or b'"pretokenizer_pattern"' in head
    return own and _FIRST_KEY.match(head) is not None


# ---------------------------------------------------------------------- reading


def load(path: Path) -> Vocabulary:
    """Read an artifact; anything that schema v1 does not allow is a FormatError."""
    artifact = parse_object(read_file(path), path)
    _check_head(artifact, path)
    merges = _read_merges(artifact["merges"], path)
    special_id = _FIRST_MERGE_ID + len(merges)
    size = artifact["mergeable_vocab_size"]
    if type(size) is not int or size != special_id:
        raise FormatError(
            f"mergeable_vocab_size is {show(size)}; expected {special_id}, "
            f"256 bytes and {len(merges)} merges",
            path=path,
        )
    _check_special_tokens(artifact["special_tokens"], special_id, path)
    tokens = _read_tokens(artifact["vocab"], special_id, path)
    expected = {byte: bytes([byte]) for byte in range(256)} | {special_id: END_OF_TEXT.encode()}
    for token_id, token in expected.items():
        if tokens[token_id] != token:
            raise FormatError(
                f"vocab['{token_id}'] is {show(tokens[token_id])}; expected {token!r}", path=path
            )
    return Vocabulary(
        tokens, merges, special_tokens={END_OF_TEXT: special_id}, pattern=patterns.GPT2
    )


def _check_head(artifact: Mapping[str, object], path: Path) -> None:
    """Check version, keys and pattern; the version first, because it determines the keys."""
    version = artifact.get("schema_version", _SCHEMA_VERSION)
    if type(version) is not int or version != _SCHEMA_VERSION:
        raise FormatError(
            f"schema_version is {show(version)}; only {_SCHEMA_VERSION} can be read", path=path
        )
    require_exactly(artifact, _KEYS, path)
    pattern = artifact["pretokenizer_pattern"]
    if pattern != patterns.GPT2:
        raise FormatError(
            f"pretokenizer_pattern is {show(pattern)}; schema v1 has only {patterns.GPT2!r}",
            path=path,
        )


def _read_merges(raw: object, path: Path) -> list[Merge]:
    """Read [[left, right], ...]; merge number n makes id 256 + n from ids below it."""
    if type(raw) is not list:
        raise FormatError(f"merges is {show(raw)}; expected a list of pairs of ids", path=path)
    merges = []
    for rank, pair in enumerate(raw):
        if type(pair) is not list or [type(part) for part in pair] != [int, int]:
            raise FormatError(
                f"merges[{rank}] is {show(pair)}; expected a list of two integers", path=path
            )
        left, right = pair
        new = _FIRST_MERGE_ID + rank
        if not (0 <= left < new and 0 <= right < new):
            raise FormatError(
                f"merges[{rank}] is {show(pair)} and makes id {new}; "
                f"expected ids in 0..{new - 1}, which exist before it",
                path=path,
            )
        merges.append(Merge(left, right, new))
    return merges


def _check_special_tokens(raw: object, special_id: int, path: Path) -> None:
    found = raw.get(END_OF_TEXT) if type(raw) is dict and len(raw) == 1 else None
    if type(found) is not int or found != special_id:
        raise FormatError(
            f"special_tokens is {show(raw)}; expected {{{END_OF_TEXT!r}: {special_id}}}, "
            "the first id after the merges",
            path=path,
        )


def _read_tokens(raw: object, special_id: int, path: Path) -> dict[int, bytes]:
    """Read {"id": [byte, ...]} with every id of 0..special_id once, in canonical decimal."""
    if type(raw) is not dict:
        raise FormatError(f"vocab is {show(raw)}; expected an object of id: bytes", path=path)
    tokens: dict[int, bytes] = {}
    for key, value in raw.items():
        if _CANONICAL_ID.fullmatch(key) is None:
            raise FormatError(
                f"vocab has the key {show(key)}; expected an id in plain decimal digits", path=path
            )
        if int(key) > special_id:
            raise FormatError(f"vocab has id {key}; the last id is {special_id}", path=path)
        if type(value) is not list or not all(type(b) is int and 0 <= b <= 255 for b in value):
            raise FormatError(
                f"vocab[{key!r}] is {show(value)}; expected a list of integers in 0..255",
                path=path,
            )
        tokens[int(key)] = bytes(value)
    if len(tokens) != special_id + 1:
        missing = next(i for i in range(special_id + 1) if i not in tokens)
        raise FormatError(f"vocab has no id {missing}; expected 0..{special_id}", path=path)
    return tokens


# ---------------------------------------------------------------------- writing


def check(vocab: Vocabulary) -> None:
    """Raise NotHeldError for a vocabulary that schema v1 cannot represent."""
    check_merge_list(vocab)
    check_alphabet(vocab)
    if vocab.pattern != patterns.GPT2:
        raise NotHeldError(f"its pattern is {vocab.pattern!r}, not GPT-2's")
    if vocab.roles:
        raise NotHeldError(f"it has the roles {dict(vocab.roles)}")
    if list(vocab.special_tokens) != [END_OF_TEXT]:
        raise NotHeldError(
            f"its special tokens are {show(list(vocab.special_tokens))}, not only {END_OF_TEXT!r}"
        )
    special_id = check_merged_ids(vocab, 0, check_bytes(vocab, range(256), 0))
    found = vocab.special_tokens[END_OF_TEXT]
    if found != special_id:
        raise NotHeldError(
            f"{END_OF_TEXT!r} has id {found}, not {special_id}, the first after the merges"
        )
    check_no_more(vocab, special_id + 1)


def render(vocab: Vocabulary, path: Path) -> dict[Path, bytes]:
    """Return the artifact to write."""
    special_id = vocab.special_tokens[END_OF_TEXT]
    artifact = {
        "mergeable_vocab_size": special_id,
        "merges": [[left, right] for left, right, _ in vocab.merge_ids],
        "pretokenizer_pattern": patterns.GPT2,
        "schema_version": _SCHEMA_VERSION,
        "special_tokens": {END_OF_TEXT: special_id},
        "vocab": {str(token_id): list(token) for token_id, token in vocab.tokens.items()},
    }
    return {path: json.dumps(artifact, sort_keys=True, separators=(",", ":")).encode("ascii")}
