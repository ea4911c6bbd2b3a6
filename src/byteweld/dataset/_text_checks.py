"""Checks of the text of a dataset: decoded and encoded again, and compared with the corpus."""

from __future__ import annotations

import dataclasses
import hashlib
import random
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from byteweld._text import batches
from byteweld.corpus import Corpus
from byteweld.dataset._id_checks import Added
from byteweld.dataset._manifest import Manifest, SourceEntry
from byteweld.dataset._order import is_validation
from byteweld.dataset._problems import Problems
from byteweld.dataset._shard import Split
from byteweld.dataset.reading import Dataset
from byteweld.errors import ByteweldError, UnknownIdError
from byteweld.tokenizer import Tokenizer

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SEED: Final = 0
_BATCH_TOKENS: Final = 1 << 20
_BATCH_BYTES: Final = 4 << 20
_MAX_TOKENS: Final = 1 << 27  # of a document that is decoded; its text must be in memory
_SHOWN_BYTES: Final = 40
_HASH_BYTES: Final = 16


@dataclass
class Found:
    """How much was checked."""

    encoded: int = 0
    compared: int = 0
    sources: int = 0


class _Document(NamedTuple):
    split: Split
    number: int
    ids: NDArray[Any]


class _SourceDocument(NamedTuple):
    split: Split
    file: str
    number: int
    text: bytes


_UNKNOWN: Final = SourceEntry(name="", size=None, xxh3_128=None, documents=0)


class TextCheck:
    """Checks documents with the tokenizer that made them; without one, only files of the corpus."""

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        tokenizer: Tokenizer | None,
        sample: int | Literal["all"],
        problems: Problems,
        progress: Callable[[int], object],
    ) -> None:
        self._progress = progress
        self._done = 0  # bytes of ids and of the corpus, as `work_bytes` counts them
        self._manifest = manifest
        self._tokenizer = tokenizer
        self._sample = sample
        self._problems = problems
        self._added = Added.of(manifest)
        self._is_packed = manifest.options.get("pack") is not None
        splits: list[Any] = list(manifest.splits)
        self._datasets = {split: Dataset(folder, manifest, split) for split in splits}
        self._found = Found()

    def run(self, corpus: Corpus | None) -> Found:
        """Check what can be checked."""
        if self._tokenizer is not None:
            self._encode_again(self._tokenizer)
        if corpus is not None:
            self._compare(corpus)
        return self._found

    def _note(self, note: str) -> None:
        if note not in self._problems.notes:
            self._problems.notes.append(note)

    # ------------------------------------------------------------------ encoded again

    def _encode_again(self, tok: Tokenizer) -> None:
        if self._is_packed:
            self._note("packed rows are parts of documents, so they were not encoded again")
            return
        if not is_lossless(tok):
            self._note("the tokenizer rewrites text, so documents were not encoded again")
            return
        special = _special_arguments(self._manifest)
        for documents in batches(self._sampled(), _BATCH_TOKENS, lambda found: len(found.ids)):
            texts = [self._text(tok, document) for document in documents]
            known = [pair for pair in zip(documents, texts, strict=True) if pair[1] is not None]
            ids, ends = tok.encode_ragged(
                [text for _, text in known if text is not None], **special
            )
            if self._sample == "all":
                self._done += sum(document.ids.nbytes for document in documents)
                self._progress(self._done)
            for at, (document, _) in enumerate(known):
                self._found.encoded += 1
                again = ids[ends[at] : ends[at + 1]]
                expected = self._added.strip(document.ids)
                if expected is None or not _is_equal(expected, again):
                    self._add(document, "its text encodes to other ids")

    def _sampled(self) -> Iterator[_Document]:
        """Yield some documents, always the same ones, or all."""
        splits = list(self._datasets)
        *firsts, total = accumulate(map(len, self._datasets.values()), initial=0)
        numbers: Iterable[int] = range(total)
        if self._sample != "all" and self._sample < total:
            numbers = sorted(random.Random(_SEED).sample(range(total), self._sample))
        for number in numbers:
            at = bisect_right(firsts, number) - 1
            index = number - firsts[at]
            yield self._document(splits[at], index)

    def _document(self, split: Split, number: int) -> _Document:
        """Return a document; of one that is too long to decode, only as much as tells."""
        return _Document(split, number, self._datasets[split].head(number, _MAX_TOKENS + 1))

    def _text(self, tok: Tokenizer, document: _Document) -> bytes | None:
        """Decode a document; None if that is not possible."""
        if len(document.ids) > _MAX_TOKENS:
            self._note(f"documents of more than {_MAX_TOKENS:,} tokens were not decoded")
            return None
        ids = self._added.strip(document.ids)
        if ids is None:
            self._add(document, "does not have the ids that are added to each document")
            return None
        try:
            return tok.decode_bytes(ids.astype("uint32"))
        except UnknownIdError as error:
            self._add(document, str(error))
            return None

    def _add(self, document: _Document, message: str) -> None:
        shard = self._datasets[document.split].shard_of(document.number)
        self._problems.add(
            message,
            file=shard.files[0].name,
            shard=f"{shard.split} {shard.number}",
            document=document.number,
        )

    # ------------------------------------------------------------------ the corpus

    def _compare(self, corpus: Corpus) -> None:
        try:
            for _ in self._choose(corpus):
                pass
        except (ByteweldError, OSError) as error:
            self._problems.add(f"the corpus cannot be read: {error}")

    def _choose(self, corpus: Corpus) -> Iterable[object]:
        """Return an iterable that, as it is read, compares the documents in the possible way."""
        documents = self._source_documents(corpus)
        tok = self._tokenizer
        if tok is None:
            self._note("documents were not compared with the corpus, which needs the tokenizer")
        elif not is_lossless(tok):
            self._note("the tokenizer rewrites text, so documents were not compared")
        elif not self._manifest.options.get("shuffle"):
            compare = self._compare_streams if self._is_packed else self._compare_documents
            compare(tok, documents)
        elif self._is_packed:
            self._note("rows of shuffled documents were not compared with the corpus")
        else:
            self._compare_sums(tok, documents)
        return documents  # what was not read, for its digest

    def _source_documents(self, corpus: Corpus) -> Iterator[_SourceDocument]:
        """Yield each document with its split, its file, and its number in that file."""
        import numpy as np

        fraction, seed = (self._manifest.options.get(name) or 0 for name in ("validation", "seed"))
        total = 0
        for batch in batches(self._read(corpus), _BATCH_BYTES, lambda found: len(found[2])):
            held = [False] * len(batch)
            if fraction:
                numbers = np.arange(total, total + len(batch), dtype=np.uint64)
                held = is_validation(numbers, seed, fraction).tolist()
            total += len(batch)
            for is_held, found in zip(held, batch, strict=True):
                yield _SourceDocument("validation" if is_held else "train", *found)

    def _read(self, corpus: Corpus) -> Iterator[tuple[str, int, bytes]]:
        """Yield all documents; files that have been read are compared by size and digest."""
        entries = list(self._manifest.sources)
        if corpus.table is not None:
            name = type(corpus.table).__name__
            yield from ((name, *pair) for pair in enumerate(corpus.documents()))
            return
        if len(corpus.files) != len(entries):
            self._problems.add(
                f"the corpus has {len(corpus.files)} files; the dataset was made from "
                f"{len(entries)}"
            )
            by_name = {entry.name: entry for entry in entries}
            entries = [by_name.get(str(file), _UNKNOWN) for file in corpus.files]
        for file, entry in zip(corpus.files, entries, strict=True):
            documents = dataclasses.replace(corpus, files=(file,)).documents(digest=True)
            for number, document in enumerate(documents):
                self._progress(self._done + documents.bytes_read)
                yield str(file), number, document
            self._done += documents.bytes_read
            self._progress(self._done)
            for _, size, digest, *_ in documents.take_finished():
                self._compare_file(str(file), entry, size, digest)

    def _compare_file(self, file: str, entry: SourceEntry, size: int, digest: int | None) -> None:
        self._found.sources += 1
        found = None if digest is None else f"{digest:032x}"
        if entry.size is not None and size != entry.size:
            self._problems.add(f"the source has {size} bytes; expected {entry.size}", file=file)
        elif None not in (found, entry.xxh3_128) and found != entry.xxh3_128:
            self._problems.add(
                f"the source's XXH3-128 is {found}; expected {entry.xxh3_128}", file=file
            )

    def _compare_documents(self, tok: Tokenizer, documents: Iterator[_SourceDocument]) -> None:
        """Compare a sample of the documents, or all, in order."""
        total = sum(map(len, self._datasets.values()))
        wanted = None
        if self._sample != "all" and self._sample < total:
            wanted = set(random.Random(_SEED).sample(range(total), self._sample))
        counts = dict.fromkeys(self._datasets, 0)
        for at, (split, file, number, text) in enumerate(documents):
            index = counts[split]
            counts[split] += 1
            if index >= len(self._datasets[split]) or (wanted is not None and at not in wanted):
                continue
            document = self._document(split, index)
            found = self._text(tok, document)
            if found is None:
                continue
            self._found.compared += 1
            if found != text:
                where = f"document {number} of {file}"
                self._add(document, f"its text differs from {where}: {_difference(found, text)}")
        for split, count in counts.items():
            if count != len(self._datasets[split]):
                self._problems.add(
                    f"{split} has {len(self._datasets[split])} documents; the corpus has {count}"
                )

    def _compare_streams(self, tok: Tokenizer, documents: Iterator[_SourceDocument]) -> None:
        """Encode the documents of the corpus, and compare with packed rows."""
        import numpy as np

        special = _special_arguments(self._manifest)
        ends = dict.fromkeys(self._datasets, 0)
        for batch in batches(documents, _BATCH_BYTES, lambda found: len(found.text)):
            encoded, offsets = tok.encode_ragged([found.text for found in batch], **special)
            for at, (split, file, number, text) in enumerate(batch):
                ids = encoded[offsets[at] : offsets[at + 1]]
                if text or self._added.marks_empty:
                    before, after = (np.array(a, ids.dtype) for a in self._added[:2])
                    ids = np.concatenate([before, ids, after])
                dataset, start = self._datasets[split], ends[split]
                ends[split] += len(ids)
                stop = min(ends[split], dataset.num_tokens)
                if start >= stop:
                    continue
                self._found.compared += 1
                differs = dataset.tokens(start, stop) != ids[: stop - start]
                if differs.any():
                    row = (start + int(differs.argmax())) // self._manifest.options["pack"]
                    self._add(
                        _Document(split, row, ids),
                        f"its ids differ from those of document {number} of {file}",
                    )
        for split, end in ends.items():
            have = self._datasets[split].num_tokens
            expected = end - end % self._manifest.options["pack"]
            if have != expected:
                self._problems.add(f"{split} has {have} tokens; the corpus has {expected}")

    def _compare_sums(self, tok: Tokenizer, documents: Iterator[_SourceDocument]) -> None:
        """Compare shuffled documents: the sums of their hashes do not depend on the order."""
        sums = dict.fromkeys(self._datasets, 0)
        for source in documents:
            sums[source.split] += _hash(source.text)
        for split, dataset in self._datasets.items():
            found = undecoded = 0
            for number in range(len(dataset)):
                decoded = self._text(tok, self._document(split, number))
                if decoded is None:
                    undecoded += 1
                else:
                    found += _hash(decoded)
                    self._found.compared += 1
            if undecoded:
                self._note(f"{split} was not compared: {undecoded:,} documents were not decoded")
            elif found != sums[split]:
                self._problems.add(f"the documents of {split} are not those of the corpus")


def work_bytes(
    manifest: Manifest, corpus: Corpus | None, tokenizer: Tokenizer | None, sample: object
) -> int:
    """Return the bytes that `TextCheck` reports as progress: of ids, if all, and of the corpus."""
    import numpy as np

    done = 0 if corpus is None else corpus.total_bytes
    is_packed = manifest.options.get("pack") is not None
    if tokenizer is not None and sample == "all" and not is_packed and is_lossless(tokenizer):
        done += manifest.tokens * np.dtype(manifest.dtype).itemsize
    return done


def is_lossless(tok: Tokenizer) -> bool:
    """Whether decoding what a tokenizer encodes always gives the same bytes."""
    return tok.vocab.alphabet == "bytes" and not {*tok.vocab.extras} - {"template"}


def _special_arguments(manifest: Manifest) -> dict[str, Any]:
    """Return how special tokens in the text were encoded."""
    if manifest.options.get("special_text") == "special":
        return {"allowed_special": "all"}
    return {"disallowed_special": ()}


def _is_equal(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return len(one) == len(other) and bool((one == other).all())


def _hash(text: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(text, digest_size=_HASH_BYTES).digest(), "little")


def _difference(found: bytes, expected: bytes) -> str:
    """Show where two texts begin to differ."""
    pairs = enumerate(zip(found, expected, strict=False))
    at = next((n for n, (a, b) in pairs if a != b), min(len(found), len(expected)))
    shown, right = (text[at : at + _SHOWN_BYTES] for text in (found, expected))
    return f"at byte {at}, it has {shown!r}; expected {right!r}"
