"""Vocabulary <-> files: the table of formats, recognition by content, load() and save().

Each format is one module, imported when it is used, with these functions:

- `recognize(path, head)`: whether a path is of the format; `head` is the start of a file.
- `load(path, **options)`: read it. In a format that is only written, this says why not. The options
  are keyword arguments, or those named in OPTIONS.
- `check(vocab)`: raise NotHeldError, with the reason, if the format cannot hold a vocabulary.
- `render(vocab, path, **options)`: the content of each file to write, the main file last; None for
  a file to remove.
- `files(vocab, path)`, if not only `path` is written: the files that `render` writes or removes,
  the main file first, without those that may exist and are only added to.
- `held(vocab)`, if the format loses a pattern: what `load` will return.

What follows from them is here, once for all formats. No format module imports another.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from types import FunctionType
from typing import Any, Final, NamedTuple

from byteweld._saves import NO_FILES, read_together, write_folder, write_together
from byteweld.errors import FormatError, UnsupportedError, VocabularyError, nearest
from byteweld.formats._beside import config_path, sidecar_path
from byteweld.formats._json import read_head
from byteweld.formats._limits import NotHeldError
from byteweld.vocab import Vocabulary

HEAD_BYTES: Final = 1 << 16  # how much of a file `recognize` reads


class VocabFormat(NamedTuple):
    """What is known about a format before its module is imported."""

    module: str  # in this package
    title: str  # what an error calls a file of this format
    suffixes: tuple[str, ...] = ()  # endings of file names that select the format when saving
    is_folder: bool = False  # several files in a folder
    is_json: bool = False  # a file of this format is a JSON object
    needs: tuple[str, ...] = ()  # options that `load` needs if there is no sidecar
    holds: frozenset[str] = frozenset()  # the `Vocabulary.extras` that it can represent


_PIPELINE: Final = frozenset(
    ("added token flags", "normalizer", "partial alphabet", "prefix space", "steps", "template")
)
_SETTINGS: Final = ("pattern", "special_tokens")

# In the order in which `recognize` tries them: the most distinctive first.
FORMATS: Final[dict[str, VocabFormat]] = {
    "bpe1": VocabFormat("bpe1", "BPE1", (".bpe1",)),
    "ck": VocabFormat("ck_binary", "ck's binary export", is_folder=True, is_json=True),
    "bpetite": VocabFormat("bpetite", "a bpetite artifact", is_json=True),
    "huggingface": VocabFormat(
        "hf_tokenizer_json",
        "tokenizer.json",
        (".json",),
        is_json=True,
        holds=_PIPELINE | {"twin tokens"},
    ),
    "tekken": VocabFormat("tekken", "tekken.json", ("tekken.json",), is_json=True),
    "gpt2": VocabFormat(
        "vocab_merges", "vocab.json and merges.txt", is_folder=True, is_json=True, needs=_SETTINGS
    ),
    "tiktoken": VocabFormat(
        "tiktoken_ranks",
        "a rank file",
        (".tiktoken",),
        needs=_SETTINGS,
        holds=frozenset(("empty token", "shared ids")),
    ),
}
"""The file formats of vocabularies by name; `load` reads them all, and `save` writes them.

| name | what it is |
|---|---|
| `bpe1` | `*.bpe1`: a binary section, which the C reader in `c/byteweld.h` reads, too. |
| `ck` | A folder: ck's binary export `ck.bpe.binary.v1`, for its C runtime. |
| `bpetite` | A JSON file: bpetite's artifact, schema v1. |
| `huggingface` | `*.json`: Hugging Face's `tokenizer.json`. It can hold the most. |
| `tekken` | `tekken.json`: Mistral's. |
| `gpt2` | A folder: GPT-2's `vocab.json` and `merges.txt`. |
| `tiktoken` | `*.tiktoken`: ranks, one token per line, without a pattern or special tokens. |

Where the table has a name such as `*.json`, that name selects the format when saving; for the
others, pass `format=`. `save` also writes `nanochat`, a folder with a pickle, which is never read.
"""
# Written when asked for, and never read.
EXPORTS: Final[dict[str, VocabFormat]] = {
    "nanochat": VocabFormat("nanochat", "nanochat's tokenizer folder", is_folder=True)
}
_WRITTEN: Final = FORMATS | EXPORTS


def is_folder(name: str | None) -> bool:
    """Whether a format has this name and writes a folder."""
    return name in _WRITTEN and _WRITTEN[name].is_folder


def recognize(path: str | os.PathLike[str]) -> str:
    """Return the name of the format of a file or folder, detected from its content.

    Raises:
        FormatError: if it is none of `byteweld.FORMATS`.

    Examples:
        >>> import tempfile
        >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=265)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tok.save(f"{folder}/tokenizer.json")
        ...     byteweld.recognize(f"{folder}/tokenizer.json")
        'huggingface'
    """
    return read_together(Path(path), _files_read, _recognize)


def recognized(path: str | os.PathLike[str]) -> str | None:
    """Return the name of the format of a tokenizer's file or folder; None for anything else."""
    try:
        return recognize(path)
    except UnsupportedError:  # a pickle, which is never read
        return "nanochat"
    except (FormatError, OSError):
        return None


def _recognize(target: Path) -> str:
    is_folder = target.is_dir()
    head = b"" if is_folder else read_head(target, HEAD_BYTES)
    may_be_json = is_folder or head.lstrip().startswith(b"{")
    for name, format in FORMATS.items():
        if format.is_json and not may_be_json:
            continue  # not even imported
        if _module(name).recognize(target, head):
            return name
    for name in EXPORTS:
        if _module(name).recognize(target, head):
            _module(name).load(target)  # says why not
    hint = ""
    if is_folder and (target / "tokenizer.json").is_file():
        hint = f"; to read the file in it, pass its path {str(target / 'tokenizer.json')!r}"
    raise FormatError(
        f"the format of this {'folder' if is_folder else 'file'} is unknown; "
        f"expected one of {', '.join(sorted(FORMATS))}{hint}",
        path=target,
    )


def load(path: str | os.PathLike[str], format: str | None = None, **options: object) -> Vocabulary:
    """Read a vocabulary from a file or folder; the format is recognized unless it is given.

    `options` are the format's own, such as `pattern` and `special_tokens` for a rank file.
    """
    if format is not None:
        _known_format(format, _WRITTEN if format in EXPORTS else FORMATS)

    def read(target: Path) -> Vocabulary:
        name = _recognize(target) if format is None else format
        module = _module(name)
        _check_options(module.load, options, name, getattr(module, "OPTIONS", ()))
        try:
            vocab: Vocabulary = module.load(target, **options)
        except VocabularyError as error:
            raise FormatError(str(error), path=target) from error
        return vocab

    return read_together(Path(path), _files_read, read)


def save(
    vocab: Vocabulary,
    path: str | os.PathLike[str],
    format: str | None = None,
    overwrite: bool = False,
    beside: Mapping[Path, bytes] = NO_FILES,
    **options: object,
) -> None:
    """Write a vocabulary; the format follows from the name of the file unless it is given.

    The files `beside` it, in the same folder, are written together with it: all or none, and if
    the process is killed, `load` reads all of the old files or all of the new ones.
    Raises UnsupportedError if the format cannot represent the vocabulary, and FileExistsError if a
    file exists, unless `overwrite`. `held` tells whether the format implies another pattern.
    """
    name = _format_to_write(path, format)
    module = _module(name)
    _check_options(module.render, options, name)
    _check(vocab, name)
    contents: dict[Path, Any] = module.render(vocab, Path(path), **options)
    if is_folder(name):
        named = {file.name: data for file, data in {**beside, **contents}.items()}
        write_folder(next(reversed(contents)).parent, named, overwrite=overwrite)
    else:
        added_to = contents.keys() - files(vocab, path, name)
        write_together({**beside, **contents}, overwrite=overwrite, merged=added_to)


def check(vocab: Vocabulary, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Raise the UnsupportedError that `save` would raise; write nothing.

    Whatever a recipe sets is checked even without merges, so this can be called before training.
    """
    _check(vocab, _format_to_write(path, format))


def files(vocab: Vocabulary, path: str | os.PathLike[str], format: str | None = None) -> list[Path]:
    """Return every file that `save` would write, or remove as stale; the main file first."""
    module = _module(_format_to_write(path, format))
    return module.files(vocab, Path(path)) if hasattr(module, "files") else [Path(path)]


def not_held(
    vocab: Vocabulary, path: str | os.PathLike[str], format: str | None = None
) -> list[str]:
    """Return those of `vocab.extras` that the format cannot represent."""
    holds = _WRITTEN[_format_to_write(path, format)].holds
    return [extra for extra in vocab.extras if extra not in holds]


def held(vocab: Vocabulary, path: str | os.PathLike[str], format: str | None = None) -> Vocabulary:
    """Return what `load` returns after `save`: the vocabulary itself, unless a pattern is lost.

    Only ck's binary export loses one: it has no field for the pattern, and implies one. Raises
    UnsupportedError as `save` does.
    """
    module = _module(_format_to_write(path, format))
    if hasattr(module, "held"):
        check(vocab, path, format)
        vocab = module.held(vocab)
    return vocab


def files_beside(path: Path) -> list[Path]:
    """Return the paths of the optional files that `load` reads along with a file."""
    config = config_path(path)
    return [sidecar_path(path)] if config is None else [sidecar_path(path), config]


def _files_read(path: Path) -> list[Path]:
    """Return the paths of all files that `load` may read, whether or not they exist."""
    is_folder = path.is_dir()
    found = [] if is_folder else [path, *files_beside(path)]
    if is_folder or path.name in ("vocab.json", "encoder.json"):
        from byteweld.formats import ck_binary, vocab_merges

        folder, others = (path, ck_binary.NAMES) if is_folder else (path.parent, ())
        found += [folder / name for name in (*others, *vocab_merges.NAMES)]
    return found


def _module(name: str) -> Any:
    import importlib  # slow to import, and reading a compiled vocabulary needs no format

    return importlib.import_module(f"{__name__}.{_WRITTEN[name].module}")


def _check(vocab: Vocabulary, name: str) -> None:
    missing = not_held(vocab, "", name)
    if missing:
        able = [other for other, format in FORMATS.items() if format.holds.issuperset(vocab.extras)]
        hint = f"; {' or '.join(map(repr, able))} can" if able else ""
        raise UnsupportedError(
            f"the format {name!r} cannot hold what this vocabulary has: {', '.join(missing)}{hint}"
        )
    try:
        _module(name).check(vocab)
    except NotHeldError as error:
        raise UnsupportedError(
            f"{_WRITTEN[name].title} cannot hold this vocabulary: {error}"
        ) from error


def _format_to_write(path: str | os.PathLike[str], format: str | None) -> str:
    return _format_for_name(path) if format is None else _known_format(format, _WRITTEN)


def _format_for_name(path: str | os.PathLike[str]) -> str:
    text = os.fspath(path)
    separators = tuple(filter(None, (os.sep, os.altsep)))
    if text.endswith(separators) or Path(path).is_dir():
        folders = [name for name, format in FORMATS.items() if format.is_folder]
        raise UnsupportedError(
            f"{text!r} is a folder; pass format= {' or '.join(map(repr, folders))}, "
            "which write folders, or the path of a file"
        )
    by_suffix = {suffix: name for name, format in FORMATS.items() for suffix in format.suffixes}
    found = [suffix for suffix in by_suffix if text.lower().endswith(suffix)]
    if found:
        return by_suffix[max(found, key=len)]
    endings = ", ".join(f"*{suffix} ({name})" for suffix, name in by_suffix.items())
    raise UnsupportedError(
        f"the name {Path(path).name!r} does not imply a format; pass format=, or use {endings}"
    )


def _known_format(name: str, known: Collection[str]) -> str:
    if name in known:
        return name
    raise UnsupportedError(f"unknown format {name!r}; {known_names(name, known)}")


def _check_options(
    function: FunctionType, options: Collection[str], format_name: str, more: tuple[str, ...] = ()
) -> None:
    """Reject options that a format does not have, instead of ignoring them."""
    code = function.__code__  # `inspect` would be slow to import
    known = more + code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]
    for name in options:
        if name not in known:
            raise TypeError(
                f"unknown option {name!r} for format {format_name!r}; {known_names(name, known)}"
            )


def known_names(name: str, names: Collection[str]) -> str:
    """Return the end of an error about an unknown name: the known names, and the nearest."""
    if not names:
        return "it takes none"
    return f"expected one of {', '.join(sorted(names))}{nearest(name, names)}"
