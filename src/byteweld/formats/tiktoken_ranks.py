"""tiktoken's rank files: a line per token, its bytes in base64, a space and its rank (its id).

Pattern and special tokens are not in the file: they come as options or from `<file>.byteweld.json`.
A rank file merges by the rank of the result; where that is provably the same as a merge list, the
vocabulary has the merge list.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from byteweld.errors import FormatError, UnsupportedError, VocabularyError
from byteweld.formats import _sidecar
from byteweld.formats._json import read_file, show
from byteweld.formats._sidecar import UNSET, Unset
from byteweld.vocab import MAX_ID, Merge, Vocabulary

NAME: Final = "tiktoken"

_LINE: Final = re.compile(rb"([A-Za-z0-9+/]*={0,2}) (0|[1-9][0-9]{0,9})")
_LOOKED_AT: Final = 16  # lines that recognition reads


def recognise(path: Path, head: bytes) -> bool:
    """Say whether a file opens with lines of base64, a space and a rank."""
    lines = head.split(b"\n", _LOOKED_AT)[:_LOOKED_AT]
    if len(lines) > 1:  # the last may be cut, or be what follows the last newline
        lines = lines[:-1]
    matches = [_LINE.fullmatch(line) for line in lines]
    return all(match is not None and _from_base64(match[1]) for match in matches)


# ---------------------------------------------------------------------- reading


def load(
    path: Path,
    *,
    pattern: str | Unset | None = UNSET,
    special_tokens: Mapping[str, int] | Unset = UNSET,
    roles: Mapping[str, int] | Unset = UNSET,
) -> Vocabulary:
    """Read a rank file with the pattern and special tokens given, or with those of its sidecar."""
    data = read_file(path)
    tokens = _read_ranks(data, path)
    known = _sidecar.complete(
        path,
        _sidecar.sidecar_path(path),
        data,
        holds_no="a rank file holds no pattern and no special tokens",
        pattern=pattern,
        special_tokens=special_tokens,
        roles=roles,
    )
    if known.alphabet != "bytes":
        raise UnsupportedError(f"{path}: a rank file cannot have the alphabet {known.alphabet!r}")
    _check_bytes(tokens, path)
    merges = _recover(list(tokens.items()))
    ranks = frozenset(tokens)
    for text, token_id in known.special_tokens.items():
        if tokens.setdefault(token_id, text.encode()) != text.encode():
            raise FormatError(
                f"special token {text!r} has id {token_id}, which is the rank of "
                f"{show(tokens[token_id])}",
                path=path,
            )
        if merges is None and token_id in ranks:
            raise UnsupportedError(
                f"{path}: special token {text!r} is also the token of rank {token_id}, "
                "which only a vocabulary with a merge list can hold"
            )
    try:
        return Vocabulary(
            tokens,
            merges or (),
            special_tokens=known.special_tokens,
            pattern=known.pattern,
            roles=known.roles,
            ranking="ranks" if merges is None else "merges",
        )
    except VocabularyError as error:
        raise FormatError(str(error), path=path) from error


def _read_ranks(data: bytes, path: Path) -> dict[int, bytes]:
    """Return rank -> token of every line; ranks ascend, with holes."""
    tokens: dict[int, bytes] = {}
    ranks: dict[bytes, int] = {}
    last = -1
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    for number, line in enumerate(lines, start=1):
        place = f"{path}:{number}"
        match = _LINE.fullmatch(line)
        token = _from_base64(match[1]) if match else None
        if match is None or token is None:
            found = line if len(line) <= 100 else line[:100] + b"..."
            raise FormatError(f"expected base64, a space and a rank, found {found!r}", path=place)
        rank = int(match[2])
        if not token:  # Whisper's multilingual file ends with one, at the place of a special token
            raise UnsupportedError(
                f"{place}: rank {rank} is an empty token, which a vocabulary cannot hold; "
                "remove the line: no text becomes it"
            )
        if rank > MAX_ID:
            raise FormatError(f"rank {rank} is above {MAX_ID}, the last id", path=place)
        if rank <= last:
            raise FormatError(f"rank {rank} follows rank {last}; ranks must ascend", path=place)
        if token in ranks:
            raise FormatError(
                f"ranks {ranks[token]} and {rank} are both {show(token)}; every token has one rank",
                path=place,
            )
        tokens[rank] = token
        ranks[token] = last = rank
    return tokens


def _from_base64(text: bytes) -> bytes | None:
    """Decode base64; None unless it is the one way to write these bytes.

    Python writes no bytes as nothing, and the only file known to hold them has a lone `=` there.
    """
    if text in (b"", b"="):
        return b""
    try:
        token = base64.b64decode(text, validate=True)
    except binascii.Error:
        return None
    return token if base64.b64encode(token) == text else None


def _check_bytes(tokens: Mapping[int, bytes], path: Path) -> None:
    """Refuse a file that lacks a byte before anything is merged with it."""
    singles = {token for token in tokens.values() if len(token) == 1}
    missing = [byte for byte in range(256) if bytes([byte]) not in singles]
    if missing:
        raise FormatError(
            f"no token for {len(missing)} of 256 bytes, first 0x{missing[0]:02X}; "
            "a rank file needs one for each",
            path=path,
        )


def _recover(tokens: list[tuple[int, bytes]]) -> list[Merge] | None:
    """Return the merge list that is the same tokenizer as these ranks, or None if there is none."""
    from byteweld import _native  # the engine, loaded only when ranks are read or written

    merges = _native.recover_merges(tokens)
    return None if merges is None else [Merge(*merge) for merge in merges]


# ---------------------------------------------------------------------- writing


def save(vocab: Vocabulary, path: Path, *, overwrite: bool = False) -> None:
    """Write the ranks, and beside them the sidecar with pattern, special tokens and roles."""
    tokens = list(vocab.ordinary())
    obstacle = _find_obstacle(vocab, tokens)
    if obstacle is not None:
        raise UnsupportedError(f"a rank file cannot hold this vocabulary: {obstacle}")
    data = b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in tokens)
    files = [(_sidecar.sidecar_path(path), _sidecar.render(vocab, data)), (path, data)]
    _sidecar.write_together(files, overwrite=overwrite)


def _find_obstacle(vocab: Vocabulary, tokens: list[tuple[int, bytes]]) -> str | None:
    """Return what a rank file cannot hold of a vocabulary, in words, or None."""
    if vocab.alphabet != "bytes":
        return f"its alphabet is {vocab.alphabet!r}, not 'bytes'"
    if vocab.ranking == "ranks":
        return None
    for rank, (merge, after) in enumerate(
        zip(vocab.merge_ids, vocab.merge_ids[1:], strict=False), start=1
    ):
        if after.new <= merge.new:
            return (
                f"merge {rank} makes id {after.new} and the merge before it makes {merge.new}; "
                "a rank file merges in order of id"
            )
    # A rank file joins any two parts whose bytes are a token. It is this vocabulary only if no
    # other pair can ever be joined. If that holds, every token is reached by merging, so that
    # `ignore_merges` changes nothing and need not be held.
    recovered = _recover(tokens)
    if recovered is None:
        return "some of its tokens cannot be made by merging in order of id"
    if recovered != list(vocab.merge_ids):
        other = set(recovered).symmetric_difference(vocab.merge_ids)
        odd = min(other, key=lambda merge: merge.new)
        return (
            f"by the order of its ids, token {odd.new}, {show(vocab.tokens[odd.new])}, "
            "is made in another way than by its merge list"
        )
    return None
