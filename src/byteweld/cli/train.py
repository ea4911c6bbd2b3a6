"""`byteweld train`: sources -> counts -> merges -> files."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np

import byteweld
from byteweld.cli import _corpus, _errors, _input, _output, _targets
from byteweld.cli import _options as options
from byteweld.cli._command import Option
from byteweld.render import visible

EXAMPLES = """
byteweld train books/ --vocab-size 32768
byteweld train 'data/*.jsonl.zst' --field text --vocab-size 64k --special '<|endoftext|>'
byteweld train books/ --sizes 8k,16k,32k --out books.json
byteweld train letters/ --start books-8k.json --vocab-size 10k --out letters.json
byteweld train huge/ --vocab-size 128k --checkpoint huge.checkpoint
byteweld train tiny.txt --recipe from-scratch --vocab-size 500 --out tiny.json
byteweld train drawings/ --recipe ck --vocab-size 320 --out tokenizer.json --binary-out export/
cat corpus.txt | byteweld train - --vocab-size 8192 --out corpus.tiktoken
"""

_CK_VOCAB_SIZE = 1024  # the ck seed's own default; its users rely on it
_LONGEST = 5  # tokens that people see
_MANY = 2**60  # more than any minimum frequency that makes sense

VocabSize = Annotated[
    int | None,
    Option(
        "--vocab-size",
        metavar="N",
        read=options.vocab_size("--vocab-size"),
        help="How many tokens; 32k is 32 times 1024. Needed, unless --sizes is given, except with "
        f"recipe ck, where it is {_CK_VOCAB_SIZE}.",
        group="Recipe",
    ),
]
Sizes = Annotated[
    str | None,
    Option(
        "--sizes",
        metavar="LIST",
        help="Several sizes from one training, such as 8k,16k,32k: writes tokenizer-8k.json and so "
        "on, each the same as if it were trained alone.",
        group="Recipe",
    ),
]
RecipeName = Annotated[
    str | None,
    Option(
        "--recipe",
        metavar="NAME",
        help=f"How to train: {', '.join(byteweld.RECIPES)}. Default: modern, or that of --start "
        "where its training report is there.",
        read=options.choice(list(byteweld.RECIPES), "--recipe"),
        group="Recipe",
    ),
]
StartPath = Annotated[
    str | None,
    Option(
        "--start",
        metavar="PATH",
        help="A tokenizer to extend: all its ids and merges stay, further merges are learned with "
        "its pattern and get the next ids. The size counts its tokens, too.",
        group="Recipe",
    ),
]
CheckpointPath = Annotated[
    str | None,
    Option(
        "--checkpoint",
        metavar="DIR",
        help="Keep the counts and the merges so far in this folder. If the training is killed, the "
        "same command goes on from there; when all is written, the folder is removed.",
        group="Writing",
    ),
]
ProgressKind = Annotated[
    str | None,
    Option(
        "--progress",
        metavar="json",
        help="Show progress as JSON lines on stderr: stage, done, total, rate, time left. "
        "Default: a bar on a terminal, now and then a line elsewhere.",
        read=options.choice(["json"], "--progress"),
    ),
]
Out = Annotated[
    str,
    Option(
        "--out",
        metavar="PATH",
        help="Where to write. Default: tokenizer.json.",
        group="Writing",
    ),
]
OutFormat = Annotated[
    str | None,
    Option(
        "--format",
        metavar="NAME",
        help=f"What to write, where the name should not decide: {', '.join(byteweld.FORMATS)}.",
        group="Writing",
    ),
]
BinaryOut = Annotated[
    str | None,
    Option(
        "--binary-out",
        metavar="DIR",
        help="Write ck's binary export as well, four files.",
        group="Writing",
    ),
]


class _Size(NamedTuple):
    """A size to write, and where."""

    label: str
    vocab_size: int
    targets: list[_targets.Target]


class _Made(NamedTuple):
    """What came out for a size."""

    size: _Size
    tok: byteweld.Tokenizer
    training: byteweld.Training
    bytes_per_token: float | None


def prepare(arguments: list[str]) -> list[str]:
    """Whether an error of the arguments themselves is a JSON line must be known before it."""
    pairs = itertools.pairwise(arguments)
    _output.progress_as_json("--progress=json" in arguments or ("--progress", "json") in pairs)
    return arguments


def run(
    source: options.Sources,
    vocab_size: VocabSize = None,
    sizes: Sizes = None,
    recipe: RecipeName = None,
    start: StartPath = None,
    pattern: options.PatternText = None,
    encode_pattern: options.EncodePattern = None,
    special: options.Special = None,
    specials_file: options.SpecialsFile = None,
    min_frequency: options.MinFrequency = None,
    max_token_bytes: options.MaxTokenBytes = None,
    tie_break: options.TieBreak = None,
    ascii_only: options.AsciiOnly = False,
    out: Out = "tokenizer.json",
    format: OutFormat = None,
    binary_out: BinaryOut = None,
    checkpoint: CheckpointPath = None,
    force: Annotated[
        bool,
        Option("--force", help="Replace files that exist.", group="Writing"),
    ] = False,
    ext: options.Ext = None,
    lines: options.Lines = False,
    field: options.Field = None,
    separator: options.Separator = None,
    on_error: options.OnError = "fail",
    prune: options.Prune = None,
    threads: options.Threads = None,
    memory: options.Memory = None,
    progress: ProgressKind = None,
    json: options.Json = False,
) -> None:
    """Learn a vocabulary from a corpus and write it, with a report of the training beside it.

    The result depends on the documents, the recipe and the size, and on nothing else: not on the
    number of threads or the order of the files. Folders of saved counts (see `byteweld count`) are
    sources, too. The report, tokenizer.training.json, holds the corpus's figures, the recipe, the
    count of every merge and the times.
    """
    started = time.perf_counter()
    _output.progress_as_json(progress == "json")
    trial, start_tok = _trial(
        recipe,
        start,
        pattern=pattern,
        special=special,
        specials_file=specials_file,
        ascii_only=ascii_only,
        encode_pattern=encode_pattern,
        min_frequency=min_frequency,
        max_token_bytes=max_token_bytes,
        tie_break=tie_break,
    )
    assert trial.training is not None  # it was trained just now
    chosen = trial.training.recipe
    plan = _sizes(vocab_size, sizes, chosen, out, format, binary_out, start_tok)
    largest = max(size.vocab_size for size in plan)
    files = _check(trial, plan, force=force)

    reading = options.Reading(ext, lines, field, separator, on_error)
    with contextlib.ExitStack() as stack:
        point = stack.enter_context(
            _checkpoint(checkpoint, source, chosen, reading, largest, start_tok, prune)
        )
        resources: dict[str, Any] = {"threads": threads, "memory": memory}
        counted = _count(source, chosen, reading, point, prune=prune, **resources)
        _output.say(counted.sentence())
        tok = _train(counted.counts, largest, chosen, start_tok, point, **resources)
        made = [_cut(tok, size, counted, threads) for size in plan]
        _write(made, files, force=force)
        if point is not None:
            point.remove()
        _conclude(made, counted, time.perf_counter() - started)
    if json:
        _output.report(_report(made, counted))


# ---------------------------------------------------------------------------- before the work


def _trial(
    name: str | None, start: str | None, **flags: Any
) -> tuple[byteweld.Tokenizer, byteweld.Tokenizer | None]:
    """What there may be at the least, with its recipe; and the tokenizer to start from."""
    if start is None:
        return _targets.trial(options.make_recipe(name or "modern", **flags)), None
    if flags["ascii_only"]:
        raise _errors.UsageError("--ascii-only has no effect with --start, whose alphabet stays")
    tok = options.load_tokenizer(start, format=None, pattern=None, special=None, no_special=False)
    known = byteweld.RECIPES["modern"] if tok.training is None else tok.training.recipe
    recipe = known if name is None else byteweld.RECIPES[name]
    trial = byteweld.train(
        byteweld.Counts({_new_pair(tok): _MANY}),
        vocab_size=len(tok) + 1,
        start=tok,
        recipe=recipe,
        **options.recipe_changes(recipe, **flags),
    )
    return trial, tok


def _new_pair(tok: byteweld.Tokenizer) -> bytes:
    """Two bytes that are no token yet: the first merge must not make a format say no too late."""
    pairs = (bytes(pair) for pair in itertools.product(b"~\t zqx", repeat=2))
    return next((pair for pair in pairs if pair not in tok.vocab.ids), b"~~")


def _sizes(
    vocab_size: int | None,
    sizes: str | None,
    recipe: byteweld.Recipe,
    out: str,
    format: str | None,
    binary_out: str | None,
    start: byteweld.Tokenizer | None,
) -> list[_Size]:
    if vocab_size is not None and sizes is not None:
        raise _errors.UsageError("--vocab-size and --sizes exclude each other; pass one of them")
    if sizes is None:
        if vocab_size is None:
            if recipe.name not in ("ck", "ck-ascii") or start is not None:
                raise _errors.UsageError(
                    f"recipe {recipe.name!r} needs a size; pass --vocab-size N"
                )
            vocab_size = _CK_VOCAB_SIZE
        given = {"": vocab_size}
    else:
        given = _read_sizes(sizes)
    for size in given.values():
        try:
            byteweld.train(byteweld.Counts({}), vocab_size=size, recipe=recipe, start=start)
        except ValueError as error:
            if sizes is None:
                raise
            wrong = re.sub(r"^vocab_size is (-?\d+); it must", r"\1 must", str(error))
            raise _errors.UsageError(f"--sizes is {sizes!r}; {wrong}") from None
    # Never max_piece_bytes: ck's limit counts bytes as rendered, ours those of the text.
    wanted = [(out, format)] + ([] if binary_out is None else [(binary_out, "ck")])
    return [
        _Size(label, size, [_targets.Target(_named(path, label), kind) for path, kind in wanted])
        for label, size in given.items()
    ]


def _read_sizes(sizes: str) -> dict[str, int]:
    """Sizes by what the user calls them."""
    labels = [label.strip() for label in sizes.split(",")]
    read = options.vocab_size("--sizes")
    try:
        given = {label: read(label) for label in labels}
    except _errors.UsageError:
        raise _errors.UsageError(
            f"--sizes is {sizes!r}; expected whole numbers, or ones with k for 1024, with commas "
            "between them, such as 8k,16k,32k"
        ) from None
    if len(set(given.values())) < len(labels):
        raise _errors.UsageError(f"--sizes is {sizes!r}; a size is given twice")
    return given


def _named(path: str, label: str) -> str:
    """`tokenizer-8k.json` for `tokenizer.json` and `8k`."""
    if not label:
        return path
    place = Path(path)
    if place.name in ("", ".."):
        raise _errors.UsageError(
            f"{path!r} has no name to which --sizes could add {label!r}; "
            "pass a name, such as tokenizer.json"
        )
    end = "/" if path.endswith("/") else ""
    return str(place.with_name(f"{place.stem}-{label}{place.suffix}")) + end


def _check(trial: byteweld.Tokenizer, plan: list[_Size], *, force: bool) -> list[Path]:
    """Refuse, before the work, what cannot be written; returns all files that will be."""
    files: list[Path] = []
    for size in plan:
        files += _targets.check(trial, size.targets, force=force)
        files.append(_targets.report_place(size.targets[0]))
    _targets.check_free(files, force=force)
    return files


@contextlib.contextmanager
def _checkpoint(
    path: str | None,
    sources: Sequence[str],
    recipe: byteweld.Recipe,
    reading: options.Reading,
    vocab_size: int,
    start: byteweld.Tokenizer | None,
    prune: int | None,
) -> Iterator[byteweld.Checkpoint | None]:
    """The checkpoint, if one is asked for; an interrupt says how to go on from it."""
    if path is None:
        yield None
        return
    if _input.STDIN in sources:
        raise _errors.UsageError(
            "--checkpoint does not go with standard input (-), which cannot be read again; "
            "give the name of a file"
        )
    point = byteweld.Checkpoint.of(
        path,
        recipe=recipe,
        vocab_size=vocab_size,
        start=None if start is None else start.vocab,
        files=_corpus.files(sources, recipe, reading, Path(path)),
        reading=reading._asdict(),
        prune=prune,
    )
    try:
        yield point
    except KeyboardInterrupt:
        _output.say(f"interrupted; the same command goes on from the checkpoint {path}")
        raise
    finally:
        point.close()


# ---------------------------------------------------------------------------- the work


def _count(
    sources: Sequence[str],
    recipe: byteweld.Recipe,
    reading: options.Reading,
    checkpoint: byteweld.Checkpoint | None,
    *,
    prune: int | None,
    threads: int | None,
    memory: str | None,
) -> _corpus.Counted:
    started = time.perf_counter()
    counts = None if checkpoint is None else checkpoint.counts(memory=memory)
    if checkpoint is None or counts is None:
        counted = _corpus.count(
            sources,
            recipe,
            reading,
            threads,
            memory=memory,
            prune=prune,
            checkpoint=None if checkpoint is None else checkpoint.path,
        )
        if checkpoint is not None:
            checkpoint.keep_counts(counted.counts)
        return counted
    _output.say(
        f"going on from the checkpoint {checkpoint.path}: the corpus is counted, "
        f"{_output.amount(len(checkpoint.merges), 'merge')} learned"
    )
    return _corpus.counted_before(
        counts,
        sources,
        recipe,
        reading,
        checkpoint.path,
        seconds=time.perf_counter() - started,
    )


def _train(
    counts: byteweld.Counts,
    vocab_size: int,
    recipe: byteweld.Recipe,
    start: byteweld.Tokenizer | None,
    checkpoint: byteweld.Checkpoint | None,
    *,
    threads: int | None,
    memory: str | None,
) -> byteweld.Tokenizer:
    with contextlib.ExitStack() as stack:
        advance = None

        def hear(event: byteweld.TrainingEvent) -> None:
            nonlocal advance
            if advance is None:
                shown = _output.progress("merging", event.total, "merges", already=event.done)
                advance = stack.enter_context(shown)
            advance(event.done)

        return byteweld.train(
            counts,
            vocab_size=vocab_size,
            recipe=recipe,
            start=start,
            checkpoint=checkpoint,
            num_threads=threads,
            memory=memory,
            progress=hear,
        )


def _cut(
    trained: byteweld.Tokenizer, size: _Size, counted: _corpus.Counted, threads: int | None
) -> _Made:
    assert trained.training is not None  # it was trained just now
    is_whole = size.vocab_size == trained.training.vocab_size
    tok = trained if is_whole else trained.cut(size.vocab_size)
    assert tok.training is not None  # a cut has what it is cut from
    training = dataclasses.replace(
        tok.training,
        files=counted.files,
        file_bytes=counted.bytes_read,
        count_seconds=counted.seconds,
    )
    return _Made(size, tok, training, measure(tok, counted.counts, threads))


def measure(
    tok: byteweld.Tokenizer, counts: byteweld.Counts, threads: int | None = None
) -> float | None:
    """Bytes per token of the training corpus as encoded, exactly; None for an empty corpus.

    Where the pattern of the training is also that of the encoding, the training knows. Else a
    pre-token is encoded once and weighed by its count.
    """
    if tok.training is not None and tok.vocab.pattern == tok.training.recipe.pattern:
        return tok.training.bytes_per_token
    num_bytes = num_tokens = 0
    for batch, weight in counts.batches():
        _, offsets = tok.encode_ragged(batch, num_threads=threads, disallowed_special=())
        lengths = np.array([len(pretoken) for pretoken in batch], np.uint64)
        num_tokens += int(np.dot(np.diff(offsets).astype(np.uint64), weight))
        num_bytes += int(np.dot(lengths, weight))
    return num_bytes / num_tokens if num_tokens else None


def _write(made: list[_Made], files: list[Path], *, force: bool) -> None:
    with _output.progress("writing", len(files), "files") as advance:
        _targets.save_all(
            [(one.tok, one.size.targets) for one in made],
            [(one.tok, one.training, _targets.report_place(one.size.targets[0])) for one in made],
            files=files,
            force=force,
        )
        advance(len(files))


# ---------------------------------------------------------------------------- after the work


def _conclude(made: list[_Made], counted: _corpus.Counted, elapsed: float) -> None:
    largest = max(made, key=lambda one: one.size.vocab_size)
    training, vocab = largest.training, largest.tok.vocab
    if training.stop == "size":
        said = f"learned {_output.amount(training.merges_learned, 'merge')}"
    else:
        said = str(training)
    _output.say(f"{said} ({_output.seconds(training.merge_seconds)})")
    longest = sorted(vocab.ordinary(), key=lambda item: (-len(item[1]), item[0]))[:_LONGEST]
    shown = (_output.shortened(visible(token[:200]), 40) for _, token in longest if len(token) > 1)
    words = "  ".join(shown)
    if words:
        _output.say(f"longest tokens: {words}")
    pace = f", {_output.size(round(counted.bytes_read / elapsed))}/s" if counted.bytes_read else ""
    memory = training.peak_memory_bytes
    peak = "" if memory is None else f", at most {_output.size(memory)} of memory"
    _output.say(f"in all {_output.seconds(elapsed)}{pace}{peak}")
    if len(made) > 1:
        _say_table(made)
    how = ""
    if vocab.pattern != training.recipe.pattern:
        how = f" as encoded with pattern {options.pattern_words(vocab.pattern)}"
    for one in made:
        rate = one.bytes_per_token
        words = "" if rate is None else f", {rate:.2f} bytes per token{how}"
        places = " and ".join(target.path for target in one.size.targets)
        _output.say(f"wrote {places}: {_output.amount(len(one.tok), 'token')}{words}")


def _say_table(made: list[_Made]) -> None:
    width = max(len("size"), *(len(one.size.label) for one in made))
    _output.say(f"  {'size':>{width}}  {'tokens':>9}  {'merges':>9}  bytes per token")
    for one in made:
        rate = "-" if one.bytes_per_token is None else f"{one.bytes_per_token:.3f}"
        merges = one.training.merges_learned
        _output.say(f"  {one.size.label:>{width}}  {len(one.tok):>9}  {merges:>9}  {rate:>15}")


def _report(made: list[_Made], counted: _corpus.Counted) -> dict[str, Any]:
    training = made[0].training
    common = {
        "recipe": training.recipe.name,
        "corpus": {
            "files": counted.files,
            "bytes": counted.bytes_read,
            "pretokens": counted.counts.total,
            "distinct_pretokens": len(counted.counts),
            "skipped_documents": counted.counts.skipped_documents,
            "pruned_pretokens": training.pruned_pretokens,
        },
        "seconds": {"count": counted.seconds, "merge": training.merge_seconds},
        "peak_memory_bytes": training.peak_memory_bytes,
    }
    results = [_result(one) for one in made]
    if not made[0].size.label:
        return results[0] | common
    return common | {"sizes": results}


def _result(one: _Made) -> dict[str, Any]:
    targets = one.size.targets
    return {
        "out": targets[0].path,
        "report": str(_targets.report_place(targets[0])),
        "binary_out": targets[1].path if len(targets) > 1 else None,
        "vocab_size": one.size.vocab_size,
        "tokens": len(one.tok),
        "merges": one.training.merges_learned,
        "stop": one.training.stop,
        "bytes_per_token": one.bytes_per_token,
        "fingerprint": one.tok.vocab.fingerprint,
    }
