"""`byteweld train`: sources -> counts -> merges -> files."""

from __future__ import annotations

import time
from typing import Annotated, Any

import numpy as np
import typer

import byteweld
from byteweld.cli import _corpus, _errors, _output, _targets
from byteweld.cli import _options as options

EXAMPLES = """
byteweld train books/ --vocab-size 32768
byteweld train 'data/*.jsonl.zst' --field text --vocab-size 65536 --special '<|endoftext|>'
byteweld train tiny.txt --recipe from-scratch --vocab-size 500 --out tiny.json
byteweld train drawings/ --recipe ck --vocab-size 320 --out tokenizer.json --binary-out export/
cat corpus.txt | byteweld train - --vocab-size 8192 --out corpus.tiktoken
"""

_CK_VOCAB_SIZE = 1024  # the ck seed's own default; its users rely on it

VocabSize = Annotated[
    int | None,
    typer.Option(
        "--vocab-size",
        metavar="N",
        parser=options.whole_number("--vocab-size"),
        help=f"How many tokens. Needed, except with recipe ck, where it is {_CK_VOCAB_SIZE}.",
        rich_help_panel="Recipe",
    ),
]
Out = Annotated[
    str,
    typer.Option(
        "--out",
        metavar="PATH",
        help="Where to write. Default: tokenizer.json.",
        rich_help_panel="Writing",
    ),
]
OutFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help=f"What to write, where the name should not decide: {', '.join(byteweld.FORMATS)}.",
        rich_help_panel="Writing",
    ),
]
BinaryOut = Annotated[
    str | None,
    typer.Option(
        "--binary-out",
        metavar="DIR",
        help="Write ck's binary export as well, four files.",
        rich_help_panel="Writing",
    ),
]


def run(
    source: options.Sources,
    vocab_size: VocabSize = None,
    recipe: options.RecipeName = "modern",
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
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace files that exist.", rich_help_panel="Writing"),
    ] = False,
    ext: options.Ext = None,
    lines: options.Lines = False,
    field: options.Field = None,
    separator: options.Separator = None,
    on_error: options.OnError = "fail",
    prune: options.Prune = None,
    threads: options.Threads = None,
    memory: options.Memory = None,
    json: options.Json = False,
) -> None:
    """Learn a vocabulary from a corpus and write it.

    The result depends on the documents, the recipe and the size, and on nothing else: not on the
    number of threads or the order of the files. Folders of saved counts (see `byteweld count`) are
    sources, too.
    """
    chosen = options.make_recipe(
        recipe,
        pattern=pattern,
        special=special,
        specials_file=specials_file,
        ascii_only=ascii_only,
        encode_pattern=encode_pattern,
        min_frequency=min_frequency,
        max_token_bytes=max_token_bytes,
        tie_break=tie_break,
    )
    if vocab_size is None:
        if chosen.name not in ("ck", "ck-ascii"):
            raise _errors.UsageError(f"recipe {chosen.name!r} needs a size; pass --vocab-size N")
        vocab_size = _CK_VOCAB_SIZE
    targets = [_targets.Target(out, format)]
    if binary_out is not None:
        # Never max_piece_bytes: ck's limit counts bytes as rendered, ours those of the text.
        targets.append(_targets.Target(binary_out, "ck"))
    options.check_size(vocab_size, chosen)
    _targets.check(_targets.trial(chosen), targets, force=force)

    reading = options.Reading(ext, lines, field, separator, on_error)
    counted = _corpus.count(source, chosen, reading, threads, memory=memory, prune=prune)
    _output.say(counted.sentence())
    tok, merge_seconds = _train(counted.counts, vocab_size, chosen, memory)
    bytes_per_token = measure(tok, counted.counts, threads)
    _targets.save_all(tok, targets, force=force)
    _conclude(tok, counted, merge_seconds, bytes_per_token, targets, json=json)


def _train(
    counts: byteweld.Counts, vocab_size: int, recipe: byteweld.Recipe, memory: str | None
) -> tuple[byteweld.Tokenizer, float]:
    planned = vocab_size - recipe.minimum_size
    started = time.perf_counter()
    with _output.progress("merging", planned, "merges") as advance:
        tok = byteweld.train(
            counts,
            vocab_size=vocab_size,
            recipe=recipe,
            memory=memory,
            progress=lambda event: advance(event.merges_completed),
        )
    return tok, time.perf_counter() - started


def measure(
    tok: byteweld.Tokenizer, counts: byteweld.Counts, threads: int | None = None
) -> float | None:
    """Bytes per token of the training corpus as encoded, exactly; None for an empty corpus.

    A pre-token is encoded once and weighed by its count. Where the pattern of the training is also
    that of the encoding, pre-tokens must not be cut again: away from its neighbours, one may match
    otherwise.
    """
    vocab = tok.vocab
    if vocab.pattern is not None and vocab.pattern == counts.pattern:
        tok = byteweld.Tokenizer(
            byteweld.Vocabulary(
                vocab.tokens,
                vocab.merge_ids,
                special_tokens=vocab.special_tokens,
                pattern=None,
                roles=vocab.roles,
                alphabet=vocab.alphabet,
            )
        )
    num_bytes = num_tokens = 0
    for batch, weight in counts.batches():
        _, offsets = tok.encode_ragged(batch, num_threads=threads, disallowed_special=())
        lengths = np.array([len(pretoken) for pretoken in batch], np.uint64)
        num_tokens += int(np.dot(np.diff(offsets).astype(np.uint64), weight))
        num_bytes += int(np.dot(lengths, weight))
    return num_bytes / num_tokens if num_tokens else None


def _conclude(
    tok: byteweld.Tokenizer,
    counted: _corpus.Counted,
    merge_seconds: float,
    bytes_per_token: float | None,
    targets: list[_targets.Target],
    *,
    json: bool,
) -> None:
    training = tok.training
    assert training is not None  # it was trained just now
    if training.stop == "size":
        said = f"learned {_output.amount(training.merges_learned, 'merge')}"
    else:
        said = str(training)
    _output.say(f"{said} ({_output.seconds(merge_seconds)})")
    rate = "" if bytes_per_token is None else f", {bytes_per_token:.2f} bytes per token"
    if tok.vocab.pattern != training.recipe.pattern and rate:
        rate += f" as encoded with pattern {options.pattern_words(tok.vocab.pattern)}"
    places = " and ".join(target.path for target in targets)
    _output.say(f"wrote {places}: {_output.amount(len(tok), 'token')}{rate}")
    if json:
        _output.report(_report(tok, training, counted, merge_seconds, bytes_per_token, targets))


def _report(
    tok: byteweld.Tokenizer,
    training: byteweld.Training,
    counted: _corpus.Counted,
    merge_seconds: float,
    bytes_per_token: float | None,
    targets: list[_targets.Target],
) -> dict[str, Any]:
    return {
        "out": targets[0].path,
        "binary_out": targets[1].path if len(targets) > 1 else None,
        "recipe": training.recipe.name,
        "tokens": len(tok),
        "merges": training.merges_learned,
        "stop": training.stop,
        "bytes_per_token": bytes_per_token,
        "fingerprint": tok.vocab.fingerprint,
        "corpus": {
            "files": counted.files,
            "bytes": counted.bytes_read,
            "pretokens": counted.counts.total,
            "distinct_pretokens": len(counted.counts),
            "skipped_documents": counted.counts.skipped_documents,
        },
        "seconds": {"count": counted.seconds, "merge": merge_seconds},
    }
