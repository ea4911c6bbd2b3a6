"""bpetite's artifact, schema v1: a JSON object with tokens as lists of bytes and merges as pairs.

Reading checks every value. Writing gives the same bytes as bpetite.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

from byteweld import patterns
from byteweld.errors import FormatError
from byteweld.formats._json import (
    check_version,
    parse_object,
    read_file,
    read_list,
    read_object,
    require_exactly,
    show,
    wrong,
)
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


def recognize(path: Path, head: bytes) -> bool:
    """Whether a file starts with one of the six keys and has a key that only bpetite uses."""
    own = b'"mergeable_vocab_size"' in head or b'"pretokenizer_pattern"' in head
    return own and _FIRST_KEY.match(head) is not None


# ---------------------------------------------------------------------- reading


def load(path: Path) -> Vocabulary:
    """Read an artifact; anything that schema v1 does not allow is a FormatError."""
    artifact = parse_object(read_file(path), path)
    # The version first, because it determines the keys.
    version = artifact.get("schema_version", _SCHEMA_VERSION)
    check_version("schema_version", version, _SCHEMA_VERSION, path)
    require_exactly(artifact, _KEYS, path)
    merges = _read_merges(artifact["merges"], path)
    special_id = _FIRST_MERGE_ID + len(merges)
    for key, value in _settings(special_id).items():
        found = artifact[key]
        if found != value or show(found) != show(value):  # which tells 1 from 1.0 and True
            raise wrong(key, found, f"{value!r}, for {len(merges)} merges", path)
    tokens = _read_tokens(artifact["vocab"], special_id, path)
    special_tokens = {END_OF_TEXT: special_id}
    vocab = Vocabulary(tokens, merges, special_tokens=special_tokens, pattern=patterns.GPT2)
    check(vocab)
    return vocab


def _settings(special_id: int) -> dict[str, object]:
    """Return what is in every artifact, apart from tokens and merges."""
    return {
        "mergeable_vocab_size": special_id,
        "pretokenizer_pattern": patterns.GPT2,
        "schema_version": _SCHEMA_VERSION,
        "special_tokens": {END_OF_TEXT: special_id},
    }


def _read_merges(raw: object, path: Path) -> list[Merge]:
    """Read [[left, right], ...]; merge number n makes id 256 + n."""
    merges = []
    for rank, pair in enumerate(read_list(raw, "merges", path)):
        if type(pair) is not list or [type(part) for part in pair] != [int, int]:
            raise wrong(f"merges[{rank}]", pair, "a list of two integers", path)
        left, right = pair
        merges.append(Merge(left, right, _FIRST_MERGE_ID + rank))
    return merges


def _read_tokens(raw: object, special_id: int, path: Path) -> dict[int, bytes]:
    """Read {"id": [byte, ...]} with every id of 0..special_id once, in canonical decimal."""
    ids = {str(token_id): token_id for token_id in range(special_id + 1)}
    found = read_object(raw, "vocab", path)
    odd = next((key for key in found if key not in ids), None)
    if odd is not None:
        raise FormatError(
            f"vocab has the key {show(odd)}; expected ids in 0..{special_id} in decimal digits",
            path=path,
        )
    tokens: dict[int, bytes] = {}
    for key, token_id in ids.items():
        if key not in found:
            raise FormatError(f"vocab has no id {key}; expected 0..{special_id}", path=path)
        value = found[key]
        if type(value) is not list or not all(type(b) is int and 0 <= b <= 255 for b in value):
            raise wrong(f"vocab[{key!r}]", value, "a list of integers in 0..255", path)
        tokens[token_id] = bytes(value)
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
    artifact = _settings(special_id) | {
        "merges": [[left, right] for left, right, _ in vocab.merge_ids],
        "vocab": {str(token_id): list(token) for token_id, token in vocab.tokens.items()},
    }
    return {path: json.dumps(artifact, sort_keys=True, separators=(",", ":")).encode("ascii")}
