"""`byteweld train`: sources -> counts -> merges -> files."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import byteweld
from byteweld._speed import speed
from byteweld.api import choose_recipe
from byteweld.cli import _corpus, _errors, _input, _output, _targets, _training
from byteweld.cli import _options as options
from byteweld.cli._ck import CkOptions
from byteweld.cli._command import Argument, Option
from byteweld.cli._runner import RunnerOptions
from byteweld.cli._training import Display
from byteweld.sources import Counted
from byteweld.training.checkpoint import remove_checkpoint
from byteweld.training.plan import check_size, make_plan
from byteweld.training.run import run as run_training

EXAMPLES = """
byteweld train books/ --vocab-size 32768
byteweld train 'data/*.jsonl.zst' --field text --vocab-size 64k --eos '<|endoftext|>'
byteweld train books/ --sizes 8k,16k,32k --out books.json
byteweld train letters/ --start books-8k.json --vocab-size 10k --out letters.json
byteweld train huge/ --vocab-size 128k --checkpoint huge.checkpoint
byteweld train crawl/ --vocab-size 128k --runner ray --address auto --work /shared/tmp
byteweld train tiny.txt --recipe from-scratch --vocab-size 500 --out tiny.json
byteweld train drawings/ --recipe ck --vocab-size 320 --out tokenizer.json --binary-out export/
cat corpus.txt | byteweld train - --vocab-size 8192 --out corpus.tiktoken
"""

_CK_VOCAB_SIZE = 1024  # the default of ck-bpe-train, which its users rely on

Sources = Annotated[
    list[str] | None,
    Argument(metavar="SOURCE...", help=options.SOURCES_HELP, unless="corpus_dir"),
]
VocabSize = Annotated[
    int | None,
    Option(
        "--vocab-size",
        metavar="N",
        read=options.vocab_size("--vocab-size"),
        help="Vocabulary size; 32k is 32 x 1024. Required, unless --sizes is given or the recipe "
        f"is ck, whose default is {_CK_VOCAB_SIZE}.",
        group="Recipe",
    ),
]
Sizes = Annotated[
    str | None,
    Option(
        "--sizes",
        metavar="LIST",
        help="Several vocabulary sizes from one training run, such as 8k,16k,32k. Writes "
        "tokenizer-8k.json and so on, each identical to the result of a separate run.",
        group="Recipe",
    ),
]
RecipeName = Annotated[
    str | None,
    Option(
        "--recipe",
        metavar="NAME",
        help=f"Training recipe: {', '.join(byteweld.RECIPES)}. Default: modern, or the recipe in "
        "the training report of --start.",
        choices=list(byteweld.RECIPES),
        group="Recipe",
    ),
]
StartPath = Annotated[
    str | None,
    Option(
        "--start",
        metavar="PATH",
        help="A tokenizer to extend. It keeps all its ids and merges; new merges are learned with "
        "its pattern and get the next ids. The vocabulary size includes its tokens.",
        group="Recipe",
    ),
]
CheckpointPath = Annotated[
    str | None,
    Option(
        "--checkpoint",
        metavar="DIR",
        help="Save the counts and the merges so far in this folder. If training is interrupted, "
        "the same command resumes it. The folder is removed once all files are written.",
        group="Writing",
    ),
]
Out = Annotated[
    str,
    Option(
        "--out",
        metavar="PATH",
        help="The file or folder to write. Default: tokenizer.json.",
        group="Writing",
    ),
]
BinaryOut = Annotated[
    str | None,
    Option(
        "--binary-out",
        metavar="DIR",
        help="Also write ck's binary export (four files) to this folder.",
        group="Writing",
    ),
]


def _role(name: str, meaning: str) -> Any:
    return Option(
        f"--{name}",
        metavar="TEXT",
        help=f"The special token {meaning}; added to the special tokens if missing.",
        group="Recipe",
    )


Bos = Annotated[str | None, _role("bos", "that begins a document")]
Eos = Annotated[str | None, _role("eos", "that ends a document")]
Pad = Annotated[str | None, _role("pad", "for padding")]
Unk = Annotated[str | None, _role("unk", "for bytes without a token")]


class Roles(NamedTuple):
    """The special tokens with a role."""

    bos: Bos = None
    eos: Eos = None
    pad: Pad = None
    unk: Unk = None


class Writing(NamedTuple):
    """What to write, and where."""

    out: Out = "tokenizer.json"
    format: _training.OutFormat = None
    binary_out: BinaryOut = None
    force: _training.Force = False


class _Size(NamedTuple):
    """A vocabulary size, and the targets to write it to."""

    label: str
    vocab_size: int
    targets: list[_targets.Target]


class _Made(NamedTuple):
    """The tokenizer of one size."""

    size: _Size
    tok: byteweld.Tokenizer
    training: byteweld.Training
    bytes_per_token: float | None


prepare = _training.prepare


def run(
    source: Sources = None,
    vocab_size: VocabSize = None,
    sizes: Sizes = None,
    recipe: RecipeName = None,
    start: StartPath = None,
    changes: options.RecipeChanges = options.RecipeChanges(),
    roles: Roles = Roles(),
    writing: Writing = Writing(),
    checkpoint: CheckpointPath = None,
    reading: options.Reading = options.Reading(),
    prune: options.Prune = None,
    threads: options.Threads = None,
    memory: options.Memory = None,
    runner: RunnerOptions = RunnerOptions(),
    progress: _training.ProgressKind = None,
    json: options.Json = False,
    ck: CkOptions = CkOptions(),
) -> None:
    """Learn a vocabulary from a corpus and write it, with a training report next to it.

    The result depends only on the documents, the recipe and the size, not on the number of threads
    or the order of the files. A folder of saved counts (see `byteweld count`) is also a SOURCE. The
    report, tokenizer.training.json, has the recipe, statistics of the corpus, the count of every
    merge, and timings.
    """
    started = time.perf_counter()
    _output.progress_as_json(progress == "json")
    source = ck.source(source or [])
    runner.check(source, None)  # the merges are learned here, on these threads
    recipe = ck.recipe(recipe, start, ascii_only=changes.ascii_only)
    changes = ck.changes(changes)
    writing = writing._replace(binary_out=ck.binary_out(writing.binary_out))
    start_tok = _load_start(start, ascii_only=changes.ascii_only)
    base = _base_recipe(recipe, start_tok, ascii_only=changes.ascii_only)
    changed = options.recipe_changes(base, **changes._asdict())
    chosen = choose_recipe(base, start_tok, roles._asdict(), changed)
    start_vocab = None if start_tok is None else start_tok.vocab
    plan = _sizes(vocab_size, sizes, chosen, start_vocab, writing)
    largest = max(size.vocab_size for size in plan)
    files = _check_targets(
        make_plan(largest, chosen, start_vocab).smallest(), plan, force=writing.force
    )
    if checkpoint is not None and _input.STDIN in source:
        raise _errors.UsageError(
            "--checkpoint cannot be used with standard input (-), which cannot be read again; "
            "pass the name of a file"
        )
    sources = _corpus.open_all(source, chosen, reading, checkpoint)
    with (
        runner.open() as running,
        _resumable(checkpoint),
        Display(sources, checkpoint, largest if running is not None else None) as display,
    ):
        result = run_training(
            sources,
            largest,
            chosen,
            start=start_vocab,
            checkpoint=checkpoint,
            prune=prune,
            num_threads=threads,
            memory=memory,
            runner=running,
            progress=display.on_event,
            on_counted=display.on_counted,
        )
        display.close()
        counted = result.counted
        tok = byteweld.Tokenizer._trained(result.vocab, result.training)
        made = [_cut(tok, size, counted.counts, threads) for size in plan]
        writing_started = time.perf_counter()
        with _output.progress("writing", len(files), "files") as advance:
            _targets.save_all(
                ((m.tok, m.size.targets) for m in made), files=files, force=writing.force
            )
            advance(len(files))
        seconds = _training.seconds(result.training, time.perf_counter() - writing_started)
    if checkpoint is not None:
        remove_checkpoint(checkpoint)
    _conclude(made, counted, seconds, time.perf_counter() - started)
    if json:
        _output.report(_report(made, counted, seconds))


# ---------------------------------------------------------------------------- before the work


def _load_start(path: str | None, *, ascii_only: bool) -> byteweld.Tokenizer | None:
    if path is None:
        return None
    if ascii_only:
        raise _errors.UsageError(
            "--ascii-only cannot be used with --start, which sets the alphabet; leave one out"
        )
    return options.load_tokenizer(path)


def _base_recipe(
    name: str | None, start: byteweld.Tokenizer | None, *, ascii_only: bool
) -> byteweld.Recipe:
    if name is None and start is not None and start.training is not None:
        return start.training.recipe
    return options.preset(name or "modern", ascii_only=ascii_only)


def _sizes(
    vocab_size: int | None,
    sizes: str | None,
    recipe: byteweld.Recipe,
    start: byteweld.Vocabulary | None,
    writing: Writing,
) -> list[_Size]:
    if vocab_size is not None and sizes is not None:
        raise _errors.UsageError("--vocab-size and --sizes cannot be combined; pass one of them")
    if sizes is None:
        if vocab_size is None:
            if recipe.name not in ("ck", "ck-ascii") or start is not None:
                raise _errors.UsageError(
                    f"recipe {recipe.name!r} needs a vocabulary size; pass --vocab-size N"
                )
            vocab_size = _CK_VOCAB_SIZE
        given = {"": vocab_size}
    else:
        given = _read_sizes(sizes)
    for size in given.values():
        try:
            check_size(size, recipe, start)
        except ValueError as error:
            if sizes is None:
                raise
            wrong = re.sub(r"^vocab_size is (-?\d+); it must", r"\1 must", str(error))
            raise _errors.UsageError(f"--sizes is {sizes!r}; {wrong}") from None
    # ck's max_piece_bytes is not written: it limits rendered bytes, max_token_bytes raw ones.
    targets = [(writing.out, writing.format)]
    if writing.binary_out is not None:
        targets.append((writing.binary_out, "ck"))
    return [
        _Size(label, size, [_targets.Target(_named(path, label), kind) for path, kind in targets])
        for label, size in given.items()
    ]


def _read_sizes(sizes: str) -> dict[str, int]:
    """Return the sizes by label, as the user wrote them: {"8k": 8192}."""
    labels = [label.strip() for label in sizes.split(",")]
    read = options.vocab_size("--sizes")
    try:
        given = {label: read(label) for label in labels}
    except _errors.UsageError:
        raise _errors.UsageError(
            f"--sizes is {sizes!r}; expected whole numbers, or numbers with k for 1024, separated "
            "by commas, such as 8k,16k,32k"
        ) from None
    if len(set(given.values())) < len(labels):
        raise _errors.UsageError(f"--sizes is {sizes!r}; a size is given twice")
    return given


def _named(path: str, label: str) -> str:
    """Return `tokenizer-8k.json` for `tokenizer.json` and `8k`."""
    if not label:
        return path
    file = Path(path)
    if file.name in ("", ".."):
        raise _errors.UsageError(
            f"{path!r} has no file name for --sizes to add {label!r} to; "
            "pass one, such as tokenizer.json"
        )
    end = "/" if path.endswith("/") else ""
    return str(file.with_name(f"{file.stem}-{label}{file.suffix}")) + end


def _check_targets(smallest: byteweld.Vocabulary, plan: list[_Size], *, force: bool) -> list[Path]:
    """Raise before training if something cannot be written; return all files that will be."""
    files: list[Path] = []
    for size in plan:
        for target in size.targets:
            files += _targets.check(smallest, target, force=force)
        files.append(_targets.report_file(size.targets[0]))
    _targets.check_free(files, force=force)
    return files


# ---------------------------------------------------------------------------- the work


@contextlib.contextmanager
def _resumable(checkpoint: str | None) -> Iterator[None]:
    """On an interrupt, add how to resume to the message."""
    try:
        yield
    except KeyboardInterrupt:
        if checkpoint is None:
            raise
        raise KeyboardInterrupt(f"run the same command to resume from {checkpoint}") from None


def _cut(
    trained: byteweld.Tokenizer, size: _Size, counts: byteweld.Counts, threads: int | None
) -> _Made:
    assert trained.training is not None  # it was just trained
    is_whole = size.vocab_size == trained.training.vocab_size
    tok = trained if is_whole else trained.cut(size.vocab_size)
    assert tok.training is not None  # `cut` keeps it
    return _Made(size, tok, tok.training, _corpus.bytes_per_token(tok, counts, threads))


# ---------------------------------------------------------------------------- after the work


def _conclude(
    made: list[_Made], counted: Counted, seconds: Mapping[str, float], elapsed: float
) -> None:
    largest = max(made, key=lambda one: one.size.vocab_size)
    training, vocab = largest.training, largest.tok.vocab
    _training.say_learned(training)
    longest = _training.longest(vocab.ordinary())
    if longest:
        _output.say(f"longest tokens: {_training.shown(longest)}")
    pace = speed(counted.file_bytes or 0, elapsed)
    how_fast = "" if pace is None else f", {pace}"
    memory = training.peak_memory_bytes
    peak = "" if memory is None else f", peak memory {_output.size(memory)}"
    phases = ", ".join(f"{name} {_output.seconds(spent)}" for name, spent in seconds.items())
    _output.say(f"total {_output.seconds(elapsed)} ({phases}){how_fast}{peak}")
    if len(made) > 1:
        _say_table(made)
    how = ""
    if vocab.pattern != training.recipe.pattern:
        how = f" when encoded with pattern {options.pattern_words(vocab.pattern)}"
    for one in made:
        rate = one.bytes_per_token
        words = "" if rate is None else f", {rate:.2f} bytes per token{how}"
        paths = " and ".join(target.path for target in one.size.targets)
        for target in one.size.targets:
            lost = _targets.lost_pattern(one.tok.vocab, target)
            if lost is not None:
                _output.say(f"lost: {lost}")
        _output.say(f"wrote {paths}: {_output.amount(len(one.tok), 'token')}{words}")


def _say_table(made: list[_Made]) -> None:
    width = max(len("size"), *(len(one.size.label) for one in made))
    _output.say(f"  {'size':>{width}}  {'tokens':>9}  {'merges':>9}  bytes per token")
    for one in made:
        rate = "-" if one.bytes_per_token is None else f"{one.bytes_per_token:.3f}"
        merges = one.training.merges_learned
        _output.say(f"  {one.size.label:>{width}}  {len(one.tok):>9,}  {merges:>9,}  {rate:>15}")


def _report(made: list[_Made], counted: Counted, seconds: Mapping[str, float]) -> dict[str, Any]:
    training = made[0].training
    common = {
        "recipe": training.recipe.name,
        "corpus": {
            "files": counted.files or 0,
            "bytes": counted.file_bytes or 0,
            "pretokens": counted.counts.total,
            "distinct_pretokens": len(counted.counts),
            "skipped_documents": counted.counts.skipped_documents,
            "pruned_pretokens": training.pruned_pretokens,
        },
        "seconds": dict(seconds),
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
        "report": str(_targets.report_file(targets[0])),
        "binary_out": targets[1].path if len(targets) > 1 else None,
        "vocab_size": one.size.vocab_size,
        "tokens": len(one.tok),
        "merges": one.training.merges_learned,
        "stop": one.training.stop,
        "bytes_per_token": one.bytes_per_token,
        "fingerprint": one.tok.vocab.fingerprint,
    }
