"""Encodings by name: tiktoken's public ones, any vocabulary file in your folders, cached models.

Files are looked up in the folders of BYTEWELD_PATH, in byteweld's folder (which `byteweld fetch`
writes to), in tiktoken's cache and in Hugging Face's cache. Nothing here connects to a network. The
files of public encodings are checked against their SHA-256. Each encoding is loaded once.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

from byteweld import formats
from byteweld._atomic import is_leftover
from byteweld._files import COMPRESSED_SUFFIXES
from byteweld._places import (
    cached_models,
    entries,
    find_model,
    hub_cache,
    own_folder,
    path_folders,
    tiktoken_cache,
)
from byteweld.errors import ByteweldError, FormatError, nearest
from byteweld.formats._beside import SUFFIX, sidecar_path
from byteweld.formats._json import read_file
from byteweld.formats.vocab_merges import PAIRS, find_files
from byteweld.known_encodings import (
    FETCHABLE,
    OPENAI_URL,
    PUBLIC_ENCODINGS,
    RANK_FILES,
    RANK_SETTINGS,
    PublicEncoding,
)
from byteweld.tokenizer import Tokenizer
from byteweld.vocab import Vocabulary

# ---------------------------------------------------------------------- facts (tiktoken 0.14)

# GPT-2 was published as these two files, which are equivalent to r50k_base's rank file.
_GPT2_FILES: Final[Mapping[str, str]] = {
    "encoder.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    "vocab.bpe": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
}

_MODELS: Final[Mapping[str, str]] = {
    "o200k_base": "o1 o3 o4-mini gpt-5 gpt-4.1 gpt-4o",
    "cl100k_base": (
        "gpt-4 gpt-3.5-turbo gpt-3.5 gpt-35-turbo davinci-002 babbage-002 "
        "text-embedding-ada-002 text-embedding-3-small text-embedding-3-large"
    ),
    "p50k_base": (
        "text-davinci-003 text-davinci-002 code-davinci-002 code-davinci-001 code-cushman-002 "
        "code-cushman-001 davinci-codex cushman-codex"
    ),
    "p50k_edit": "text-davinci-edit-001 code-davinci-edit-001",
    "r50k_base": (
        "text-davinci-001 text-curie-001 text-babbage-001 text-ada-001 davinci curie babbage ada "
        "text-similarity-davinci-001 text-similarity-curie-001 text-similarity-babbage-001 "
        "text-similarity-ada-001 text-search-davinci-doc-001 text-search-curie-doc-001 "
        "text-search-babbage-doc-001 text-search-ada-doc-001 code-search-babbage-code-001 "
        "code-search-ada-code-001"
    ),
    "gpt2": "gpt2 gpt-2",
}
# Dated and fine-tuned models start with these.
_MODEL_STARTS: Final[Mapping[str, str]] = {
    "o200k_base": "o1- o3- o4-mini- gpt-5 gpt-4.5- gpt-4.1- chatgpt-4o- gpt-4o- ft:gpt-4o",
    "cl100k_base": (
        "gpt-4- gpt-3.5-turbo- gpt-35-turbo- ft:gpt-4 ft:gpt-3.5-turbo ft:davinci-002 "
        "ft:babbage-002"
    ),
    "o200k_harmony": "gpt-oss-",
}


def encoding_name_for_model(model_name: str) -> str:
    """Return the name of the encoding of one of OpenAI's models.

    Raises:
        KeyError: if the model is not known.

    Examples:
        >>> byteweld.encoding_name_for_model("gpt-4o-2024-05-13")
        'o200k_base'
        >>> byteweld.encoding_name_for_model("gpt2")
        'gpt2'
    """
    if not isinstance(model_name, str):
        raise TypeError(f"expected the name of a model, found {model_name!r}")
    for encoding, models in _MODELS.items():
        if model_name in models.split():
            return encoding
    starts = {start: name for name, those in _MODEL_STARTS.items() for start in those.split()}
    matching = [start for start in starts if model_name.startswith(start)]
    if not matching:
        raise KeyError(
            f"no encoding is known for the model {model_name!r}; pass the name of an encoding to "
            "get_encoding"
        )
    return starts[max(matching, key=len)]


def find_model_encoding(name: str) -> str | None:
    """Return the encoding of a model whose name may be written loosely; None if there is none.

    Without this, the nearest name to `gpt4` would be `gpt2`, another vocabulary.

    >>> find_model_encoding("gpt4"), find_model_encoding("GPT-4o"), find_model_encoding("gtp")
    ('cl100k_base', 'o200k_base', None)
    """
    try:
        return encoding_name_for_model(re.sub(r"^gpt(?=\d)", "gpt-", name.lower()))
    except KeyError:
        return None


def encoding_for_model(model_name: str) -> Tokenizer:
    """Return the tokenizer of one of OpenAI's models; its file is found as in `get_encoding`.

    Raises:
        KeyError: if the model is not known.

    Examples:
        >>> byteweld.encoding_for_model("gpt-4").encode("hello world")  # doctest: +SKIP
        [15339, 1917]
    """
    return get_encoding(encoding_name_for_model(model_name))


# ---------------------------------------------------------------------- by name

_loaded: dict[tuple[str, str], Tokenizer] = {}
_lock = threading.Lock()


def _new_lock() -> None:
    """Replace the lock in a forked child, where the thread that holds it does not exist."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_lock)


def get_encoding(name: str) -> Tokenizer:
    """Return the tokenizer of a public encoding, of a file in your folders, or of a cached model.

    A public encoding (`gpt2`, `cl100k_base`, `o200k_base`, ...) needs its rank file, such as
    `cl100k_base.tiktoken`, in a folder of BYTEWELD_PATH, in byteweld's own folder, or in tiktoken's
    cache. Any other name is that of a file or folder in the first two: `mine` is `mine.tiktoken`,
    `mine.json`, `mine/tokenizer.json`, or any other file called mine; or of a model in Hugging
    Face's cache, such as `openai-community/gpt2`. Nothing is downloaded: that is what `fetch` and
    `byteweld fetch` are for.

    Raises:
        FileNotFoundError: if the file of a public encoding is not here.
        ValueError: if there is no encoding of that name.

    Examples:
        >>> tok = byteweld.get_encoding("cl100k_base")  # doctest: +SKIP
        >>> tok.encode("hello world")  # doctest: +SKIP
        [15339, 1917]
    """
    if not isinstance(name, str):
        raise TypeError(f"name is {name!r}; it must be the name of an encoding")
    # Public names have a fixed meaning; others depend on where they are looked up.
    places = () if name in PUBLIC_ENCODINGS else (*_folders(), hub_cache())
    key = (name, os.pathsep.join(map(str, places)))
    found = _loaded.get(key)
    if found is not None:
        return found
    with _lock:
        if key not in _loaded:
            _loaded[key] = Tokenizer(_load(name), name=name)
        return _loaded[key]


def has_encoding(name: str) -> bool:
    """Whether a name is that of a public encoding, or of a file or folder in your folders."""
    return name in PUBLIC_ENCODINGS or _find(name) is not None


def list_encoding_names() -> list[str]:
    """Return the public encodings, even those without files here, and those in your folders.

    Your folders are those of BYTEWELD_PATH and byteweld's own.

    Examples:
        >>> byteweld.list_encoding_names()[:3]
        ['gpt2', 'r50k_base', 'p50k_base']
    """
    own = {name for folder in _folders() for name, _ in _encodings_in(folder)}
    return [*PUBLIC_ENCODINGS, *sorted(own - set(PUBLIC_ENCODINGS))]


def _load(name: str) -> Vocabulary:
    if name in PUBLIC_ENCODINGS:
        return _load_public(name, PUBLIC_ENCODINGS[name])
    path = _find(name) or find_model(name)
    if path is not None:
        return formats.load(path)
    raise ValueError(
        f"unknown encoding {name!r}; expected one of {', '.join(list_encoding_names())}; "
        f"searched for a file or folder of that name in {_shown_folders()} and Hugging Face's "
        f"cache ({hub_cache()}){how_to_get(name)}"
    )


def how_to_get(name: str) -> str:
    """Return what to do about a name that is not here: `; run ...`, or the start of a suggestion.

    >>> how_to_get("qwen3")
    '; run `byteweld fetch qwen3` to download it'
    """
    if name in FETCHABLE:
        return f"; run `byteweld fetch {name}` to download it"
    encoding = find_model_encoding(name)
    if encoding is None:
        return nearest(name, {*list_encoding_names(), *FETCHABLE})
    public = PUBLIC_ENCODINGS.get(encoding)
    is_here = public is not None and any(_public_files(encoding, public.ranks))
    hint = f"; the encoding of that model is {encoding!r}"
    return hint if is_here else hint + how_to_get(encoding)


# ---------------------------------------------------------------------- what is here

Place = Literal["BYTEWELD_PATH", "byteweld's folder", "tiktoken's cache", "Hugging Face's cache"]


class Found(NamedTuple):
    """A vocabulary that can be loaded by its name, and where it is."""

    name: str
    place: Place
    path: Path  # a file or a folder
    size: int  # in bytes, of all its files


def find_encodings() -> list[Found]:
    """Return the vocabularies that can be loaded by name here: public ones first, models last.

    Whether a model's tokenizer is one that byteweld can load shows when it is loaded.
    """
    found: dict[str, Found] = {}
    for name, encoding in PUBLIC_ENCODINGS.items():
        for place, files in _public_files(name, encoding.ranks):
            path = files[0] if len(files) == 1 else files[0].parent
            found[name] = Found(name, place, path, sum(map(_size, files)))
            break
    for place, folder in _places():
        for name, path in _encodings_in(folder):
            if name not in PUBLIC_ENCODINGS and name not in found:
                found[name] = Found(name, place, path, _size(path))
    for name, path in cached_models():
        if not has_encoding(name):
            found[name] = Found(name, "Hugging Face's cache", path, _size(path))
    return list(found.values())


def _size(path: Path) -> int:
    """Return the size of a file, or of a folder's vocabulary; 0 for what cannot be read."""
    if _is_folder(path):
        return sum(map(_size, find_files(path) or _files_in(path)))
    try:
        return path.stat().st_size
    except OSError:
        return 0


# ---------------------------------------------------------------------- public encodings


def _load_public(name: str, encoding: PublicEncoding) -> Vocabulary:
    _, found = next(_public_files(name, encoding.ranks), (None, None))
    if found is None:
        cache = tiktoken_cache() or "which is disabled"
        raise FileNotFoundError(
            f"no rank file for the encoding {name!r}: {encoding.ranks}.tiktoken is not in "
            f"{_shown_folders()} or tiktoken's cache ({cache}){how_to_get(name)}"
        )
    digests = _GPT2_FILES if len(found) == 2 else {"ranks": RANK_FILES[encoding.ranks]}
    # Load exactly the bytes that were checked, under names that the format recognizes.
    with tempfile.TemporaryDirectory(prefix="byteweld-") as folder:
        for file, (new_name, digest) in zip(found, digests.items(), strict=True):
            (Path(folder) / new_name).write_bytes(_read_checked(file, digest))
        return formats.load(
            folder if len(found) == 2 else Path(folder) / "ranks",
            format="gpt2" if len(found) == 2 else "tiktoken",
            pattern=encoding.pattern,
            special_tokens=encoding.special_tokens,
        )


def _public_files(name: str, ranks: str) -> Iterator[tuple[Place, tuple[Path, ...]]]:
    """Yield the existing files of a public encoding: its rank file, or GPT-2's two files."""
    own: list[tuple[str, ...]] = [
        (f"{stem}.tiktoken{suffix}",)
        for suffix in ("", *COMPRESSED_SUFFIXES)
        for stem in (name, ranks)
    ]
    cached: list[tuple[str, ...]] = [(f"encodings/{ranks}.tiktoken",)]
    if name == "gpt2":
        own += [tuple(f"gpt2/{file}" for file in pair) for pair in PAIRS]
        cached.append(tuple(f"gpt-2/encodings/main/{file}" for file in _GPT2_FILES))
    candidates: list[tuple[Place, tuple[Path, ...]]] = [
        (place, tuple(folder / file for file in files))
        for place, folder in _places()
        for files in own
    ]
    cache = tiktoken_cache()
    if cache is not None:
        candidates += [
            ("tiktoken's cache", tuple(cache / _cache_name(url) for url in urls)) for urls in cached
        ]
    return (found for found in candidates if all(map(_is_file, found[1])))


def _read_checked(file: Path, digest: str) -> bytes:
    data = read_file(file)
    found = hashlib.sha256(data).hexdigest()
    if found != digest:
        raise FormatError(
            f"the file has sha256 {found}; expected {digest}, the public file's; it is damaged "
            "or a different file: replace it, or load it by its path with byteweld.load",
            path=file,
        )
    return data


def _cache_name(path: str) -> str:
    return hashlib.sha1(f"{OPENAI_URL}{path}".encode(), usedforsecurity=False).hexdigest()


# ---------------------------------------------------------------------- your folders


def _places() -> list[tuple[Place, Path]]:
    """Return your folders in the order in which they are searched."""
    own = own_folder()
    given: list[tuple[Place, Path]] = [("BYTEWELD_PATH", folder) for folder in path_folders()]
    return given if own is None else [*given, ("byteweld's folder", own)]


def _folders() -> list[Path]:
    return [folder for _, folder in _places()]


def _shown_folders() -> str:
    given = ", ".join(map(str, path_folders()))
    own = own_folder() or "set BYTEWELD_HOME to have one"
    return (
        f"the folders of BYTEWELD_PATH ({given or 'which is not set'}), byteweld's folder ({own})"
    )


def _find(name: str) -> Path | None:
    """Return the file or folder that a name means in your folders; None if there is none."""
    return next((path for folder in _folders() for path in _candidates(folder, name)), None)


def _candidates(folder: Path, name: str, files: Sequence[Path] | None = None) -> Iterator[Path]:
    """Yield the files and folders that an encoding's name can mean, in order of preference.

    `files` are those with that stem, if they are known already.
    """
    if name in ("", "..") or Path(name).name != name:
        return  # a path, not a name
    own = folder / name
    files_of_name = (folder / f"{name}.tiktoken", folder / f"{name}.json")
    yield from filter(_is_file, (*files_of_name, own / "tokenizer.json", own / "tekken.json"))
    if _is_folder(own):
        yield own
    if files is None:
        files = [path for path in _files_in(folder) if name in (_stem(path), path.stem)]
    yield from files


def _stem(path: Path) -> str:
    """Return the name of an encoding's file: `mine.tiktoken.gz` is mine."""
    is_compressed = path.suffix.lower() in COMPRESSED_SUFFIXES
    return Path(path.stem).stem if is_compressed else path.stem


def _encodings_in(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the encodings in a folder that have a known format and are complete, by name."""
    files: dict[str, list[Path]] = {}
    for path in _files_in(folder):
        files.setdefault(_stem(path), []).append(path)
    folders = {path.name for path in entries(folder) if _is_folder(path)}
    for name in sorted(folders | files.keys()):
        found = next(_candidates(folder, name, files.get(name, ())), None)
        if found is not None and _is_complete(found):
            yield name, found


def _is_complete(path: Path) -> bool:
    try:
        # A rank file holds neither a pattern nor special tokens.
        return (
            formats.recognize(path) != "tiktoken"
            or _is_file(sidecar_path(path))
            or hashlib.sha256(read_file(path)).hexdigest() in RANK_SETTINGS
        )
    except (ByteweldError, OSError):  # damaged, too large, unreadable or not supported
        return False


def _files_in(folder: Path) -> Iterator[Path]:
    return (
        path
        for path in entries(folder)
        if not path.name.endswith(SUFFIX) and not is_leftover(path.name) and _is_file(path)
    )


def _is_file(path: Path) -> bool:
    return stat.S_ISREG(_mode(path))


def _is_folder(path: Path) -> bool:
    return stat.S_ISDIR(_mode(path))


def _mode(path: Path) -> int:
    """Return the mode of a file; 0 if there is none, or none that can be reached."""
    try:
        return path.stat().st_mode
    except (OSError, ValueError):  # Path.is_file raises if the folder is private or a name too long
        return 0
