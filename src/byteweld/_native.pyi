"""The compiled engine. Private: the public API is `byteweld.Tokenizer` and the verbs.

`allowed` and `disallowed` are "all" or the special tokens themselves; None means no tokens.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, SupportsIndex, final

import numpy as np
from numpy.typing import NDArray

from byteweld.vocab import Behavior, Mark, NormalForm, VocabAlphabet, Vocabulary

__version__: str
__all__ = [
    "CountBuilder",
    "CountLoader",
    "Counts",
    "Documents",
    "Encoder",
    "MemoryLimit",
    "Table",
    "TokenizerJson",
    "__version__",
    "added_in_model",
    "canonical_pattern",
    "count_bytes",
    "crc32c",
    "decompress",
    "decompress_head",
    "file_digest",
    "is_compressed",
    "limit_tier",
    "recover_merges",
    "tiers",
    "train",
]

_Sums = tuple[int, int, int, int]

_Text = str | bytes | bytearray

_PretokenParts = tuple[list[int], int, int]
_Example = tuple[list[int], bool, bool, int]
_Step = tuple[list[tuple[int, int, int]], int, int, _Example, list[_PretokenParts]]
_Engine = Literal["whole", "scanner", "automaton", "backtracking"]

@final
class Documents:
    """Iterates over the documents of files."""

    def __new__(
        cls,
        arguments: dict[str, Any],
    ) -> Documents: ...
    def __iter__(self) -> Iterator[bytes]: ...
    def __next__(self) -> bytes: ...
    @property
    def bytes_read(self) -> int: ...
    @property
    def skipped(self) -> int: ...
    @property
    def position(self) -> tuple[int, int, int, int]: ...
    def start_at(self, position: tuple[int, int, int, int]) -> None: ...
    def take_skips(self) -> list[tuple[int, int | None, int | None, int | None, str]]: ...
    def take_finished(self) -> list[tuple[int, int, int | None, int, int]]: ...

@final
class MemoryLimit:
    """How much memory counts may use, in bytes, and the folder they spill to."""

    def __new__(
        cls,
        folder: str | os.PathLike[str],
        *,
        table_bytes: int,
        text_bytes: int,
        merge_bytes: int,
        keep_bytes: int,
        record_bytes: int,
        dictionary_bytes: int,
    ) -> MemoryLimit: ...
    def can_keep(self, distinct: int, distinct_bytes: int) -> bool: ...

@final
class Counts:
    """How often each pre-token occurs. Sums: (distinct, distinct bytes, total, total bytes)."""

    def __new__(cls, items: Sequence[tuple[bytes, int]]) -> Counts: ...
    def __len__(self) -> int: ...
    @property
    def is_spilled(self) -> bool: ...
    def sums(self) -> _Sums: ...
    def sums_by_part(self) -> list[_Sums]: ...
    def get(self, pretoken: bytes) -> int: ...
    def items(self) -> list[tuple[bytes, int]]: ...
    def most_common(self, n: int) -> list[tuple[bytes, int]]: ...
    def batch(
        self, part: int, position: int
    ) -> tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.uint64], int | None]: ...
    @staticmethod
    def merge(
        tables: Sequence[Counts], *, limit: MemoryLimit | None, num_threads: int | None
    ) -> Counts: ...
    def prune(
        self, threshold: int, *, limit: MemoryLimit | None
    ) -> tuple[Counts, tuple[int, int, int, int]]: ...

@final
class CountLoader:
    """Loads sorted batches, part by part, and checks each pre-token."""

    def __new__(cls, *, limit: MemoryLimit | None) -> CountLoader: ...
    def add(
        self, offsets: NDArray[np.int32], data: NDArray[np.uint8], counts: NDArray[np.uint64]
    ) -> tuple[int, str] | None: ...
    def end_part(self) -> _Sums: ...
    def finish(self) -> Counts: ...

@final
class CountBuilder:
    """Counts documents as they arrive."""

    def __new__(
        cls,
        *,
        pattern: str | None,
        boundaries: Sequence[str],
        alphabet: bytes | None,
        num_threads: int | None,
        limit: MemoryLimit | None,
    ) -> CountBuilder: ...
    def add_documents(self, documents: Sequence[_Text]) -> None: ...
    def add_files(
        self,
        arguments: dict[str, Any],
        *,
        progress: Callable[[int], object] | None,
    ) -> int: ...
    def has_cuts(self) -> bool: ...
    @property
    def context_bytes(self) -> int: ...
    def first_cut(self, text: bytes, start: int, is_end: bool) -> int | None: ...
    def finish(self) -> Counts: ...

@final
class Table:
    """Tokens by id and merges in rank order; readers return None for unusual files."""

    @staticmethod
    def of_ranks(data: bytes) -> Table | None: ...
    @staticmethod
    def restore(data: bytes) -> Table | None: ...
    def store(self) -> bytes: ...
    def __len__(self) -> int: ...
    def get(self, id: int) -> bytes | None: ...
    def tokens(self) -> dict[int, bytes]: ...
    def merges(self) -> list[tuple[int, int, int]]: ...
    @property
    def num_merges(self) -> int: ...
    def lines(self) -> bytes: ...
    def with_tokens(self, more: Sequence[tuple[int, bytes]]) -> Table | None: ...
    def with_merges_of_ranks(self) -> Table | None: ...
    def makes_every_token(self, without: Sequence[int]) -> bool: ...
    def made_among(self, ids: Sequence[int]) -> list[int]: ...
    def single_bytes(self, without: Sequence[int]) -> bytes: ...
    def has_repeats(self) -> bool: ...
    def has_sound_merges(self, without: Sequence[int]) -> bool: ...

_Pattern = tuple[str, str]  # what it is, or "", and its source if it has one
_Added = tuple[str, int, bool, bool, bool, bool, bool]  # as `byteweld.vocab.AddedToken`

@final
class TokenizerJson:
    """What a tokenizer.json says. Patterns are not checked."""

    @staticmethod
    def read(data: bytes) -> TokenizerJson: ...
    @property
    def table(self) -> Table | None: ...  # None if the ids are sparse
    def sparse(self) -> tuple[dict[int, bytes], list[tuple[int, int, int]]]: ...
    def id(self, text: str) -> int | None: ...  # in the model
    @property
    def added_tokens(self) -> list[_Added]: ...
    @property
    def steps(self) -> list[Mark | tuple[_Pattern, Behavior, bool]]: ...
    @property
    def normalizer(self) -> list[NormalForm | tuple[_Pattern, str]]: ...
    @property
    def template(self) -> tuple[list[int], list[int]]: ...
    @property
    def alphabet(self) -> VocabAlphabet: ...
    @property
    def unk_token(self) -> str | None: ...
    @property
    def ignore_merges(self) -> bool: ...

def added_in_model(
    token: _Added, is_ascii: bool, is_made: bool, ignore_merges: bool
) -> tuple[bytes, str | None]: ...

_Specials = Literal["all"] | Iterable[str] | None

@final
class Encoder:
    """The engine of a `byteweld.Vocabulary`, built on first use. Immutable; shared by threads."""

    def __new__(cls, vocab: Vocabulary, *, eager: bool) -> Encoder: ...
    def encode(self, text: _Text, allowed: _Specials, disallowed: _Specials) -> list[int]: ...
    def encode_to_numpy(
        self, text: _Text, allowed: _Specials, disallowed: _Specials
    ) -> NDArray[np.uint32]: ...
    def encode_batch(
        self,
        texts: Sequence[_Text],
        allowed: _Specials,
        disallowed: _Specials,
        num_threads: int | None,
    ) -> list[list[int]]: ...
    def encode_ragged(
        self,
        texts: Sequence[_Text],
        allowed: _Specials,
        disallowed: _Specials,
        num_threads: int | None,
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64]]: ...
    def encode_corpus(
        self,
        corpus: dict[str, object],
        arguments: dict[str, object],
        receive: Callable[..., object],
        progress: Callable[[], object] | None,
    ) -> tuple[
        list[tuple[int, int, int | None, int]],
        list[tuple[int, int | None, int | None, int | None, str]],
        int,
    ]: ...
    def encode_with_ends(
        self, text: _Text, allowed: _Specials, disallowed: _Specials
    ) -> tuple[list[int], list[int]]: ...
    def encode_spans(self, texts: Sequence[_Text], trusted: Sequence[bool]) -> list[int]: ...
    def encode_with_unstable(
        self, text: str, allowed: _Specials, disallowed: _Specials
    ) -> tuple[list[int], list[list[int]]]: ...
    def count(self, text: _Text, allowed: _Specials, disallowed: _Specials) -> int: ...
    def count_until(
        self, text: _Text, limit: int, allowed: _Specials, disallowed: _Specials
    ) -> tuple[int, int, bool]: ...
    def pretokenize(self, text: _Text) -> list[bytes]: ...
    def longest_match_agreement(
        self, texts: Sequence[_Text], allowed: _Specials, disallowed: _Specials
    ) -> tuple[int, int] | None: ...
    def certain_end(self, text: _Text, allowed: _Specials, disallowed: _Specials) -> int: ...
    def decode_bytes(self, ids: Sequence[int] | NDArray[np.uint32]) -> bytes: ...
    def decode(self, ids: Sequence[int] | NDArray[np.uint32], errors: str) -> str: ...
    def token_bytes(self, id: SupportsIndex) -> bytes: ...
    @property
    def engines(self) -> list[_Engine]: ...

def count_bytes(
    arguments: dict[str, Any],
    *,
    alphabet: bytes,
    progress: Callable[[int], object] | None,
) -> tuple[list[int], tuple[str, int | None, int] | None, int, int]: ...
def file_digest(
    path: str | os.PathLike[str], open_remote: Callable[[str, int, int | None], object]
) -> tuple[int, int]: ...
def is_compressed(head: bytes) -> bool: ...
def decompress(data: bytes, limit: int) -> bytes: ...
def decompress_head(data: bytes, size: int) -> bytes: ...
def crc32c(data: bytes) -> int: ...
def canonical_pattern(pattern: str) -> str | None: ...
def tiers() -> list[str]: ...
def limit_tier(name: str) -> None: ...
def recover_merges(
    tokens: Sequence[tuple[int, bytes]],
) -> list[tuple[int, int, int]] | None: ...
def train(
    counts: Counts,
    *,
    base_ids: Sequence[int | None],
    first_id: int,
    max_new_ids: int,
    reserved: Sequence[tuple[bytes, int]],
    forbidden: Sequence[bytes],
    known: Sequence[tuple[int, int, int]],
    tie_break: str,
    min_frequency: int,
    max_token_bytes: int | None,
    num_threads: int | None,
    steps: tuple[int, int, int] | None,
    progress: Callable[[list[tuple[int, int, int, int, int]]], object] | None,
) -> tuple[
    list[tuple[int, int, int, int, int]],
    Literal["size", "no pairs", "min frequency"],
    int,
    float,
    tuple[list[_PretokenParts], list[_Step]],
]: ...
