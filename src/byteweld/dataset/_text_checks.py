"""Checks of the text of a dataset: decoded and encoded again, and compared with the corpus."""

from __future__ import annotations

import hashlib
import random
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from byteweld._text import batches
from byteweld.corpus import Corpus, Reading, Source, open_corpus
from byteweld.dataset._id_checks import Added
from byteweld.dataset._manifest import Manifest
from byteweld.dataset._order import is_validation
from byteweld.dataset._problems import Problems
from byteweld.dataset._shard import Split
from byteweld.dataset.reading import Dataset
from byteweld.errors import CorpusError, UnknownIdError
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


class TextCheck:
    """Checks documents with the tokenizer that made them; without one, only files of the corpus."""

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        tokenizer: Tokenizer | None,
        sample: int | Literal["all"],
        problems: Problems,
    ) -> None:
        self._manifest = manifest
        self._tokenizer = tokenizer
        self._sample = sample
        self._problems = problems
        self._added = Added.of(manifest)
        self._is_packed = manifest.options.get("pack") is not None
        splits: list[Any] = list(manifest.splits)
        self._datasets = {split: Dataset(folder, manifest, split) for split in splits}
        self._found = Found()

    def run(self, source: Source | Sequence[Source] | None) -> Found:
        """Check what can be checked."""
        if self._tokenizer is not None:
            self._encode_again(self._tokenizer)
        if source is not None:
            self._compare(source)
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
            yield _Document(splits[at], index, self._datasets[splits[at]][index])

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

    def _compare(self, source: Source | Sequence[Source]) -> None:
        """Compare with the corpus, which is read as it was for the dataset."""
        corpus = open_corpus(source, Reading.of(self._manifest.options.get("reading", {})))
        self._compare_files(corpus)
        tok = self._tokenizer
        if tok is None:
            self._note("documents were not compared with the corpus, which needs the tokenizer")
            return
        if not is_lossless(tok):
            self._note("the tokenizer rewrites text, so documents were not compared")
            return
        options = self._manifest.options
        try:
            if options.get("shuffle"):
                if self._is_packed:
                    self._note("rows of shuffled documents were not compared with the corpus")
                else:
                    self._compare_sums(tok, corpus)
            elif self._is_packed:
                self._compare_streams(tok, corpus)
            else:
                self._compare_documents(tok, corpus)
        except (CorpusError, OSError) as error:
            self._problems.add(f"the corpus cannot be read: {error}")

    def _compare_files(self, corpus: Corpus) -> None:
        expected = self._manifest.sources
        if len(corpus.files) != len(expected):
            self._problems.add(
                f"the corpus has {len(corpus.files)} files; the dataset was made from "
                f"{len(expected)}"
            )
        for file, entry in zip(corpus.files, expected, strict=False):
            self._found.sources += 1
            size = Path(file).stat().st_size
            if entry.size is not None and size != entry.size:
                self._problems.add(
                    f"the source has {size} bytes; expected {entry.size}", file=str(file)
                )

    def _source_documents(self, corpus: Corpus) -> Iterator[tuple[Split, str, int, bytes]]:
        """Yield each document with its split, its file, and its number in that file."""
        import numpy as np

        fraction, seed = (self._manifest.options.get(name) or 0 for name in ("validation", "seed"))
        total = 0

        def numbered() -> Iterator[tuple[str, int, bytes]]:
            for name, documents in corpus.by_file():
                for number, document in enumerate(documents):
                    yield name, number, document

        for batch in batches(numbered(), _BATCH_BYTES, lambda found: len(found[2])):
            numbers = np.arange(total, total + len(batch), dtype=np.uint64)
            held = is_validation(numbers, seed, fraction) if fraction else [False] * len(batch)
            total += len(batch)
            for is_held, found in zip(held, batch, strict=True):
                yield ("validation" if is_held else "train", *found)

    def _compare_documents(self, tok: Tokenizer, corpus: Corpus) -> None:
        """Compare a sample of the documents, or all, in order."""
        total = sum(map(len, self._datasets.values()))
        wanted = None
        if self._sample != "all" and self._sample < total:
            wanted = set(random.Random(_SEED).sample(range(total), self._sample))
        counts = dict.fromkeys(self._datasets, 0)
        for at, (split, file, number, text) in enumerate(self._source_documents(corpus)):
            index = counts[split]
            counts[split] += 1
            if index >= len(self._datasets[split]) or (wanted is not None and at not in wanted):
                continue
            document = _Document(split, index, self._datasets[split][index])
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

    def _compare_streams(self, tok: Tokenizer, corpus: Corpus) -> None:
        """Encode the documents of the corpus, and compare with packed rows."""
        import numpy as np

        special = _special_arguments(self._manifest)
        ends = dict.fromkeys(self._datasets, 0)
        for batch in batches(self._source_documents(corpus), _BATCH_BYTES, lambda f: len(f[3])):
            encoded, offsets = tok.encode_ragged([text for *_, text in batch], **special)
            for at, (split, file, number, _) in enumerate(batch):
                text_ids = encoded[offsets[at] : offsets[at + 1]]
                ids = np.concatenate([self._added.before, text_ids, self._added.after])
                dataset, start = self._datasets[split], ends[split]
                ends[split] += len(ids)
                stop = min(ends[split], dataset.num_tokens)
                self._found.compared += start < stop
                if start < stop and not _is_equal(dataset.tokens(start, stop), ids[: stop - start]):
                    row = start // self._manifest.options["pack"]
                    rows = _Document(split, row, ids)
                    self._add(rows, f"its ids differ from those of document {number} of {file}")
        for split, end in ends.items():
            have = self._datasets[split].num_tokens
            expected = end - end % self._manifest.options["pack"]
            if have != expected:
                self._problems.add(f"{split} has {have} tokens; the corpus has {expected}")

    def _compare_sums(self, tok: Tokenizer, corpus: Corpus) -> None:
        """Compare shuffled documents: the sums of their hashes do not depend on the order."""
        sums = dict.fromkeys(self._datasets, 0)
        for split, _, _, text in self._source_documents(corpus):
            sums[split] += _hash(text)
        for split, dataset in self._datasets.items():
            found = 0
            for number, ids in enumerate(dataset):
                decoded = self._text(tok, _Document(split, number, ids))
                if decoded is not None:
                    found += _hash(decoded)
                    self._found.compared += 1
            if found != sums[split]:
                self._problems.add(f"the documents of {split} are not those of the corpus")


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
