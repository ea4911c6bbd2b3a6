"""Peak memory of `byteweld count --memory`, for every format, compression and policy, and bombs.

Every case runs in a child process, whose peak resident set must stay within the budget. Archives
are small on disk and large inside. What cannot be read within the budget must be refused by name
(or skipped, with `--on-error skip`), with exit code 2 and one line.

    python -m tests.harness.memory --seconds 120 --seed 0 --megabytes 256

prints the table of docs/design/trust.md.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.harness.run import Run, parser

BUDGET_BYTES = 300_000_000
POLICIES = ("fail", "skip", "replace")
FORMATS = {"file": ("txt", ()), "lines": ("txt", ("--lines",)), "jsonl": ("jsonl", ())}
FORMATS["separator"] = ("txt", ("--separator", "<|end|>"))

# Reports the peak of its only child. A pipe would add a thread; the child's own VmHWM is gone.
_MEASURE = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024, file=sys.stdout)
sys.exit(code)
"""


class Measured(NamedTuple):
    """One run of the command."""

    code: int
    peak: int  # bytes
    message: str  # standard error


def measure(arguments: list[str], *, timeout: float = 300.0) -> Measured:
    """Run `byteweld` in a child process and return its exit code, peak memory and messages."""
    command = [sys.executable, "-c", _MEASURE, sys.executable, "-m", "byteweld", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    return Measured(ended.returncode, int(ended.stdout.split()[-1]), ended.stderr)


def count(path: Path, *options: str, budget: int = BUDGET_BYTES) -> Measured:
    """Count a file within a budget; the counts are not kept."""
    out = path.with_name("counts")
    shutil.rmtree(out, ignore_errors=True)
    measured = measure(["count", str(path), "--memory", str(budget), "--out", str(out), *options])
    if measured.code != 0 and out.exists():
        return measured._replace(message=f"wrote {out} although it failed: {measured.message}")
    return measured


# ---------------------------------------------------------------------- content


def words(rng: random.Random, *, number: int = 60_000) -> bytes:
    """Return about 400 kB of text with many different words."""
    letters = "abcdefghijklmnopqrstuvwxyzäßé漢"
    return " ".join(
        "".join(rng.choices(letters, k=rng.randint(2, 9))) for _ in range(number)
    ).encode()


def blocks(kind: str, rng: random.Random, size: int, bad: bool) -> Iterator[bytes]:
    """Yield `size` bytes of a format, in blocks; with some invalid UTF-8 if `bad`."""
    text = words(rng) + (b" \xff\xfe " if bad else b" ")
    if kind == "lines":
        text = text.replace(b" ", b"\n", 2000)
    elif kind == "separator":
        text = text.replace(b" ", b"<|end|>", 500)
    elif kind == "jsonl":
        some = text[: len(text) // 40]
        some = some[: some.rfind(b" ")]
        text = b"".join(b'{"id": %d, "text": "%s\\n"}\n' % (n, some) for n in range(40))
    for _ in range(max(1, size // len(text))):
        yield text


# ---------------------------------------------------------------------- compression


def _zst(path: Path) -> Any:
    import pyarrow

    return pyarrow.CompressedOutputStream(str(path), "zstd")


OPENERS: dict[str, Callable[[Path], Any]] = {
    "": lambda path: path.open("wb"),
    ".gz": lambda path: gzip.open(path, "wb", compresslevel=1),
    ".zst": _zst,
    ".xz": lambda path: lzma.open(path, "wb", preset=0),
    ".bz2": lambda path: bz2.open(path, "wb"),
}


def write(path: Path, content: Iterator[bytes]) -> None:
    """Write blocks, compressed as the name says."""
    with OPENERS.get(path.suffix, OPENERS[""])(path) as file:
        for block in content:
            file.write(block)


def repeated(unit: bytes, size: int) -> Iterator[bytes]:
    """Yield about `size` bytes of one unit."""
    block = unit * max(1, (1 << 20) // len(unit))
    for _ in range(max(1, size // len(block))):
        yield block


def xz_with_dictionary(content: bytes, size: int) -> bytes:
    """Return an xz file that asks for a dictionary of `size` bytes."""
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": size}]
    return lzma.compress(content, format=lzma.FORMAT_XZ, filters=filters)


def zstd_with_window(content: bytes, log: int) -> bytes:
    """Return a zstd frame of stored blocks that asks for a window of `1 << log` bytes."""
    header = b"\x28\xb5\x2f\xfd" + bytes([0, (log - 10) << 3])
    limit = 1 << 17
    parts = [content[at : at + limit] for at in range(0, len(content), limit)] or [b""]
    frames = []
    for part in parts:
        is_last = part is parts[-1]
        frames.append(struct.pack("<I", len(part) << 3 | is_last)[:3] + part)
    return header + b"".join(frames)


def zstd_bomb(log: int, size: int) -> bytes:
    """Return a zstd frame of `size` equal bytes with a window of `1 << log` bytes."""
    block = 1 << 17
    number = max(1, size // block)
    run, last = (struct.pack("<I", block << 3 | 1 << 1 | end)[:3] + b"a" for end in (0, 1))
    return b"\x28\xb5\x2f\xfd" + bytes([0, (log - 10) << 3]) + run * (number - 1) + last


# ---------------------------------------------------------------------- hostile input


class Bomb(NamedTuple):
    """A hostile file: its name, what is written, and what counting it must say."""

    name: str
    write: Callable[[Path, int], object]
    fails: str | None  # part of the message; None if it must be counted
    options: tuple[str, ...] = ()


def _json(head: bytes, unit: bytes, tail: bytes) -> Callable[[Path, int], object]:
    def content(size: int) -> Iterator[bytes]:
        yield b'{"text": "first"}\n' + head
        yield from repeated(unit, size)
        yield tail + b'\n{"text": "last"}\n'

    return lambda path, size: write(path, content(size))


def _text(unit: bytes) -> Callable[[Path, int], object]:
    return lambda path, size: write(path, repeated(unit, size))


def _bytes(make: Callable[[int], bytes]) -> Callable[[Path, int], object]:
    return lambda path, size: path.write_bytes(make(size))


LARGE = "the record is too long"
DICTIONARY = "needs a dictionary of"
UNCUT = "cannot be cut"


BOMBS = (
    Bomb("line.jsonl.gz", _text(b"a"), LARGE),
    Bomb("value.jsonl.gz", _json(b'{"text": "', b"word ", b'"}'), LARGE),
    Bomb("other.jsonl.gz", _json(b'{"x": "', b"word ", b'", "text": ""}'), LARGE),
    Bomb("key.jsonl.gz", _json(b'{"', b"key", b'": 1, "text": ""}'), LARGE),
    Bomb("nested.jsonl.gz", _json(b'{"x": ', b"[", b""), LARGE),
    Bomb("escapes.jsonl.gz", _json(b'{"text": "', rb"\u0041", b'"}'), LARGE),
    Bomb("blank.jsonl.gz", _text(b"\n"), None),
    Bomb("spaces.jsonl.gz", _text(b" "), LARGE),
    Bomb("words.txt.gz", _text(b"one line without end "), None),
    Bomb("letter.txt.gz", _text(b"a"), UNCUT),
    Bomb("bytes.txt.gz", _text(b"\xff"), UNCUT),
    Bomb("separators.txt.gz", _text(b"<|end|>"), None, ("--separator", "<|end|>")),
    Bomb("lines.txt.gz", _text(b"\n"), None, ("--lines",)),
    Bomb("whole.txt.gz", _text(b"word "), UNCUT, ("--recipe", "plain")),
    Bomb("members.txt.gz", _bytes(lambda size: gzip.compress(b"") * (size // 500)), None),
    Bomb("streams.txt.bz2", _bytes(lambda size: bz2.compress(b"") * (size // 500)), None),
    Bomb("twice.txt.gz", _bytes(lambda size: gzip.compress(gzip.compress(bytes(size)))), None),
    Bomb("dictionary.txt.xz", _bytes(lambda _: xz_with_dictionary(b"a", 1 << 30)), DICTIONARY),
    Bomb("window.txt.zst", _bytes(lambda _: zstd_with_window(b"word", 31)), DICTIONARY),
    Bomb("run.txt.zst", _bytes(lambda size: zstd_bomb(27, size)), DICTIONARY),
    Bomb("frames.txt.zst", _bytes(lambda size: zstd_with_window(b"", 20) * (size // 500)), None),
)


# ---------------------------------------------------------------------- the program


def check(run: Run, name: str, measured: Measured, expected: str | None) -> None:
    """Record a finding unless a run kept to its budget and ended as expected."""
    if measured.peak > BUDGET_BYTES:
        run.find(name, f"peak {measured.peak:,} bytes of {BUDGET_BYTES:,}")
    if expected is None and measured.code != 0:
        run.find(name, f"exit code {measured.code}: {measured.message.strip()}")
    if expected is not None and (measured.code != 2 or expected not in measured.message):
        run.find(name, f"expected {expected!r}: {measured.code}: {measured.message.strip()}")
    if expected is not None and len(measured.message.strip().splitlines()) != 1:
        run.find(name, f"expected one line: {measured.message}")


def measure_table(run: Run, folder: Path, size: int) -> None:
    """Print the peak of every format, compression and policy, in MB."""
    columns = [suffix or "plain" for suffix in OPENERS]
    print(f"| format, policy | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for kind, (extension, options) in FORMATS.items():
        peaks: dict[str, dict[str, int]] = {policy: {} for policy in POLICIES}
        for suffix in OPENERS:
            path = folder / f"corpus.{extension}{suffix}"
            for bad in (False, True):
                write(path, blocks(kind, run.random(kind), size, bad))
                for policy in POLICIES:
                    if bad and kind == "jsonl" and policy == "fail":
                        continue
                    measured = count(path, *options, "--on-error", policy)
                    run.count(f"{kind}{suffix}, {policy}")
                    name = f"{path.name} {kind} {policy} {'invalid' if bad else 'valid'}"
                    check(run, name, measured, None)
                    peaks[policy][suffix] = max(peaks[policy].get(suffix, 0), measured.peak)
                    if run.is_over:
                        return
            path.unlink()
        for policy in POLICIES:
            row = " | ".join(f"{peaks[policy][suffix] / 1e6:.0f}" for suffix in OPENERS)
            print(f"| {kind}, `{policy}` | {row} |", flush=True)


def measure_bombs(run: Run, folder: Path, size: int) -> None:
    """Check every hostile file with every policy."""
    for bomb in BOMBS:
        path = folder / bomb.name
        bomb.write(path, size)
        for policy in POLICIES:
            measured = count(path, *bomb.options, "--on-error", policy)
            run.count(f"bomb, {policy}")
            is_skipped = policy == "skip" and bomb.fails in (LARGE, DICTIONARY)
            is_skipped |= policy == "skip" and bomb.name == "bytes.txt.gz"
            check(run, f"{bomb.name} {policy}", measured, None if is_skipped else bomb.fails)
            if is_skipped and "skipped 1 document" not in measured.message:
                run.find(bomb.name, f"nothing was skipped: {measured.message.strip()}")
        path.unlink()
        if run.is_over:
            return


def main(argv: list[str] | None = None) -> int:
    """Run the program; return the exit code."""
    arguments = parser("memory", __doc__, seconds=600)
    arguments.add_argument("--megabytes", type=int, default=256, help="decompressed size (256)")
    given = arguments.parse_args(argv)
    run = Run.of("memory", given)
    with tempfile.TemporaryDirectory() as name:
        measure_bombs(run, Path(name), given.megabytes * 10**6)
        if not run.is_over:
            measure_table(run, Path(name), given.megabytes * 10**6)
    return run.finish()


if __name__ == "__main__":
    sys.exit(main())
