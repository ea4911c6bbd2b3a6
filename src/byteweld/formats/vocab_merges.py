"""GPT-2's two files: vocab.json (token in byte letters -> id) and merges.txt (pairs in rank order).

Reads a folder or its vocab.json, also under OpenAI's original names encoder.json and vocab.bpe. The
files have no pattern, special tokens or roles; these come from options or `byteweld.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from byteweld._byte_letters import bytes_to_chars, chars_to_bytes
from byteweld.errors import FormatError
from byteweld.formats import _sidecar
from byteweld.formats._json import decode, parse_object, read_file, show, wrong
from byteweld.formats._limits import NotHeldError, check_alphabet, check_merge_list
from byteweld.formats._sidecar import OPTIONS as OPTIONS
from byteweld.vocab import Merge, Vocabulary

_VOCAB: Final = "vocab.json"
_MERGES: Final = "merges.txt"
_SIDECAR: Final = "byteweld.json"
PAIRS: Final = ((_VOCAB, _MERGES), ("encoder.json", "vocab.bpe"))
NAMES: Final = (*PAIRS[0], *PAIRS[1], _SIDECAR)  # every file that `load` may read in a folder
_HEADER: Final = "#version: 0.2"
_VERSION: Final = "#version"
_OPENING: Final = re.compile(rb'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*[0-9]+\s*[,}]')


def recognize(path: Path, head: bytes) -> bool:
    """Whether a folder has the two files, or a file is the first of the two."""
    try:
        if path.is_dir():
            return find_files(path) is not None
        other = dict(PAIRS).get(path.name)
        return (
            other is not None
            and _OPENING.match(head) is not None
            and path.with_name(other).is_file()
        )
    except OSError:  # a folder without read permission
        return False


def find_files(path: Path) -> tuple[Path, Path] | None:
    """Return the two files of a folder, or of the folder of its vocab.json."""
    for vocab_name, merges_name in PAIRS:
        if path.name == vocab_name and path.is_file():
            return path, path.with_name(merges_name)
        if (path / vocab_name).is_file() and (path / merges_name).is_file():
            return path / vocab_name, path / merges_name
    return None


# ---------------------------------------------------------------------- reading


def load(path: Path, **given: Any) -> Vocabulary:
    """Read the two files with the given pattern and special tokens, or those of `byteweld.json`."""
    found = find_files(path)
    if found is None:
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist")
        raise FormatError(
            f"expected a folder with {_VOCAB} and {_MERGES} (or encoder.json and vocab.bpe), "
            f"or the path of its {_VOCAB}",
            path=path,
        )
    vocab_file, merges_file = found
    vocab_data, merges_data = read_file(vocab_file), read_file(merges_file)
    known = _sidecar.complete(
        vocab_file,
        vocab_file.with_name(_SIDECAR),
        vocab_data + merges_data,
        given,
        lacks=f"{vocab_file.name} and {merges_file.name} hold no pattern and no special tokens",
    )
    ids = _read_ids(vocab_data, vocab_file)
    pairs = _read_pairs(merges_data, merges_file)
    merges = _read_merges(pairs, ids, merges_file)
    tokens = _read_tokens(
        ids, known.special_tokens, {left + right for left, right in pairs}, vocab_file
    )
    return Vocabulary(tokens, merges, **known._asdict())


def _read_ids(data: bytes, path: Path) -> dict[str, int]:
    """Return the object of a vocab.json: the id of each token, in byte letters."""
    ids: dict[str, int] = {}
    owners: dict[int, str] = {}
    for text, token_id in parse_object(data, path).items():
        if type(token_id) is not int:
            raise wrong(f"the id of {show(text)}", token_id, "an integer", path)
        if owners.setdefault(token_id, text) != text:
            raise FormatError(
                f"{show(owners[token_id])} and {show(text)} have the same id {token_id}", path=path
            )
        ids[text] = token_id
    return ids


def _read_pairs(data: bytes, path: Path) -> list[tuple[str, str]]:
    """Return the pairs of a merges.txt in byte letters."""
    lines = decode(data, path).split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines or not lines[0].startswith(_VERSION):
        raise FormatError(
            f"expected {_HEADER!r}, found {show(lines[0] if lines else '')}", path=f"{path}:1"
        )
    pairs: list[tuple[str, str]] = []
    for number, line in enumerate(lines[1:], start=2):
        left, _, right = line.partition(" ")
        if not (left and right) or " " in right:
            raise FormatError(
                f"expected two tokens and a space between them, found {show(line)}",
                path=f"{path}:{number}",
            )
        if line.startswith(_VERSION):
            raise FormatError(
                f"found {show(line)}, a merge that Hugging Face skips and GPT-2 does not; "
                "the two would disagree on this file",
                path=f"{path}:{number}",
            )
        pairs.append((left, right))
    return pairs


def _read_merges(pairs: list[tuple[str, str]], ids: Mapping[str, int], path: Path) -> list[Merge]:
    """Turn pairs in byte letters into ids; all parts and results must be tokens."""
    merges: list[Merge] = []
    for number, (left, right) in enumerate(pairs, start=2):
        for part in (left, right, left + right):
            if part not in ids:
                raise FormatError(
                    f"the merge is {show((left, right))} but {show(part)} is not in the vocabulary",
                    path=f"{path}:{number}",
                )
        merges.append(Merge(ids[left], ids[right], ids[left + right]))
    return merges


def _read_tokens(
    ids: Mapping[str, int], special_tokens: Mapping[str, int], made: set[str], path: Path
) -> dict[int, bytes]:
    """Turn byte letters into bytes; special tokens are in the file as plain text, or not at all."""
    tokens: dict[int, bytes] = {}
    for text, token_id in ids.items():
        is_special = special_tokens.get(text) == token_id and text not in made
        token = text.encode() if is_special else chars_to_bytes(text)
        if not token:
            raise FormatError(
                f"token {show(text)} is not written in byte letters; if it is a special token, "
                f"pass special_tokens={{{show(text)}: {token_id}, ...}}",
                path=path,
            )
        tokens[token_id] = token
    for text, token_id in special_tokens.items():
        if ids.get(text, token_id) != token_id:
            raise FormatError(
                f"special token {text!r} has id {token_id}, but the file gives it {ids[text]}",
                path=path,
            )
        tokens.setdefault(token_id, text.encode())
    return tokens


# ---------------------------------------------------------------------- writing


def check(vocab: Vocabulary) -> None:
    """Raise NotHeldError for a vocabulary that the two files cannot represent."""
    _keys(vocab)
    _pairs(vocab)


def files(vocab: Vocabulary, path: Path) -> list[Path]:
    """Return the files to write; `path` is their folder, or the vocab.json in it."""
    folder = path.parent if path.name == _VOCAB else path
    return [folder / name for name in (_VOCAB, _MERGES, _SIDECAR)]


def render(vocab: Vocabulary, path: Path) -> dict[Path, bytes]:
    """Return vocab.json, merges.txt and byteweld.json, to write into a folder."""
    vocab_file, merges_file, sidecar = files(vocab, path)
    vocab_data = json.dumps(_keys(vocab), ensure_ascii=False, separators=(",", ":")).encode()
    merges_data = "".join(f"{line}\n" for line in [_HEADER, *_pairs(vocab)]).encode()
    return {
        sidecar: _sidecar.render(vocab, vocab_data + merges_data),
        merges_file: merges_data,
        vocab_file: vocab_data,
    }


def _keys(vocab: Vocabulary) -> dict[str, int]:
    """Return the content of vocab.json: byte letters -> id, and special tokens -> id."""
    check_alphabet(vocab)
    check_merge_list(vocab)
    keys = {bytes_to_chars(token): token_id for token_id, token in vocab.ordinary()}
    shared = set(keys.values())
    for text, token_id in vocab.special_tokens.items():
        if keys.get(text, token_id) != token_id:
            raise NotHeldError(
                f"special token {text!r} has id {token_id}, but the same letters are "
                f"the token {vocab.tokens[keys[text]]!r} with id {keys[text]}"
            )
        if token_id not in shared:
            keys[text] = token_id
    return dict(sorted(keys.items(), key=lambda item: item[1]))


def _pairs(vocab: Vocabulary) -> list[str]:
    """Return the lines of merges.txt after the first."""
    lines = [f"{bytes_to_chars(left)} {bytes_to_chars(right)}" for left, right in vocab.merges]
    for rank, line in enumerate(lines):
        if line.startswith(_VERSION):
            raise NotHeldError(
                f"merge {rank} would be the line {line!r}, which readers take for a comment"
            )
    return lines
