"""The C reader, c/byteweld.h, compiled by the system's compiler and run as a process.

tests/c/driver.c has the protocol. The program is built with the address and undefined behavior
sanitizers; a finding ends it, and the next request fails with what it printed.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NamedTuple

from tests.helpers import exports

ROOT = Path(__file__).parents[2]
HEADER = ROOT / "c" / "byteweld.h"
WARNINGS = (
    *("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wsign-conversion", "-Wshadow"),
    *("-Wcast-align", "-Wcast-qual", "-Wundef", "-Wdouble-promotion", "-Wformat=2", "-Werror"),
)
C_FLAGS = ("-std=c99", *WARNINGS, "-Wstrict-prototypes", "-Wmissing-prototypes")
CPP_FLAGS = ("-x", "c++", "-std=c++11", *WARNINGS)
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g")
# The header does not allocate, and the search for leaks needs rights that containers may lack.
SANITIZER_OPTIONS = {"ASAN_OPTIONS": "detect_leaks=0"}


def names_of(enum: str) -> list[str]:
    """Return the names of an enum of the header, in order, without their prefix."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text("utf-8"), flags=re.DOTALL)
    body = re.search(rf"typedef enum {enum} \{{(.*?)\}}", text, flags=re.DOTALL)
    assert body is not None
    return re.findall(r"BYTEWELD_(\w+)", body[1])


STATUSES = names_of("byteweld_status")
FILES = names_of("byteweld_file")
PATTERNS = names_of("byteweld_pattern")


def compiler(variable: str, *names: str) -> str | None:
    """Return the compiler that an environment variable names, or the first that is installed."""
    return os.environ.get(variable) or next(filter(None, map(shutil.which, names)), None)


def compile_program(program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    include = f"-I{HEADER.parent}"
    return subprocess.run(
        [*shlex.split(program), include, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


class Answer(NamedTuple):
    status: str
    file: str
    offset: int
    steps: int


class Loaded(NamedTuple):
    answer: Answer
    vocab_size: int
    merge_count: int
    roles: dict[str, int]
    pattern: str
    needed: int  # bytes of memory

    @property
    def is_ok(self) -> bool:
        return self.answer.status == "OK"


class Reader:
    """A running driver; the vocabulary that was loaded last is the one that encodes."""

    def __init__(self, program: Path, log: Path) -> None:
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=os.environ | SANITIZER_OPTIONS,
            )

    def close(self) -> None:
        """End the process; a finding at its end is an error."""
        self._pipe(self._process.stdin).close()
        code = self._process.wait()
        self._pipe(self._process.stdout).close()
        assert code == 0, self._log.read_text("utf-8", "replace")

    def load_section(self, data: bytes) -> Loaded:
        return self._load(b"S", [data])

    def load_export(self, folder_or_files: Path | Sequence[bytes]) -> Loaded:
        if isinstance(folder_or_files, Path):
            return self._load(
                b"K", [(folder_or_files / name).read_bytes() for name in exports.NAMES]
            )
        return self._load(b"K", folder_or_files)

    def encode(self, text: bytes) -> list[int]:
        answer, ids = self.try_encode(text)
        assert answer.status == "OK", answer
        return ids

    def try_encode(self, text: bytes) -> tuple[Answer, list[int]]:
        self._send(b"E", [text])
        answer = self._answer()
        data = self._read(self._number())
        return answer, list(struct.unpack(f"<{len(data) // 4}I", data))

    def decode(self, ids: Sequence[int]) -> bytes:
        answer, text = self.try_decode(ids)
        assert answer.status == "OK", answer
        return text

    def try_decode(self, ids: Sequence[int]) -> tuple[Answer, bytes]:
        self._send(b"D", [struct.pack(f"<{len(ids)}I", *ids)])
        return self._answer(), self._read(self._number())

    def _load(self, kind: bytes, blobs: Sequence[bytes]) -> Loaded:
        self._send(kind, blobs)
        answer = self._answer()
        size, merges, bos, eos, pad, unk, pattern, needed = struct.unpack("<8I", self._read(32))
        roles = {"bos": bos, "eos": eos, "pad": pad, "unk": unk}
        return Loaded(answer, size, merges, roles, PATTERNS[pattern], needed)

    def _send(self, kind: bytes, blobs: Sequence[bytes]) -> None:
        pipe = self._pipe(self._process.stdin)
        pipe.write(kind + b"".join(struct.pack("<I", len(blob)) + blob for blob in blobs))
        pipe.flush()

    def _answer(self) -> Answer:
        status, file, offset, steps = struct.unpack("<4I", self._read(16))
        return Answer(STATUSES[status], FILES[file], offset, steps)

    def _number(self) -> int:
        (value,) = struct.unpack("<I", self._read(4))
        return int(value)

    def _read(self, size: int) -> bytes:
        data = self._pipe(self._process.stdout).read(size)
        if len(data) < size:
            code = self._process.wait()
            message = self._log.read_text("utf-8", "replace")
            raise AssertionError(f"the C reader ended with {code}:\n{message}")
        return data

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        assert pipe is not None
        return pipe
