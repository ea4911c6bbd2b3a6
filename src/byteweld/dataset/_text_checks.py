"""Checks of the text of a dataset: decoded and encoded again, and compared with the corpus."""

from __future__ import annotations

import dataclasses
import hashlib
import random
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from byteweld._text import batches
from byteweld.corpus import Corpus
from byteweld.dataset._findings import Findings
from byteweld.dataset._id_checks import Added
from byteweld.dataset._manifest import Manifest, SourceEntry
from byteweld.dataset._order import is_validation
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


@dataclass
class TextCheck:
    """Checks documents with the tokenizer that made them; without one, only files of the corpus."""

    folder: Path
    manifest: Manifest
    corpus: Corpus | None
    tokenizer: Tokenizer | None
    sample: int | Literal["all"]
    findings: Findings

    def __post_init__(self) -> None:
        options = self.manifest.options
        self._added = Added.of(self.manifest)
        self._is_packed = options.get("pack") is not None
        self._is_lossless = self.tokenizer is not None and is_lossless(self.tokenizer)
        special = options.get("special_text") == "special"
        self._special: Any = {"allowed_special": "all"} if special else {"disallowed_special": ()}
        splits: list[Any] = list(self.manifest.splits)
        self._datasets = {split: Dataset(self.folder, self.manifest, split) for split in splits}

    @property
    def total_bytes(self) -> int:
        """The bytes that are reported as progress: of ids, if all, and of the corpus."""
        import numpy as np

        total = 0 if self.corpus is None else self.corpus.total_bytes
        if self._is_lossless and self.sample == "all" and not self._is_packed:
            total += self.manifest.tokens * np.dtype(self.manifest.dtype).itemsize
        return total

    def run(self, progress: Callable[[int], object]) -> None:
        """Check what can be checked."""
        self._done = 0  # of `total_bytes`
        self._progress = progress
        if self.tokenizer is not None:
            self._encode_again(self.tokenizer)
        if self.corpus is not None:
            try:
                documents = self._source_documents(self.corpus)
                self._compare(self.tokenizer, documents)
                for _ in documents:  # what was not read, for its digest
                    pass
            except (ByteweldError, OSError) as error:
                self.findings.add(f"the corpus cannot be read: {error}")

    # ------------------------------------------------------------------ encoded again

    def _encode_again(self, tok: Tokenizer) -> None:
        import numpy as np

        if self._is_packed:
            self.findings.note("packed rows are parts of documents, so they were not encoded again")
            return
        if not self._is_lossless:
            self.findings.note("the tokenizer rewrites text, so documents were not encoded again")
            return
        for documents in batches(self._sampled(), _BATCH_TOKENS, lambda found: len(found.ids)):
            texts = ((document, self._text(tok, document)) for document in documents)
            known = [(document, text) for document, text in texts if text is not None]
            ids, ends = tok.encode_ragged([text for _, text in known], **self._special)
            if self.sample == "all":
                self._done += sum(document.ids.nbytes for document in documents)
                self._progress(self._done)
            for at, (document, _) in enumerate(known):
                self.findings.encoded += 1
                expected = self._added.strip(document.ids)
                again = ids[ends[at] : ends[at + 1]]
                if expected is None or not np.array_equal(expected, again):
                    self._add(document, "its text encodes to other ids")

    def _chosen(self) -> Collection[int]:
        """Return the numbers of the documents to decode, of all splits: always the same ones."""
        every = range(sum(map(len, self._datasets.values())))
        if self.sample == "all" or self.sample >= len(every):
            return every
        return set(random.Random(_SEED).sample(every, self.sample))

    def _sampled(self) -> Iterator[_Document]:
        splits = list(self._datasets)
        firsts = list(accumulate(map(len, self._datasets.values()), initial=0))
        for number in sorted(self._chosen()):
            at = bisect_right(firsts, number) - 1
            yield self._document(splits[at], number - firsts[at])

    def _document(self, split: Split, number: int) -> _Document:
        """Return a document; of one that is too long to decode, only as much as tells."""
        return _Document(split, number, self._datasets[split].head(number, _MAX_TOKENS + 1))

    def _text(self, tok: Tokenizer, document: _Document) -> bytes | None:
        """Decode a document; None if that is not possible."""
        if len(document.ids) > _MAX_TOKENS:
            self.findings.note(f"documents of more than {_MAX_TOKENS:,} tokens were not decoded")
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
        self.findings.add(message, shard, document=document.number)

    # ------------------------------------------------------------------ the corpus

    def _compare(self, tok: Tokenizer | None, documents: Iterator[_SourceDocument]) -> None:
        """Compare the documents in the possible way."""
        note = self.findings.note
        if tok is None:
            note("documents were not compared with the corpus, which needs the tokenizer")
        elif not self._is_lossless:
            note("the tokenizer rewrites text, so documents were not compared")
        elif not self.manifest.options.get("shuffle"):
            compare = self._compare_streams if self._is_packed else self._compare_documents
            compare(tok, documents)
        elif self._is_packed:
            note("rows of shuffled documents were not compared with the corpus")
        else:
            self._compare_sums(tok, documents)

    def _source_documents(self, corpus: Corpus) -> Iterator[_SourceDocument]:
        """Yield each document with its split, its file, and its number in that file."""
        import numpy as np

        fraction, seed = (self.manifest.options.get(name) or 0 for name in ("validation", "seed"))
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
        entries: Sequence[SourceEntry] = self.manifest.sources
        if corpus.table is not None:
            name = type(corpus.table).__name__
            yield from ((name, *pair) for pair in enumerate(corpus.documents()))
            return
        if len(corpus.files) != len(entries):
            self.findings.add(
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
        self.findings.sources += 1
        found = None if digest is None else f"{digest:032x}"
        if entry.size is not None and size != entry.size:
            self.findings.add(f"the source has {size} bytes; expected {entry.size}", file=file)
        elif None not in (found, entry.xxh3_128) and found != entry.xxh3_128:
            self.findings.add(
                f"the source's XXH3-128 is {found}; expected {entry.xxh3_128}", file=file
            )

    def _compare_documents(self, tok: Tokenizer, documents: Iterator[_SourceDocument]) -> None:
        """Compare a sample of the documents, or all, in order."""
        wanted = self._chosen()
        counts = dict.fromkeys(self._datasets, 0)
        for at, (split, file, number, text) in enumerate(documents):
            index = counts[split]
            counts[split] += 1
            if index >= len(self._datasets[split]) or at not in wanted:
                continue
            document = self._document(split, index)
            found = self._text(tok, document)
            if found is None:
                continue
            self.findings.compared += 1
            if found != text:
                where = f"document {number} of {file}"
                self._add(document, f"its text differs from {where}: {_difference(found, text)}")
        for split, count in counts.items():
            have = len(self._datasets[split])
            if count != have:
                self.findings.add(f"{split} has {have} documents; the corpus has {count}")

    def _compare_streams(self, tok: Tokenizer, documents: Iterator[_SourceDocument]) -> None:
        """Encode the documents of the corpus, and compare with packed rows."""
        pack = self.manifest.options["pack"]
        ends = dict.fromkeys(self._datasets, 0)
        for batch in batches(documents, _BATCH_BYTES, lambda found: len(found.text)):
            encoded, offsets = tok.encode_ragged([found.text for found in batch], **self._special)
            for at, (split, file, number, text) in enumerate(batch):
                ids = encoded[offsets[at] : offsets[at + 1]]
                ids = self._added.wrap(ids, has_text=bool(text))
                dataset, start = self._datasets[split], ends[split]
                ends[split] += len(ids)
                stop = min(ends[split], dataset.num_tokens)
                if start >= stop:
                    continue
                self.findings.compared += 1
                differs = dataset.tokens(start, stop) != ids[: stop - start]
                if differs.any():
                    row = (start + int(differs.argmax())) // pack
                    self._add(
                        _Document(split, row, ids),
                        f"its ids differ from those of document {number} of {file}",
                    )
        for split, end in ends.items():
            have, expected = self._datasets[split].num_tokens, end - end % pack
            if have != expected:
                self.findings.add(f"{split} has {have} tokens; the corpus has {expected}")

    def _compare_sums(self, tok: Tokenizer, documents: Iterator[_SourceDocument]) -> None:
        """Compare shuffled documents: the sums of their hashes do not depend on the order."""
        sums = dict.fromkeys(self._datasets, 0)
        for source in documents:
            sums[source.split] += _hash(source.text)
        for split, dataset in self._datasets.items():
            texts = (self._text(tok, self._document(split, n)) for n in range(len(dataset)))
            found = undecoded = 0
            for text in texts:
                if text is None:
                    undecoded += 1
                else:
                    found += _hash(text)
                    self.findings.compared += 1
            if undecoded:
                self.findings.note(
                    f"{split} was not compared: {undecoded:,} documents were not decoded"
                )
            elif found != sums[split]:
                self.findings.add(f"the documents of {split} are not those of the corpus")


def is_lossless(tok: Tokenizer) -> bool:
    """Whether decoding what a tokenizer encodes always gives the same bytes."""
    return tok.vocab.alphabet == "bytes" and not {*tok.vocab.extras} - {"template"}


def _hash(text: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(text, digest_size=_HASH_BYTES).digest(), "little")


def _difference(found: bytes, expected: bytes) -> str:
    """Show where two texts begin to differ."""
    pairs = enumerate(zip(found, expected, strict=False))
    at = next((n for n, (a, b) in pairs if a != b), min(len(found), len(expected)))
    shown, right = (text[at : at + _SHOWN_BYTES] for text in (found, expected))
    return f"at byte {at}, it has {shown!r}; expected {right!r}"
