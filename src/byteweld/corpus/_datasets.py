"""Hugging Face datasets on disk, as `Dataset.save_to_disk` writes them: a folder of Arrow files.

`state.json` lists the files in order. A folder with `dataset_dict.json` has a dataset per split.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from byteweld.errors import CorpusError

STATE = "state.json"
INFO = "dataset_info.json"
DICT = "dataset_dict.json"
DATASET_MARKS = frozenset({STATE, DICT})
MAX_BYTES = 64 << 20


def dataset_files(
    folder: str, listed: Iterable[str], read: Callable[[str], bytes]
) -> list[str] | None:
    """Return the names of a dataset's files; None if the folder, with these names, is not one."""
    names = frozenset(listed)
    if DICT in names:
        splits = _parse(folder, DICT, read(DICT)).get("splits")
        known = ", ".join(map(repr, splits)) if isinstance(splits, list) else "unknown"
        raise CorpusError(
            f"the folder is a dataset with the splits {known}; name the folder of one of them",
            path=folder,
        )
    if STATE not in names or INFO not in names:
        return None
    files = _parse(folder, STATE, read(STATE)).get("_data_files")
    if not isinstance(files, list):
        raise CorpusError(f"{STATE} has no list of files, _data_files", path=folder)
    found: list[str] = []
    for file in files:
        name = file.get("filename") if isinstance(file, dict) else None
        shown = repr(name)[:100]
        if not isinstance(name, str) or "/" in name or "\\" in name or not name.endswith(".arrow"):
            raise CorpusError(
                f"{STATE} names the file {shown}; expected the name of an .arrow file", path=folder
            )
        if name not in names:
            raise CorpusError(f"{STATE} names the file {shown}, which is missing", path=folder)
        found.append(name)
    return found


def _parse(folder: str, name: str, data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"{name} is not JSON: {error}", path=folder) from None
    if not isinstance(value, dict):
        raise CorpusError(f"{name} is not a JSON object", path=folder)
    return value
