"""bpetite's artifact, schema v1: a JSON object with tokens as lists of bytes and merges as pairs.

Reading checks every value. Writing gives the same bytes as bpetite.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final, NamedTuple

from byteweld import patterns
from byteweld.errors import FormatError
from byteweld.formats._json import check_version, parse_object, read_fields, read_file, show, wrong
from byteweld.formats._limits import (
    NotHeldError,
    check_alphabet,
    check_bytes,
    check_merge_list,
    check_merged_ids,
    check_no_more,
)
from byteweld.vocab import Vocabulary

END_OF_TEXT: Final = "<|endoftext|>"

_SCHEMA_VERSION: Final = 1
_FIRST_MERGE_ID: Final = 256


class _Artifact(NamedTuple):
    mergeable_vocab_size: int
    merges: tuple[tuple[int, int], ...]
    pretokenizer_pattern: str
    schema_version: int
    special_tokens: dict[str, int]
    vocab: dict[str, tuple[int, ...]]


_FIRST_KEY: Final = re.compile(
    rb'[ \t\r\n]*\{[ \t\r\n]*"(?:%s)"' % "|".join(_Artifact._fields).encode()
)


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
    found = read_fields(_Artifact, artifact, path)
    merges = [(*pair, _FIRST_MERGE_ID + rank) for rank, pair in enumerate(found.merges)]
    special_id = _FIRST_MERGE_ID + len(merges)
    for key, value in _settings(special_id).items():
        if artifact[key] != value:
            raise wrong(key, artifact[key], f"{value!r}, for {len(merges)} merges", path)
    ids = {str(token_id): token_id for token_id in range(special_id + 1)}
    odd = next((key for key in found.vocab if key not in ids), None)
    if odd is not None:
        raise FormatError(
            f"vocab has the key {show(odd)}; expected ids in 0..{special_id} in decimal digits",
            path=path,
        )
    tokens = {}
    for key, token_id in ids.items():
        if key not in found.vocab:
            raise FormatError(f"vocab has no id {key}; expected 0..{special_id}", path=path)
        try:
            tokens[token_id] = bytes(found.vocab[key])
        except ValueError:
            raise wrong(f"vocab[{key!r}]", found.vocab[key], "bytes in 0..255", path) from None
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
