"""The verbs that join the rooms: train(), count(), compare(), measure(). They compute nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from byteweld._text import utf8
from byteweld.corpus import Corpus, OnError, open_corpus
from byteweld.counts import Counts, Memory, count_corpus, same_pattern
from byteweld.errors import CorpusError
from byteweld.recipes import Recipe, find_recipe
from byteweld.tokenizer import Specials, Tokenizer
from byteweld.training import TrainingEvent
from byteweld.training.checkpoint import Checkpoint
from byteweld.training.extend import fit_recipe
from byteweld.training.run import check_pattern, check_size, planned_merges, train_from_counts

if TYPE_CHECKING:  # slow to import, and training needs neither
    from byteweld.comparison.corpora import Comparison
    from byteweld.evaluation.corpora import Evaluation

Path_ = str | os.PathLike[str]
Source = Path_ | Sequence[Path_] | Iterable[str | bytes] | Counts | Corpus

# Of documents in memory, progress is told by batches; of fewer bytes than this, not at all.
_FEW_BYTES = 8 << 20


def train(
    source: Source,
    *,
    vocab_size: int,
    recipe: str | Recipe | None = None,
    start: Tokenizer | None = None,
    checkpoint: Path_ | Checkpoint | None = None,
    ext: str | Sequence[str] | None = None,
    lines: bool = False,
    separator: str | None = None,
    field: str = "text",
    on_error: OnError = "fail",
    prune: int | None = None,
    num_threads: int | None = None,
    memory: Memory | None = None,
    progress: Callable[[TrainingEvent], object] | None = None,
    **changes: Any,
) -> Tokenizer:
    """Train a tokenizer.

    Args:
        source: a path, folder or glob, or a list of them; an iterable of documents (str or bytes;
            a list of str is a list of paths, so pass `iter(texts)`); Counts, or a folder of them.
        vocab_size: how many tokens, special ones included (except in `bpetite` and `rustbpe`).
        recipe: a preset's name or a Recipe; `changes` are fields of it, such as `special_tokens`,
            `pattern`, `min_frequency`, `tie_break`, `max_token_bytes`. By default `modern`, or
            that of `start` where it is known.
        start: a tokenizer to go on from: all its ids and merges stay, further merges are learned
            with its pattern, and their ids come after its largest.
        checkpoint: a folder for the counts and the merges so far. If the training is killed, the
            same call goes on from there and gives the same tokenizer; with other arguments or
            changed files it is refused. When the training is done the folder says so; remove it.
        ext, lines, separator, field, on_error: how files are read (see `byteweld.corpus`).
        prune: leave out pre-tokens that occur less often than this; `Counts.prune` says what it
            costs.
        num_threads: by default as many as there are processors; the result does not depend on it.
        memory: a budget for the whole process, such as "2GB" (a number is bytes); the result does
            not depend on it. Counts that have no room rest on disk; a training that has none is
            refused.
        progress: hears of TrainingEvents: count (bytes read), start, merge (every 100), complete.

    >>> texts = ["low low low low low lower lower"]
    >>> tok = train(iter(texts), vocab_size=260, recipe="from-scratch")
    >>> tok.vocab.merges[:2]
    [(b'o', b'w'), (b'l', b'ow')]
    >>> longer = train(iter(["newest newest"]), start=tok, vocab_size=262)
    >>> longer.vocab.merges[4:]
    [(b'w', b'e'), (b'we', b's')]
    """
    chosen = _recipe(recipe, start, changes)
    before = None if start is None else start.vocab
    check_size(vocab_size, chosen, before)
    check_pattern(chosen)
    started = time.perf_counter()
    reading = {"ext": ext, "lines": lines, "separator": separator, "field": field}
    own = checkpoint.path if isinstance(checkpoint, Checkpoint) else checkpoint
    corpus = _open(source, chosen, memory, own, on_error=on_error, **reading)
    files = len(corpus.files) if isinstance(corpus, Corpus) else None
    file_bytes = corpus.total_bytes if isinstance(corpus, Corpus) else None
    planned = planned_merges(vocab_size, chosen, before)
    tell = None
    if progress is not None:
        tell = _tell_of_counting(progress, planned, file_bytes)
    with contextlib.ExitStack() as stack:
        point = None
        if isinstance(checkpoint, Checkpoint):
            point = checkpoint
        elif checkpoint is not None:
            point = Checkpoint.of(
                checkpoint,
                recipe=chosen,
                vocab_size=vocab_size,
                start=before,
                prune=prune,
                **_facts(corpus),
            )
            stack.callback(point.close)
        resources = _Resources(num_threads, memory)
        counts = _count(corpus, chosen, resources, prune, tell, point)
        if memory is not None:
            counts.check_training(planned, memory)
        vocab, training = train_from_counts(
            counts,
            vocab_size,
            chosen,
            start=before,
            checkpoint=point,
            num_threads=num_threads,
            progress=progress,
            count_seconds=time.perf_counter() - started,
        )
    training = dataclasses.replace(training, files=files, file_bytes=file_bytes)
    return Tokenizer._trained(vocab, training)


def _recipe(
    recipe: str | Recipe | None, start: Tokenizer | None, changes: Mapping[str, Any]
) -> Recipe:
    if start is None:
        return find_recipe("modern" if recipe is None else recipe).replace(**changes)
    if not isinstance(start, Tokenizer):
        raise TypeError(f"start is {start!r}; it must be a Tokenizer, such as load() gives")
    if recipe is None:
        recipe = "modern" if start.training is None else start.training.recipe
    return fit_recipe(find_recipe(recipe).replace(**changes), start.vocab, changes)


def _facts(corpus: Any) -> dict[str, Any]:
    """What a checkpoint knows a corpus by."""
    if isinstance(corpus, Corpus):
        return {"files": corpus.files, "reading": dataclasses.asdict(corpus.reading)}
    if isinstance(corpus, Counts):
        return {"counts": {"distinct": len(corpus), "total": corpus.total}}
    raise TypeError(
        "a checkpoint needs files or Counts, which can be known again; "
        f"found {type(corpus).__name__}"
    )


class _Resources(NamedTuple):
    """What the work may take; the result does not depend on it."""

    num_threads: int | None
    memory: Memory | None


def _count(
    corpus: Any,
    recipe: Recipe,
    resources: _Resources,
    prune: int | None,
    progress: Callable[[int], object] | None,
    checkpoint: Checkpoint | None,
) -> Counts:
    """Count, or take what was counted: by the caller, or before a training was killed."""
    if isinstance(corpus, Counts):
        _check_origin(corpus, recipe)
        counts = corpus
    else:
        kept = None if checkpoint is None else checkpoint.counts(memory=resources.memory)
        if kept is not None:
            return kept
        counts = count_corpus(corpus, recipe, progress=progress, **resources._asdict())
    if prune is not None:
        counts = counts.prune(prune, memory=resources.memory)
    if checkpoint is not None:
        checkpoint.keep_counts(counts)
    return counts


def _tell_of_counting(
    progress: Callable[[TrainingEvent], object], planned: int, total: int | None
) -> Callable[[int], None]:
    def tell(done: int) -> None:
        if total is not None:
            progress(TrainingEvent("count", 0, planned, min(done, total), total))
        elif done >= _FEW_BYTES:
            progress(TrainingEvent("count", 0, planned, done, None))

    return tell


def count(
    source: Source,
    *,
    recipe: str | Recipe = "modern",
    ext: str | Sequence[str] | None = None,
    lines: bool = False,
    separator: str | None = None,
    field: str = "text",
    on_error: OnError = "fail",
    prune: int | None = None,
    num_threads: int | None = None,
    memory: Memory | None = None,
    progress: Callable[[int], object] | None = None,
    **changes: Any,
) -> Counts:
    """Count the pre-tokens of a corpus; arguments as in `train`. `progress` hears of bytes read.

    >>> count(iter(["ab ab ab"]), recipe="bpetite").items()
    [(b' ab', 2), (b'ab', 1)]
    """
    chosen = find_recipe(recipe).replace(**changes)
    reading = {"ext": ext, "lines": lines, "separator": separator, "field": field}
    corpus = _open(source, chosen, memory, None, on_error=on_error, **reading)
    return _count(corpus, chosen, _Resources(num_threads, memory), prune, progress, None)


def compare(
    first: Tokenizer,
    second: Tokenizer,
    corpus: Source,
    *,
    allowed_special: Specials = frozenset(),
    disallowed_special: Specials = "all",
    ext: str | Sequence[str] | None = None,
    lines: bool = False,
    separator: str | None = None,
    field: str = "text",
    on_error: OnError = "fail",
    num_threads: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> Comparison:
    """Encode a corpus with two tokenizers: the same ids or not, where they part, what each costs.

    The corpus is given as in `train`; special tokens are refused or allowed as in `encode`.

    >>> tokens = {b: bytes([b]) for b in range(256)} | {256: b"ab"}
    >>> merging = Tokenizer.from_merges(tokens, [(b"a", b"b")])
    >>> found = compare(merging, Tokenizer.from_merges(tokens, []), iter(["ab c"]))
    >>> found.is_identical, found.total.tokens, found.spans.cut
    (False, (3, 4), 1)
    """
    from byteweld.comparison.corpora import compare_files

    reading = {"ext": ext, "lines": lines, "separator": separator, "field": field}
    return compare_files(
        first,
        second,
        _by_file(corpus, on_error=on_error, **reading),
        allowed_special=allowed_special,
        disallowed_special=disallowed_special,
        num_threads=num_threads,
        progress=progress,
    )


def measure(
    tok: Tokenizer,
    corpus: Source,
    *,
    allowed_special: Specials = frozenset(),
    disallowed_special: Specials = "all",
    ext: str | Sequence[str] | None = None,
    lines: bool = False,
    separator: str | None = None,
    field: str = "text",
    on_error: OnError = "fail",
    num_threads: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> Evaluation:
    """Encode a corpus and look at what came of it: rates by file and script, tokens used, and more.

    Arguments as in `compare`.

    >>> tok = Tokenizer.from_merges({b: bytes([b]) for b in range(256)}, [])
    >>> measure(tok, iter(["ab c"])).total.bytes_per_token
    1.0
    """
    from byteweld.evaluation.corpora import evaluate_files

    reading = {"ext": ext, "lines": lines, "separator": separator, "field": field}
    return evaluate_files(
        tok,
        _by_file(corpus, on_error=on_error, **reading),
        allowed_special=allowed_special,
        disallowed_special=disallowed_special,
        num_threads=num_threads,
        progress=progress,
    )


def _by_file(source: Source, **reading: Any) -> Iterator[tuple[str, Iterable[bytes]]]:
    """A corpus as names and documents; documents in memory are one file."""
    corpus = _open(source, find_recipe("modern"), None, None, **reading)
    if isinstance(corpus, Counts):
        raise TypeError("counts have no documents; pass paths, or an iterable of documents")
    if isinstance(corpus, Corpus):
        for file in corpus.files:
            yield str(file), dataclasses.replace(corpus, files=(file,)).documents()
    else:
        yield "documents", map(utf8, corpus)


def _open(
    source: Source,
    recipe: Recipe,
    memory: Memory | None,
    checkpoint: Path_ | None,
    **reading: Any,
) -> Any:
    """What is to be counted: a Corpus of files, Counts, or an iterable of documents.

    A checkpoint that lies in a folder of the corpus is no part of it.
    """
    if isinstance(source, str | os.PathLike) and Counts.is_saved_at(source):
        source = Counts.load(source, memory=memory)
    if _is_paths(source):
        _check_no_counts(source)
        ext, lines = reading.pop("ext"), reading.pop("lines")
        return open_corpus(
            source,
            ext=recipe.extensions if ext is None else ext,
            unit="line" if lines else recipe.document_unit,
            without=checkpoint,
            **reading,
        )
    usual = {"ext": None, "lines": False, "separator": None, "field": "text", "on_error": "fail"}
    if {name: value or usual[name] for name, value in reading.items()} != usual:
        raise TypeError(
            "ext, lines, separator, field and on_error say how files are read; "
            f"{type(source).__name__} is no path"
        )
    return source


def _check_no_counts(source: Path_ | Sequence[Path_]) -> None:
    """Refuse folders of saved counts among paths: what is in them is no text."""
    paths = [source] if isinstance(source, str | os.PathLike) else source
    saved = next((path for path in paths if Counts.is_saved_at(path)), None)
    if saved is not None:
        raise CorpusError(
            f"{os.fspath(saved)!r} is a folder of saved counts, in a list of paths to text; add "
            "counts up first with Counts.merge([...]), which takes folders and Counts, such as "
            "count() makes of text, and pass the sum"
        )


def _check_origin(counts: Counts, recipe: Recipe) -> None:
    """Refuse counts that were cut otherwise than the recipe says, where that is known."""
    is_known = counts.boundaries is not None
    if (is_known or counts.pattern is not None) and not same_pattern(
        counts.pattern, recipe.pattern
    ):
        raise ValueError(
            f"the counts were made with pattern {counts.pattern!r}, but the recipe has "
            f"{recipe.pattern!r}; pass pattern= to say which you mean"
        )
    if is_known and counts.boundaries != tuple(sorted(set(recipe.boundaries))):
        raise ValueError(
            f"the counts were cut at the special tokens {counts.boundaries}, but the recipe has "
            f"{recipe.boundaries}; count again with the same special_tokens"
        )


def _is_paths(source: Source) -> TypeGuard[Path_ | Sequence[Path_]]:
    if isinstance(source, str | os.PathLike):
        return True
    if isinstance(source, set | frozenset):
        raise TypeError("a set has no order; pass a list of paths, or an iterator of documents")
    if not isinstance(source, list | tuple) or not source:
        return False
    kinds = {isinstance(item, bytes) for item in source}
    if len(kinds) > 1:
        raise TypeError("a list holds either paths (str) or documents (bytes), found both")
    return False in kinds
