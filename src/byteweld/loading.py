"""load(): a tokenizer by name or from a file, and the cache of compiled vocabularies.

A compiled vocabulary is stored in the engine's own form. Its file is named by a hash of everything
it was made from (the bytes of the file and of those next to it, the options, the version) and holds
the SHA-256 of that name and its content; the vocabulary in it is checked like any other. A file
that is damaged, made for another vocabulary, or owned by another user is ignored and replaced.

The folder must belong to the user and not be writable by others, who could otherwise forge a
vocabulary. Whoever has the user's own rights still can: nothing here is secret. Such a file can
give wrong ids, as a changed vocabulary file could, but never a crash.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import Any, Final

from byteweld import _native, formats
from byteweld._atomic import remove_stale, user
from byteweld._files import open_regular, read_descriptor, read_regular
from byteweld._saves import complete, write_atomic
from byteweld.errors import ByteweldError
from byteweld.formats._beside import plain_path
from byteweld.formats._json import MAX_BESIDE_BYTES, MAX_FILE_BYTES
from byteweld.tokenizer import Tokenizer
from byteweld.vocab import TRAITS, Vocabulary

SUFFIX: Final = ".byteweld"
MAX_CACHED: Final = 32  # files; the oldest are deleted
_MAGIC: Final = b"byteweld compiled 3\n"
_DIGEST_BYTES: Final = 32
_MAX_NAME_BYTES: Final = 255


def load(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    cache: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Tokenizer:
    """Load a tokenizer from a file or folder, or by the name of an encoding.

    The format is recognized by content; gzip, zstd and xz are decompressed. A training report next
    to the file is available as `tok.training`, unless it belongs to another vocabulary.

    Args:
        path: the file or folder. If there is no such file, it may be any name that `get_encoding`
            takes, such as "cl100k_base", or that of a model in Hugging Face's cache, such as
            "openai-community/gpt2". Nothing is downloaded; see `fetch`.
        format: one of `byteweld.FORMATS`. Default: what `recognize` finds.
        cache: a folder that keeps compiled vocabularies, so that the next load of the same bytes
            with the same options is faster. It is created if missing, and holds at most 32 files of
            a few megabytes each. Only formats of one file are cached: rank files and
            tokenizer.json. A folder that is not yours, or that others can write to, is a
            PermissionError.
        **options: the format's own, such as `pattern` and `special_tokens` for a rank file; the
            rank files of well-known encodings need none.

    Raises:
        FormatError: if the file is damaged or its format is unknown.
        UnsupportedError: if it is a tokenizer that byteweld cannot run, such as one that is not
            byte-level.

    Examples:
        >>> import tempfile
        >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=265)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tok.save(f"{folder}/tokenizer.json")
        ...     loaded = byteweld.load(f"{folder}/tokenizer.json")
        >>> loaded.name, loaded.encode("hello world"), loaded == tok
        ('tokenizer', [263, 264], True)
    """
    if not os.fspath(path):
        raise FileNotFoundError("'': no such file; the name is empty")
    file = Path(path)
    if len(os.fsencode(file.name)) > _MAX_NAME_BYTES:
        raise FileNotFoundError(f"{file.name[:40]}...: no such file; the name is too long for one")
    complete(file)
    name = None
    if not file.exists():
        found = _find_by_name(os.fspath(path), file, format, options)
        if isinstance(found, Tokenizer):
            return found
        if found is not None:
            file, name = found, os.fspath(path)
    if cache is not None:
        _check_private(Path(cache))
    cached = None if cache is None else _cache_path(file, Path(cache), format, options)
    plain = plain_path(file).absolute()
    name = name or plain.stem
    vocab = None if cached is None else _read(cached)
    if vocab is not None:
        return Tokenizer._of(vocab, name, path=plain, is_tried=True)
    vocab = formats.load(file, format=format, **options)
    tok = Tokenizer._of(vocab, name, path=plain)
    # Cache nothing if the file changed while it was read.
    if cached is not None and cached == _cache_path(file, cached.parent, format, options):
        with contextlib.suppress(OSError):  # the cache is optional
            _write(vocab, cached)
    return tok


def _find_by_name(
    name: str, file: Path, format: str | None, options: dict[str, Any]
) -> Tokenizer | Path | None:
    """Return the encoding with the name of a missing file, or the file of a cached model.

    None if the name must be that of a file.
    """
    from byteweld import encodings
    from byteweld._places import find_model, hub_cache, is_model_name

    is_plain = file.name == name
    if is_plain and encodings.has_encoding(name):
        if format is not None or options:
            given = ", ".join([*(["format"] if format is not None else []), *options])
            raise TypeError(
                f"{name!r} is the name of an encoding, which takes no options; drop {given}"
            )
        return encodings.get_encoding(name)
    model = find_model(name)
    if model is not None:
        return model
    if is_plain and not file.suffix:
        hint = encodings.how_to_get(name) or "; `byteweld list` shows the names that can be loaded"
        raise FileNotFoundError(f"{name}: no such file, and no encoding of that name{hint}")
    # A path to a file would have a folder that exists.
    if is_model_name(name) and not is_plain and not file.parent.exists():
        raise FileNotFoundError(
            f"{name}: no such file, and no tokenizer of that model in Hugging Face's cache "
            f"({hub_cache()}); `hf download {name} tokenizer.json` puts it there"
        )
    return None


def _cache_path(
    path: Path, folder: Path, format: str | None, options: dict[str, Any]
) -> Path | None:
    """Return where the compiled form of a file is cached, or None if it cannot be."""
    import hashlib  # slow to import, and only the cache needs these two
    import json

    try:
        # The order of special tokens matters: an id that several share decodes to the first.
        request = json.dumps([_native.__version__, format, options])
        data = read_regular(path, MAX_FILE_BYTES)
        beside = [
            read_regular(file, MAX_BESIDE_BYTES) if file.exists() else None
            for file in formats.files_beside(path)
        ]
    except (OSError, TypeError, ValueError):
        return None  # loading raises a clear error
    digest = hashlib.sha256(_MAGIC)
    for part in (request.encode(), *beside, data):
        digest.update(b"none\n" if part is None else b"%d\n" % len(part))
        digest.update(part or b"")
    return folder / f"{digest.hexdigest()}{SUFFIX}"


def _write(vocab: Vocabulary, cached: Path) -> None:
    table = vocab._table
    if table is None:
        return
    import json

    head = vocab.traits() | {"makes_every_token": vocab._makes_every_token}
    payload = json.dumps(head).encode() + b"\n" + table.store()
    cached.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomic(cached, _sign(cached, payload) + payload, overwrite=True)
    remove_stale(cached.parent)
    _drop_oldest(cached.parent)


def _sign(cached: Path, payload: bytes | memoryview) -> bytes:
    """Return the first bytes of a compiled file: they depend on its name and content."""
    import hashlib

    digest = hashlib.sha256(cached.stem.encode())
    digest.update(payload)
    return _MAGIC + digest.digest()


def _check_private(folder: Path) -> None:
    """Raise if others could put a file into the folder of the cache."""
    try:
        status = folder.stat()
    except OSError:  # created when it is needed, or cannot be
        return
    if not stat.S_ISDIR(status.st_mode) or not hasattr(os, "geteuid"):
        return
    if status.st_uid != user():
        raise PermissionError(
            f"{folder} belongs to user {status.st_uid}, who could forge a vocabulary in it; "
            "pass a cache folder of your own, or None"
        )
    if status.st_mode & 0o022:
        raise PermissionError(
            f"{folder} has the mode {stat.S_IMODE(status.st_mode):04o}, so others could forge a "
            "vocabulary in it; make it private with chmod 700, or pass another cache folder"
        )


def _drop_oldest(folder: Path) -> None:
    files = [(file.stat().st_mtime_ns, file) for file in folder.glob(f"*{SUFFIX}")]
    for _, file in sorted(files, reverse=True)[MAX_CACHED:]:
        file.unlink(missing_ok=True)


def _read(cached: Path) -> Vocabulary | None:
    """Return a compiled vocabulary; None if the file is missing or damaged."""
    try:
        descriptor = open_regular(cached)
        try:
            status = os.fstat(descriptor)
            if status.st_size > MAX_FILE_BYTES or status.st_uid != user():
                return None
            data = read_descriptor(descriptor, status.st_size, MAX_FILE_BYTES)
        finally:
            os.close(descriptor)
    except (OSError, ByteweldError):
        return None
    start = len(_MAGIC) + _DIGEST_BYTES
    if data[:start] != _sign(cached, memoryview(data)[start:]):
        return None
    import json

    try:
        end = data.index(b"\n", start)
        return _rebuild(json.loads(data[start:end]), data[end + 1 :])
    except (ByteweldError, ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
        return None


def _rebuild(head: Any, stored: bytes) -> Vocabulary | None:
    table = _native.Table.restore(stored)
    names = {*TRAITS, "makes_every_token"}
    if table is None or not isinstance(head, dict) or head.keys() != names:
        return None
    if not all(type(head[name]) is bool for name in ("makes_every_token", "ignore_merges")):
        return None
    return Vocabulary._of_table(table, **head)
