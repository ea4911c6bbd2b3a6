"""What `byteweld inspect` shows of a dataset, as text, JSON or HTML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import byteweld
from byteweld.cli import _output
from byteweld.dataset._manifest import Manifest, SkipEntry, dataset_folder, load_manifest
from byteweld.dataset.reading import Dataset, check_tokenizer
from byteweld.render import spans, visible, visible_name
from byteweld.report import Displayable, Facts, Part, Report, Section, Table, Text, Tokens

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SHOWN = 5  # names and documents
_SHOWN_TOKENS = 60  # of a document
_BAR_COLUMNS = 40
_UNFINISHED = "no; run the same `byteweld tokenize` again to finish it"


@dataclass
class Lengths:
    """The lengths of the documents of a split, in bins from 2^n to 2^(n+1) - 1."""

    documents: int = 0
    tokens: int = 0
    shortest: int = 0
    longest: int = 0
    bins: tuple[int, ...] = ()  # the first is for empty documents

    @classmethod
    def of(cls, dataset: Dataset) -> Lengths:
        """Read the lengths of all documents, some at a time."""
        import numpy as np

        found = cls()
        counts = np.zeros(64, np.int64)
        for lengths in dataset.length_batches():
            if not len(lengths):
                continue
            shortest = int(lengths.min())
            found.shortest = min(found.shortest, shortest) if found.documents else shortest
            found.longest = max(found.longest, int(lengths.max()))
            found.documents += len(lengths)
            found.tokens += int(lengths.sum())
            # frexp's exponent is the number of bits of a whole number.
            counts += np.bincount(np.frexp(lengths.astype(np.float64))[1], minlength=64)
        used = np.flatnonzero(counts)
        found.bins = tuple(map(int, counts[: used[-1] + 1])) if len(used) else ()
        return found

    def words(self) -> str:
        """Describe the lengths in one line."""
        if not self.documents:
            return "no documents"
        mean = self.tokens / self.documents
        return f"{self.shortest:,} to {self.longest:,} tokens, {mean:,.1f} on average"


class Contents(Displayable):
    """A dataset, and what is shown of it."""

    def __init__(self, path: str, tok: byteweld.Tokenizer | None) -> None:
        folder = dataset_folder(path)
        self.path = path
        self.tok = tok
        self.manifest = load_manifest(folder)
        if tok is not None:
            check_tokenizer(tok, self.manifest, folder)
        splits = [shard.split for shard in self.manifest.shards]
        self.datasets = {s: Dataset(folder, self.manifest, s) for s in dict.fromkeys(splits)}
        self.lengths = {split: Lengths.of(ds) for split, ds in self.datasets.items()}
        first = next(iter(self.datasets.values()), None)
        self.first = [] if first is None else list(islice(first, _SHOWN))

    @property
    def _what(self) -> str:
        return "document" if self.manifest.options.get("pack") is None else "row"

    def report(self) -> Report:
        """Return the facts, the lengths of documents, and the first documents."""
        sections = [
            Section(f"{self._what} lengths, {split}", self._bars(found), summary=found.words())
            for split, found in self.lengths.items()
        ]
        documents = [self._document(number, ids) for number, ids in enumerate(self.first)]
        first = Section(f"first {self._what}s", *documents) if documents else None
        return Report(visible_name(self.path), Facts(list(self._facts())), *sections, first)

    def _document(self, number: int, ids: NDArray[Any]) -> Section:
        some = ids[:_SHOWN_TOKENS].tolist()
        more = " …" if len(ids) > len(some) else ""
        shown: Part = Text([" ".join(map(str, some)) + more])
        if self.tok is not None:
            shown = Tokens(spans(self.tok.vocab, some), after=more)
        title = f"{self._what} {number}: {_output.amount(len(ids), 'token')}"
        return Section(title, shown, is_heading=False)

    def _bars(self, lengths: Lengths) -> Table:
        names = ["0", "1", *(f"{1 << n:,}-{(2 << n) - 1:,}" for n in range(1, 63))]
        rows = list(zip(names, lengths.bins, strict=False))
        while rows and not rows[0][1]:  # no documents so short
            del rows[0]
        heads = ("tokens", f"{self._what}s")
        bar = "█" * _BAR_COLUMNS
        return Table(heads, rows, left=[], name=0, charted=[1], bar=bar, has_heads=False)

    def _facts(self) -> Iterator[tuple[str, str]]:
        manifest, amount, size = self.manifest, _output.amount, _output.size
        yield "complete", "yes" if manifest.is_complete else _UNFINISHED
        yield "format", f"{manifest.format}, {manifest.dtype}"
        tokenizer = manifest.tokenizer
        yield "tokenizer", f"{tokenizer['n_vocab']:,} ids, fingerprint {tokenizer['fingerprint']}"
        for role in ("eot", "bos"):
            if (token := tokenizer.get(role)) is not None:
                yield role, f"{visible(token['text'].encode('utf-8', 'replace'))} {token['id']}"
        yield "options", _options_words(manifest.options)
        if manifest.is_complete:
            yield "documents", f"{manifest.documents:,}"
            yield "tokens", _token_words(manifest)
        for split, found in self.lengths.items():
            shards = manifest.shards_of(split)
            stored = size(sum(file.size for shard in shards for file in shard.files))
            content = f"{amount(found.documents, self._what)}, {found.tokens:,} tokens"
            yield split, f"{content} in {amount(len(shards), 'shard')}, {stored}"
        if not manifest.is_complete:
            return
        sources, skipped = manifest.sources, manifest.skipped_documents
        names = _first([visible_name(source.name) for source in sources[: _SHOWN + 1]])
        read = size(sum(source.size or 0 for source in sources))
        yield "sources", f"{amount(len(sources), 'source')}, {read}: {names}" if sources else "none"
        some = "; ".join(map(_one_skip, manifest.skipped[:_SHOWN]))
        more = "; …" if skipped > _SHOWN else ""
        yield "skipped", f"{amount(skipped, 'record')}: {some}{more}" if skipped else "none"
        specials = (
            f"{visible(text.encode('utf-8', 'replace'))} {count:,}×"
            for text, count in manifest.special_text.items()
            if count
        )
        yield "special text", _first(list(specials)) or "none"

    def to_dict(self) -> dict[str, Any]:
        """The dataset as JSON: the manifest without its lists, lengths, and first documents."""
        manifest = self.manifest
        lists = ("shards", "files", "sources", "skipped")
        return {
            "path": self.path,
            **{name: value for name, value in vars(manifest).items() if name not in lists},
            "shards": len(manifest.shards),
            "sources": len(manifest.sources),
            "skipped": [vars(skip) for skip in manifest.skipped[:_SHOWN]],
            "lengths": {split: vars(lengths) for split, lengths in self.lengths.items()},
            "first": [self._to_dict(ids) for ids in self.first],
        }

    def _to_dict(self, ids: NDArray[Any]) -> dict[str, Any]:
        some = ids[:_SHOWN_TOKENS].astype("uint32")
        text = {} if self.tok is None else {"text": self.tok.decode(some)}
        return {"tokens": len(ids), "ids": some.tolist(), **text}


def _options_words(options: Mapping[str, Any]) -> str:
    reading = options.get("reading")
    flat = {**options, **(reading if isinstance(reading, Mapping) else {})}
    flat.pop("reading", None)
    given = [
        name if value is True else f"{name} {value}"
        for name, value in flat.items()
        if value is not None and value is not False
    ]
    return visible_name(", ".join(given)) or "none"


def _token_words(manifest: Manifest) -> str:
    dropped = ""
    if manifest.dropped_tokens:
        dropped = f"; {manifest.dropped_tokens:,} at the end did not fill a row"
    if not manifest.tokens:
        return f"0{dropped}"
    rate = manifest.text_bytes / manifest.tokens
    size = _output.size(manifest.text_bytes)
    return f"{manifest.tokens:,} of {size} of text, {rate:.2f} bytes per token{dropped}"


def _one_skip(skip: SkipEntry) -> str:
    named = {"line": skip.line, "row": skip.row, "byte": skip.offset}
    place = "".join(f", {name} {value:,}" for name, value in named.items() if value is not None)
    return visible_name(f"{skip.source}{place}: {skip.reason}")


def _first(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
