"""What the types of a manifest's fields do not say."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, get_args

from byteweld._typed import (
    MAX_COUNT,
    WrongError,
    choice,
    member,
    read_count,
    read_dict,
    read_sha256,
    read_text,
    within,
)
from byteweld.dataset._shard import Split

if TYPE_CHECKING:
    from byteweld.dataset._manifest import FileEntry, Manifest, ShardEntry

DTYPES: Final = ("uint8", "uint16", "uint32", "uint64", "int32", "int64")
_MAX_VOCAB: Final = 1 << 32
_SPLITS: Final[tuple[Split, ...]] = get_args(Split)


def check_manifest(manifest: Manifest) -> None:
    """Check what the types of a manifest's fields do not say."""
    within(".dtype", choice(DTYPES), manifest.dtype)
    within(".tokenizer", _check_tokenizer, manifest.tokenizer)
    pack = manifest.options.get("pack")
    if pack is not None and within(".options.pack", read_count, pack) == 0:
        raise WrongError("expected at least 1, found 0", ".options.pack")
    within(".splits", _check_splits, manifest.splits)
    _check_shards(manifest)
    _check_files(manifest.all_files)


def _check_tokenizer(value: Mapping[str, Any]) -> None:
    member(value, "fingerprint", read_sha256)
    n_vocab = member(value, "n_vocab", read_count)
    if not 1 <= n_vocab <= _MAX_VOCAB:
        raise WrongError(f"expected 1 to 2^32, found {n_vocab}", ".n_vocab")

    def check_token(value: object) -> None:
        token = read_dict(value)
        member(token, "text", read_text)
        if member(token, "id", read_count) >= n_vocab:
            raise WrongError(f"expected an id below {n_vocab}, found {token['id']}", ".id")

    for role in ("eot", "bos"):
        if value.get(role) is not None:
            within(f".{role}", check_token, value[role])


def _check_splits(splits: Mapping[str, Mapping[str, int]]) -> None:
    for name, totals in splits.items():
        choice(_SPLITS)(name)
        for key in ("documents", "tokens"):
            if key not in totals:
                raise WrongError(f"the key {key!r} is missing", f".{name}")


def _check_shards(manifest: Manifest) -> None:
    """Shards are numbered from 0 in each split, those of train first."""
    for name in ("documents", "tokens"):
        total = sum(getattr(shard, name) for shard in manifest.shards)
        if total > MAX_COUNT:
            raise WrongError(f"expected at most 2^63 - 1 {name} in all, found {total}", ".shards")
    previous: ShardEntry | None = None
    for at, shard in enumerate(manifest.shards):
        place = f".shards[{at}]"
        before = None if previous is None or previous.split != shard.split else previous
        if previous is not None and before is None:
            if shard.split == "train":
                raise WrongError("a shard of train after one of validation", place)
            _check_end(previous, at - 1)
        expected = 0 if before is None else before.number + 1
        if shard.number != expected:
            raise WrongError(f"expected number {expected}, found {shard.number}", place)
        has_piece = shard.continues or (before is not None and before.continues)
        if has_piece and shard.documents == 0:
            raise WrongError("it has no document that could continue", place)
        if not shard.files:
            raise WrongError("expected at least one file", place)
        previous = shard
    if previous is not None and manifest.is_complete:
        _check_end(previous, len(manifest.shards) - 1)


def _check_end(last: ShardEntry, at: int) -> None:
    if last.continues:
        raise WrongError(
            "its last document continues in a shard that does not exist", f".shards[{at}]"
        )


def is_plain_path(name: str) -> bool:
    """Whether a name is that of a file inside the folder, on every system."""
    return "\0" not in name and "\\" not in name and not {"", ".", ".."} & {*name.split("/")}


def _check_files(files: Iterable[FileEntry]) -> None:
    """Names are plain relative paths, each used once; hashes are hashes."""
    seen = set()
    for file in files:
        shown = f"the file {reprlib.repr(file.name)}"
        if not is_plain_path(file.name):
            raise WrongError(f"{shown} is not a plain path inside the folder")
        if file.name in seen:
            raise WrongError(f"{shown} is listed twice")
        seen.add(file.name)
        within(f"{shown}: sha256", read_sha256, file.sha256)
