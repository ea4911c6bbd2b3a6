"""`byteweld train`: sources -> counts -> merges -> files."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import byteweld
from byteweld._amounts import speed
from byteweld.api import choose_recipe
from byteweld.cli import _ck, _corpus, _errors, _input, _output, _targets, _training
from byteweld.cli import _options as options
from byteweld.cli._runner import RunnerOptions
from byteweld.training.checkpoint import remove_checkpoint
from byteweld.training.plan import check_size, make_plan

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
ALIASES = _ck.ALIASES


class Roles(NamedTuple):
    """The special tokens with a role, which are added to the others.

    Recipe:
        bos: The special token that begins a document; added to the special tokens if missing.
        eos: The special token that ends a document; added to the special tokens if missing.
        pad: The special token for padding; added to the special tokens if missing.
        unk: The special token for bytes without a token; added to the special tokens if missing.
    """

    bos: str | None = None
    eos: str | None = None
    pad: str | None = None
    unk: str | None = None


class _Made(NamedTuple):
    """The tokenizer of one size, the size as the user wrote it, and what it is written to."""

    label: str
    targets: list[_targets.Target]
    tok: byteweld.Tokenizer
    bytes_per_token: float | None

    @property
    def training(self) -> byteweld.Training:
        assert self.tok.training is not None  # it was just trained
        return self.tok.training


prepare = _training.prepare


def run(
    source: list[str],
    *,
    vocab_size: options.Size | None = None,
    sizes: str | None = None,
    recipe: options.RecipeName | None = None,
    start: str | None = None,
    changes: options.RecipeChanges,
    specials_file: str | None = None,
    ascii_only: bool = False,
    roles: Roles,
    out: str = options.DEFAULT_TOKENIZER,
    format: str | None = None,
    binary_out: str | None = None,
    force: bool = False,
    checkpoint: str | None = None,
    reading: options.Reading,
    prune: options.Positive | None = None,
    threads: options.Positive | None = None,
    memory: str | None = None,
    runner: RunnerOptions,
    progress: Literal["json"] | None = None,
    json: bool = False,
    ck: _ck.CkOptions,
) -> None:
    """Learn a vocabulary from a corpus and write it, with a training report next to it.

    The result depends only on the documents, the recipe and the size, not on the number of threads
    or the order of the files. A folder of saved counts (see `byteweld count`) is also a SOURCE. The
    report, tokenizer.training.json, has the recipe, statistics of the corpus, the count of every
    merge, and timings.

    Recipe:
        vocab_size: Vocabulary size; 32k is 32 x 1024. Required, unless --sizes is given or the
            recipe is ck, whose default is 1024.
        sizes (LIST): Several vocabulary sizes from one training run, such as 8k,16k,32k. Writes
            tokenizer-8k.json and so on, each identical to the result of a separate run.
        recipe: Training recipe: {recipes}. Default: modern, or the recipe in the training report
            of --start.
        start (PATH): A tokenizer to extend. It keeps all its ids and merges; new merges are
            learned with its pattern and get the next ids. The vocabulary size includes its tokens.

    Writing:
        format (NAME): The format of --out: {formats}. Default: by its name.
        force: Overwrite existing files.
        checkpoint (DIR): Save the counts and the merges so far in this folder. If training is
            interrupted, the same command resumes it. The folder is removed once all files are
            written.
    """
    started = time.perf_counter()
    recipe = ck.recipe(recipe, source, start, ascii_only=ascii_only)
    runner.check(source, None)  # the merges are learned here, on these threads
    if ascii_only and start is not None:
        raise _errors.UsageError(
            "--ascii-only cannot be used with --start, which sets the alphabet; leave one out"
        )
    start_tok = None if start is None else options.load_tokenizer(start)
    base = options.preset(recipe or "modern", ascii_only=ascii_only)
    if recipe is None and start_tok is not None and start_tok.training is not None:
        base = start_tok.training.recipe
    if changes.get("max_token_bytes") == 0:  # no limit, as in ck-bpe-train
        changes["max_token_bytes"] = None
    changed = options.recipe_changes(
        base, changes, specials_file=specials_file, ascii_only=ascii_only
    )
    chosen = choose_recipe(base, start_tok, roles._asdict(), changed)
    start_vocab = None if start_tok is None else start_tok.vocab
    # ck's max_piece_bytes is not written: it limits rendered bytes, max_token_bytes raw ones.
    targets = [_targets.Target(out, format)]
    if binary_out:
        targets.append(_targets.Target(binary_out, "ck"))
    sizes_by_label = _sizes(vocab_size, sizes, chosen, start_vocab)
    targets_of = {label: [_named(t, label) for t in targets] for label in sizes_by_label}
    largest = max(sizes_by_label.values())
    smallest = make_plan(largest, chosen, start_vocab).smallest()
    files = [f for each in targets_of.values() for f in _targets.check_all(smallest, each, force)]
    if checkpoint is not None and _input.STDIN in source:
        raise _errors.UsageError(
            "--checkpoint cannot be used with standard input (-), which cannot be read again; "
            "pass the name of a file"
        )
    sources = _corpus.open_all(source, chosen, reading, checkpoint)
    with runner.open() as running, _resumable(checkpoint):
        tok, counted = _training.learn(
            sources,
            estimated_size=None if running is None else largest,
            vocab_size=largest,
            recipe=chosen,
            start=start_tok,
            checkpoint=checkpoint,
            prune=prune,
            num_threads=threads,
            memory=memory,
            runner=running or "local",
        )
        made = []
        for label, size in sizes_by_label.items():
            cut = tok if size == largest else tok.cut(size)
            rate = _corpus.bytes_per_token(cut, counted.counts, threads)
            made.append(_Made(label, targets_of[label], cut, rate))
        seconds = _training.save([(m.tok, m.targets) for m in made], files=files, force=force)
    if checkpoint is not None:
        remove_checkpoint(checkpoint)
    _conclude(made, seconds, time.perf_counter() - started)
    if json:
        _output.report(_report(made, seconds))


def _sizes(
    vocab_size: int | None,
    sizes: str | None,
    recipe: byteweld.Recipe,
    start: byteweld.Vocabulary | None,
) -> dict[str, int]:
    """Return the sizes by label, as the user wrote them: {"8k": 8192}; a single one by ""."""
    if vocab_size is not None and sizes is not None:
        raise _errors.UsageError("--vocab-size and --sizes cannot be combined; pass one of them")
    if sizes is None:
        if vocab_size is None and (recipe.name not in ("ck", "ck-ascii") or start is not None):
            raise _errors.UsageError(
                f"recipe {recipe.name!r} needs a vocabulary size; pass --vocab-size N"
            )
        check_size(size := vocab_size or _CK_VOCAB_SIZE, recipe, start)
        return {"": size}
    labels = [label.strip() for label in sizes.split(",")]
    try:
        given = {label: options.size(label) for label in labels}
    except ValueError:
        raise _errors.UsageError(
            f"--sizes is {sizes!r}; expected whole numbers, or numbers with k for 1024, separated "
            "by commas, such as 8k,16k,32k"
        ) from None
    if len(set(given.values())) < len(labels):
        raise _errors.UsageError(f"--sizes is {sizes!r}; a size is given twice")
    for size in given.values():
        try:
            check_size(size, recipe, start)
        except ValueError as error:
            wrong = re.sub(r"^vocab_size is (-?\d+); it must", r"\1 must", str(error))
            raise _errors.UsageError(f"--sizes is {sizes!r}; {wrong}") from None
    return given


def _named(target: _targets.Target, label: str) -> _targets.Target:
    """Return `tokenizer-8k.json` for `tokenizer.json` and `8k`."""
    if not label:
        return target
    file = Path(target.path)
    if file.name in ("", ".."):
        raise _errors.UsageError(
            f"{target.path!r} has no file name for --sizes to add {label!r} to; "
            "pass one, such as tokenizer.json"
        )
    end = "/" if target.path.endswith("/") else ""
    return target._replace(path=str(file.with_name(f"{file.stem}-{label}{file.suffix}")) + end)


@contextlib.contextmanager
def _resumable(checkpoint: str | None) -> Iterator[None]:
    """On an interrupt, add how to resume to the message."""
    try:
        yield
    except KeyboardInterrupt:
        if checkpoint is None:
            raise
        raise KeyboardInterrupt(f"run the same command to resume from {checkpoint}") from None


def _conclude(made: list[_Made], seconds: Mapping[str, float], elapsed: float) -> None:
    largest = max(made, key=lambda one: one.training.vocab_size)
    training, vocab = largest.training, largest.tok.vocab
    _training.say_learned(training)
    longest = _training.longest(vocab.ordinary())
    if longest:
        _output.say(f"longest tokens: {_training.shown(longest)}")
    phases = ", ".join(f"{name} {_output.seconds(spent)}" for name, spent in seconds.items())
    summary = [f"total {_output.seconds(elapsed)} ({phases})"]
    if pace := speed(training.file_bytes or 0, elapsed):
        summary.append(pace)
    if training.peak_memory_bytes is not None:
        summary.append(f"peak memory {_output.size(training.peak_memory_bytes)}")
    _output.say(", ".join(summary))
    if len(made) > 1:
        _say_table(made)
    how = ""
    if vocab.pattern != training.recipe.pattern:
        how = f" when encoded with pattern {options.pattern_words(vocab.pattern)}"
    for one in made:
        rate = one.bytes_per_token
        words = "" if rate is None else f", {rate:.2f} bytes per token{how}"
        _targets.say_wrote(one.tok, one.targets, words)


def _say_table(made: list[_Made]) -> None:
    width = max(len("size"), *(len(one.label) for one in made))
    _output.say(f"  {'size':>{width}}  {'tokens':>9}  {'merges':>9}  bytes per token")
    for one in made:
        rate = "-" if one.bytes_per_token is None else f"{one.bytes_per_token:.3f}"
        merges = one.training.merges_learned
        _output.say(f"  {one.label:>{width}}  {len(one.tok):>9,}  {merges:>9,}  {rate:>15}")


def _report(made: list[_Made], seconds: Mapping[str, float]) -> dict[str, Any]:
    training = made[0].training
    common = {
        "recipe": training.recipe.name,
        "corpus": _training.corpus_report(training)
        | {"pruned_pretokens": training.pruned_pretokens},
        "seconds": dict(seconds),
        "peak_memory_bytes": training.peak_memory_bytes,
    }
    results = [
        {
            "out": one.targets[0].path,
            "report": str(_targets.report_file(one.targets[0])),
            "binary_out": one.targets[1].path if len(one.targets) > 1 else None,
            "vocab_size": one.training.vocab_size,
            "tokens": len(one.tok),
            "merges": one.training.merges_learned,
            "stop": one.training.stop,
            "bytes_per_token": one.bytes_per_token,
            "fingerprint": one.tok.vocab.fingerprint,
        }
        for one in made
    ]
    return common | {"sizes": results} if made[0].label else results[0] | common
