"""Shards with a header, as llm.c and modded-nanogpt read them: `fineweb_train_000001.bin`.

The header is 256 numbers of int32: a magic number, a version and the number of ids; the rest are 0.
GPT-2's uint16 and Llama 3's uint32 have their own magic numbers. All shards but the last of a split
have the same number of ids, so a document may go on in the next one. `X.bin.index`, which the
loaders' globs do not match, has the end of each document or part of one, as little-endian uint64.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

from byteweld.dataset._manifest import Manifest, ShardEntry
from byteweld.dataset._shard import Shard, ShardName
from byteweld.dataset.formats._format import Documents, Format
from byteweld.dataset.formats._raw import (
    open_raw,
    publish,
    smallest,
    write_index,
)
from byteweld.errors import FormatError, UnsupportedError

_KINDS: Final = {"uint16": (20240520, 1), "uint32": (20240801, 7)}  # magic number and version
_HEADER_BYTES: Final = 256 * 4
_MAX_TOKENS: Final = 2**31 - 1
_PREFIX: Final = "fineweb"  # which both projects' own scripts expect


def _file_names(name: ShardName) -> tuple[str, ...]:
    prefix = _PREFIX if name.prefix is None else name.prefix
    # Their own scripts make shard 0 the validation split, so train starts with 1.
    is_train = name.split == "train"
    tokens = f"{prefix}_{'train' if is_train else 'val'}_{name.number + is_train:06d}.bin"
    return tokens, f"{tokens}.index"


def _header(dtype: str, num_tokens: int) -> bytes:
    magic, version = _KINDS[dtype]
    return struct.pack("<3i", magic, version, num_tokens).ljust(_HEADER_BYTES, b"\0")


def _write(shard: Shard, folder: Path) -> None:
    if shard.num_tokens > _MAX_TOKENS:
        raise UnsupportedError(
            f"a shard has {shard.num_tokens} tokens; llm.c's header holds at most {_MAX_TOKENS}; "
            "choose fewer tokens per shard"
        )
    tokens, index = _file_names(shard.name)
    write_index(shard, folder / index)
    publish(shard, folder / tokens, _header(shard.dtype, shard.num_tokens))


def _open(folder: Path, entry: ShardEntry, manifest: Manifest) -> Documents:
    documents = open_raw(folder, entry, manifest, header_bytes=_HEADER_BYTES)
    path = folder / entry.files[0].name
    with path.open("rb") as file:
        found = file.read(_HEADER_BYTES)
    if entry.tokens > _MAX_TOKENS or found != _header(manifest.dtype, entry.tokens):
        magic, version, tokens = struct.unpack_from("<3i", found)
        expected = (*_KINDS[manifest.dtype], entry.tokens)
        raise FormatError(
            f"the header begins with {magic}, {version}, {tokens}; expected "
            f"{', '.join(map(str, expected))}, then zeros",
            path=path,
        )
    return documents


LLMC: Final = Format(
    name="llmc",
    summary="shards of 10^8 tokens with a header, as llm.c and modded-nanogpt read them",
    eot="prepend",
    dtype=lambda n_vocab: smallest(n_vocab, "uint16", "uint32"),
    dtypes=("uint16", "uint32"),
    file_names=_file_names,
    write=_write,
    open=_open,
    has_prefix=True,
    header_bytes=_HEADER_BYTES,
    shard_tokens=100_000_000,
    max_shard_tokens=_MAX_TOKENS,
    splits_documents=True,
    has_rows=False,
)
