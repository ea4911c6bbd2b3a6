"""Files of ids as datatrove writes and reads them: `.ds`, `.ds.index` and `.ds.metadata`.

The index has the end of each document, in ids, as little-endian uint64. The metadata has three
lines: the tokenizer and the bytes of an id, the number of ids, and that number for people.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from byteweld.dataset._manifest import Manifest
from byteweld.dataset._shard import ShardName
from byteweld.dataset.formats._raw import RawFormat
from byteweld.dataset.formats._splits import split_folder, write_texts

_PREFIXES: Final = "kMGTPE"


def _file_names(name: ShardName) -> tuple[str, ...]:
    prefix = "" if name.prefix is None else f"{name.prefix}_"
    # Datatrove numbers the parts of shuffled files too; we write as its first process.
    end = (
        f"00000_{name.number:05d}_shuffled" if name.is_shuffled else f"{name.number:05d}_unshuffled"
    )
    tokens = f"{split_folder(name)}{prefix}{end}.ds"
    return tokens, f"{tokens}.index"


def _finish(folder: Path, manifest: Manifest, scratch: Path) -> list[str]:
    """Write the metadata of each shard; only now is the tokenizer known."""
    import numpy as np

    size = np.dtype(manifest.dtype).itemsize
    first = f"byteweld:{manifest.tokenizer['fingerprint']}|{size}"
    return write_texts(
        scratch,
        {
            f"{shard.files[0].name}.metadata": "\n".join(
                [first, str(shard.tokens), _for_people(shard.tokens)]
            )
            for shard in manifest.shards
        },
    )


def _for_people(tokens: int) -> str:
    """Return a number of tokens as datatrove writes it, with three digits.

    >>> _for_people(7), _for_people(1_234), _for_people(56_789_000)
    ('7.00 T', '1.23 kT', '56.8 MT')
    """
    exponent = len(str(tokens)) - 1
    value = tokens / 1000 ** (exponent // 3)
    if round(value, 2 - exponent % 3) >= 10 ** (exponent % 3 + 1):  # 999,999 is 1.00 million
        exponent += 1
        value = tokens / 1000 ** (exponent // 3)
    prefix = _PREFIXES[exponent // 3 - 1] if exponent >= 3 else ""
    return f"{value:.{2 - exponent % 3}f} {prefix}T"


DATATROVE: Final = RawFormat(
    name="datatrove",
    summary="ids in .ds files with .ds.index and .ds.metadata, as datatrove reads them",
    file_names=_file_names,
    has_prefix=True,
    finish=_finish,
)
