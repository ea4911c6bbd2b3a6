"""Hugging Face's tokenizer.json: a BPE model in byte letters, and the pipeline around it.

Out: a file for which the real `tokenizers` gives our ids on every text. In: the part of the format
whose ids a `Vocabulary` gives; the rest is refused by name. Roles that the file has no place for
are in `<file>.byteweld.json`.
"""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from byteweld._byte_letters import BYTE_TO_CHAR, bytes_to_chars, chars_to_bytes
from byteweld._files import write_atomic
from byteweld.errors import FormatError, UnsupportedError, VocabularyError
from byteweld.formats import _sidecar
from byteweld.formats._json import parse_object, read_file, read_ids, require, show
from byteweld.formats._oniguruma import find_dialect_problem, matches_everywhere
from byteweld.patterns import GPT2, resolve_pattern
from byteweld.vocab import ASCII_BYTES, MAX_ID, ROLES, Merge, VocabAlphabet, Vocabulary

NAME: Final = "huggingface"

_VERSION: Final = "1.0"
_ASCII: Final = frozenset(ASCII_BYTES.decode())
_BYTE_FALLBACK: Final = re.compile(r"<0x[0-9A-F]{2}>")
_SKIPPED_MERGE: Final = "#version"  # a string merge that begins so is skipped by `tokenizers`
_NO_UNK: Final = ""  # no token: an unknown character is then refused instead of dropped

_FILE_KEYS: Final = (
    "version",
    "truncation",
    "padding",
    "added_tokens",
    "normalizer",
    "pre_tokenizer",
    "post_processor",
    "decoder",
    "model",
)
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
_ADDED_FLAGS: Final = ("single_word", "lstrip", "rstrip", "normalized", "special")
_BYTE_LEVEL_KEYS: Final = ("type", "add_prefix_space", "trim_offsets", "use_regex")
_SPLIT_KEYS: Final = ("type", "pattern", "behavior", "invert")

# ck-bpe-train shows these 35 bytes by other letters than GPT-2; the two sets have none in common.
_CK_BYTES: Final = (*range(0x7F, 0xA1), 0xAD)
_CK_LETTERS: Final = {byte: chr(0x100 + byte) if byte != 0xAD else "\xad" for byte in _CK_BYTES}
_CK_TO_GPT2: Final = {ord(_CK_LETTERS[byte]): BYTE_TO_CHAR[byte] for byte in _CK_BYTES}

# A string may lack its end, where the head is cut; else each quote in it would be tried as a start.
_TOP_LEVEL: Final = re.compile(r'"(?:[^"\\]|\\.)*"?|[{}\[\]:]', re.DOTALL)
_SIGNS: Final = frozenset(_FILE_KEYS) - {"version"}


def recognise(path: Path, head: bytes) -> bool:
    """Say whether a file opens as a JSON object with a part of the pipeline as a key of its own.

    A vocab.json may hold the words `model` or `padding` too, but gives them numbers.
    """
    text = head.decode("utf-8", "replace")
    if not text.lstrip().startswith("{"):
        return False
    depth, last, is_value = 0, "", False
    for match in _TOP_LEVEL.finditer(text):
        sign = match[0]
        if sign in "{[":
            if depth == 1 and is_value and last in _SIGNS:
                return True
            depth, is_value = depth + 1, False
        elif sign in "}]":
            depth -= 1
        elif sign == ":":
            is_value = depth == 1
            if is_value and last in _SIGNS and text[match.end() :][:16].lstrip()[:4] == "null":
                return True
        else:
            last, is_value = sign[1:-1], False
    return False


# ====================================================================== reading


class _Model(NamedTuple):
    """The BPE model: byte letters (or ascii text) -> id, and the merges in the same letters."""

    vocab: dict[str, int]
    merges: list[tuple[str, str]]
    unk_token: str | None
    fuse_unk: bool
    byte_fallback: bool
    ignore_merges: bool


def load(path: Path) -> Vocabulary:
    """Read a tokenizer.json; what cannot be encoded exactly is refused by its name."""
    data = read_file(path)
    document = parse_object(data, path)
    _check_keys(document, _FILE_KEYS, "the file", path)
    if document.get("version", _VERSION) != _VERSION:
        raise FormatError(
            f"version is {show(document['version'])}; only {_VERSION!r} can be read", path=path
        )
    for part in ("truncation", "padding", "normalizer"):
        if document.get(part) is not None:
            raise _refusal(path, f"its {part} is {_describe(document[part])}")
    pattern, alphabet = _read_pre_tokenizer(document.get("pre_tokenizer"), path)
    _check_part(document, "post_processor", ("ByteLevel",), path)
    _check_part(document, "decoder", ("ByteLevel", "Fuse"), path)
    model = _read_model(require(document, "model", path, "the file"), path)
    if alphabet == "bytes":
        model = _undo_ck_letters(model)
    special_tokens = _read_added_tokens(document.get("added_tokens", []), model.vocab, path)
    tokens = _read_tokens(model, special_tokens, alphabet, path)
    keys = model.vocab | special_tokens
    roles = _infer_roles(keys, model.unk_token)
    beside = _sidecar.read(_sidecar.sidecar_path(path), data)
    if beside is not None:
        if (beside.pattern, beside.special_tokens, beside.alphabet) != (
            pattern,
            special_tokens,
            alphabet,
        ) or ("unk" in roles and beside.roles.get("unk", roles["unk"]) != roles["unk"]):
            raise FormatError(
                "the sidecar contradicts the file beside it; delete the sidecar, "
                "or save the vocabulary again",
                path=_sidecar.sidecar_path(path),
            )
        roles = beside.roles
    if alphabet == "ascii":
        _check_ascii(model, keys, roles, path)
    try:
        return Vocabulary(
            tokens,
            [Merge(keys[a], keys[b], keys[a + b]) for a, b in model.merges],
            special_tokens=special_tokens,
            pattern=pattern,
            roles=roles,
            alphabet=alphabet,
            ignore_merges=model.ignore_merges,
        )
    except VocabularyError as error:
        raise FormatError(str(error), path=path) from error


def _refusal(path: Path, what: str) -> UnsupportedError:
    return UnsupportedError(f"{path}: {what}, which cannot be read yet")


def _describe(part: object) -> str:
    """Name a part of the pipeline: its type where it has one."""
    kind = part.get("type") if isinstance(part, dict) else None
    return show(part if kind is None else kind)


def _check_keys(value: Mapping[str, object], known: Iterable[str], what: str, path: Path) -> None:
    unknown = [key for key in value if key not in known]
    if unknown:
        raise _refusal(path, f"{what} has the key {show(unknown[0])}")


def _check_part(
    document: Mapping[str, object], name: str, known: tuple[str, ...], path: Path
) -> None:
    """Check a part that changes no id: absent, or one of the known types."""
    part = document.get(name)
    if part is None:
        return
    if not isinstance(part, dict):
        raise FormatError(f"{name} is {show(part)}; expected an object or null", path=path)
    if part.get("type") not in known:
        raise _refusal(path, f"its {name} is {_describe(part)}")
    _check_keys(part, _BYTE_LEVEL_KEYS, f"its {name}", path)


def _object(value: object, what: str, path: Path) -> dict[str, object]:
    if type(value) is not dict:
        raise FormatError(f"{what} is {show(value)}; expected an object", path=path)
    return value


def _flag(value: Mapping[str, object], key: str, what: str, path: Path) -> bool:
    found = require(value, key, path, what)
    if type(found) is not bool:
        raise FormatError(f"{key} of {what} is {show(found)}; expected true or false", path=path)
    return found


# ---------------------------------------------------------------------- the pre-tokenizer


def _read_pre_tokenizer(value: object, path: Path) -> tuple[str | None, VocabAlphabet]:
    """Return pattern and alphabet: after a ByteLevel the model sees bytes, else characters."""
    steps = _read_steps(value, path)
    names = [step.get("type") for step in steps]
    pattern: str | None = None
    if names and names[0] == "Split":
        pattern = _read_split(steps[0], path)
    rest = steps[1:] if pattern is not None else steps
    if not rest:
        return pattern, "ascii"
    if len(rest) > 1 or rest[0].get("type") != "ByteLevel":
        raise _refusal(path, f"its pre_tokenizer is a sequence of {show(names)}")
    uses_regex = _read_byte_level(rest[0], path)
    if uses_regex and pattern is not None:
        raise _refusal(path, "its pre_tokenizer cuts twice, by Split and by ByteLevel's use_regex")
    return (GPT2 if uses_regex else pattern), "bytes"


def _read_steps(value: object, path: Path) -> list[dict[str, object]]:
    """Return the steps of a pre-tokenizer: none, one, or those of a Sequence."""
    if value is None:
        return []
    outer = _object(value, "pre_tokenizer", path)
    if outer.get("type") != "Sequence":
        steps = [outer]
    else:
        _check_keys(outer, ("type", "pretokenizers"), "its pre_tokenizer", path)
        items = require(outer, "pretokenizers", path, "the pre_tokenizer Sequence")
        if type(items) is not list:
            raise FormatError(f"'pretokenizers' is {show(items)}; expected a list", path=path)
        steps = [_object(item, "a step of the pre_tokenizer", path) for item in items]
    for step in steps:
        if type(step.get("type")) is not str:
            raise FormatError(f"a pre_tokenizer has the type {show(step.get('type'))}", path=path)
        if step["type"] not in ("Split", "ByteLevel"):
            raise _refusal(path, f"its pre_tokenizer is or holds {show(step['type'])}")
    return steps


def _read_byte_level(step: Mapping[str, object], path: Path) -> bool:
    """Return whether a ByteLevel cuts with GPT-2's pattern; old files do, and do not say it."""
    what = "the pre_tokenizer ByteLevel"
    _check_keys(step, _BYTE_LEVEL_KEYS, what, path)
    if _flag(step, "add_prefix_space", what, path):
        raise _refusal(path, "its pre_tokenizer ByteLevel has add_prefix_space")
    if "trim_offsets" in step:
        _flag(step, "trim_offsets", what, path)
    return _flag(step, "use_regex", what, path) if "use_regex" in step else True


def _read_split(step: Mapping[str, object], path: Path) -> str:
    """Return the pattern of a Split whose pieces are the matches and what lies between them."""
    what = "the pre_tokenizer Split"
    _check_keys(step, _SPLIT_KEYS, what, path)
    source = _object(require(step, "pattern", path, what), "the pattern of a Split", path)
    if list(source) != ["Regex"]:
        raise _refusal(path, f"its pre_tokenizer Split has the pattern {show(source)}")
    pattern = source["Regex"]
    if type(pattern) is not str or not pattern:
        raise FormatError(f"the Regex of a Split is {show(pattern)}; expected text", path=path)
    behavior = require(step, "behavior", path, what)
    if type(behavior) is not str:
        raise FormatError(f"the behavior of a Split is {show(behavior)}; expected text", path=path)
    inverted = _flag(step, "invert", what, path)
    if pattern.isidentifier():  # for us, a bare word is the name of a pattern
        raise _refusal(path, f"its pre_tokenizer Split has the pattern {pattern!r}, a bare word")
    problem = find_dialect_problem(pattern)
    if problem is not None:
        raise UnsupportedError(
            f"{path}: the pattern of its pre_tokenizer has {problem}, which Oniguruma and byteweld "
            "do not read alike"
        )
    if (behavior, inverted) == ("Removed", True):
        # What does not match is dropped. That is no cut of ours, unless everything matches.
        if not matches_everywhere(pattern):
            raise _refusal(path, f"its Split drops the text that {show(pattern)} does not match")
    elif (behavior, inverted) != ("Isolated", False):
        how = f"{behavior!r} with invert={inverted}"
        raise _refusal(path, f"its pre_tokenizer Split has the behavior {how}")
    return resolve_pattern(pattern) or pattern


# ---------------------------------------------------------------------- the model


def _read_model(value: object, path: Path) -> _Model:
    """Read and check the BPE model."""
    model = _object(value, "model", path)
    if model.get("type", "BPE") != "BPE":
        raise _refusal(path, f"its model is {show(model['type'])}")
    _check_keys(model, _MODEL_KEYS, "its model", path)
    if model.get("dropout") not in (None, 0) or type(model.get("dropout")) is bool:
        raise _refusal(path, f"its model has the dropout {show(model['dropout'])}")
    for key in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(key) not in (None, ""):
            raise _refusal(path, f"its model has the {key} {show(model[key])}")
    unk_token = model.get("unk_token")
    if unk_token is not None and type(unk_token) is not str:
        raise FormatError(f"unk_token is {show(unk_token)}; expected text or null", path=path)
    ids = read_ids(require(model, "vocab", path, "the model"), path, "the vocabulary")
    owners: dict[int, str] = {}
    for text, token_id in ids.items():
        if token_id in owners:
            raise FormatError(
                f"{show(owners[token_id])} and {show(text)} have the same id {token_id}", path=path
            )
        owners[token_id] = text
    flags = {
        key: _flag(model, key, "the model", path) if key in model else False
        for key in ("fuse_unk", "byte_fallback", "ignore_merges")
    }
    merges = _read_merges(require(model, "merges", path, "the model"), path)
    _check_merges(merges, ids, path)
    return _Model(ids, merges, unk_token, **flags)


def _read_merges(value: object, path: Path) -> list[tuple[str, str]]:
    """Read merges, all as "left right" or all as [left, right]."""
    if type(value) is not list:
        raise FormatError(f"'merges' is {show(value)}; expected a list", path=path)
    merges: list[tuple[str, str]] = []
    are_strings = bool(value) and type(value[0]) is str
    for rank, item in enumerate(value):
        pair: object = item
        if are_strings and type(item) is str:
            if item.startswith(_SKIPPED_MERGE):
                continue
            pair = item.split(" ")
        elif are_strings:
            pair = None
        if type(pair) is not list or len(pair) != 2 or not all(type(p) is str and p for p in pair):
            kind = "text with one space" if are_strings else "a list of two tokens"
            raise FormatError(f"merge {rank} is {show(item)}; expected {kind}", path=path)
        merges.append((pair[0], pair[1]))
    return merges


def _check_merges(merges: list[tuple[str, str]], ids: Mapping[str, int], path: Path) -> None:
    seen: dict[tuple[str, str], int] = {}
    for rank, pair in enumerate(merges):
        for part in (*pair, pair[0] + pair[1]):
            if part not in ids:
                raise FormatError(
                    f"merge {rank} is {show(pair)} but {show(part)} is not in the vocabulary",
                    path=path,
                )
        if pair in seen:
            raise FormatError(f"merges {seen[pair]} and {rank} are both {show(pair)}", path=path)
        seen[pair] = rank


def _undo_ck_letters(model: _Model) -> _Model:
    """Write a model of ck-bpe-train in GPT-2's letters; any other is returned as it is."""
    if not any(letter in model.vocab for letter in _CK_LETTERS.values()) or any(
        BYTE_TO_CHAR[byte] in model.vocab for byte in _CK_BYTES
    ):
        return model
    vocab = {text.translate(_CK_TO_GPT2): token_id for text, token_id in model.vocab.items()}
    if len(vocab) != len(model.vocab):
        return model
    merges = [(a.translate(_CK_TO_GPT2), b.translate(_CK_TO_GPT2)) for a, b in model.merges]
    return model._replace(vocab=vocab, merges=merges)


def _read_added_tokens(value: object, ids: Mapping[str, int], path: Path) -> dict[str, int]:
    """Return special tokens -> id; the id must be the one that `tokenizers` will really give."""
    if type(value) is not list:
        raise FormatError(f"'added_tokens' is {show(value)}; expected a list", path=path)
    special_tokens: dict[str, int] = {}
    normalized: set[bool] = set()
    next_id = len(ids)
    for item in value:
        added = _object(item, "an added token", path)
        _check_keys(added, ("id", "content", *_ADDED_FLAGS), "an added token", path)
        text = require(added, "content", path, "an added token")
        if type(text) is not str or not text:
            raise FormatError(f"an added token is {show(text)}; expected text", path=path)
        what = f"added token {show(text)}"
        if text in special_tokens:
            raise FormatError(f"{what} is listed twice", path=path)
        flags = {flag: _flag(added, flag, what, path) for flag in _ADDED_FLAGS}
        for flag in ("single_word", "lstrip", "rstrip"):
            if flags[flag]:
                raise _refusal(path, f"{what} has {flag}")
        if not flags["special"]:
            raise _refusal(path, f"{what} is not special")
        normalized.add(flags["normalized"])
        token_id = require(added, "id", path, what)
        if type(token_id) is not int or not 0 <= token_id <= MAX_ID:
            raise FormatError(
                f"{what} has the id {show(token_id)}; expected an integer in 0..{MAX_ID}", path=path
            )
        # `tokenizers` takes the id of the model's vocabulary, or else the next free one.
        real_id = ids.get(text, next_id)
        if token_id != real_id:
            raise FormatError(
                f"{what} has the id {token_id}, but Hugging Face gives it {real_id}: "
                "the id in the model's vocabulary, or else the next after it",
                path=path,
            )
        special_tokens[text] = token_id
        next_id = max(next_id, token_id + 1)
    if len(normalized) > 1:
        # Two passes over the text: what the first takes, the second cannot.
        raise _refusal(path, "some of its added tokens are normalized and some are not")
    return special_tokens


def _read_tokens(
    model: _Model, special_tokens: Mapping[str, int], alphabet: VocabAlphabet, path: Path
) -> dict[int, bytes]:
    """Turn letters into bytes; a special token that no merge makes is its own text."""
    decode = chars_to_bytes if alphabet == "bytes" else _ascii_bytes
    letters = "byte letters" if alphabet == "bytes" else "the 98 characters of the ascii alphabet"
    made = {left + right for left, right in model.merges}
    tokens: dict[int, bytes] = {}
    for text, token_id in model.vocab.items():
        is_special = text in special_tokens and text not in made
        token = text.encode() if is_special else decode(text)
        if not token:
            raise _refusal(path, f"token {show(text)} is not written in {letters}")
        tokens[token_id] = token
    for text, token_id in special_tokens.items():
        problem = _find_special_problem(text, alphabet, ignore_merges=model.ignore_merges)
        if problem is None and tokens.setdefault(token_id, text.encode()) != text.encode():
            problem = f"shares its id {token_id} with {show(tokens[token_id])}"
        if problem is not None:
            raise UnsupportedError(f"{path}: special token {show(text)} {problem}")
    needed = map(_single, range(256)) if alphabet == "bytes" else (c.encode() for c in _ASCII)
    only_special = {i for text, i in special_tokens.items() if text not in made}
    ordinary = {token for i, token in tokens.items() if i not in only_special}
    missing = sorted(token for token in needed if token not in ordinary)
    if missing:
        raise UnsupportedError(
            f"{path}: no token for {len(missing)} of {256 if alphabet == 'bytes' else 98} "
            f"base tokens, first {missing[0]!r}; Hugging Face drops them silently or calls them "
            "unknown, which cannot be read yet"
        )
    return tokens


def _single(byte: int) -> bytes:
    return bytes([byte])


def _ascii_bytes(text: str) -> bytes | None:
    return text.encode() if _ASCII.issuperset(text) else None


def _find_special_problem(text: str, alphabet: VocabAlphabet, *, ignore_merges: bool) -> str | None:
    """Say whether a special token's text in the model's vocabulary could be met by ordinary text.

    `Ġthe` as a special token is also how the ordinary bytes of ` the` are looked up.
    """
    letters = chars_to_bytes(text) if alphabet == "bytes" else None
    if letters is None or letters == text.encode() or (len(letters) > 1 and not ignore_merges):
        return None
    return f"is also how the bytes {letters!r} are written in byte letters"


def _check_ascii(
    model: _Model, keys: Mapping[str, int], roles: Mapping[str, int], path: Path
) -> None:
    """Refuse what gives a character outside the alphabet anything but one unk id."""
    if model.fuse_unk:
        raise _refusal(path, "its model has fuse_unk")
    if model.unk_token is None:
        raise _refusal(path, "its model has no unk_token, so that unknown characters are dropped")
    if model.byte_fallback and any(_BYTE_FALLBACK.fullmatch(text) for text in keys):
        raise _refusal(path, "its model has byte_fallback and tokens for it")
    if model.unk_token not in keys and "unk" in roles:
        raise FormatError(
            f"unk_token {show(model.unk_token)} is not in the vocabulary, but another unk token is",
            path=path,
        )


def _infer_roles(keys: Mapping[str, int], unk_token: str | None) -> dict[str, int]:
    """Return the roles that a file says by itself: its unk_token, and ck's four names."""
    roles: dict[str, int] = {role: keys[f"<|{role}|>"] for role in ROLES if f"<|{role}|>" in keys}
    if unk_token is not None and unk_token in keys:
        roles["unk"] = keys[unk_token]
    return roles


# ====================================================================== writing


def save(vocab: Vocabulary, path: Path, *, overwrite: bool = False) -> None:
    """Write a tokenizer.json, and a sidecar if there are roles that the file cannot say."""
    keys = _keys(vocab)
    merges, ignore_merges = _merges(vocab)
    unk_token = _unk_token(vocab, keys)
    pre_tokenizer = _pre_tokenizer(vocab)
    document: dict[str, object] = {
        "version": _VERSION,
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": token_id, "content": text} | {flag: flag == "special" for flag in _ADDED_FLAGS}
            for text, token_id in vocab.special_tokens.items()
        ],
        "normalizer": None,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": None,
        "decoder": _byte_level() if vocab.alphabet == "bytes" else {"type": "Fuse"},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": unk_token,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": ignore_merges,
            "vocab": {},
            "merges": [],
        },
    }
    data = _render(document, keys, merges)
    _write(vocab, path, data, overwrite, _infer_roles(keys, unk_token))


def _write(
    vocab: Vocabulary, path: Path, data: bytes, overwrite: bool, inferred: Mapping[str, int]
) -> None:
    """Write the file and, unless its roles can be inferred from it, its sidecar."""
    beside = _sidecar.sidecar_path(path)
    if dict(vocab.roles) != dict(inferred):
        files = [(beside, _sidecar.render(vocab, data)), (path, data)]
        _sidecar.write_together(files, overwrite=overwrite)
        return
    if not overwrite and beside.exists():  # it would speak for the new file
        raise FileExistsError(f"{beside} exists; pass overwrite=True (--force) to remove it")
    write_atomic(path, data, overwrite=overwrite)
    beside.unlink(missing_ok=True)


def _unsupported(obstacle: str) -> UnsupportedError:
    return UnsupportedError(f"tokenizer.json cannot hold this vocabulary: {obstacle}")


def _render(
    document: Mapping[str, object], keys: Mapping[str, int], merges: list[tuple[str, str]]
) -> bytes:
    """Write JSON with one token and one merge a line, as people and `diff` like to read it."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    quote = json.JSONEncoder(ensure_ascii=False).encode
    lines = ",\n".join(f"      {quote(key)}: {token_id}" for key, token_id in keys.items())
    pairs = ",\n".join(f"      [{quote(left)}, {quote(right)}]" for left, right in merges)
    # These two cannot occur inside a string, where the quotes would be escaped.
    head, tail = text.split('"vocab": {}', 1)
    tail = tail.replace('"merges": []', f'"merges": [\n{pairs}\n    ]' if pairs else '"merges": []')
    return f'{head}"vocab": {{\n{lines}\n    }}{tail}\n'.encode()


def _keys(vocab: Vocabulary) -> dict[str, int]:
    """Return the model's vocabulary in order of id: letters -> id, special tokens by their text."""
    spell = _spelling(vocab)
    keys = {spell(token): token_id for token_id, token in vocab.ordinary()}
    shared = set(keys.values())
    for text, token_id in vocab.special_tokens.items():
        problem = None
        if text in keys and keys[text] != token_id:
            problem = (
                f"has id {token_id}, and the same letters are the token "
                f"{vocab.tokens[keys[text]]!r} with id {keys[text]}"
            )
        elif text not in keys and token_id in shared:
            problem = f"shares its id {token_id} with a token of other letters"
        else:
            problem = _find_special_problem(
                text,
                vocab.alphabet,
                ignore_merges=vocab.ignore_merges or vocab.ranking == "ranks",
            )
        if problem is not None:
            raise _unsupported(f"special token {text!r} {problem}")
        keys[text] = token_id
    return dict(sorted(keys.items(), key=lambda item: item[1]))


def _spelling(vocab: Vocabulary) -> Callable[[bytes], str]:
    """Return how a token's bytes are written: in byte letters, or as the ascii text they are."""
    if vocab.alphabet == "bytes":
        return bytes_to_chars
    for token_id, token in vocab.ordinary():
        if _ascii_bytes(token.decode("latin-1")) is None:
            raise _unsupported(f"token {token_id}, {token!r}, is outside its ascii alphabet")
    missing = sorted(c for c in _ASCII if c.encode() not in vocab.ids)
    if missing:
        raise _unsupported(f"the character {missing[0]!r} of its ascii alphabet has no token")
    return bytes.decode


def _unk_token(vocab: Vocabulary, keys: Mapping[str, int]) -> str | None:
    """Return how the model writes the unk role; in the byte alphabet it is only a name."""
    if "unk" in vocab.roles:
        unk = vocab.roles["unk"]
        return next(text for text, token_id in keys.items() if token_id == unk)
    return None if vocab.alphabet == "bytes" else _NO_UNK


def _byte_level(*, use_regex: bool = False) -> dict[str, object]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": use_regex,
    }


def _pre_tokenizer(vocab: Vocabulary) -> dict[str, object] | None:
    """Return the steps that cut text as the pattern does and turn it into byte letters."""
    pattern = resolve_pattern(vocab.pattern)
    if vocab.alphabet == "bytes" and (pattern is None or pattern == GPT2):
        return _byte_level(use_regex=pattern == GPT2)
    if pattern is None:
        return None
    problem = find_dialect_problem(pattern)
    if problem is not None:
        raise _unsupported(
            f"its pattern has {problem}, which Oniguruma and byteweld do not read alike"
        )
    split: dict[str, object] = {
        "type": "Split",
        "pattern": {"Regex": pattern},
        "behavior": "Isolated",
        "invert": False,
    }
    if vocab.alphabet == "ascii":
        return split
    return {"type": "Sequence", "pretokenizers": [split, _byte_level()]}


def _merges(vocab: Vocabulary) -> tuple[list[tuple[str, str]], bool]:
    """Return merges in letters, and ignore_merges.

    A vocabulary ranked by id is written as the merge list that does the same. While text is merged,
    what happens inside the bytes that become token t is what happens to those bytes alone, because
    nothing reached across their border before. So t is only ever made of the two parts that are
    left last when its bytes are encoded alone, if they become t at all. A list of this one merge
    for each such t, ordered by id, holds the chosen pair of every step and no pair that was not
    there, so every step is the same. Tokens that are never made so are met only as a whole
    pre-token: that is `ignore_merges`.
    """
    spell = _spelling(vocab)
    if vocab.ranking == "merges":
        return [(spell(left), spell(right)) for left, right in vocab.merges], vocab.ignore_merges
    if vocab.alphabet != "bytes":
        raise _unsupported(f"it is ranked by id with the alphabet {vocab.alphabet!r}")
    merges: list[tuple[str, str]] = []
    for _, token in vocab.ordinary():
        middle = _last_cut(token, vocab.ids)
        if middle is not None:
            merges.append((spell(token[:middle]), spell(token[middle:])))
    return merges, True


def _last_cut(token: bytes, ids: Mapping[bytes, int]) -> int | None:
    """Merge a token's bytes by rank; return where its last two parts meet, or None if never."""
    size = len(token)
    if size < 3:
        return 1 if size == 2 else None
    ends = list(range(1, size + 1))  # start of a part -> its end; 0 once it is inside another
    starts = list(range(-1, size))  # end of a part -> its start
    heap: list[tuple[int, int, int, int]] = []  # rank, start, middle, end

    def consider(start: int, middle: int, end: int) -> None:
        rank = ids.get(token[start:end])
        if rank is not None:
            heapq.heappush(heap, (rank, start, middle, end))

    for start in range(size - 1):
        consider(start, start + 1, start + 2)
    while heap:
        _, start, middle, end = heapq.heappop(heap)
        if ends[start] != middle or ends[middle] != end:
            continue  # one of its parts is gone
        if end - start == size:
            return middle
        ends[start], ends[middle], starts[end] = end, 0, start
        if start > 0:
            consider(starts[start], start, end)
        if end < size:
            consider(start, end, ends[end])
    return None
