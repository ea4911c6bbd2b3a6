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
from byteweld._saves import NO_FILES, write_together
from byteweld.errors import FormatError, VocabularyError
from byteweld.formats._json import parse_object, read_file, require_exactly, show
from byteweld.formats._limits import (
    find_alphabet_obstacle,
    find_byte_obstacle,
    find_merge_list_obstacle,
    is_join,
    refuse,
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
    _check_tokens(tokens, merges, path)
    try:
        return Vocabulary(
            tokens,
            merges,
            special_tokens={END_OF_TEXT: special_id},
            pattern=patterns.GPT2,
        )
    except VocabularyError as error:
        raise FormatError(str(error), path=path) from error


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


def _check_tokens(tokens: Mapping[int, bytes], merges: list[Merge], path: Path) -> None:
    """Check the bytes of every id against what the id means."""
    special_id = _FIRST_MERGE_ID + len(merges)
    expected = {byte: bytes([byte]) for byte in range(256)} | {special_id: END_OF_TEXT.encode()}
    for token_id, token in expected.items():
        if tokens[token_id] != token:
            raise FormatError(
                f"vocab['{token_id}'] is {show(tokens[token_id])}; expected {token!r}", path=path
            )
    for rank, (left, right, new) in enumerate(merges):
        if not is_join(tokens[new], tokens[left], tokens[right]):
            raise FormatError(
                f"vocab['{new}'] is {show(tokens[new])}, but merges[{rank}] makes it from "
                f"{show(tokens[left])} and {show(tokens[right])}",
                path=path,
            )


# ---------------------------------------------------------------------- writing


def check(vocab: Vocabulary) -> None:
    """Raise UnsupportedError for a vocabulary that the format cannot represent."""
    refuse("a bpetite artifact", _find_obstacle(vocab))


def save(
    vocab: Vocabulary,
    path: Path,
    *,
    overwrite: bool = False,
    beside: Mapping[Path, bytes] = NO_FILES,
) -> None:
    """Write an artifact; raises UnsupportedError if schema v1 cannot represent the vocabulary."""
    check(vocab)
    special_id = vocab.special_tokens[END_OF_TEXT]
    artifact = {
        "mergeable_vocab_size": special_id,
        "merges": [[left, right] for left, right, _ in vocab.merge_ids],
        "pretokenizer_pattern": patterns.GPT2,
        "schema_version": _SCHEMA_VERSION,
        "special_tokens": {END_OF_TEXT: special_id},
        "vocab": {str(token_id): list(token) for token_id, token in vocab.tokens.items()},
    }
    text = json.dumps(artifact, sort_keys=True, separators=(",", ":"))
    write_together({**beside, path: text.encode("ascii")}, overwrite=overwrite)


def _find_obstacle(vocab: Vocabulary) -> str | None:
    """Return why schema v1 cannot represent a vocabulary, or None."""
    obstacle = find_merge_list_obstacle(vocab) or find_alphabet_obstacle(vocab)
    if obstacle is not None:
        return obstacle
    if vocab.pattern != patterns.GPT2:
        return f"its pattern is {vocab.pattern!r}, not GPT-2's"
    if vocab.roles:
        return f"it has the roles {dict(vocab.roles)}"
    if list(vocab.special_tokens) != [END_OF_TEXT]:
        return (
            f"its special tokens are {show(list(vocab.special_tokens))}, not only {END_OF_TEXT!r}"
        )
    return _find_layout_obstacle(vocab)


def _find_layout_obstacle(vocab: Vocabulary) -> str | None:
    """Check the ids: bytes 0..255, the merges in order, the special token, and no others."""
    obstacle = find_byte_obstacle(vocab, range(256), 0)
    if obstacle is not None:
        return obstacle
    for rank, (left, right, new) in enumerate(vocab.merge_ids):
        if new != _FIRST_MERGE_ID + rank:
            return f"merge {rank} makes id {new}, not {_FIRST_MERGE_ID + rank}"
        if left >= new or right >= new:
            return f"merge {rank} makes id {new} from {left} and {right}, not from earlier ids"
    special_id = _FIRST_MERGE_ID + len(vocab.merge_ids)
    if vocab.special_tokens[END_OF_TEXT] != special_id:
        found = vocab.special_tokens[END_OF_TEXT]
        return f"{END_OF_TEXT!r} has id {found}, not {special_id}, the first after the merges"
    if len(vocab.tokens) != special_id + 1:
        extra = next(i for i in vocab.tokens if i > special_id)
        return f"token {extra}, {show(vocab.tokens[extra])}, is not made by a merge"
    return None
