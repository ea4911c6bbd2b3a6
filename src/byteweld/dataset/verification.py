"""Checks a dataset: its files against the manifest, its ids, and its text against the corpus."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from byteweld._atomic import PREFIX
from byteweld._files import inside, open_regular
from byteweld.corpus import Corpus, Reading, Source, open_corpus
from byteweld.dataset._findings import Findings, Problem
from byteweld.dataset._id_checks import IdCheck
from byteweld.dataset._manifest import (
    MANIFEST,
    FileEntry,
    Manifest,
    ShardEntry,
    dataset_folder,
    load_manifest,
)
from byteweld.dataset._text_checks import TextCheck
from byteweld.dataset.formats import FORMATS
from byteweld.dataset.reading import check_tokenizer
from byteweld.errors import FormatError, UnsupportedError
from byteweld.tokenizer import Tokenizer

DEFAULT_SAMPLE: Final = 1000
_BLOCK_BYTES: Final = 1 << 20
_SHOWN_FILES: Final = 3

Sample = int | Literal["all"]


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What `byteweld.verify` found.

    Attributes:
        path: the folder of the dataset.
        problems: the first problems; `num_problems` counts all of them.
        num_problems: number of problems.
        notes: what could not be checked, and why.
        files: number of files whose SHA-256 was compared.
        bytes: their size.
        documents: number of documents (or packed rows) that were read.
        tokens: number of ids that were read.
        encoded: documents that were decoded and encoded again.
        compared: documents that were compared with the corpus.
        sources: files of the corpus that were compared by size and digest.

    Examples:
        >>> import pathlib, tempfile
        >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=266, eos="<|end|>")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = byteweld.tokenize(documents=["hello", "hello world"], tokenizer=tok, out=folder)
        ...     pathlib.Path(folder, "train.bin").unlink()
        ...     found = byteweld.verify(folder)
        >>> print(found.problems[0])
        train.bin, shard train 0: the file is missing
        >>> found.is_good, found.to_dict()["num_problems"]
        (False, 1)
    """

    path: Path
    problems: tuple[Problem, ...]
    num_problems: int
    notes: tuple[str, ...]
    files: int
    bytes: int
    documents: int
    tokens: int
    encoded: int
    compared: int
    sources: int

    @property
    def is_good(self) -> bool:
        """Whether no problem was found."""
        return self.num_problems == 0

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-serializable values."""
        problems = [problem.to_dict() for problem in self.problems]
        fields = {**vars(self), "path": str(self.path), "problems": problems}
        return {"is_good": self.is_good, **fields, "notes": list(self.notes)}


def verify(
    path: str | os.PathLike[str],
    source: Source | Sequence[Source] | None = None,
    *,
    tokenizer: Tokenizer | None = None,
    sample: Sample = DEFAULT_SAMPLE,
    ext: str | Sequence[str] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Verification:
    """Check a dataset; what is wrong with it is listed in the result, not raised.

    Size and SHA-256 of every file, counts of documents and tokens, the range of ids, and the place
    of end-of-text tokens are always checked.

    Args:
        path: the folder, or its manifest.
        source: the corpus: a path, folder or glob, or a list of them, in the order in which it was
            tokenized. It is read as it was then; its files are compared by size and digest and,
            with a tokenizer, its documents with those of the dataset.
        tokenizer: the tokenizer that made the dataset. Documents are decoded with it and encoded
            again to the same ids.
        sample: how many documents to decode, chosen by a fixed seed; or "all".
        ext: the extensions of files in folders of `source`, if they were chosen.
        progress: called with the number of bytes checked so far, and in all.

    Examples:
        >>> import tempfile
        >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=266, eos="<|end|>")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = byteweld.tokenize(documents=["hello", "hello world"], tokenizer=tok, out=folder)
        ...     found = byteweld.verify(folder, tokenizer=tok, sample="all")
        >>> found.is_good, found.documents, found.tokens, found.encoded
        (True, 2, 5, 2)
    """
    if sample != "all" and (type(sample) is not int or sample < 0):
        raise ValueError(f"sample is {sample!r}; it must be a number of documents, or 'all'")
    folder = dataset_folder(path)
    found = Findings()
    try:
        manifest = load_manifest(folder)
    except FormatError as error:
        found.add(error.message, file=MANIFEST)
    else:
        corpus = None if source is None else _open(source, ext, folder, manifest)
        if tokenizer is not None:
            try:
                check_tokenizer(tokenizer, manifest, folder)
            except UnsupportedError as error:
                found.add(str(error))
                tokenizer = None
        text = TextCheck(folder, manifest, corpus, tokenizer, sample, found)
        file_bytes = sum(file.size for file in manifest.all_files)
        total = file_bytes + text.total_bytes

        def report(done: int) -> None:
            if progress is not None:
                progress(min(done, total), total)

        _check_manifest(manifest, found)
        _check_names(folder, manifest, found)
        is_readable = _check_files(folder, manifest, found, report)
        if manifest.is_complete and is_readable:
            text.run(lambda done: report(file_bytes + done))
    lists = {"problems": tuple(found.problems), "notes": tuple(found.notes)}
    return Verification(path=folder, **(vars(found) | lists))


def _open(
    source: Source | Sequence[Source],
    ext: str | Sequence[str] | None,
    folder: Path,
    manifest: Manifest,
) -> Corpus:
    """Find the files of a corpus, to be read as they were for the dataset."""
    try:
        reading = Reading(**(manifest.options.get("reading") or {}))
    except TypeError as error:
        raise FormatError(f"options.reading: {error}", path=folder / MANIFEST) from None
    return open_corpus(source, reading, ext=ext, without=folder)


# ---------------------------------------------------------------------- the manifest


def _check_manifest(manifest: Manifest, found: Findings) -> None:
    """Check that the numbers of a manifest agree with each other."""
    if not manifest.is_complete:
        found.add(
            "the dataset is not complete; run the same `byteweld tokenize` again to finish it"
        )
        return

    def compare(what: str, stated: int, numbers: Iterable[int], of: str) -> None:
        if stated != (total := sum(numbers)):
            found.add(f"{what} is {stated}, but {of} have {total}", file=MANIFEST)

    for name, totals in manifest.splits.items():
        shards = manifest.shards_of(name)
        documents = [shard.ended for shard in shards]
        compare(f"splits.{name}.documents", totals["documents"], documents, "its shards")
        tokens = [shard.tokens for shard in shards]
        compare(f"splits.{name}.tokens", totals["tokens"], tokens, "its shards")
    for name in sorted({shard.split for shard in manifest.shards} - manifest.splits.keys()):
        found.add(f"splits has no {name!r}, but there are shards of it", file=MANIFEST)
    splits = manifest.splits.values()
    compare("tokens", manifest.tokens, (split["tokens"] for split in splits), "the splits")
    if manifest.options.get("pack") is None:
        documents = [split["documents"] for split in splits]
        compare("documents", manifest.documents, documents, "the splits")
    documents = [source.documents for source in manifest.sources]
    if sum(documents) > manifest.documents:  # fewer, if there were documents in memory as well
        compare("documents", manifest.documents, documents, "the sources")
    stated, listed = manifest.skipped_documents, len(manifest.skipped)
    if stated < listed:
        found.add(f"skipped_documents is {stated}, but {listed} are listed", file=MANIFEST)


# ---------------------------------------------------------------------- files


def _check_names(folder: Path, manifest: Manifest, found: Findings) -> None:
    """Find files that the manifest does not list; a loader that globs would read some of them."""
    if not manifest.is_complete:
        return  # the run keeps files of its own until it is complete
    listed = {file.name for file in manifest.all_files}
    suffixes = {Path(name).suffix for name in listed}
    others = []
    for name in _names(folder):
        if name in listed or name == MANIFEST or Path(name).name.startswith(PREFIX):
            continue
        if Path(name).suffix in suffixes:
            found.add("the manifest does not list this file; remove it", file=name)
        else:
            others.append(name)
    if others:
        shown = ", ".join(map(repr, others[:_SHOWN_FILES]))
        more = ", …" if len(others) > _SHOWN_FILES else ""
        found.note(f"not part of the dataset and not checked: {shown}{more}")


def _names(folder: Path) -> Iterator[str]:
    """Yield the names of all files in a folder, sorted; links are not followed."""
    for parent, folders, files in os.walk(folder):
        folders.sort()
        for file in sorted(files):
            yield (Path(parent) / file).relative_to(folder).as_posix()


def _check_files(
    folder: Path, manifest: Manifest, found: Findings, progress: Callable[[int], object]
) -> bool:
    """Check every file, and the ids of each shard while its files are in the system's cache.

    Returns whether all shards can be read.
    """
    # pyarrow ends the process on some damaged files, so those are not opened.
    is_ours = manifest.format in FORMATS and not FORMATS[manifest.format].requires
    ids = IdCheck(folder, manifest, found)

    def check(file: FileEntry, shard: ShardEntry | None = None) -> bool:
        """Check a file; returns whether its ids can be looked at."""
        digest = hashlib.sha256()
        size = 0
        try:
            for block in _blocks(inside(folder, file.name)):
                digest.update(block)
                size += len(block)
                progress(found.bytes + size)
        except (OSError, FormatError) as error:
            found.add(_reason(error), shard, file=file.name)
            return False
        found.files += 1
        found.bytes += size
        if size != file.size:
            found.add(f"has {size} bytes; expected {file.size}", shard, file=file.name)
        elif (sha256 := digest.hexdigest()) != file.sha256:
            found.add(f"its SHA-256 is {sha256}; expected {file.sha256}", shard, file=file.name)
        else:
            return True
        return is_ours

    are_readable = True
    for shard in manifest.shards:
        are_there = [check(file, shard) for file in shard.files]
        if all(are_there) and ids.check(shard):
            found.documents += shard.ended
            found.tokens += shard.tokens
        else:
            are_readable = False
    for file in manifest.files:
        check(file)
    return are_readable


def _blocks(path: Path) -> Iterator[bytes]:
    with os.fdopen(open_regular(path), "rb", buffering=0) as file:
        while block := file.read(_BLOCK_BYTES):
            yield block


def _reason(error: OSError | FormatError) -> str:
    if isinstance(error, FormatError):
        return error.message
    if isinstance(error, FileNotFoundError):
        return "the file is missing"
    return f"cannot be read: {error.strerror or error}"
