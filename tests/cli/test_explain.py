"""`byteweld explain`: encoding and training, step by step."""

from __future__ import annotations

import gzip
import itertools
import json
import tarfile
from collections import Counter

import pytest

import byteweld

TRAINING = """\
corpus:
  4 x · l o w
  2 x · l o w e r
  1 x l o w

step 1:
  o w  111 119  7  ####################  <- merged
  l o  108 111  7  ####################  tie
  · l  32 108   6  #################
  w e  119 101  2  #####
  e r  101 114  2  #####
  merge (o, w) -> 256 ow
  tie at 7 with (l, o)
  why: greatest-bytes: the greatest pair of byte strings wins, left before right; \
left b'o' is greater than b'l'
  corpus:
    4 x · l ow
    2 x · l ow e r
    1 x l ow

stopped after 1 merge: the vocabulary has the requested size

merges:
  rank 0  count 7  (o, w)  -> 256 ow

vocabulary: 257 tokens
  ids 0 to 255: the 256 single bytes
  id 256: ow
"""


def test_a_training_is_shown_step_by_step(program):
    line = ("explain", "--train", "low low low low low lower lower")
    result = program(*line, "--recipe", "from-scratch", "--vocab-size", "257")
    assert result == (0, TRAINING.encode(), "")


def test_a_training_can_read_a_file_and_says_so(run, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"ab ab ab")
    result = run("explain", "--train", "a.txt", "--json")
    assert result.err == "reading a.txt\n"
    assert json.loads(result.out)["corpus"][0]["total_parts"] == 8
    assert run("explain", "--train", "-", "--json", stdin=b"ab ab ab").out == result.out


def test_a_training_does_not_read_a_misspelled_path_as_text(run, tmp_path):
    (tmp_path / "corpus").write_text("ab ab ab")
    result = run("explain", "--train", "corpsu")
    words = "corpsu: no such file; to use it as text, pass --text; did you mean 'corpus'?"
    assert (result.code, result.err) == (2, f"byteweld: {words}\n")
    assert run("explain", "--train", "low").code == 0
    assert run("explain", "--train", "corpsu corpsu").code == 0


def test_a_training_can_have_its_own_pattern_and_special_tokens(run):
    line = ("explain", "--train", "ab ab<|x|>ab<|y=1|>", "--json")
    flags = ("--pattern", "gpt2", "--special", "<|x|>", "--special", "<|y=1|>")
    report = json.loads(run(*line, *flags).out)
    assert report["special_tokens"] == {"<|x|>": 0, "<|y=1|>": 1}
    assert [row["count"] for row in report["corpus"]] == [2, 1]
    assert [len(row["parts"]) for row in report["corpus"]] == [2, 3]
    assert json.loads(run(*line).out)["special_tokens"] == {}
    assert run(*line, "--recipe", "modern", "--pattern", "none").code == 0


@pytest.fixture
def books(tmp_path):
    """A folder with a text file of more than two megabytes, JSON lines and a compressed file."""
    folder = tmp_path / "books"
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"low lower " * 200_000)
    (folder / "b.jsonl").write_bytes(b'{"text": "low low", "n": 1}\n' * 30_000)
    (folder / "c.txt.gz").write_bytes(gzip.compress(b"lowest " * 30_000))
    (folder / "d.bin").write_bytes(b"ignored")
    return folder


def test_a_training_on_a_folder_shows_the_pairs_of_the_whole_corpus(run, books):
    line = ("explain", "--train", "--recipe", "from-scratch", "--vocab-size", "259", "--json")
    result = run(*line, "books")
    assert result.code == 0
    said = result.err.splitlines()
    assert said[0] == "reading books"
    assert said[1].startswith("skipped 1 file with other extensions: .bin (1)")
    assert said[2].startswith("counted 490,002 pre-tokens, ")
    report = json.loads(result.out)
    first = report["steps"][0]
    # (o, w) and (l, o) are in every pre-token but the spaces at the ends of two files.
    assert first["pairs"][:2] == [
        {"left": 111, "right": 119, "count": 490_000},
        {"left": 108, "right": 111, "count": 490_000},
    ]
    assert first["total_tied"] == 1
    assert first["total_pairs"] == 7  # also ( ,l) (w,e) (e,r) (e,s) (s,t)
    assert [merge["new"] for merge in report["merges"]] == [256, 257, 258]

    # The same from its parts, on any number of threads, within a budget, or from saved counts.
    parts = ("books/a.txt", "books/b.jsonl", "books/c.txt.gz")
    assert run(*line, *parts, "--threads", "1").out == result.out
    assert run(*line, "books", "--memory", "1GB").out == result.out
    assert run(*line, "books/*", "--ext", ".txt,.jsonl", "--threads", "2").code == 0
    assert run("count", "books", "--recipe", "from-scratch", "--out", "counts").code == 0
    assert run(*line, "counts").out == result.out


def test_a_training_without_a_pattern_takes_a_folder_too(run, books):
    line = ("explain", "--train", "--recipe", "ck", "--vocab-size", "262", "--ext", ".txt")
    result = run(*line, "books", "--json")
    assert result.code == 0
    report = json.loads(result.out)
    assert [row["total_parts"] for row in report["corpus"]] == [2_000_000, 210_000]
    after = [row["total_parts"] for row in report["steps"][0]["corpus"]]
    assert after == [2_000_000 - 400_000, 210_000 - 30_000]


def test_the_pictures_of_the_ck_seeds_own_folder(run, shared, tmp_path):
    with tarfile.open(shared / "ck" / "assets.tar.xz") as archive:
        archive.extractall(tmp_path / "assets", filter="data")
    text = run("inspect", "--bytes", "assets").text
    assert " other than tabs, line ends and 0x20 to 0x7E in 68 of 97 files, " in text
    line = ("explain", "--train", "assets", "--recipe", "ck", "--vocab-size", "320", "--json")
    report = json.loads(run(*line).out)
    assert report["total_pretokens"] == 97
    assert len(report["steps"]) == 60
    first, second = report["steps"][0]["pairs"][:2]
    # Two spaces, then ="; ids follow the four special tokens.
    assert (first["left"], first["right"]) == (4 + 32, 4 + 32)
    assert (second["left"], second["right"]) == (4 + ord("="), 4 + ord('"'))
    drawings = [file.read_bytes() for file in sorted((tmp_path / "assets").rglob("*.svg"))]
    pairs = Counter(pair for drawing in drawings for pair in itertools.pairwise(drawing))
    assert report["steps"][0]["total_pairs"] == len(pairs)
    assert (first["count"], second["count"]) == (pairs[32, 32], pairs[tuple(b'="')])


def test_a_training_that_may_exceed_its_memory_is_refused(run, books):
    line = ("explain", "--train", "books", "--vocab-size", "1000000", "--memory", "500MB")
    result = run(*line)
    assert (result.code, result.out) == (2, b"")
    assert "the budget is 500MB" in result.err


def test_encoding_is_shown_step_by_step_with_the_greedy_comparison(run, tmp_path):
    vocab = {b: bytes([b]) for b in range(256)} | {256: b"bc", 257: b"ab"}
    tok = byteweld.Tokenizer.from_merges(vocab, [(b"b", b"c"), (b"a", b"b")])
    tok.save(tmp_path / "tokenizer.json")
    result = run("explain", "abc")
    assert result.text == (
        "pre-token 1: abc  (byte 0)\n"
        "  bytes: 61 62 63\n"
        "  step 1: a [b c]\n"
        "    rank 0  b c  -> 256  <- merged\n"
        "    rank 1  a b  -> 257\n"
        "  end: a bc  (no pair can merge)\n"
        "  tree:\n"
        "    a  97\n"
        "    bc  256  rank 0\n"
        "    ├── b  98\n"
        "    └── c  99\n"
        "  ids: 97 256\n"
        "  longest match differs from byte 0: ab c  ids 257 99\n"
        "\n"
        "ids: 97 256\n"
    )
    assert json.loads(run("explain", "abc", "--json").out)["ids"] == [97, 256]
    assert json.loads(run("explain", "-", "--json", stdin=b"abc").out)["ids"] == [97, 256]


def test_long_inputs_are_refused_with_an_alternative(run, saved):
    assert run("explain", "a" * 2000) == (
        2,
        b"",
        f"byteweld: pre-token {b'a' * 20!r}... has 2,000 bytes, too many to show step by step "
        "(at most 1,024); use a shorter one, or raise --max-pretoken-bytes\n",
    )
    assert run("explain", "a" * 1100, "--max-pretoken-bytes", "1100", "--json").code == 0


def test_a_source_is_a_file_standard_input_or_text(run, saved, tmp_path):
    (tmp_path / "notes.txt").write_bytes(b"low")
    (tmp_path / "README").write_bytes(b"low")
    ids = json.loads(run("explain", "low", "--json").out)["ids"]
    for source in (["--text", "low"], ["notes.txt"], ["README"], ["-"], []):
        result = run("explain", *source, "--json", stdin=b"low")
        assert json.loads(result.out)["ids"] == ids
    assert run("explain", "README").err == "reading README\n"


@pytest.mark.parametrize("flags", [[], ["--train"]])
@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("nots.txt", "; did you mean 'notes.txt'?"),
        ("books/on.txt", "; did you mean 'one.txt'?"),
        ("~/notes", ""),
        ("books/two", ""),
        ("bokos/", "; did you mean 'books'?"),
    ],
)
def test_a_misspelled_path_is_never_taken_as_text(run, saved, tmp_path, flags, name, suggestion):
    (tmp_path / "notes.txt").write_bytes(b"low")
    (tmp_path / "books").mkdir()
    (tmp_path / "books" / "one.txt").write_bytes(b"low")
    assert run("explain", *flags, name) == (
        2,
        b"",
        f"byteweld: {name}: no such file; to use it as text, pass --text{suggestion}\n",
    )
    assert run("explain", *flags, "--text", name).code == 0


@pytest.mark.parametrize(
    "text", ["either or", "a <b>c</b>", "<b>c</b>", "the end.", "e.g. 1/2 cup"]
)
def test_text_with_dots_and_slashes_is_still_text(run, saved, text):
    assert run("explain", text).code == 0


def test_the_page_draws_the_merge_trees(run, saved, tmp_path):
    assert run("explain", "<b>lowest</b>", "--html", "why.html").code == 0
    page = (tmp_path / "why.html").read_text()
    described = 'role="img" aria-label="merge trees of the tokens low est; '
    drawing = page.partition(described)[2].partition("</svg>")[0]
    assert drawing.count('<g class="node c') == 10  # six bytes and four merges
    assert drawing.count('class="edge"') == 8
    assert "<summary>the same as text</summary>" in page
    assert "<b>lowest" not in page


def test_a_vocabulary_size_in_thousands_is_read_as_by_train(run):
    written = run("explain", "--train", "low low lower", "--vocab-size", "1k", "--json")
    plain = run("explain", "--train", "low low lower", "--vocab-size", "1024", "--json")
    assert (written.code, written.out) == (0, plain.out)
