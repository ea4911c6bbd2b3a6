"""The public functions that connect the modules: train, count, tokenize, compare, evaluate."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Unpack

from byteweld.corpus import Corpus, ReadingOptions
from byteweld.counts import Counts, Memory
from byteweld.jobs import Runner, open_runner
from byteweld.jobs.counting import count_sources
from byteweld.recipes import Recipe, find_recipe
from byteweld.sources import Counted, Document, Path_, Source, Sources, open_sources
from byteweld.tokenizer import Specials, Tokenizer
from byteweld.training.extend import fit_recipe
from byteweld.training.plan import make_plan
from byteweld.training.report import TrainingEvent
from byteweld.training.run import run

if TYPE_CHECKING:  # slow to import, and training needs none of them
    from byteweld.comparison.corpora import Comparison
    from byteweld.dataset._manifest import Manifest
    from byteweld.dataset.make import Progress
    from byteweld.evaluation.corpora import Evaluation


def train(
    source: Source | None = None,
    *,
    vocab_size: int,
    documents: Iterable[Document] | None = None,
    recipe: str | Recipe | None = None,
    start: Tokenizer | None = None,
    bos: str | None = None,
    eos: str | None = None,
    pad: str | None = None,
    unk: str | None = None,
    checkpoint: Path_ | None = None,
    prune: int | None = None,
    num_threads: int | None = None,
    memory: Memory | None = None,
    runner: str | Runner = "local",
    progress: Callable[[TrainingEvent], object] | None = None,
    on_counted: Callable[[Counted], object] | None = None,
    **options: Any,
) -> Tokenizer:
    """Train a tokenizer.

    Args:
        source: a path, folder or glob, or a list of them; saved counts (a folder, or Counts); or an
            iterator of documents.
        vocab_size: number of tokens, special tokens included (except in `bpetite` and `rustbpe`).
        documents: strings or bytes to train on, alone or together with `source`.
        recipe: the name of a preset in `byteweld.RECIPES`, or a Recipe. Default: `modern`, or the
            recipe of `start` where it is known.
        start: a tokenizer to extend. It keeps all its ids and merges; further merges are learned
            with its pattern and get the ids after its highest.
        bos: the special token at the beginning of a text; added to the special tokens if it is not
            among them, and so are the next three.
        eos: the special token at the end of a text.
        pad: the special token that fills up batches.
        unk: the special token for what is not in the vocabulary's alphabet.
        checkpoint: a folder for the counts and the merges so far. If training is interrupted,
            the same call resumes it and gives the same tokenizer; other arguments or changed files
            are refused. Remove the folder when you have saved the result.
        prune: ignore pre-tokens that occur less often than this; see `Counts.prune`.
        num_threads: default: one per processor. The result does not depend on it.
        memory: a budget for the whole process, such as "2GB" (a number is bytes). Counts that do
            not fit go to disk; training that may not fit is refused. The result does not
            depend on it. On a runner, it is also the budget of each task.
        runner: what counts the files: "local", "ray", or a Runner such as
            `byteweld.jobs.ray.RayRunner(address=...)`; merges are learned here. The result does
            not depend on it.
        progress: called with TrainingEvents: count (bytes read), start, merge (every 100),
            complete.
        on_counted: called with `byteweld.sources.Counted`, the counts and what they were made from,
            before merges are learned.
        **options: how files are read (`ext`, `lines`, `separator`, `field`, `json_lines`,
            `on_error`; see `byteweld.corpus.Reading`), and fields of the recipe to change, such as
            `special_tokens`, `pattern`, `min_frequency`, `tie_break`, `max_token_bytes`.

    Returns:
        The tokenizer; its `training` says what happened.

    Raises:
        BudgetError: if `memory` is too small.
        CorpusError: if a file cannot be read as text.
        ValueError: if `vocab_size` is less than the alphabet and the special tokens need.

    Examples:
        From files, the usual way: `byteweld.train("books/*.txt", vocab_size=32_768)`. From strings:

        >>> tok = byteweld.train(
        ...     documents=["low low low lower lower newest"],
        ...     vocab_size=261,
        ...     special_tokens=["<|endoftext|>"],
        ... )
        >>> tok.vocab.merges
        [(b'l', b'o'), (b'lo', b'w'), (b' ', b'low'), (b'e', b'r')]
        >>> tok.encode("low lower<|endoftext|>", allowed_special="all")
        [257, 258, 259, 260]

        Extended with the merges of another corpus; all ids stay the same:

        >>> longer = byteweld.train(documents=["newest newest"], start=tok, vocab_size=263)
        >>> longer.vocab.merges[4:]
        [(b'e', b's'), (b'e', b'w')]
    """
    reading = _take_reading(options)
    roles = {"bos": bos, "eos": eos, "pad": pad, "unk": unk}
    chosen = choose_recipe(recipe, start, roles, options)
    with _runner(runner, None) as running:
        vocab, training = run(
            _open(source, documents, chosen, reading, without=checkpoint),
            make_plan(vocab_size, chosen, None if start is None else start.vocab),
            checkpoint=checkpoint,
            prune=prune,
            num_threads=num_threads,
            memory=memory,
            runner=running,
            progress=progress,
            on_counted=on_counted,
        )
    return Tokenizer._of(vocab, training=training, is_tried=True)


def choose_recipe(
    recipe: str | Recipe | None,
    start: Tokenizer | None,
    roles: Mapping[str, str | None],
    changes: Mapping[str, Any],
) -> Recipe:
    """Return the recipe of a training run, with changed fields and declared roles."""
    declared = {role: text for role, text in roles.items() if text is not None}
    for name in changes:  # transformers says eos_token; the nearest field is special_tokens
        role = name.removesuffix("_token")
        if role != name and role in roles:
            raise TypeError(f"unknown option {name!r}; did you mean {role!r}?")
    if start is None:
        chosen = find_recipe("modern" if recipe is None else recipe)
        return chosen.replace(**changes).with_roles(declared)
    if not isinstance(start, Tokenizer):
        raise TypeError(f"start is {start!r}; it must be a Tokenizer, such as load() returns")
    if recipe is None:
        recipe = "modern" if start.training is None else start.training.recipe
    for role, text in declared.items():
        if text not in start.vocab.special_tokens:
            raise ValueError(
                f"{role} is {text!r}, which is not a special token of the tokenizer to start from, "
                "and extending a tokenizer cannot add any"
            )
    chosen = fit_recipe(find_recipe(recipe).replace(**changes), start.vocab, changes)
    return chosen.with_roles(declared)


def count(
    source: Source | None = None,
    *,
    documents: Iterable[Document] | None = None,
    recipe: str | Recipe = "modern",
    prune: int | None = None,
    num_threads: int | None = None,
    memory: Memory | None = None,
    runner: str | Runner = "local",
    progress: Callable[[int], object] | None = None,
    **options: Any,
) -> Counts:
    """Count the pre-tokens of a corpus, for training.

    Counts can be saved, added and pruned, so a large corpus is counted in parts, and only once for
    any number of training runs.

    Args:
        source: as in `train`.
        documents: strings or bytes to count, alone or together with `source`.
        recipe: the preset or Recipe to train with later; it says how documents are split.
        prune: leave out pre-tokens that occur less often than this; see `Counts.prune`.
        num_threads: default: one per processor. The result does not depend on it.
        memory: as in `train`.
        runner: as in `train`.
        progress: called with the number of bytes read so far.
        **options: as in `train`.

    Examples:
        >>> counts = byteweld.count(documents=["low low low lower lower newest"])
        >>> counts.most_common(2)
        [(b' low', 2), (b' lower', 2)]
        >>> byteweld.train(counts, vocab_size=260).vocab.merges
        [(b'l', b'o'), (b'lo', b'w'), (b' ', b'low'), (b'e', b'r')]
    """
    reading = _take_reading(options)
    chosen = find_recipe(recipe).replace(**options)
    with _runner(runner, num_threads) as running:
        counts = count_sources(
            _open(source, documents, chosen, reading),
            chosen,
            runner=running,
            num_threads=num_threads,
            memory=memory,
            progress=None if progress is None else lambda done, total: progress(done),
        ).counts
    return counts if prune is None else counts.prune(prune, memory=memory)


def tokenize(
    source: Source | None = None,
    tokenizer: Tokenizer | None = None,
    *,
    out: Path_,
    format: str = "flat",
    documents: Iterable[Document] | None = None,
    overwrite: bool = False,
    num_threads: int | None = None,
    runner: str | Runner = "local",
    progress: Callable[[Progress], object] | None = None,
    **options: Any,
) -> Manifest:
    """Encode a corpus into a dataset: the files that a training framework reads.

    If the call is interrupted, even by SIGKILL, the same call continues where it left off and
    gives the same bytes; other arguments or changed files are refused. Memory is bounded, whatever
    the size of the corpus.

    Args:
        source: as in `train`.
        tokenizer: what encodes the documents.
        out: the folder of the dataset; new, empty, or of an earlier run. On a runner, it may be a
            URL of fsspec.
        format: the layout of the files; one of `byteweld.DATASET_FORMATS`.
        documents: strings or bytes to encode, alone or together with `source`.
        overwrite: start over if the folder holds a dataset.
        num_threads: default: one per processor. The result does not depend on it.
        runner: what encodes the files and writes the shards, as in `train`. The result does not
            depend on it.
        progress: called with `byteweld.dataset.make.Progress` now and then.
        **options: how files are read (as in `train`), and what is written: `eot`, `eot_token`,
            `bos`, `special_text`, `validation`, `seed`, `shuffle`, `shard_tokens`, `pack`, `dtype`,
            `prefix`; see `byteweld.dataset.options.Options`.

    Returns:
        The manifest, which is also in the folder.

    Examples:
        >>> import os, tempfile
        >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=266, eos="<|end|>")
        >>> documents = ["hello", "hello world"]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     manifest = byteweld.tokenize(documents=documents, tokenizer=tok, out=folder)
        ...     sorted(os.listdir(folder))
        ['manifest.json', 'train.bin', 'train.bin.index']
        >>> manifest.documents, manifest.tokens  # each document ends with <|end|>
        (2, 5)
    """
    from byteweld.dataset.make import make
    from byteweld.dataset.options import Options

    if not isinstance(tokenizer, Tokenizer):
        raise TypeError(f"tokenizer is {tokenizer!r}; it must be a Tokenizer, as load() returns")
    reading = _take_reading(options)
    known = {field.name for field in dataclasses.fields(Options)} - {"format"}
    unknown = options.keys() - known
    if unknown:
        raise TypeError(
            f"unknown option {min(unknown)!r}; expected one of {', '.join(sorted(known))}, or one "
            f"that says how files are read: {', '.join(ReadingOptions.__annotations__)}"
        )
    plan = Options(format=format, **options).complete(tokenizer)
    sources = _open(source, documents, None, reading, without=out)
    with _runner(runner, num_threads) as running:
        return make(
            sources,
            tokenizer,
            out,
            plan,
            runner=running,
            overwrite=overwrite,
            num_threads=num_threads,
            progress=progress,
        ).manifest


def compare(
    first: Tokenizer,
    second: Tokenizer,
    *others: Tokenizer | Source,
    corpus: Source | None = None,
    documents: Iterable[Document] | None = None,
    allowed_special: Specials | None = None,
    disallowed_special: Specials = "all",
    num_threads: int | None = None,
    progress: Callable[[int], object] | None = None,
    runner: str | Runner | None = None,
    **reading: Unpack[ReadingOptions],
) -> Comparison:
    """Encode a corpus with several tokenizers and compare: ids, first differences, cost, speed.

    Args:
        first: a tokenizer.
        second: the tokenizer to compare it with.
        *others: more tokenizers; the last of them may be the corpus instead.
        corpus: the files, given as `source` in `train`.
        documents: strings or bytes to encode, alone or together with `corpus`.
        allowed_special: as in `encode`, except that special tokens in the corpus become their ids
            unless this argument or the next says otherwise.
        disallowed_special: as in `encode`.
        num_threads: default: one per processor.
        progress: called with the number of bytes compared so far.
        runner: "ray", or a Runner: files are compared in its tasks, with the same result.
        **reading: how files are read, as in `train`.

    Examples:
        >>> large = byteweld.train(documents=["hello world"] * 2, vocab_size=265)
        >>> small = large.cut(263)
        >>> found = byteweld.compare(large, small, documents=["hello world", "hi"])
        >>> found.is_identical
        False
        >>> found.total.tokens, found.total.differing_documents
        ((4, 6), 1)
        >>> byteweld.compare(large, small, large.cut(260), documents=["hello world"]).total.tokens
        (2, 4, 7)
    """
    from byteweld.comparison.corpora import compare_files

    tokenizers: list[Any] = [first, second, *others]
    if others and not isinstance(others[-1], Tokenizer):
        if corpus is not None:
            raise TypeError(f"the corpus is given twice: {others[-1]!r} and corpus={corpus!r}")
        corpus = tokenizers.pop()
    _check_tokenizers(*tokenizers)
    sources = _open(corpus, documents, None, reading)
    with _runner(runner, num_threads) as running:
        if running is not None:
            from byteweld.jobs.comparing import compare_corpus

            return compare_corpus(
                running,
                tokenizers,
                _only_files(sources),
                allowed_special=allowed_special,
                disallowed_special=disallowed_special,
                progress=progress,
            ).comparison
    return compare_files(
        tokenizers,
        sources.by_file(),
        allowed_special=allowed_special,
        disallowed_special=disallowed_special,
        num_threads=num_threads,
        progress=progress,
    )


def evaluate(
    tok: Tokenizer,
    corpus: Source | None = None,
    *,
    documents: Iterable[Document] | None = None,
    allowed_special: Specials | None = None,
    disallowed_special: Specials = "all",
    num_threads: int | None = None,
    progress: Callable[[int], object] | None = None,
    **reading: Unpack[ReadingOptions],
) -> Evaluation:
    """Encode a corpus and measure the result: rates by file and script, tokens used, and more.

    Args:
        tok: the tokenizer.
        corpus: the files, given as `source` in `train`.
        documents: strings or bytes to encode, alone or together with `corpus`.
        allowed_special: as in `compare`.
        disallowed_special: as in `compare`.
        num_threads: default: one per processor.
        progress: called with the number of bytes encoded so far.
        **reading: how files are read, as in `train`.

    Examples:
        >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=265)
        >>> found = byteweld.evaluate(tok, documents=["hello world, hello"])
        >>> found.total.bytes, found.total.tokens, found.total.bytes_per_token
        (18, 5, 3.6)
    """
    from byteweld.evaluation.corpora import evaluate_files

    _check_tokenizers(tok)
    return evaluate_files(
        tok,
        _open(corpus, documents, None, reading).by_file(),
        allowed_special=allowed_special,
        disallowed_special=disallowed_special,
        num_threads=num_threads,
        progress=progress,
    )


def _check_tokenizers(*given: Tokenizer) -> None:
    for tok in given:
        if not isinstance(tok, Tokenizer):
            raise TypeError(f"expected a Tokenizer, found {type(tok).__name__}")


def _runner(
    runner: str | Runner | None, num_threads: int | None
) -> contextlib.AbstractContextManager[Runner | None]:
    """Return what runs tasks, to be used in a `with` statement; it is None for none."""
    if runner is None or runner == "local":
        return contextlib.nullcontext(None)
    if num_threads is not None:
        raise ValueError(
            f"num_threads is {num_threads}, but the tasks of a runner have threads of their own, "
            "such as cpus_per_task of Ray's; leave it out"
        )
    return open_runner(runner)


def _only_files(sources: Sources) -> Corpus:
    if sources.corpus is None or sources.documents is not None or sources.tables:
        raise TypeError("only files can be divided among tasks; pass paths, or leave runner out")
    return sources.corpus


def _take_reading(options: dict[str, Any]) -> ReadingOptions:
    """Move the options that say how files are read out of `options`."""
    names = ReadingOptions.__annotations__.keys() & options.keys()
    return {name: options.pop(name) for name in names}  # type: ignore[return-value]


def _open(
    source: Source | None,
    documents: Iterable[Document] | None,
    recipe: Recipe | None,
    reading: ReadingOptions,
    without: Path_ | None = None,
) -> Sources:
    try:
        return open_sources(
            source, documents=documents, recipe=recipe, options=reading, without=without
        )
    except FileNotFoundError as error:
        strings = [source] if isinstance(source, str) else source
        if not isinstance(strings, list | tuple) or any(map(_exists, strings)):
            raise
        is_text = isinstance(source, str) and (
            "looks like text" in str(error) or (len(source.split()) > 1 and "/" not in source)
        )
        if isinstance(source, str) and not is_text:
            raise
        raise FileNotFoundError(
            f"{error}; to use strings as documents, pass documents=[...]"
        ) from None


def _exists(path: Path_) -> bool:
    try:
        return os.path.lexists(path)
    except ValueError:  # contains a NUL
        return False
