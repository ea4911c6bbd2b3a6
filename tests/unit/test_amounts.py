"""Speeds are shown only if enough was measured; no verb shows one of a tiny run."""

from __future__ import annotations

import re

import pytest

from byteweld._amounts import MIN_BYTES, MIN_SECONDS, speed
from byteweld.cli import main

SPEED = re.compile(r"\d ?(?:[kMGT]?B|bytes?)/s")


@pytest.mark.parametrize(
    ("num_bytes", "seconds", "shown"),
    [
        (MIN_BYTES, MIN_SECONDS, "20.0 MB/s"),
        (MIN_BYTES - 1, 10.0, None),
        (10**12, MIN_SECONDS - 0.001, None),
        (10**12, 0.0, None),
        (5 * 10**9, 2.0, "2.5 GB/s"),
        (2_000_000, 3.0, "666.7 kB/s"),
        (2_000_000, 2.00001, "1.0 MB/s"),
        (1_000_000, 5000.0, "200 bytes/s"),
    ],
)
def test_a_speed_needs_a_megabyte_and_fifty_milliseconds(num_bytes, seconds, shown):
    assert speed(num_bytes, seconds) == shown


def test_no_verb_shows_the_speed_of_a_tiny_run(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("low lower lowest " * 100)
    lines = [
        "train a.txt --vocab-size 270 --out t.json",
        "extend t.json --word newer --out longer.json",
        "count a.txt --out counts",
        "encode -t t.json a.txt",
        "tokens -t t.json a.txt",
        "tokens -t t.json a.txt --html tokens.html",
        "inspect t.json --corpus a.txt",
        "inspect t.json --corpus a.txt --html inspect.html",
        "compare t.json t.json a.txt",
        "compare t.json t.json a.txt --html compare.html",
        "prove t.json a.txt",
        "convert t.json t.tiktoken --corpus a.txt",
        "tokenize a.txt --out data -t t.json --eot none",
        "verify data",
    ]
    for line in lines:
        assert main(line.split()) == 0, line
    said = "".join(capfd.readouterr())
    pages = "".join(page.read_text() for page in tmp_path.glob("*.html"))
    assert SPEED.findall(said) == SPEED.findall(pages) == []
