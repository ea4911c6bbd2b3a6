"""Vocabulary <-> files: the table of formats, recognition by content, load() and save().

Each format is one module, imported when it is used: NAME, HOLDS (which `extras` of a vocabulary it
can hold), recognise(path, head), load(path, **options) and save(vocab, path, overwrite=...). No
format knows another.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Final

from byteweld.errors import FormatError, UnsupportedError
from byteweld.vocab import Vocabulary

HEAD_BYTES: Final = 1 << 16  # what recognition may look at

# In the order in which they are tried: the surest signs first.
FORMATS: Final[dict[str, str]] = {
    "bpe1": "byteweld.formats.bpe1",
    "ck": "byteweld.formats.ck_binary",
    "bpetite": "byteweld.formats.bpetite",
    "huggingface": "byteweld.formats.hf_tokenizer_json",
    "tekken": "byteweld.formats.tekken",
    "gpt2": "byteweld.formats.vocab_merges",
    "tiktoken": "byteweld.formats.tiktoken_ranks",
}

# What a file to be written is, by how its name ends.
SUFFIXES: Final[dict[str, str]] = {
    ".tiktoken": "tiktoken",
    ".bpe1": "bpe1",
    "tekken.json": "tekken",
    ".json": "huggingface",
}

_FOLDERS: Final = ("gpt2", "ck")  # formats of several files
_BRACED: Final = frozenset(("ck", "bpetite", "huggingface", "tekken", "gpt2"))  # JSON objects


def recognise(path: str | os.PathLike[str]) -> str:
    """Return the name of a file's or folder's format, by its content; the name does not matter."""
    place = Path(path)
    if place.is_dir():
        head = b""
    else:
        with place.open("rb") as file:
            head = file.read(HEAD_BYTES)
    is_other = not place.is_dir() and not head.lstrip().startswith(b"{")
    for name in FORMATS:
        if is_other and name in _BRACED:
            continue  # not even imported
        if _module(name).recognise(place, head):
            return name
    what = "this folder" if place.is_dir() else "this file"
    hint = ""
    if place.is_dir() and (place / "tokenizer.json").is_file():
        hint = f"; to read the file in it, give its path {str(place / 'tokenizer.json')!r}"
    raise FormatError(
        f"{what} is in no known format; known are {', '.join(sorted(FORMATS))}{hint}", path=place
    )


def load(path: str | os.PathLike[str], format: str | None = None, **options: object) -> Vocabulary:
    """Read a vocabulary from a file or folder; the format is recognised unless it is given.

    `options` are the format's own, such as `pattern` and `special_tokens` for a rank file.
    """
    name = recognise(path) if format is None else _known_format(format)
    function = _module(name).load
    _check_options(function, options, name)
    vocab: Vocabulary = function(Path(path), **options)
    return vocab


def save(
    vocab: Vocabulary,
    path: str | os.PathLike[str],
    format: str | None = None,
    overwrite: bool = False,
    **options: object,
) -> None:
    """Write a vocabulary; the format follows the name of the file unless it is given.

    What a format cannot hold is an UnsupportedError; an existing file is kept unless `overwrite`.
    """
    name = _format_to_write(path, format)
    module = _module(name)
    _check_options(module.save, options, name)
    _check_extras(vocab, name)
    module.save(vocab, Path(path), overwrite=overwrite, **options)


def check(vocab: Vocabulary, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Raise the UnsupportedError that `save` would raise; nothing is written.

    It can be asked before training: whether a vocabulary of the same recipe can be written is
    known before its first merge.
    """
    name = _format_to_write(path, format)
    _check_extras(vocab, name)
    _module(name).check(vocab)


def files(vocab: Vocabulary, path: str | os.PathLike[str], format: str | None = None) -> list[Path]:
    """Return every file that `save` would write, sidecars included, the main file first."""
    found: list[Path] = _module(_format_to_write(path, format)).files(vocab, Path(path))
    return found


def _check_extras(vocab: Vocabulary, name: str) -> None:
    missing = [extra for extra in vocab.extras if extra not in _module(name).HOLDS]
    if missing:
        holders = [other for other in FORMATS if _module(other).HOLDS.issuperset(vocab.extras)]
        hint = f"; {' or '.join(map(repr, holders))} can" if holders else ""
        raise UnsupportedError(
            f"the format {name!r} cannot hold what this vocabulary has: {', '.join(missing)}{hint}"
        )


def _format_to_write(path: str | os.PathLike[str], format: str | None) -> str:
    return _format_for_name(path) if format is None else _known_format(format)


def _module(name: str) -> Any:
    return importlib.import_module(FORMATS[name])


def _format_for_name(path: str | os.PathLike[str]) -> str:
    text = os.fspath(path)
    separators = tuple(filter(None, (os.sep, os.altsep)))
    if text.endswith(separators) or Path(path).is_dir():
        raise UnsupportedError(
            f"{text!r} is a folder; pass format= {' or '.join(map(repr, _FOLDERS))}, "
            "which write folders, or the path of a file"
        )
    for suffix, name in SUFFIXES.items():
        if text.lower().endswith(suffix):
            return name
    endings = ", ".join(f"*{suffix} ({name})" for suffix, name in SUFFIXES.items())
    raise UnsupportedError(
        f"the name {Path(path).name!r} does not say a format; pass format=, or use {endings}"
    )


def _known_format(name: str) -> str:
    if name in FORMATS:
        return name
    raise UnsupportedError(f"unknown format {name!r}; {_known(name, FORMATS)}")


def _check_options(
    function: Callable[..., object], options: Collection[str], format_name: str
) -> None:
    """Refuse options that a format does not have, instead of dropping them."""
    if not options:
        return
    import inspect  # slow to import, and seldom needed

    known = [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY and name != "overwrite"
    ]
    for name in options:
        if name not in known:
            raise TypeError(
                f"unknown option {name!r} for format {format_name!r}; {_known(name, known)}"
            )


def _known(name: str, names: Collection[str]) -> str:
    import difflib  # as above

    if not names:
        return "it takes none"
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"known are {', '.join(sorted(names))}{hint}"
