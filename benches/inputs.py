"""Corpora and vocabularies -> files in benches/.cache, the same bytes for every engine.

A prepared corpus is documents of about 4 KB, cut at newlines, joined by SEPARATOR, with other text
of the same kind beside it for warming up. Without the shared data, Python's own sources stand in.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import json
import lzma
import platform
import random
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SEPARATOR = "<|endoftext|>"
STDLIB = "stdlib"

_DOCUMENT_BYTES = 4096
_WARM_UP_BYTES = 1_000_000
_VERSION = 1  # of the preparation: a change here makes new files
_SEED = 7
# The vocabulary that stands in for a missing one.
_STANDIN_TOKENS = 8192
_STANDIN_BYTES = 4_000_000
_PANGRAM = b"The quick brown fox jumps over 13 lazy dogs, doesn't it?\n"


@dataclass(frozen=True)
class Corpus:
    """A prepared corpus: its files, and what the record says of it."""

    name: str
    path: Path
    warm_up: Path
    text_bytes: int
    sha256: str


@dataclass(frozen=True)
class Vocab:
    """A prepared vocabulary: a rank file, the same as tokenizer.json, and its pattern."""

    name: str
    rank_file: Path
    tokenizer_json: Path
    pattern: str
    pattern_name: str


class Inputs:
    """Prepares what definitions ask for, once."""

    def __init__(self, definitions: Mapping[str, Any], *, cache: Path, shared: Path) -> None:
        self._corpora: Mapping[str, Mapping[str, str]] = definitions["corpora"]
        self._vocabs: Mapping[str, str] = definitions.get("vocabs", {})
        self._cache = cache
        self._shared = shared
        self._prepared: dict[tuple[str, int, bool], Corpus] = {}
        cache.mkdir(parents=True, exist_ok=True)

    def corpus(self, name: str, size: int, *, warm_up: bool) -> Corpus:
        """Prepare `size` bytes of a corpus, or what there is, and other text for warming up."""
        if name != STDLIB and name not in self._corpora:
            raise ValueError(f"unknown corpus {name!r}; known are {', '.join(self._corpora)}")
        spec = {} if name == STDLIB else self._corpora[name]
        if "letters" not in spec and not self._file(spec).is_file():
            name, spec = STDLIB, {}
        key = (name, size, warm_up)
        if key not in self._prepared:
            self._prepared[key] = self._prepare(name, spec, size, warm_up)
        return self._prepared[key]

    def vocab(self, name: str) -> Vocab:
        """Unpack a published vocabulary, or train the one that stands in for it."""
        if name not in self._vocabs:
            raise ValueError(f"unknown vocabulary {name!r}; known are {', '.join(self._vocabs)}")
        pattern_name = self._vocabs[name]
        index = self._shared / "vocabs" / "index.json"
        if index.is_file():
            return self._published(name, pattern_name, index)
        return self._standin(pattern_name)

    # ------------------------------------------------------------------ corpora

    def _file(self, spec: Mapping[str, str]) -> Path:
        return self._shared / spec.get("file", "no such file")

    def _prepare(self, name: str, spec: Mapping[str, str], size: int, warm_up: bool) -> Corpus:
        if "letters" in spec:
            source = spec["letters"]
        elif name == STDLIB:
            source = platform.python_version()
        else:
            source = _sha256(self._file(spec).read_bytes())
        facts = f"{_VERSION} {name} {size} {warm_up} {source}"
        key = hashlib.sha256(facts.encode()).hexdigest()[:12]
        path = self._cache / f"{name}-{key}.txt"
        other_path = self._cache / f"{name}-{key}.warm-up.txt"
        if not (path.exists() and other_path.exists()):
            if "letters" in spec:
                text, other = _random_letters(spec["letters"], size), _PANGRAM * 1000
            else:
                other_bytes = _WARM_UP_BYTES if warm_up else 0
                wanted = size + other_bytes
                data = _stdlib(wanted) if name == STDLIB else _head(self._file(spec), wanted)
                text, other = _divide(data, size, other_bytes)
            for place, content in ((other_path, other), (path, text)):
                _write(place, SEPARATOR.encode().join(_documents(content)))
        data = path.read_bytes()
        separators = data.count(SEPARATOR.encode()) * len(SEPARATOR)
        return Corpus(name, path, other_path, len(data) - separators, _sha256(data))

    # ------------------------------------------------------------------ vocabularies

    def _published(self, name: str, pattern_name: str, index: Path) -> Vocab:
        entries = json.loads(index.read_bytes())["vocabs"]
        entry = next((entry for entry in entries if entry["name"] == name), None)
        if entry is None:
            raise ValueError(f"{index}: has no vocabulary {name!r}")
        rank_file = self._cache / f"{name}-{entry['sha256'][:12]}.tiktoken"
        if not rank_file.exists():
            data = gzip.decompress((index.parent / entry["file"]).read_bytes())
            if _sha256(data) != entry["sha256"]:
                raise ValueError(f"{entry['file']}: sha256 is not that of {index}")
            _write(rank_file, data)
        return self._with_json(name, rank_file, entry["pat_str"], pattern_name)

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
            # Two merges may make the same bytes; a rank file holds them once.
            tokens = dict.fromkeys(trained.vocab.tokens[i] for i in sorted(trained.vocab.tokens))
            lines = [base64.b64encode(token) + b" %d\n" % n for n, token in enumerate(tokens)]
            _write(rank_file, b"".join(lines))
        return self._with_json(name, rank_file, byteweld.PATTERNS[pattern_name], pattern_name)

    def _with_json(self, name: str, rank_file: Path, pattern: str, pattern_name: str) -> Vocab:
        """Write the ranks as tokenizer.json too, for engines that read no rank files.

        That our own writer makes it is no harm: a wrong file would give wrong ids, and be told.
        """
        tokenizer_json = rank_file.with_suffix(".json")
        if not tokenizer_json.exists():
            import byteweld

            tokenizer = byteweld.load(rank_file, pattern=pattern, special_tokens={})
            # Ranks that no merge list gives have no such file; who needs it then reports an error.
            with contextlib.suppress(byteweld.UnsupportedError):
                tokenizer.save(tokenizer_json, format="huggingface")
        return Vocab(name, rank_file, tokenizer_json, pattern, pattern_name)


def _documents(text: bytes) -> Iterator[bytes]:
    """Cut at SEPARATOR, which no document holds then, and after the first newline past 4 KB."""
    for part in text.split(SEPARATOR.encode()):
        start = 0
        while start < len(part):
            newline = part.find(b"\n", start + _DOCUMENT_BYTES)
            end = len(part) if newline < 0 else newline + 1
            yield part[start:end]
            start = end


def _divide(data: bytes, size: int, other_bytes: int) -> tuple[bytes, bytes]:
    """The first `size` bytes, to the last newline, and what follows for warming up.

    Of a corpus that is too short at least nine tenths are measured.
    """
    size = min(size, len(data) - min(other_bytes, len(data) // 10))
    cut = data.rfind(b"\n", 0, size) + 1 or size
    return _valid(data[:cut]), _valid(data[cut : cut + other_bytes])


def _valid(data: bytes) -> bytes:
    """UTF-8 that every engine takes: what is not becomes U+FFFD."""
    return data.decode("utf-8", "replace").encode()


def _head(file: Path, size: int) -> bytes:
    if file.suffix == ".xz":
        with lzma.open(file) as packed:
            return packed.read(size)
    with file.open("rb") as plain:
        return plain.read(size)


def _stdlib(size: int) -> bytes:
    """Python's library sources in order of their paths; what others installed is left out."""
    root = Path(sysconfig.get_paths()["stdlib"])
    data = bytearray()
    for file in sorted(root.rglob("*.py")):
        if {"site-packages", "dist-packages"}.isdisjoint(file.relative_to(root).parts):
            data += file.read_bytes()
        if len(data) >= size:
            break
    return bytes(data[:size])


def _random_letters(letters: str, size: int) -> bytes:
    return bytes(random.Random(_SEED).choices(letters.encode(), k=size))


def _write(path: Path, data: bytes) -> None:
    part = path.with_name(path.name + ".part")
    part.write_bytes(data)
    part.replace(path)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
