"""`byteweld quickstart`: trains on Python's standard library, then saves, loads and encodes."""

from __future__ import annotations

import shlex
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

import byteweld
from byteweld._amounts import speed
from byteweld.cli import _options as options
from byteweld.cli import _output, _targets, _training
from byteweld.render import spans, to_ansi, visible
from byteweld.report import Section, Text
from byteweld.sources import open_sources
from byteweld.training.plan import check_size, make_plan

EXAMPLES = """
byteweld quickstart
byteweld quickstart --vocab-size 32768 --out my-first-tokenizer
"""

SPECIAL = "<|endoftext|>"
# Skipped folders: installed packages, caches, and tests, which contain odd bytes.
_SKIPPED = frozenset(
    {"site-packages", "dist-packages", "__pycache__", "test", "tests", "idle_test", "idlelib"}
)
_FOLDER = "out/quickstart"
_FEW_BYTES = 2_000_000
_FIRST_MERGES = 12
_SAMPLE = """\
def fibonacci(n: int) -> int:
    \"\"\"Return the n-th number of rabbits, as counted in 1202.\"\"\"
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

print("naïve café, 你好, 🙂")
"""


def run(*, out: str | None = None, vocab_size: options.Size = 8192, force: bool = False) -> None:
    """Train a tokenizer on the source files of Python's standard library, and show the result.

    Writes DIR/tokenizer.json, loads it, and encodes and decodes a sample.

    Args:
        out (DIR): The folder to write to. Default: out/quickstart, where existing files are
            overwritten.
        vocab_size: The size of the vocabulary; 32k is 32 x 1024.
    """
    recipe = byteweld.RECIPES["modern"].replace(special_tokens=[SPECIAL])
    check_size(vocab_size, recipe)
    path = Path(_FOLDER if out is None else out, "tokenizer.json")
    target = _targets.Target(str(path), "huggingface")
    may_replace = force or out is None  # the default folder is ours
    _targets.check(make_plan(vocab_size, recipe).smallest(), target, force=may_replace)

    folder = Path(sysconfig.get_path("stdlib"))
    files = find_sources(folder)
    total = sum(file.stat().st_size for file in files)
    if not files:
        raise FileNotFoundError(f"{folder}: no Python source files found to train on")
    few = "a small corpus: this Python was installed without most of its source files"
    _show(
        "corpus",
        f"{_output.amount(len(files), 'file')} of Python's standard library, {_output.size(total)}",
        str(folder),
        *([few] if total < _FEW_BYTES else []),
    )

    sources = open_sources(list(files), recipe=recipe)
    trained, counted = _training.learn(sources, is_quiet=True, vocab_size=vocab_size, recipe=recipe)
    _targets.save(byteweld.Tokenizer(trained.vocab), target, force=may_replace)

    training = trained.training
    assert training is not None  # it was just trained
    rate = training.bytes_per_token or 0.0
    merging = training.layout_seconds + training.merge_seconds
    seconds = counted.seconds + merging
    pace = speed(total, seconds)
    _show(
        "training",
        f"{_output.seconds(seconds)}{'' if pace is None else f', {pace}'}: "
        f"counting {_output.seconds(counted.seconds)}, merging {_output.seconds(merging)}",
        f"{training.total_pretokens:,} pre-tokens, {training.distinct_pretokens:,} distinct",
        str(training),
        f"{len(trained):,} tokens, {rate:.2f} bytes per token",
    )
    _show("first merges", *_merges(trained.vocab, training.merge_counts))
    tok = byteweld.load(path)
    ids = tok.encode(_SAMPLE)
    if tok != trained or tok.decode(ids) != _SAMPLE:
        raise byteweld.NativeError(
            "the tokenizer loaded from its file differs from the one written"
        )
    size = len(_SAMPLE.encode())
    _show(
        "a sample in tokens",
        *to_ansi(spans(tok.vocab, ids), _output.has_color()).split("\n"),
        "",
        f"{size:,} bytes, {len(ids):,} tokens, {size / len(ids):.2f} bytes per token",
        f"ids {' '.join(map(str, ids[:12]))} ...",
        "decodes to the same text",
    )
    tokenizer = shlex.quote(str(path))
    _show(
        "on the command line",
        f"byteweld encode -t {tokenizer} --show --text 'hello world'",
        f"byteweld explain -t {tokenizer} lowest",
        f"byteweld studio {tokenizer}",
    )
    _show(
        "in Python",
        "import byteweld",
        "",
        f"tok = byteweld.load({str(path)!r})",
        'ids = tok.encode("hello world")',
        'assert tok.decode(ids) == "hello world"',
    )
    _output.lines([f"wrote {path.absolute()}: {len(tok):,} tokens, {rate:.2f} bytes per token"])


def find_sources(folder: Path) -> list[Path]:
    """The source files of the standard library, sorted by path."""
    found: list[Path] = []
    pending = [folder]
    while pending:
        for entry in pending.pop().iterdir():
            if entry.is_dir() and not entry.is_symlink() and entry.name not in _SKIPPED:
                pending.append(entry)
            elif entry.suffix == ".py" and entry.is_file() and entry.stat().st_size:
                found.append(entry)
    return sorted(found)


def _show(title: str, *lines: str) -> None:
    section = Section(title, Text(lines))
    _output.lines([*section.lines(_output.has_color()), ""])


def _merges(vocab: byteweld.Vocabulary, counts: Sequence[int]) -> Iterator[str]:
    tokens = {i: visible(token) for i, token in vocab.tokens.items()}
    for rank, (left, right, new) in enumerate(vocab.merge_ids[:_FIRST_MERGES]):
        parts = f"{tokens[left]} + {tokens[right]}"
        yield f"{rank:>3}  {parts:<14} -> {tokens[new]:<10} id {new:<6} {counts[rank]:,} times"
