"""Shards with a header, as llm.c and modded-nanogpt read them: `fineweb_train_000001.bin`.

The header is 256 numbers of int32: a magic number, a version and the number of ids; the rest are 0.
GPT-2's uint16 and Llama 3's uint32 have their own magic numbers. All shards but the last of a split
have the same number of ids, so a document may go on in the next one. `X.bin.index`, which the
loaders' globs do not match, has the end of each document or part of one, as little-endian uint64.
"""

from __future__ import annotations

import math
import struct
from typing import Final

from byteweld.dataset._shard import ShardName
from byteweld.dataset.formats._raw import RawFormat
from byteweld.errors import UnsupportedError

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


def _header(dtype: str, shape: tuple[int, ...]) -> bytes:
    num_tokens = math.prod(shape)
    if num_tokens > _MAX_TOKENS:
        raise UnsupportedError(
            f"a shard has {num_tokens} tokens; llm.c's header holds at most {_MAX_TOKENS}; "
            "choose fewer tokens per shard"
        )
    return struct.pack("<3i", *_KINDS[dtype], num_tokens).ljust(_HEADER_BYTES, b"\0")


def _shown(header: bytes) -> str:
    numbers = ", ".join(map(str, struct.unpack_from("<3i", header)))
    return f"{numbers}, then {'other numbers' if any(header[12:]) else 'zeros'}"


LLMC: Final = RawFormat(
    name="llmc",
    summary="shards of 10^8 tokens with a header, as llm.c and modded-nanogpt read them",
    file_names=_file_names,
    eot="prepend",
    header_bytes=_HEADER_BYTES,
    header=_header,
    shown=_shown,
    shard_tokens=100_000_000,
    max_shard_tokens=_MAX_TOKENS,
    splits_documents=True,
    has_rows=False,
    has_prefix=True,
)
