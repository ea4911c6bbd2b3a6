"""nanochat's tokenizer folder: `tokenizer.pkl`, a pickled `tiktoken.Encoding`; written, never read.

Reading a pickle runs whatever code is in it. `token_bytes.pt`, the number of bytes of each token,
is written, too, if torch is installed; nanochat needs it to evaluate bits per byte.
"""

from __future__ import annotations

import importlib.util
import io
import pickle
from pathlib import Path
from typing import Any, Final, NoReturn

from byteweld.errors import UnsupportedError
from byteweld.formats._limits import NotHeldError, check_pattern
from byteweld.formats._ranks import check_ranks
from byteweld.vocab import Vocabulary

_PICKLE: Final = "tokenizer.pkl"
_BYTES: Final = "token_bytes.pt"
_BOS: Final = "<|bos|>"
_NAME: Final = "byteweld"
_PROTOCOL: Final = 4  # fixed, so that every Python writes the same bytes
_WHOLE_TEXT: Final = r"(?s:.+)"  # tiktoken requires a pattern


def recognize(path: Path, head: bytes) -> bool:
    """Whether a path is such a folder, or starts as a pickle does."""
    if path.is_dir():
        return (path / _PICKLE).is_file()
    return head[:1] == pickle.PROTO and head[1:2] in (b"\2", b"\3", b"\4", b"\5")


def load(path: Path) -> NoReturn:
    """Raise the error that says why this is not read, and what to do."""
    path.stat()  # a missing file stays a missing file
    raise UnsupportedError(
        f"{path} holds a pickle, and reading a pickle runs whatever code is in it, so byteweld "
        "never does; load the file that it was made from. If you trust it, unpickle it yourself "
        "and pass its parts: byteweld.Tokenizer.from_ranks(enc._mergeable_ranks, "
        "pattern=enc._pat_str, special_tokens=enc._special_tokens)"
    )


def check(vocab: Vocabulary) -> None:
    """Raise NotHeldError for a vocabulary that nanochat cannot use, ImportError if need be."""
    check_ranks(vocab)
    check_pattern(vocab.pattern)
    if _BOS not in vocab.special_tokens:
        raise NotHeldError(
            f"it has no special token {_BOS!r}, with which nanochat starts every document"
        )
    _tiktoken()


def files(vocab: Vocabulary, path: Path) -> list[Path]:
    """Return the files that `save` writes, the main file first."""
    return [path / _PICKLE, path / _BYTES] if _has_torch() else [path / _PICKLE]


def render(vocab: Vocabulary, path: Path) -> dict[Path, bytes]:
    """Return tokenizer.pkl and, if torch is installed, token_bytes.pt, to write into a folder."""
    contents = {path / _BYTES: _token_bytes(vocab)} if _has_torch() else {}
    return contents | {path / _PICKLE: _pickled(vocab)}


def _pickled(vocab: Vocabulary) -> bytes:
    try:
        encoding = _tiktoken().Encoding(
            _NAME,
            pat_str=vocab.pattern or _WHOLE_TEXT,
            mergeable_ranks={token: rank for rank, token in vocab.ordinary()},
            special_tokens=dict(vocab.special_tokens),
        )
    except ValueError as error:
        raise UnsupportedError(f"tiktoken cannot run this vocabulary: {error}") from error
    return pickle.dumps(encoding, protocol=_PROTOCOL)


def _tiktoken() -> Any:
    try:
        import tiktoken
    except ImportError as error:
        raise ImportError(
            "nanochat's tokenizer.pkl is made with tiktoken, which is not installed; install it "
            "with: pip install 'byteweld[prove]' (or: pip install tiktoken)"
        ) from error
    return tiktoken


def _has_torch() -> bool:
    return importlib.util.find_spec("torch") is not None


def _token_bytes(vocab: Vocabulary) -> bytes:
    """Return the bytes of each token as nanochat counts them: decoded, special tokens as none."""
    import torch  # type: ignore[import-not-found, unused-ignore]

    counts = [0] * (max(vocab.tokens) + 1)
    for token_id, token in vocab.ordinary():
        text = token.decode("utf-8", "replace")
        counts[token_id] = 0 if text in vocab.special_tokens else len(text.encode())
    file = io.BytesIO()
    torch.save(torch.tensor(counts, dtype=torch.int32), file)
    return file.getvalue()
