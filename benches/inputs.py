"""Prepares corpora and vocabularies as files in benches/.cache, the same bytes for every engine.

A prepared corpus consists of documents of about 4 KB, cut at newlines and joined by SEPARATOR, and
a separate warm-up text of the same kind. Without the shared data, Python's standard library sources
are used instead. Large corpora are streamed in blocks.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sources
from sources import STDLIB, Source

SEPARATOR = "<|endoftext|>"

_DOCUMENT_BYTES = 4096
_WARM_UP_BYTES = 1_000_000
_VERSION = 1  # of the preparation; bump it to make new files
_BLOCK_BYTES = 1 << 22
# Below this size the mixed corpus is not worth making; the stand-in will do (--quick).
_WORTH_MAKING = 5_000_000
# The stand-in for a missing vocabulary.
_STANDIN_TOKENS = 8192
_STANDIN_BYTES = 4_000_000
_PANGRAM = b"The quick brown fox jumps over 13 lazy dogs, doesn't it?\n"


@dataclass(frozen=True)
class Corpus:
    """A prepared corpus: its files, and the facts that go into the record."""

    name: str
    path: Path
    warm_up: Path
    text_bytes: int
    sha256: str


@dataclass(frozen=True)
class Vocab:
    """A prepared vocabulary: as a rank file and as tokenizer.json, and its pattern.

    The files do not contain the special tokens, by name and id.
    """

    name: str
    rank_file: Path
    tokenizer_json: Path
    pattern: str
    pattern_name: str
    special_tokens: Mapping[str, int]


class Inputs:
    """Prepares what definitions need, once."""

    def __init__(
        self,
        definitions: Mapping[str, Any],
        *,
        cache: Path,
        shared: Path,
        mixed: Path | None = None,
    ) -> None:
        self._corpora: Mapping[str, Mapping[str, Any]] = definitions["corpora"]
        self._vocabs: Mapping[str, str] = definitions.get("vocabs", {})
        self._cache = cache
        self._shared = shared
        self._mixed = mixed or cache / "mixed"
        self._prepared: dict[tuple[str, int, bool], Corpus] = {}
        cache.mkdir(parents=True, exist_ok=True)

    def corpus_name(self, name: str, size: int) -> str:
        """The name of the corpus that will be used: this one, or the stand-in."""
        if name == STDLIB:
            return name
        if name not in self._corpora:
            raise ValueError(f"unknown corpus {name!r}; expected one of {', '.join(self._corpora)}")
        spec = self._corpora[name]
        if "corpus" in spec:
            within = self.corpus_name(spec["corpus"], size // spec["times"])
            return STDLIB if within == STDLIB else name
        if "file" in spec and not self._files(spec["file"]):
            return STDLIB
        if "big" in spec and size < _WORTH_MAKING and not sources.big_corpus_is_made(self._mixed):
            return STDLIB
        return name

    def corpus(self, name: str, size: int, *, warm_up: bool) -> Corpus:
        """Prepare up to `size` bytes of a corpus, and a warm-up text.

        Raises sources.UnavailableError if it is unavailable and has no stand-in.
        """
        name = self.corpus_name(name, size)
        key = (name, size, warm_up)
        if key not in self._prepared:
            self._prepared[key] = self._prepare(name, size, warm_up)
        return self._prepared[key]

    def vocab_name(self, name: str) -> str:
        """The name of the vocabulary that will be used: this one, or the stand-in."""
        if name not in self._vocabs:
            raise ValueError(
                f"unknown vocabulary {name!r}; expected one of {', '.join(self._vocabs)}"
            )
        return name if self._index.is_file() else f"{STDLIB}-{self._vocabs[name]}"

    def vocab(self, name: str) -> Vocab:
        """Unpack a published vocabulary, or train its stand-in."""
        if self.vocab_name(name) == name:
            return self._published(name, self._vocabs[name], self._index)
        return self._standin(self._vocabs[name])

    @property
    def _index(self) -> Path:
        return self._shared / "vocabs" / "index.json"

    # ------------------------------------------------------------------ corpora

    def _source(self, name: str, size: int) -> Source:
        """Find the text of a corpus, and make it if necessary."""
        if name == STDLIB:
            return sources.stdlib()
        spec = self._corpora[name]
        if "letters" in spec:
            return sources.from_letters(name, spec["letters"])
        if "generator" in spec:
            return sources.from_generator(name, spec["generator"])
        if "big" in spec:
            tool = self._shared.parent / "tools" / "make_big_corpus.py"
            sources.make_big_corpus(self._mixed, tool, spec["big"])
            return sources.from_big_corpus(name, self._mixed)
        if "corpus" in spec:
            once = self.corpus(spec["corpus"], size // spec["times"], warm_up=False)
            return _repeated(name, once, spec["times"])
        files = self._files(spec["file"])
        source = sources.from_files(name, files) if len(files) > 1 else None
        source = source or sources.from_file(name, files[0])
        return sources.lines_of_scripts(source, spec["scripts"]) if "scripts" in spec else source

    def _files(self, pattern: str) -> list[Path]:
        """The files of the shared data that match a path or a glob."""
        return sorted(self._shared.glob(pattern))

    def _prepare(self, name: str, size: int, warm_up: bool) -> Corpus:
        source = self._source(name, size)
        facts = f"{_VERSION} {name} {size} {warm_up} {source.identity}"
        key = hashlib.sha256(facts.encode()).hexdigest()[:12]
        path = self._cache / f"{name}-{key}.txt"
        other_path = self._cache / f"{name}-{key}.warm-up.txt"
        if not (path.exists() and other_path.exists()):
            text, other = self._texts(source, size, warm_up)
            for target, content in ((other_path, other), (path, text)):
                _write(target, _joined(_documents(content)))
        digest, separators = _facts(path)
        text_bytes = path.stat().st_size - separators * len(SEPARATOR)
        return Corpus(name, path, other_path, text_bytes, digest)

    def _texts(
        self, source: Source, size: int, warm_up: bool
    ) -> tuple[Iterable[bytes], Iterable[bytes]]:
        """The text to measure and the warm-up text, in blocks of valid UTF-8."""
        spec = self._corpora.get(source.name, {})
        if "letters" in spec:
            return source.head(size), [_PANGRAM * 1000]
        if warm_up:
            data = b"".join(source.head(size + _WARM_UP_BYTES))
            text, other = _divide(data, size, _WARM_UP_BYTES)
            return [text], [other]
        blocks = source.blocks() if "times" in spec else source.head(size)
        return map(_valid, _whole_lines(blocks)), []

    # ------------------------------------------------------------------ vocabularies

    def _published(self, name: str, pattern_name: str, index: Path) -> Vocab:
        entries = json.loads(index.read_bytes())["vocabs"]
        entry = next((entry for entry in entries if entry["name"] == name), None)
        if entry is None:
            raise ValueError(f"{index}: no vocabulary {name!r}")
        rank_file = self._cache / f"{name}-{entry['sha256'][:12]}.tiktoken"
        if not rank_file.exists():
            data = gzip.decompress((index.parent / entry["file"]).read_bytes())
            if _sha256(data) != entry["sha256"]:
                raise ValueError(f"{entry['file']}: sha256 differs from the one in {index}")
            _write(rank_file, [data])
        special_tokens = entry.get("special_tokens", {})
        return self._with_json(name, rank_file, entry["pat_str"], pattern_name, special_tokens)

    def _standin(self, pattern_name: str) -> Vocab:
        import byteweld

        corpus = self.corpus(STDLIB, _STANDIN_BYTES, warm_up=False)
        name = f"{STDLIB}-{pattern_name}"
        rank_file = self._cache / f"{name}-{corpus.sha256[:12]}.tiktoken"
        if not rank_file.exists():
            trained = byteweld.train(
                corpus.path,
                vocab_size=_STANDIN_TOKENS,
                recipe="rustbpe",
                pattern=pattern_name,
                separator=SEPARATOR,
            )
            # Two merges may make the same bytes; a rank file can hold them only once.
            tokens = dict.fromkeys(trained.vocab.tokens[i] for i in sorted(trained.vocab.tokens))
            lines = [base64.b64encode(token) + b" %d\n" % n for n, token in enumerate(tokens)]
            _write(rank_file, lines)
        return self._with_json(name, rank_file, byteweld.PATTERNS[pattern_name], pattern_name, {})

    def _with_json(
        self,
        name: str,
        rank_file: Path,
        pattern: str,
        pattern_name: str,
        special_tokens: Mapping[str, int],
    ) -> Vocab:
        """Write the ranks as tokenizer.json too, for engines that do not read rank files.

        Using our own writer is safe: a wrong file would give wrong ids, which are detected.
        """
        tokenizer_json = rank_file.with_suffix(".json")
        if not tokenizer_json.exists():
            import byteweld

            tokenizer = byteweld.load(rank_file, pattern=pattern, special_tokens={})
            # Ranks that no merge list can express have no tokenizer.json; its readers then fail.
            with contextlib.suppress(byteweld.UnsupportedError):
                tokenizer.save(tokenizer_json, format="huggingface")
        return Vocab(name, rank_file, tokenizer_json, pattern, pattern_name, special_tokens)


def _repeated(name: str, corpus: Corpus, times: int) -> Source:
    """A prepared corpus repeated: the same pre-tokens with larger counts."""

    def blocks() -> Iterator[bytes]:
        for number in range(times):
            if number:
                yield SEPARATOR.encode()
            with corpus.path.open("rb") as file:
                while block := file.read(_BLOCK_BYTES):
                    yield block

    return Source(name, f"{corpus.sha256} {times}", blocks)


def _documents(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Cut at SEPARATOR, so that no document contains it, and at the first newline past 4 KB."""
    separator = SEPARATOR.encode()
    text = b""
    for block in blocks:
        text += block
        start = 0
        while True:
            newline = text.find(b"\n", start + _DOCUMENT_BYTES)
            end = len(text) if newline < 0 else newline + 1
            cut = text.find(separator, start, end)
            if cut < 0 and newline < 0:
                break
            end, after = (end, end) if cut < 0 else (cut, cut + len(separator))
            if end > start:
                yield text[start:end]
            start = after
        text = text[start:]
    if text:
        yield text


def _joined(documents: Iterable[bytes]) -> Iterator[bytes]:
    for number, document in enumerate(documents):
        yield SEPARATOR.encode() + document if number else document


def _whole_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Regroup blocks so that each ends with a newline; drop what follows the last newline."""
    rest = b""
    is_cut = False
    for block in blocks:
        rest += block
        end = rest.rfind(b"\n") + 1
        if end:
            is_cut = True
            yield rest[:end]
            rest = rest[end:]
    if rest and not is_cut:
        yield rest


def _divide(data: bytes, size: int, other_bytes: int) -> tuple[bytes, bytes]:
    """Split off the first `size` bytes, up to a newline, and a warm-up text after them.

    If the corpus is too short, at least nine tenths of it are measured.
    """
    size = min(size, len(data) - min(other_bytes, len(data) // 10))
    cut = data.rfind(b"\n", 0, size) + 1 or size
    return _valid(data[:cut]), _valid(data[cut : cut + other_bytes])


def _valid(data: bytes) -> bytes:
    """Replace invalid UTF-8 by U+FFFD, so that every engine accepts the text."""
    return data.decode("utf-8", "replace").encode()


def _facts(path: Path) -> tuple[str, int]:
    """The sha256 of a prepared corpus and the number of separators in it."""
    state = hashlib.sha256()
    separators = 0
    tail = b""
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            state.update(block)
            separators += (tail + block).count(SEPARATOR.encode())
            tail = (tail + block)[1 - len(SEPARATOR) :]
    return state.hexdigest(), separators


def _write(path: Path, blocks: Iterable[bytes]) -> None:
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        file.writelines(blocks)
    part.replace(path)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
