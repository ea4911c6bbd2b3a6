"""The paths of the small files beside a vocabulary file, which `load` looks for every time."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from byteweld._files import COMPRESSED_SUFFIXES

SUFFIX: Final = ".byteweld.json"  # of a sidecar


def plain_path(path: Path) -> Path:
    """Return a path without a suffix such as .gz.

    >>> plain_path(Path("ranks.tiktoken.gz")).name
    'ranks.tiktoken'
    """
    return path.with_suffix("") if path.suffix in COMPRESSED_SUFFIXES else path


def sidecar_path(main: Path) -> Path:
    """Return the path of a file's sidecar, which a compressed file shares with the plain one.

    >>> sidecar_path(Path("ranks.tiktoken")).name
    'ranks.tiktoken.byteweld.json'
    """
    plain = plain_path(main)
    return plain.with_name(plain.name + SUFFIX)


def config_path(main: Path) -> Path | None:
    """Return the config beside a file; None if the name is not one that transformers looks for.

    >>> config_path(Path("model/tokenizer.json")), config_path(Path("model/books.json"))
    (PosixPath('model/tokenizer_config.json'), None)
    """
    is_found = plain_path(main).name == "tokenizer.json"
    return main.with_name("tokenizer_config.json") if is_found else None
