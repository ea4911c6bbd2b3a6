"""Memory of `byteweld.tokenize` does not grow with the corpus: one long text, many tiny ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.tokenized import make_tokenizer

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="needs Linux's /proc"
)

CHILD = r"""
import re, sys
from pathlib import Path
import byteweld
tok = byteweld.load(sys.argv[1])
manifest = byteweld.tokenize(
    sys.argv[2], tok, out=sys.argv[3], lines=sys.argv[4] == "lines", num_threads=2
)
# Not ru_maxrss, which starts with that of the process that started this one.
peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]
print(manifest.documents, peak)
"""


def measured(folder: Path, corpus: Path, unit: str) -> tuple[int, int]:
    """Return the number of documents, and the peak memory of the process in KiB."""
    make_tokenizer().save(folder / "tokenizer.json", overwrite=True)
    arguments = (folder / "tokenizer.json", corpus, folder / f"out-{corpus.name}", unit)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
    )
    documents, peak = map(int, done.stdout.split())
    return documents, peak


@pytest.mark.parametrize(("unit", "text"), [("file", b"the cat sat "), ("lines", b"the\n")])
def test_peak_memory_is_the_same_for_eight_times_the_corpus(tmp_path, unit, text):
    found = []
    for million_bytes in (10, 80):
        corpus = tmp_path / f"{million_bytes}.txt"
        corpus.write_bytes(text * (million_bytes * 1_000_000 // len(text)))
        found.append(measured(tmp_path, corpus, unit))
    (documents, peak), (more_documents, more_peak) = found
    assert (documents, more_documents) == ((1, 1) if unit == "file" else (2_500_000, 20_000_000))
    assert more_peak < peak + 40_000  # KiB; the corpus grew by 70 MB, its index by 140 MB
