"""Peers: the real tiktoken and tokenizers with a given vocabulary, to compare byteweld with.

A peer that supports the format of a tokenizer's file reads that file. For any other format,
byteweld writes a copy that the peer can read.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from itertools import accumulate, chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from byteweld import formats
from byteweld.errors import UnsupportedError
from byteweld.formats._json import read_file
from byteweld.formats._limits import NotHeldError, check_pattern
from byteweld.formats.vocab_merges import find_files
from byteweld.proof import is_failure
from byteweld.vocab import Vocabulary

if TYPE_CHECKING:
    from byteweld.proof import Encoded

Run = Callable[[list[str], bool], Sequence[Sequence[int]]]
PeerName = Literal["tiktoken", "tokenizers"]
PEERS: Final[tuple[PeerName, ...]] = ("tiktoken", "tokenizers")

# Which peer reads which format itself; for other formats, `tokenizers` gets a copy.
_READERS: Final[Mapping[str, PeerName]] = {
    "huggingface": "tokenizers",
    "gpt2": "tokenizers",
    "tiktoken": "tiktoken",
    "tekken": "tiktoken",
}
_COPIES: Final[Mapping[PeerName, str]] = {
    "tiktoken": "ranks.tiktoken",
    "tokenizers": "tokenizer.json",
}
_WHOLE_TEXT: Final = r"(?s:.+)"  # tiktoken requires a pattern


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer with a vocabulary. It encodes only str, so input that is not UTF-8 is an error.

    Both peers release the GIL while they encode, so several threads may call `encode`.
    """

    library: PeerName
    version: str
    copied: bool  # whether it reads a copy instead of the file itself
    specials: bool  # whether special tokens in text become their ids
    run: Run

    @property
    def name(self) -> str:
        """Name and version."""
        return f"{self.library} {self.version}"

    def encode(self, texts: Sequence[bytes]) -> tuple[Encoded, float]:
        """Return the ids of the documents, and the seconds that the peer itself took."""
        import numpy as np

        decoded = [_text(text) for text in texts]
        started = time.perf_counter()
        lists = self.run(decoded, self.specials)
        seconds = time.perf_counter() - started
        ends = list(accumulate(map(len, lists), initial=0))
        ids = np.fromiter(chain.from_iterable(lists), np.uint32, ends[-1])
        return (ids, np.array(ends, np.int64)), seconds


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8, and it encodes only text") from None


def open_peer(
    path: str | os.PathLike[str] | None,
    format: str | None,
    vocab: Vocabulary,
    *,
    library: PeerName | None = None,
    pattern: str | None = None,
    specials: bool = False,
    num_threads: int | None = None,
) -> Peer:
    """Give a peer the vocabulary that byteweld read as `vocab` from a file of `format`.

    A vocabulary without a file has neither path nor format. By default, the peer is the one that
    reads the format. What a rank file lacks comes from `vocab`, unless tiktoken is passed a
    `pattern`. With `specials`, special tokens in text become their ids. `num_threads` are those of
    the pool of `tokenizers`; `tiktoken` has none: each call runs on the caller's thread.
    """
    try:
        check_pattern(vocab.pattern)
    except NotHeldError as obstacle:
        raise UnsupportedError(
            f"the real tiktoken and tokenizers cannot run this vocabulary: {obstacle}. A "
            "file that has no pattern of its own, such as ck's export, can be loaded with another "
            "one, such as pattern='gpt2', to compare that"
        ) from None
    reader = None if format is None else _READERS.get(format)
    chosen = library or reader or "tokenizers"
    module, version = _import(chosen), metadata.version(chosen)
    copied = path is None or reader != chosen
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / _COPIES[chosen]
        if copied or format == "gpt2":
            formats.save(vocab, copy)
        file = copy if path is None or copied else Path(path)
        format = formats.recognize(copy) if copied else format
        try:
            if chosen == "tiktoken":
                encoding = _open_tiktoken(module, file, format, vocab, pattern)
                run = _run_tiktoken(encoding)
            else:
                # GPT-2's two files have only the model; the copy has the pipeline.
                tokenizer = module.Tokenizer.from_file(str(copy if format == "gpt2" else file))
                if format == "gpt2":
                    pair = find_files(file) or ()  # byteweld has just read them
                    tokenizer.model = module.models.BPE.from_file(*map(str, pair))
                run = _run_tokenizers(tokenizer, specials, num_threads)
        except BaseException as error:
            if not is_failure(error):
                raise
            raise UnsupportedError(
                f"{path or 'a copy'}: {chosen} {version} cannot read this file: {error}"
            ) from error
    return Peer(chosen, version, copied, specials, run)


def _import(library: PeerName) -> Any:
    try:
        return importlib.import_module(library)
    except ImportError as error:
        raise ImportError(
            f"the real {library} is not installed; "
            f"install it with: pip install 'byteweld[prove]' (or: pip install {library})"
        ) from error


# ---------------------------------------------------------------------- tiktoken


def _open_tiktoken(
    module: Any, path: Path, format: str | None, vocab: Vocabulary, pattern: str | None
) -> Any:
    ranks, own_pattern = _read_ranks(path, format)
    return module.Encoding(
        path.stem,
        pat_str=pattern or own_pattern or vocab.pattern or _WHOLE_TEXT,
        mergeable_ranks=ranks,
        special_tokens=dict(vocab.special_tokens),
    )


def _read_ranks(path: Path, format: str | None) -> tuple[dict[bytes, int], str | None]:
    """Return the ranks of a file, read by the peer's own code if possible, and its pattern."""
    if format != "tekken":
        with _uncached():
            return importlib.import_module("tiktoken.load").load_tiktoken_bpe(str(path)), None
    # As in mistral-common: special tokens have the first ids, and not all entries are used.
    content = json.loads(read_file(path))
    config = content["config"]
    first = int(config["default_num_special_tokens"])
    used = content["vocab"][: int(config["default_vocab_size"]) - first]
    ranks = {base64.b64decode(entry["token_bytes"]): entry["rank"] + first for entry in used}
    return ranks, config["pattern"]


@contextlib.contextmanager
def _uncached() -> Iterator[None]:
    """Make tiktoken read the file itself, not a copy in its cache."""
    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = ""
    try:
        yield
    finally:
        if before is None:
            del os.environ["TIKTOKEN_CACHE_DIR"]
        else:
            os.environ["TIKTOKEN_CACHE_DIR"] = before


def _run_tiktoken(encoding: Any) -> Run:
    def run(texts: list[str], specials: bool) -> Sequence[Sequence[int]]:
        if specials:
            return [encoding.encode(text, allowed_special="all") for text in texts]
        return [encoding.encode_ordinary(text) for text in texts]

    return run


# ---------------------------------------------------------------------- tokenizers


def _run_tokenizers(tokenizer: Any, specials: bool, num_threads: int | None) -> Run:
    if num_threads is not None:
        # Its thread pool reads this once, when the first batch starts it.
        os.environ["RAYON_NUM_THREADS"] = str(num_threads)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = not specials  # now: it cannot be set while a thread encodes

    def run(texts: list[str], specials: bool) -> Sequence[Sequence[int]]:
        encoded = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [encoding.ids for encoding in encoded]

    return run
