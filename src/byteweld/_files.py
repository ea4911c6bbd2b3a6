"""Atomic writes: a file appears whole or not at all, and never over another unless told."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_atomic(path: str | os.PathLike[str], data: bytes, *, overwrite: bool = False) -> None:
    """Write `data` to `path` through a temporary file in the same folder, fsync and rename.

    Raises FileExistsError when `path` exists and `overwrite` is False; then nothing is touched.
    """
    target = Path(path)
    if not overwrite and (target.exists() or target.is_symlink()):
        raise FileExistsError(f"{target} exists; pass overwrite=True (--force) to replace it")
    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # mkstemp makes private files
        if overwrite:
            os.replace(temporary, target)
        else:
            os.link(temporary, target)  # fails if somebody made the target meanwhile
            os.unlink(temporary)
    except FileExistsError:
        os.unlink(temporary)
        raise FileExistsError(
            f"{target} exists; pass overwrite=True (--force) to replace it"
        ) from None
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
