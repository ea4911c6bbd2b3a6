"""Encodings by name: the public ones of tiktoken, and any vocabulary file in your own folders.

Files are looked for in the folders of BYTEWELD_PATH and in tiktoken's cache, never on the network.
What a public encoding's file must hold is known, and checked. A loaded encoding is remembered.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from byteweld import formats
from byteweld.errors import FormatError
from byteweld.formats._json import read_file
from byteweld.formats._sidecar import SUFFIX, sidecar_path
from byteweld.tokenizer import Tokenizer
from byteweld.vocab import Vocabulary

# ---------------------------------------------------------------------- facts (tiktoken 0.14)

_END: Final = "<|endoftext|>"
_END_OF_PROMPT: Final = "<|endofprompt|>"
_FILL: Final = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")

# Rank files and their SHA-256. Their addresses are needed for their names in tiktoken's cache.
RANK_FILES: Final[Mapping[str, str]] = {
    "r50k_base": "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
    "p50k_base": "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
_ADDRESS: Final = "https://openaipublic.blob.core.windows.net/"

# GPT-2 was published as these two, which hold what r50k_base's rank file holds.
_GPT2_FILES: Final[Mapping[str, str]] = {
    "encoder.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    "vocab.bpe": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
}
_GPT2_NAMES: Final = (("encoder.json", "vocab.bpe"), ("vocab.json", "merges.txt"))


@dataclass(frozen=True)
class PublicEncoding:
    """What is known of a public encoding besides the contents of its rank file."""

    ranks: str  # which rank file
    pattern: str
    special_tokens: Mapping[str, int]
    n_vocab: int


_HARMONY: Final = (
    {"<|startoftext|>": 199998, _END: 199999, _END_OF_PROMPT: 200018}
    | {"<|return|>": 200002, "<|constrain|>": 200003, "<|channel|>": 200005, "<|start|>": 200006}
    | {"<|end|>": 200007, "<|message|>": 200008, "<|call|>": 200012}
    # 200018 has two names.
    | {f"<|reserved_{i}|>": i for i in (200000, 200001, 200004, 200009, 200010, 200011)}
    | {f"<|reserved_{i}|>": i for i in range(200013, 201088)}
)

PUBLIC_ENCODINGS: Final[Mapping[str, PublicEncoding]] = {
    "gpt2": PublicEncoding("r50k_base", "gpt2", {_END: 50256}, 50257),
    "r50k_base": PublicEncoding("r50k_base", "gpt2", {_END: 50256}, 50257),
    "p50k_base": PublicEncoding("p50k_base", "gpt2", {_END: 50256}, 50281),
    "p50k_edit": PublicEncoding(
        "p50k_base",
        "gpt2",
        {_END: 50256} | {text: 50281 + n for n, text in enumerate(_FILL)},
        50284,
    ),
    "cl100k_base": PublicEncoding(
        "cl100k_base",
        "cl100k",
        {_END: 100257, _END_OF_PROMPT: 100276} | {text: 100258 + n for n, text in enumerate(_FILL)},
        100277,
    ),
    "o200k_base": PublicEncoding(
        "o200k_base", "o200k", {_END: 199999, _END_OF_PROMPT: 200018}, 200019
    ),
    "o200k_harmony": PublicEncoding("o200k_base", "o200k", _HARMONY, 201088),
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
    """The name of the encoding that one of OpenAI's models uses; KeyError if it is not known.

    >>> encoding_name_for_model("gpt-4o-2024-05-13"), encoding_name_for_model("gpt2")
    ('o200k_base', 'gpt2')
    """
    for encoding, models in _MODELS.items():
        if model_name in models.split():
            return encoding
    starts = {start: name for name, those in _MODEL_STARTS.items() for start in those.split()}
    fitting = [start for start in starts if model_name.startswith(start)]
    if not fitting:
        raise KeyError(
            f"no encoding is known for the model {model_name!r}; name the encoding itself with "
            "get_encoding"
        )
    return starts[max(fitting, key=len)]


def encoding_for_model(model_name: str) -> Tokenizer:
    """The tokenizer that one of OpenAI's models uses; KeyError if the model is not known."""
    return get_encoding(encoding_name_for_model(model_name))


# ---------------------------------------------------------------------- by name

_loaded: dict[tuple[str, str], Tokenizer] = {}
_lock = threading.Lock()


def _new_lock() -> None:
    """In a forked child, the thread that holds the lock does not exist."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_lock)


def get_encoding(name: str) -> Tokenizer:
    """The tokenizer of a public encoding, or of a vocabulary file in a folder of BYTEWELD_PATH.

    A public encoding (`gpt2`, `cl100k_base`, `o200k_base`, ...) needs its rank file, such as
    `cl100k_base.tiktoken`, in one of these folders, or in the cache of a tiktoken that has used it.
    Any other name is that of a file or folder there: `mine` is `mine.json`, `mine.tiktoken`,
    `mine/tokenizer.json`, or any other file called mine. Nothing is ever downloaded.
    """
    if not isinstance(name, str):
        raise TypeError(f"name is {name!r}; it must be the name of an encoding")
    # What a public name means is fixed; any other depends on the folders.
    key = (name, "" if name in PUBLIC_ENCODINGS else os.environ.get("BYTEWELD_PATH", ""))
    found = _loaded.get(key)
    if found is not None:
        return found
    with _lock:
        if key not in _loaded:
            _loaded[key] = Tokenizer(_load(name), name=name)
        return _loaded[key]


def list_encoding_names() -> list[str]:
    """The public encodings, whether or not their files are here, and those of BYTEWELD_PATH."""
    own = {name for folder in _folders() for name in _names_in(folder)}
    return [*PUBLIC_ENCODINGS, *sorted(own - set(PUBLIC_ENCODINGS))]


def _load(name: str) -> Vocabulary:
    if name in PUBLIC_ENCODINGS:
        return _load_public(name, PUBLIC_ENCODINGS[name])
    for folder in _folders():
        for path in _candidates(folder, name):
            return formats.load(path)
    near = difflib.get_close_matches(name, list_encoding_names(), n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ValueError(
        f"unknown encoding {name!r}; known are {', '.join(list_encoding_names())}; "
        f"looked for a file or folder of that name in {_shown_folders()}{hint}"
    )


# ---------------------------------------------------------------------- public encodings


def _load_public(name: str, encoding: PublicEncoding) -> Vocabulary:
    found = next(_public_files(name, encoding.ranks), None)
    if found is None:
        cache = _tiktoken_cache() or "which is switched off"
        raise FileNotFoundError(
            f"no rank file for the encoding {name!r}: {encoding.ranks}.tiktoken is not in "
            f"{_shown_folders()}, and not in tiktoken's cache ({cache}); put it into a folder and "
            "name that in BYTEWELD_PATH: nothing is downloaded"
        )
    digests = _GPT2_FILES if len(found) == 2 else {"ranks": RANK_FILES[encoding.ranks]}
    # The bytes that were checked are the ones to be read, under names that their format knows.
    with tempfile.TemporaryDirectory(prefix="byteweld-") as folder:
        for file, (new_name, digest) in zip(found, digests.items(), strict=True):
            (Path(folder) / new_name).write_bytes(_read_checked(file, digest))
        return formats.load(
            folder if len(found) == 2 else Path(folder) / "ranks",
            format="gpt2" if len(found) == 2 else "tiktoken",
            pattern=encoding.pattern,
            special_tokens=encoding.special_tokens,
        )


def _public_files(name: str, ranks: str) -> Iterator[tuple[Path, ...]]:
    """The files that may hold a public encoding: its rank file, or GPT-2's two, that are here."""
    cache = _tiktoken_cache()
    places: list[tuple[Path, ...]] = []
    for folder in _folders():
        places += [(folder / f"{name}.tiktoken",), (folder / f"{ranks}.tiktoken",)]
        if name == "gpt2":
            places += [(folder / name / a, folder / name / b) for a, b in _GPT2_NAMES]
    if cache is not None:
        places.append((cache / _cache_name(f"encodings/{ranks}.tiktoken"),))
        if name == "gpt2":
            places.append(
                tuple(cache / _cache_name(f"gpt-2/encodings/main/{file}") for file in _GPT2_FILES)
            )
    return (files for files in places if all(file.is_file() for file in files))


def _read_checked(file: Path, digest: str) -> bytes:
    data = read_file(file)
    found = hashlib.sha256(data).hexdigest()
    if found != digest:
        raise FormatError(
            f"the file has sha256 {found}, but this public file has {digest}; it is damaged or "
            "another file: replace it, or load it by its path with byteweld.load",
            path=file,
        )
    return data


def _tiktoken_cache() -> Path | None:
    """Where tiktoken keeps what it downloads; it is switched off by an empty name."""
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if variable in os.environ:
            return Path(os.environ[variable]) if os.environ[variable] else None
    return Path(tempfile.gettempdir()) / "data-gym-cache"


def _cache_name(address: str) -> str:
    return hashlib.sha1(f"{_ADDRESS}{address}".encode(), usedforsecurity=False).hexdigest()


# ---------------------------------------------------------------------- own folders


def _folders() -> list[Path]:
    return [Path(part) for part in os.environ.get("BYTEWELD_PATH", "").split(os.pathsep) if part]


def _shown_folders() -> str:
    folders = ", ".join(map(str, _folders()))
    return f"the folders of BYTEWELD_PATH ({folders or 'which is not set'})"


def _candidates(folder: Path, name: str) -> Iterator[Path]:
    """The files and folders that an encoding's name can mean, the likeliest first."""
    if name in ("", "..") or Path(name).name != name:
        return  # a path is no name: byteweld.load opens it
    own = folder / name
    for path in (folder / f"{name}.tiktoken", folder / f"{name}.json"):
        if path.is_file():
            yield path
    for path in (own / "tokenizer.json", own / "tekken.json"):
        if path.is_file():
            yield path
    if own.is_dir():
        yield own
    yield from (path for path in _files_in(folder) if path.stem == name)


def _names_in(folder: Path) -> Iterator[str]:
    """The names of the encodings in a folder: of what is in a known format, and complete."""
    names = {path.stem for path in _files_in(folder)}
    names |= {path.name for path in _sorted(folder) if path.is_dir()}
    for name in names:
        path = next(_candidates(folder, name), None)
        if path is not None and _is_complete(path):
            yield name


def _is_complete(path: Path) -> bool:
    try:
        format = formats.recognize(path)
    except (FormatError, OSError):
        return False
    # A rank file says neither pattern nor special tokens.
    return format != "tiktoken" or sidecar_path(path).is_file()


def _files_in(folder: Path) -> Iterator[Path]:
    return (path for path in _sorted(folder) if not path.name.endswith(SUFFIX) and path.is_file())


def _sorted(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:  # a folder that is not there, or may not be looked into
        return []
