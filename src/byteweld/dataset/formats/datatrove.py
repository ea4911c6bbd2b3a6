"""Files of ids as datatrove writes and reads them: `.ds`, `.ds.index` and `.ds.metadata`.

The index has the end of each document, in ids, as little-endian uint64. The metadata has three
lines: the tokenizer and the bytes of an id, the number of ids, and that number for people.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from byteweld.dataset._manifest import Manifest
from byteweld.dataset._shard import Shard, ShardName
from byteweld.dataset.formats._format import Format
from byteweld.dataset.formats._raw import (
    open_raw,
    publish,
    smallest,
    split_folder,
    write_index,
)

_PREFIXES: Final = "kMGTPE"


def _file_names(name: ShardName) -> tuple[str, ...]:
    prefix = "" if name.prefix is None else f"{name.prefix}_"
    # Datatrove numbers the parts of shuffled files too; we write as its first process.
    end = (
        f"00000_{name.number:05d}_shuffled" if name.is_shuffled else f"{name.number:05d}_unshuffled"
    )
    tokens = f"{split_folder(name)}{prefix}{end}.ds"
    return tokens, f"{tokens}.index"


def _write(shard: Shard, folder: Path) -> None:
    tokens, index = (folder / name for name in _file_names(shard.name))
    tokens.parent.mkdir(exist_ok=True)
    write_index(shard, index)
    publish(shard, tokens)


def _finish(folder: Path, manifest: Manifest, scratch: Path) -> Sequence[str]:
    """Write the metadata of each shard; only now is the tokenizer known."""
    import numpy as np

    tokenizer = f"byteweld:{manifest.tokenizer['fingerprint']}"
    names = []
    for shard in manifest.shards:
        name = f"{shard.files[0].name}.metadata"
        lines = (
            f"{tokenizer}|{np.dtype(manifest.dtype).itemsize}",
            str(shard.tokens),
            _for_people(shard.tokens),
        )
        (scratch / name).parent.mkdir(exist_ok=True)
        (scratch / name).write_text("\n".join(lines), encoding="utf-8", newline="")
        names.append(name)
    return names


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


DATATROVE: Final = Format(
    name="datatrove",
    summary="ids in .ds files with .ds.index and .ds.metadata, as datatrove reads them",
    eot="append",
    dtype=lambda n_vocab: smallest(n_vocab, "uint16", "uint32"),
    dtypes=("uint16", "uint32"),
    file_names=_file_names,
    write=_write,
    open=open_raw,
    has_prefix=True,
    finish=_finish,
)
