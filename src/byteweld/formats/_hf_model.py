"""Reads the BPE model and the added tokens of a tokenizer.json.

A model is in byte letters, GPT-2's printable characters for the 256 bytes, or in ASCII text if no
ByteLevel comes before it. Ids are those that the real library assigns, which are not always those
in the file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from byteweld._byte_letters import BYTE_TO_CHAR, CK_BYTE_TO_CHAR, chars_to_bytes
from byteweld.errors import FormatError, UnsupportedError
from byteweld.formats._hf_fields import read_flag
from byteweld.formats._hf_spaced import read_spaced_merges
from byteweld.formats._json import (
    check_keys,
    read_list,
    read_object,
    read_vocabulary,
    require,
    show,
    unreadable,
)
from byteweld.vocab import ASCII_BYTES, MAX_ID, AddedToken, VocabAlphabet

ADDED_FLAGS: Final = ("single_word", "lstrip", "rstrip", "normalized", "special")
ASCII: Final = frozenset(ASCII_BYTES.decode())

_MODEL_KEYS: Final = (
    "type",
    "dropout",
    "unk_token",
    "continuing_subword_prefix",
    "end_of_word_suffix",
    "fuse_unk",
    "byte_fallback",
    "ignore_merges",
    "vocab",
    "merges",
)
# With these keys, a byte has several tokens, depending on its position in the pre-token.
_POSITION_KEYS: Final = {
    "continuing_subword_prefix": "start",
    "end_of_word_suffix": "end",
}
_BYTE_FALLBACK: Final = re.compile(r"<0x[0-9A-F]{2}>")
_SKIPPED_MERGE: Final = "#version"  # `tokenizers` skips string merges that start like this

# The bytes that ck-bpe-train writes with other letters; the two sets of letters are disjoint.
_CK_BYTES: Final = [byte for byte in range(256) if CK_BYTE_TO_CHAR[byte] != BYTE_TO_CHAR[byte]]
_CK_TO_GPT2: Final = {ord(CK_BYTE_TO_CHAR[byte]): BYTE_TO_CHAR[byte] for byte in _CK_BYTES}


class Ids(Protocol):
    """Text -> id: a dict, or the engine's table."""

    def __len__(self) -> int: ...
    def __contains__(self, text: str, /) -> bool: ...
    def get(self, text: str, /) -> int | None: ...


class Letters(Protocol):
    """A model: a plain one, or the engine's table."""

    def get(self, text: str, /) -> int | None: ...
    def is_made(self, text: str, /) -> bool: ...
    def foreign(self) -> list[str]: ...


class Model(NamedTuple):
    """The BPE model: byte letters (or ASCII text) -> id, and the merges in the same letters."""

    vocab: dict[str, int]
    merges: list[tuple[str, str]]
    unk_token: str | None
    fuse_unk: bool
    byte_fallback: bool
    ignore_merges: bool


# ---------------------------------------------------------------------- the model


def read_model(value: object, path: Path) -> Model:
    """Read and check the BPE model."""
    model = read_object(value, "model", path)
    if model.get("type", "BPE") != "BPE":
        raise unreadable(path, f"its model is {show(model['type'])}")
    check_keys(model, _MODEL_KEYS, "its model", path)
    if model.get("dropout") not in (None, 0) or type(model.get("dropout")) is bool:
        raise unreadable(path, f"its model has the dropout {show(model['dropout'])}")
    for key, position in _POSITION_KEYS.items():
        if model.get(key) not in (None, ""):
            raise UnsupportedError(
                f"{path}: its model has the {key} {show(model[key])}: a byte is a different token "
                f"at the {position} of a pre-token, which a byte-level vocabulary cannot express"
            )
    unk_token = model.get("unk_token")
    if unk_token is not None and type(unk_token) is not str:
        raise FormatError(f"unk_token is {show(unk_token)}; expected a string or null", path=path)
    ids = read_vocabulary(require(model, "vocab", path, "the model"), path)
    flags = {
        key: read_flag(model, key, "the model", path) if key in model else False
        for key in ("fuse_unk", "byte_fallback", "ignore_merges")
    }
    merges = _read_merges(require(model, "merges", path, "the model"), ids, path)
    for rank, (left, right) in enumerate(merges):
        for part in (left, right, left + right):
            if part not in ids:
                raise FormatError(
                    f"merge {rank} is {show((left, right))} but {show(part)} is not in the "
                    "vocabulary",
                    path=path,
                )
    return Model(ids, merges, unk_token, **flags)


def _read_merges(value: object, ids: Mapping[str, int], path: Path) -> list[tuple[str, str]]:
    """Read merges, all as "left right" or all as [left, right]."""
    items = read_list(value, "'merges'", path)
    merges: list[tuple[str, str]] = []
    are_strings = bool(items) and type(items[0]) is str
    if are_strings and " " in ids:
        strings = [item for item in items if isinstance(item, str)]
        if len(strings) == len(items) and any(item.count(" ") > 1 for item in strings):
            return read_spaced_merges(strings, ids, path)
    for rank, item in enumerate(items):
        pair: object = item
        if are_strings and isinstance(item, str):
            if item.startswith(_SKIPPED_MERGE):
                continue
            pair = item.split(" ")
        elif are_strings:
            pair = None
        if type(pair) is not list or len(pair) != 2 or not all(type(p) is str and p for p in pair):
            kind = "a string with one space" if are_strings else "a list of two tokens"
            raise FormatError(f"merge {rank} is {show(item)}; expected {kind}", path=path)
        merges.append((pair[0], pair[1]))
    return merges


def has_ck_letters(vocab: Ids) -> bool:
    """Whether a model writes `_CK_BYTES` as only ck-bpe-train does."""
    return any(CK_BYTE_TO_CHAR[byte] in vocab for byte in _CK_BYTES) and not any(
        BYTE_TO_CHAR[byte] in vocab for byte in _CK_BYTES
    )


def undo_ck_letters(model: Model) -> Model:
    """Rewrite a model of ck-bpe-train in GPT-2's letters; return any other model unchanged."""
    if not has_ck_letters(model.vocab):
        return model
    vocab = {text.translate(_CK_TO_GPT2): token_id for text, token_id in model.vocab.items()}
    if len(vocab) != len(model.vocab):
        return model
    merges = [(a.translate(_CK_TO_GPT2), b.translate(_CK_TO_GPT2)) for a, b in model.merges]
    return model._replace(vocab=vocab, merges=merges)


# ---------------------------------------------------------------------- added tokens


def read_added_tokens(
    value: object, ids: Ids, *, has_normalizer: bool, path: Path
) -> list[AddedToken]:
    """Return the added tokens with the ids that `tokenizers` gives them.

    That is the id in the model's vocabulary, or else the next id after the vocabulary. If the file
    has another id, the library warns and assigns its own.
    """
    tokens: list[AddedToken] = []
    texts: set[str] = set()
    next_id = len(ids)
    for item in read_list(value, "'added_tokens'", path):
        added = read_object(item, "an added token", path)
        check_keys(added, ("id", "content", *ADDED_FLAGS), "an added token", path)
        text = require(added, "content", path, "an added token")
        if type(text) is not str or not text:
            raise FormatError(
                f"an added token is {show(text)}; expected a non-empty string", path=path
            )
        what = f"added token {show(text)}"
        if text in texts:
            raise FormatError(f"{what} is listed twice", path=path)
        texts.add(text)
        claimed = require(added, "id", path, what)
        if type(claimed) is not int or not 0 <= claimed <= MAX_ID:
            raise FormatError(
                f"{what} has the id {show(claimed)}; expected an integer in 0..{MAX_ID}", path=path
            )
        known_id = ids.get(text)
        token_id = next_id if known_id is None else known_id
        next_id += known_id is None
        flags = {flag: read_flag(added, flag, what, path) for flag in ADDED_FLAGS}
        tokens.append(AddedToken(text, token_id, **flags))
    if not has_normalizer and all(token.normalized for token in tokens):
        # The library searches text for tokens with normalized=False first. Without a normalizer, if
        # all tokens have the same flag, its value does not matter.
        return [token._replace(normalized=False) for token in tokens]
    return tokens


# ---------------------------------------------------------------------- tokens


def read_tokens(
    model: Model, added: Collection[AddedToken], alphabet: VocabAlphabet, path: Path
) -> dict[int, bytes]:
    """Return id -> bytes of all tokens."""
    tokens = {i: spelled_bytes(text, alphabet) or b"" for text, i in model.vocab.items()}
    add_tokens(tokens, _PlainLetters(model, alphabet), model, added, alphabet, path)
    return tokens


class _PlainLetters:
    """The letters of a model that the plain reader read."""

    def __init__(self, model: Model, alphabet: VocabAlphabet) -> None:
        self._vocab = model.vocab
        self._made = {left + right for left, right in model.merges}
        self._alphabet: VocabAlphabet = alphabet

    def get(self, text: str) -> int | None:
        return self._vocab.get(text)

    def is_made(self, text: str) -> bool:
        return text in self._made

    def foreign(self) -> list[str]:
        return [text for text in self._vocab if not spelled_bytes(text, self._alphabet)]


def add_tokens(
    tokens: dict[int, bytes],
    letters: Letters,
    model: Model,
    added: Collection[AddedToken],
    alphabet: VocabAlphabet,
    path: Path,
) -> None:
    """Put those tokens by id that are not what their letters spell, and the added ones.

    Uses only the settings of `model`.
    """
    added_texts = {token.text for token in added}
    for text in letters.foreign():
        token_id, own = letters.get(text), text.encode()
        if token_id is None or text in added_texts:
            continue
        # The library looks up only byte letters, so it never finds a token in other letters.
        # byteweld would find it with `ignore_merges`, or if it is a single byte.
        if alphabet == "ascii" or model.ignore_merges or len(own) < 2:
            known = "the 98 characters of the ASCII alphabet"
            known = known if alphabet == "ascii" else "byte letters"
            raise unreadable(path, f"token {show(text)} is not written in {known}")
        tokens[token_id] = own
    for token in added:
        token_id, own, problem = letters.get(token.text), token.text.encode(), None
        if token_id is not None:
            is_made = letters.is_made(token.text)
            problem = find_added_problem(
                token, alphabet, is_made=is_made, ignore_merges=model.ignore_merges
            )
            tokens[token_id] = added_bytes(
                token.text, alphabet, is_made=is_made, ignore_merges=model.ignore_merges
            )
        elif tokens.setdefault(token.id, own) != own:
            problem = f"shares its id {token.id} with {show(tokens[token.id])}"
        elif len(own) == 1 and letters.get(BYTE_TO_CHAR[own[0]]) is None:
            problem = "is a byte for which the model has no token"
        if problem is not None:
            kind = "special" if token.special else "added"
            raise UnsupportedError(f"{path}: {kind} token {show(token.text)} {problem}")


def spelled_bytes(text: str, alphabet: VocabAlphabet) -> bytes | None:
    """Return the bytes that a key of the model represents, or None if it is never looked up."""
    if alphabet == "ascii":
        return text.encode() if ASCII.issuperset(text) else None
    return chars_to_bytes(text)


def added_bytes(text: str, alphabet: VocabAlphabet, *, is_made: bool, ignore_merges: bool) -> bytes:
    """Return the bytes of an added token that is also in the model.

    If its text is also the key of other bytes, it is their token as well: `é` is the letter of byte
    E9. Otherwise it has the bytes of its own text.
    """
    letters = spelled_bytes(text, alphabet)
    if letters is not None and (is_made or len(letters) == 1 or ignore_merges):
        return letters
    return text.encode()


def find_added_problem(
    token: AddedToken, alphabet: VocabAlphabet, *, is_made: bool, ignore_merges: bool
) -> str | None:
    """Return why other text could encode to an added token that is in the model, or None.

    For example, the special token `Ġthe` is also the key of the ordinary bytes ` the`.
    """
    found = added_bytes(token.text, alphabet, is_made=is_made, ignore_merges=ignore_merges)
    if token.special and found != token.text.encode():
        return f"is also how the bytes {found!r} are written in byte letters"
    if token.single_word and ignore_merges and spelled_bytes(token.text, alphabet) is not None:
        return "has single_word, but a pre-token inside a word could also become it"
    return None


# ---------------------------------------------------------------------- the alphabet


def check_alphabet(model: Model, alphabet: VocabAlphabet, path: Path) -> VocabAlphabet:
    """Return the alphabet; reject a model that neither drops other text nor makes it unk."""
    base = ASCII if alphabet == "ascii" else BYTE_TO_CHAR.values()
    missing = sorted(letter for letter in base if letter not in model.vocab)
    if alphabet == "ascii" and missing:
        raise unreadable(path, f"the character {missing[0]!r} of the ASCII alphabet has no token")
    if alphabet == "bytes" and not missing:
        return "bytes"
    if model.unk_token is not None and model.fuse_unk:
        raise unreadable(path, "its model has fuse_unk and does not cover all bytes")
    if model.byte_fallback and any(_BYTE_FALLBACK.fullmatch(text) for text in model.vocab):
        raise unreadable(path, "its model has byte_fallback and tokens for it")
    if alphabet == "ascii":
        if model.unk_token is None:
            raise unreadable(path, "its model has no unk_token, so unknown characters are dropped")
        return "ascii"
    if model.unk_token is not None and model.unk_token not in model.vocab:
        raise UnsupportedError(
            f"{path}: {len(missing)} of 256 bytes have no token, first {missing[0]!r} in byte "
            f"letters, and unk_token {show(model.unk_token)} is not in the vocabulary; "
            "the library fails on such bytes"
        )
    return "partial"
