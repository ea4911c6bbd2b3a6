"""tiktoken's rank files: one line per token, with its bytes in base64, a space and its rank (id).

The file has no pattern and no special tokens; they come from options or `<file>.byteweld.json`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from byteweld.errors import FormatError, UnsupportedError, VocabularyError
from byteweld.formats import _sidecar
from byteweld.formats._beside import sidecar_path
from byteweld.formats._json import read_file, show
from byteweld.formats._ranks import check_ranks, from_base64, read_ranks, recover_merges, to_base64
from byteweld.formats._sidecar import OPTIONS as OPTIONS
from byteweld.vocab import MAX_ID, Vocabulary

if TYPE_CHECKING:
    from byteweld.formats._ranks import Table


_LINE: Final = re.compile(rb"([A-Za-z0-9+/]*={0,2}) (0|[1-9][0-9]{0,9})")
_HEAD_LINES: Final = 16  # number of lines that `recognize` reads


def recognize(path: Path, head: bytes) -> bool:
    """Whether a file starts with lines of base64, a space and a rank."""
    lines = head.split(b"\n", _HEAD_LINES)[:_HEAD_LINES]
    if len(lines) > 1:  # the last may be incomplete, or empty after the last newline
        lines = lines[:-1]
    matches = [_LINE.fullmatch(line) for line in lines]
    return all(match is not None and from_base64(match[1]) for match in matches)


# ---------------------------------------------------------------------- reading


def load(path: Path, **given: Any) -> Vocabulary:
    """Read a rank file; options, its sidecar or its digest give the pattern and special tokens."""
    data = read_file(path)
    table = read_ranks(data)
    tokens = _read_ranks(data, path) if table is None else {}
    lacks = "a rank file holds no pattern and no special tokens"
    known = _sidecar.complete(path, sidecar_path(path), data, given, lacks=lacks)
    if table is not None:
        quick = _load_table(table, known)
        if quick is not None:
            return quick
        tokens = _read_ranks(data, path)
    merges = recover_merges(tokens)
    ranks = frozenset(tokens)
    for text, token_id in known.special_tokens.items():
        if token_id in ranks and merges is None and tokens[token_id] == text.encode():
            raise UnsupportedError(
                f"{path}: special token {text!r} is also the token of rank {token_id}, "
                "which only a vocabulary with a merge list can have"
            )
        tokens.setdefault(token_id, text.encode())  # the first text of a shared id
    return Vocabulary(
        tokens, merges or (), **known._asdict(), ranking="ranks" if merges is None else "merges"
    )


def _load_table(ranks: Table, known: _sidecar.Sidecar) -> Vocabulary | None:
    """Make a vocabulary from ranks that were read fast; None if anything is unusual."""
    specials: dict[int, bytes] = {}
    for text, token_id in known.special_tokens.items():
        specials.setdefault(token_id, text.encode())  # the first text of a shared id
    recovered = ranks.with_merges_of_ranks()
    try:
        table = (recovered or ranks).with_tokens(list(specials.items()))
        if table is None:
            return None
        return Vocabulary._of_table(
            table,
            makes_every_token=recovered is not None,
            **known._asdict(),
            ranking="ranks" if recovered is None else "merges",
        )
    except (VocabularyError, OverflowError, TypeError):
        return None


def _read_ranks(data: bytes, path: Path) -> dict[int, bytes]:
    """Return rank -> token of every line; ranks must ascend and may have gaps."""
    tokens: dict[int, bytes] = {}
    ranks: dict[bytes, int] = {}
    last = -1
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    for number, line in enumerate(lines, start=1):
        where = f"{path}:{number}"
        match = _LINE.fullmatch(line)
        token = from_base64(match[1]) if match else None
        if match is None or token is None:
            found = line if len(line) <= 100 else line[:100] + b"..."
            raise FormatError(f"expected base64, a space and a rank, found {found!r}", path=where)
        rank = int(match[2])
        if rank > MAX_ID:
            raise FormatError(f"rank {rank} is above {MAX_ID}, the last id", path=where)
        if rank <= last:
            raise FormatError(f"rank {rank} follows rank {last}; ranks must ascend", path=where)
        if token in ranks:
            raise FormatError(
                f"ranks {ranks[token]} and {rank} are both {show(token)}; expected one", path=where
            )
        tokens[rank] = token
        ranks[token] = last = rank
    return tokens


# ---------------------------------------------------------------------- writing


def check(vocab: Vocabulary) -> None:
    """Raise NotHeldError for a vocabulary that ranks cannot express."""
    check_ranks(vocab)


def files(vocab: Vocabulary, path: Path) -> list[Path]:
    """Return the files to write."""
    return [path, sidecar_path(path)]


def render(vocab: Vocabulary, path: Path) -> dict[Path, bytes]:
    """Return the ranks, and a sidecar with pattern, special tokens and roles."""
    data = b"".join(to_base64(token) + b" %d\n" % rank for rank, token in vocab.ordinary())
    return {sidecar_path(path): _sidecar.render(vocab, data), path: data}
