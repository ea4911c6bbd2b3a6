"""Where vocabularies are on this machine: byteweld's folder, BYTEWELD_PATH, and two other caches.

Only looks at the environment and at local files. The caches belong to tiktoken and to Hugging Face;
nothing is ever written there.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from byteweld._files import read_regular

# ---------------------------------------------------------------------- folders


def own_folder() -> Path | None:
    """Return byteweld's folder of vocabularies, which may not exist yet.

    It is `vocabularies` in BYTEWELD_HOME or, by default, in the user's data folder. None if there
    is no home directory either.
    """
    given = os.environ.get("BYTEWELD_HOME")
    home = _expanded(given) if given else _data_folder()
    return None if home is None else home / "vocabularies"


def _data_folder() -> Path | None:
    """Return byteweld's folder in the place where the platform keeps a user's data."""
    if sys.platform == "win32":
        base = _given_folder("LOCALAPPDATA") or _in_home("AppData/Local")
    elif sys.platform == "darwin":
        base = _in_home("Library/Application Support")
    else:
        base = _given_folder("XDG_DATA_HOME") or _in_home(".local/share")
    return None if base is None else base / "byteweld"


def _given_folder(variable: str) -> Path | None:
    """Return the folder of a variable; None if it is not set, or relative, as the XDG rules say."""
    folder = Path(os.environ.get(variable, ""))
    return folder if folder.is_absolute() else None


def _in_home(folder: str) -> Path | None:
    try:
        return Path.home() / folder
    except RuntimeError:  # there is none
        return None


def _expanded(path: str) -> Path:
    """Return the folder of a variable that no shell has expanded, such as one in an .env file."""
    try:
        return Path(os.path.expandvars(path)).expanduser()
    except RuntimeError:  # no home directory
        return Path(path)


def path_folders() -> list[Path]:
    """Return the folders of BYTEWELD_PATH."""
    return [Path(part) for part in os.environ.get("BYTEWELD_PATH", "").split(os.pathsep) if part]


def tiktoken_cache() -> Path | None:
    """Return tiktoken's download cache; None if an empty variable disables it."""
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if variable in os.environ:
            return Path(os.environ[variable]) if os.environ[variable] else None
    import tempfile  # slow to import, and needed only here

    return Path(tempfile.gettempdir()) / "data-gym-cache"


# ---------------------------------------------------------------------- Hugging Face's cache

_MODELS: Final = "models--"
_PART: Final = r"[A-Za-z0-9_](?:[\w.-]*\w)?"
_MODEL: Final = re.compile(rf"(?:{_PART}/)?{_PART}", re.ASCII)
_REVISION: Final = re.compile(r"[0-9A-Za-z]{1,64}")
_MAX_MODEL_NAME: Final = 200
_MAX_REF_BYTES: Final = 1 << 10


def hub_cache() -> Path | None:
    """Return the folder in which huggingface_hub keeps what it downloads."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if os.environ.get(variable):
            return _expanded(os.environ[variable])
    if os.environ.get("HF_HOME"):
        return _expanded(os.environ["HF_HOME"]) / "hub"
    given = os.environ.get("XDG_CACHE_HOME")
    base = _expanded(given) if given else _in_home(".cache")
    return None if base is None else base / "huggingface" / "hub"


def is_model_name(name: str) -> bool:
    """Whether a name could be that of a model on Hugging Face, such as `openai-community/gpt2`.

    >>> is_model_name("Qwen/Qwen2.5-7B"), is_model_name("../x"), is_model_name("a/b/c")
    (True, False, False)
    """
    return (
        len(name) <= _MAX_MODEL_NAME
        and "--" not in name
        and ".." not in name
        and _MODEL.fullmatch(name) is not None
    )


def find_model(name: str) -> Path | None:
    """Return the file or folder with the vocabulary of a cached model; None if there is none.

    Files in a snapshot are links to blobs. Whatever they lead to, it is read like any other file:
    only if it is regular, and up to a limit.
    """
    cache = hub_cache()
    if cache is None or not is_model_name(name):
        return None
    snapshot = _snapshot(cache / (_MODELS + name.replace("/", "--")))
    if snapshot is None:
        return None
    for file in ("tokenizer.json", "tekken.json"):
        if _exists(snapshot / file):
            return snapshot / file
    pair = ("vocab.json", "merges.txt")
    return snapshot if all(_exists(snapshot / file) for file in pair) else None


def _exists(path: Path) -> bool:
    try:
        path.stat()
    except OSError:  # missing, a broken link, or a folder that may not be read
        return False
    return True


def _snapshot(repository: Path) -> Path | None:
    """Return the snapshot of the branch main; without a branch, the only one there is."""
    try:
        revision = read_regular(repository / "refs" / "main", _MAX_REF_BYTES).decode().strip()
    except (OSError, ValueError):
        found = entries(repository / "snapshots")
        return found[0] if len(found) == 1 else None
    return repository / "snapshots" / revision if _REVISION.fullmatch(revision) else None


def cached_models() -> Iterator[tuple[str, Path]]:
    """Yield the name of every cached model that has a vocabulary, and where that is."""
    cache = hub_cache()
    for folder in [] if cache is None else entries(cache):
        if folder.name.startswith(_MODELS):
            name = folder.name.removeprefix(_MODELS).replace("--", "/")
            path = find_model(name)
            if path is not None:
                yield name, path


def entries(folder: Path) -> list[Path]:
    """Return what is in a folder, sorted; nothing if there is no such folder."""
    try:
        return sorted(folder.iterdir())
    except OSError:  # missing or unreadable
        return []
