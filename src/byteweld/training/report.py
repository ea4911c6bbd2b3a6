"""Training: what a training run did, and its report, saved next to the vocabulary.

The report of `tokenizer.json` is `tokenizer.training.json`. It holds what the vocabulary's own file
cannot: the corpus, the recipe, the count of every merge, the timings. The fingerprint in it
ties the two together.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from byteweld._saves import read_together, write_atomic
from byteweld._typed import WrongError, reader
from byteweld.errors import FormatError
from byteweld.formats import _json
from byteweld.recipes import Recipe
from byteweld.vocab import MAX_ID, Vocabulary

Stop = Literal["size", "no pairs", "min frequency"]
Stage = Literal["count", "merge"]

_FORMAT = "byteweld training 1"
_SUFFIX = ".training.json"
_IN_FOLDER = "training.json"
_BITS = 128  # counts have 64 bits, but sums of them may have more


class TrainingEvent(NamedTuple):
    """An event that `byteweld.train` passes to `progress`, first while counting, then merging.

    Events of kind `count` come while files are read; then, as in bpetite, `start`, `merge` after
    every 100 merges, and `complete`.

    Attributes:
        kind: "count", "start", "merge" or "complete".
        merges_completed: number of merges learned so far.
        merges_planned: number of merges to learn.
        bytes_done: bytes of the files read so far.
        bytes_total: bytes of all files; None if unknown.

    Examples:
        >>> def show(event):
        ...     print(event.stage, event.kind, event.done, "of", event.total)
        >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=265, progress=show)
        merge start 0 of 9
        merge complete 9 of 9
    """

    kind: Literal["count", "start", "merge", "complete"]
    merges_completed: int
    merges_planned: int
    bytes_done: int = 0
    bytes_total: int | None = None

    @property
    def stage(self) -> Stage:
        """The current stage: `count` (reading and counting files) or `merge`."""
        return "count" if self.kind == "count" else "merge"

    @property
    def done(self) -> int:
        """How much of the stage is done: bytes of the files on disk, or merges."""
        return self.bytes_done if self.kind == "count" else self.merges_completed

    @property
    def total(self) -> int | None:
        """How much the stage has in total; None if unknown."""
        return self.bytes_total if self.kind == "count" else self.merges_planned


class Start(NamedTuple):
    """The vocabulary that a training run extended: its ids stay the same, new ids follow them."""

    fingerprint: str
    tokens: int
    merges: int
    first_new_id: int


@dataclass(frozen=True, kw_only=True)
class Training:
    """What a training run did; `Tokenizer.training` is one. `str()` is a summary for people.

    Attributes:
        recipe: the recipe, with all fields that were changed.
        vocab_size: the requested size.
        merges_learned: number of merges that were learned.
        merges_planned: number of merges that the requested size has room for.
        stop: why training stopped: "size" (it was reached), "no pairs" (none was left to merge) or
            "min frequency" (the best pair occurred less often than that).
        merge_counts: for each learned merge, how often its pair occurred.
        removed_tokens: for each, by how many tokens it shortened the corpus.
        first_tokens: tokens in the corpus before the first merge.
        total_bytes: of all pre-tokens.
        distinct_pretokens: number of different pre-tokens.
        total_pretokens: number of pre-tokens, repetitions included.
        skipped_documents: number of documents left out because of `on_error="skip"`.
        count_seconds: time spent reading and counting.
        merge_seconds: time spent learning merges.
        layout_seconds: time between the two, spent laying out the pre-tokens in memory.
        pruned_pretokens: rare pre-tokens that were left out of the counts.
        pair_error: so pair counts are too small by at most this.
        files: number of files; None if unknown, as are the next four.
        file_bytes: their size.
        peak_memory_bytes: of the process, at the end of the training.
        version: of byteweld.
        start: the vocabulary that the run extended, if it did.

    Examples:
        >>> tok = byteweld.train(documents=["low low low lower"], vocab_size=300)
        >>> print(tok.training)
        learned 3 of 44 merges; stopped because the best pair occurred fewer than 2 times
        >>> tok.training.merge_counts, tok.training.total_tokens
        ((4, 4, 3), 6)
        >>> round(tok.training.bytes_per_token, 2)
        2.83
        >>> tok.training.encoding_with(None).recipe.encode_pattern is None
        True

        Its report, which `Tokenizer.save` writes and `byteweld.load` reads by themselves:

        >>> import json, tempfile
        >>> json.loads(tok.training.render(tok.vocab))["merges_learned"]
        3
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tok.training.save(f"{folder}/report.json", tok.vocab)
        ...     byteweld.Training.load(f"{folder}/report.json", tok.vocab) == tok.training
        True
    """

    recipe: Recipe
    vocab_size: int
    merges_learned: int
    merges_planned: int
    stop: Stop
    merge_counts: tuple[int, ...]
    removed_tokens: tuple[int, ...]
    first_tokens: int
    total_bytes: int
    distinct_pretokens: int
    total_pretokens: int
    skipped_documents: int
    count_seconds: float
    merge_seconds: float
    layout_seconds: float = 0.0
    pruned_pretokens: int = 0
    pair_error: int = 0
    files: int | None = None
    file_bytes: int | None = None
    peak_memory_bytes: int | None = None
    version: str | None = None
    start: Start | None = None

    def __str__(self) -> str:
        reasons = {
            "size": "the vocabulary has the requested size",
            "no pairs": "no pairs were left to merge",
            "min frequency": f"the best pair occurred fewer than {self.recipe.min_frequency} times",
        }
        return (
            f"learned {self.merges_learned:,} of {self.merges_planned:,} merges; "
            f"stopped because {reasons[self.stop]}"
        )

    @property
    def total_tokens(self) -> int:
        """Number of tokens in the corpus, split as in the training."""
        return self.first_tokens - sum(self.removed_tokens)

    @property
    def bytes_per_token(self) -> float | None:
        """Bytes per token of the corpus, split as in the training; None if it is empty."""
        tokens = self.total_tokens
        return self.total_bytes / tokens if tokens else None

    def encoding_with(self, pattern: str | None) -> Training:
        """Return the same run of a recipe whose vocabulary has this pattern."""
        if self.recipe.encode_pattern == pattern:
            return self
        recipe = dataclasses.replace(self.recipe, encode_pattern=pattern)
        return dataclasses.replace(self, recipe=recipe)

    # ------------------------------------------------------------------ the report

    def save(
        self, path: str | os.PathLike[str], vocab: Vocabulary, *, overwrite: bool = False
    ) -> None:
        """Write the report of the run that made `vocab`, usually to its `report_path`.

        The file is JSON and is written atomically. `Tokenizer.save` does this by itself.
        """
        write_atomic(path, self.render(vocab), overwrite=overwrite)

    def render(self, vocab: Vocabulary) -> bytes:
        """Return the content of the report of the run that made `vocab`, as JSON."""
        _check_vocab(vocab)
        facts = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        lists = {name: facts.pop(name) for name in _LISTS}
        facts["recipe"] = dataclasses.asdict(self.recipe)
        facts["start"] = None if self.start is None else self.start._asdict()
        report = {
            "format": _FORMAT,
            "fingerprint": vocab.fingerprint,
            "tokens": len(vocab),
            "bytes_per_token": self.bytes_per_token,
            **facts,
            **lists,
        }
        # One field per line, for human readers; the long lists come last.
        fields = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in report.items())
        return f"{{\n{fields}\n}}\n".encode()

    @staticmethod
    def load(path: str | os.PathLike[str], vocab: Vocabulary) -> Training:
        """Read the report of the run that made `vocab`.

        `byteweld.load` does this by itself, if the report is next to the vocabulary.

        Raises:
            FormatError: if it is not a report, or about another vocabulary.
        """
        _check_vocab(vocab)
        return read_together(Path(path), lambda file: [file], lambda file: _load(file, vocab))


def _load(file: Path, vocab: Vocabulary) -> Training:
    report = _json.parse_object(_json.read_file(file, _json.MAX_BESIDE_BYTES), file)
    found = _json.require(report, "format", file, "the report")
    if found != _FORMAT:
        raise FormatError(f"the format is {_json.show(found)}; expected {_FORMAT!r}", path=file)
    fingerprint = _json.require(report, "fingerprint", file, "the report")
    if fingerprint == vocab.fingerprint:
        return _read(report, len(vocab.merge_ids), file)
    # A file without a pattern may be loaded with another one than its training was reported with.
    with contextlib.suppress(FormatError):
        training = _read(report, len(vocab.merge_ids), file)
        traits = vocab.traits() | {"pattern": training.recipe.encode_pattern}
        if fingerprint == Vocabulary(vocab.tokens, vocab.merge_ids, **traits).fingerprint:
            return training.encoding_with(vocab.pattern)
    raise FormatError(
        f"this report is about the vocabulary {_json.show(fingerprint)}; "
        f"expected {vocab.fingerprint!r}",
        path=file,
    )


def _check_vocab(vocab: Vocabulary) -> None:
    if not isinstance(vocab, Vocabulary):
        raise TypeError(f"expected a Vocabulary, found {type(vocab).__name__}")


def report_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of the report for a vocabulary's file or folder.

    >>> str(report_path("out/tokenizer.json"))
    'out/tokenizer.training.json'
    """
    target = Path(path)
    if target.is_dir() or os.fspath(path).endswith(os.sep):
        return target / _IN_FOLDER
    return target.with_name(target.stem + _SUFFIX)


def load_report(path: str | os.PathLike[str], vocab: Vocabulary) -> Training | None:
    """Return the report next to a vocabulary's file; None if it is missing or does not match."""
    try:
        return Training.load(report_path(path), vocab)
    except (OSError, FormatError):
        return None


# ---------------------------------------------------------------------------- reading

# Keys that are not fields of a Training: they identify the vocabulary or derive from other fields.
_NOT_FIELDS = ("format", "fingerprint", "tokens", "bytes_per_token")
_LISTS = ("merge_counts", "removed_tokens")
# Reports of earlier versions do not have it: it is included in their `merge_seconds`.
_LATER = {"layout_seconds": 0.0}


def _read(report: dict[str, object], merges: int, file: Path) -> Training:
    fields = {key: value for key, value in report.items() if key not in _NOT_FIELDS}
    try:
        training: Training = reader(Training, _BITS)(_LATER | fields)
        _check_consistent(training, merges)
    except WrongError as error:
        raise FormatError(str(error), path=file) from None
    return training


def _check_consistent(training: Training, merges: int) -> None:
    """Raise unless the numbers of a report agree, also with those of the vocabulary."""
    start = training.start
    if start is not None and max(start[1:]) > MAX_ID + 1:
        raise WrongError(f"expected numbers up to {MAX_ID + 1}, found {start[1:]}", "start")
    planned = merges - (start.merges if start else 0)
    for name in _LISTS:
        found = len(getattr(training, name))
        if not found == training.merges_learned == planned:
            raise WrongError(
                f"{name} has {found} numbers and merges_learned is {training.merges_learned}; "
                f"expected {planned}, as in the vocabulary"
            )
    if sum(training.removed_tokens) > training.first_tokens:
        raise WrongError("the sum of removed_tokens is greater than first_tokens")
