"""`byteweld quickstart`: trains on Python's standard library, then saves, loads and encodes."""

from __future__ import annotations

import shlex
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import byteweld
from byteweld._speed import speed
from byteweld.cli import _corpus, _output, _targets
from byteweld.cli import _options as options
from byteweld.render import spans, to_ansi, visible
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
    _output.lines(_corpus_lines(folder, len(files), total))

    started = time.perf_counter()
    with _output.progress("counting", total, "bytes") as advance:
        counts = byteweld.count(list(files), recipe=recipe, progress=advance)
    counted = time.perf_counter()
    with _output.progress("merging", vocab_size - recipe.minimum_size, "merges") as advance:
        trained = byteweld.train(
            counts,
            vocab_size=vocab_size,
            recipe=recipe,
            progress=lambda event: advance(event.merges_completed),
        )
    finished = time.perf_counter()
    _targets.save(byteweld.Tokenizer(trained.vocab), target, force=may_replace)

    rate = _corpus.bytes_per_token(trained, counts) or 0.0
    _output.lines(_training_lines(trained, rate, total, counted - started, finished - started))
    _output.lines(_merge_lines(trained))
    tok = byteweld.load(path)
    ids = tok.encode(_SAMPLE)
    if tok != trained or tok.decode(ids) != _SAMPLE:
        raise byteweld.NativeError(
            "the tokenizer loaded from its file differs from the one written"
        )
    _output.lines(_sample_lines(tok, ids))
    _output.lines(_next_lines(path))
    _output.lines(_python_lines(path))
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


def _title(text: str) -> str:
    return _output.styled(text, "bold")


def _corpus_lines(folder: Path, files: int, total: int) -> Iterator[str]:
    yield _title("corpus")
    yield f"  {_output.amount(files, 'file')} of Python's standard library, {_output.size(total)}"
    yield f"  {folder}"
    if total < _FEW_BYTES:
        yield "  a small corpus: this Python was installed without most of its source files"
    yield ""


def _training_lines(
    tok: byteweld.Tokenizer,
    rate: float,
    total: int,
    count_seconds: float,
    all_seconds: float,
) -> Iterator[str]:
    training = tok.training
    assert training is not None  # it was just trained
    merge_seconds = all_seconds - count_seconds
    pace = speed(total, all_seconds)
    yield _title("training")
    yield (
        f"  {_output.seconds(all_seconds)}{'' if pace is None else f', {pace}'}: "
        f"counting {_output.seconds(count_seconds)}, merging {_output.seconds(merge_seconds)}"
    )
    yield f"  {training.total_pretokens:,} pre-tokens, {training.distinct_pretokens:,} distinct"
    yield f"  {training}"
    yield f"  {len(tok):,} tokens, {rate:.2f} bytes per token"
    yield ""


def _merge_lines(tok: byteweld.Tokenizer) -> Iterator[str]:
    training = tok.training
    assert training is not None  # as above
    tokens = tok.vocab.tokens
    yield _title("first merges")
    for rank, (left, right, new) in enumerate(tok.vocab.merge_ids[:_FIRST_MERGES]):
        parts = f"{visible(tokens[left])} + {visible(tokens[right])}"
        count = training.merge_counts[rank]
        yield f"  {rank:>3}  {parts:<14} -> {visible(tokens[new]):<10} id {new:<6} {count:,} times"
    yield ""


def _sample_lines(tok: byteweld.Tokenizer, ids: list[int]) -> Iterator[str]:
    size = len(_SAMPLE.encode())
    yield _title("a sample in tokens")
    shown = to_ansi(spans(tok.vocab, ids), _output.has_color())
    yield from (f"  {line}" for line in shown.split("\n"))
    yield ""
    yield f"  {size:,} bytes, {len(ids):,} tokens, {size / len(ids):.2f} bytes per token"
    yield f"  ids {' '.join(map(str, ids[:12]))} ..."
    yield "  decodes to the same text"
    yield ""


def _next_lines(path: Path) -> Iterator[str]:
    tokenizer = shlex.quote(str(path))
    yield _title("on the command line")
    yield f"  byteweld encode -t {tokenizer} --show --text 'hello world'"
    yield f"  byteweld explain -t {tokenizer} lowest"
    yield f"  byteweld studio {tokenizer}"
    yield ""


def _python_lines(path: Path) -> Iterator[str]:
    yield _title("in Python")
    for line in (
        "import byteweld",
        "",
        f"tok = byteweld.load({str(path)!r})",
        'ids = tok.encode("hello world")',
        'assert tok.decode(ids) == "hello world"',
    ):
        yield f"  {line}".rstrip()
    yield ""
