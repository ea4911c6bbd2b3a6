"""`byteweld inspect`: overview, merges, trees, the bytes of a file."""

from __future__ import annotations

import gzip
import itertools
import json
import struct
from collections import Counter

import pytest

import byteweld
from byteweld._byte_letters import BYTE_TO_CHAR
from byteweld.cli._overview import length_groups

OVERVIEW = """\
tokenizer.json
  name         tokenizer
  format       huggingface
  tokens       272: 256 bytes, 15 longer, 1 special
  merges       15
  alphabet     bytes
  pattern      gpt2 (run by a scanner)
  special      <|endoftext|> 256
  roles        none
  fingerprint  FINGERPRINT

longest tokens
  265  7 bytes  ·newest
  271  7 bytes  ·widest
  264  6 bytes  newest
  268  6 bytes  widest
  270  6 bytes  ·lower

unreachable tokens
  none: every token's bytes encode to that token
"""


def test_the_overview_describes_the_tokenizer(program, saved, tiny):
    expected = OVERVIEW.replace("FINGERPRINT", tiny.vocab.fingerprint)
    assert program("inspect", "tokenizer.json") == (0, expected.encode(), "")


def test_the_tokenizer_is_optional_and_may_be_an_option(run, saved):
    expected = run("inspect", "tokenizer.json")
    assert expected.code == 0
    assert run("inspect") == expected == run("inspect", "-t", "tokenizer.json")


def test_the_json_report(run, saved, tiny):
    report = json.loads(run("inspect", "tokenizer.json", "--json").out)
    longest = report.pop("longest")
    assert len(longest) == 5
    assert longest[0] == {"id": 265, "bytes": b" newest".hex(), "text": "·newest"}
    assert report == {
        "path": "tokenizer.json",
        "name": "tokenizer",
        "format": "huggingface",
        "byte_map": None,
        "tokens": 272,
        "max_id": 271,
        "merges": 15,
        "ranking": "merges",
        "ignore_merges": False,
        "alphabet": "bytes",
        "pattern": byteweld.PATTERNS["gpt2"],
        "pattern_name": "gpt2",
        "pattern_engine": "scanner",
        "steps": [],
        "normalizer": [],
        "special_tokens": {"<|endoftext|>": 256},
        "ambiguous_ids": [],
        "added_tokens": [],
        "template": [[], []],
        "roles": {},
        "training": None,
        "fingerprint": tiny.vocab.fingerprint,
        "unreachable": {
            "cut_by_pattern": [],
            "part_of_character": [],
            "never_merged": [],
            "changed_before": [],
        },
    }


def test_special_ids_that_text_may_become_are_a_warning(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tok = byteweld.train(
        iter(["user users user"]), vocab_size=264, recipe="huggingface", special_tokens=["user"]
    )
    tok.save("tokenizer.json")
    shown = run("inspect", "tokenizer.json").out.decode()
    warning = "ordinary text may become the special id 0 (user), except in encode_spans"
    assert f"  warning      {warning}" in shown.splitlines()
    assert json.loads(run("inspect", "tokenizer.json", "--json").out)["ambiguous_ids"] == [0]


def test_a_pipeline_is_shown_step_by_step(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tokens = {b: bytes([b]) for b in range(256)} | {256: b"<s>", 257: b"<x>"}
    vocab = byteweld.Vocabulary(
        tokens,
        added_tokens=[
            byteweld.AddedToken("<s>", 256, lstrip=True),
            byteweld.AddedToken("<x>", 257, special=False),
        ],
        steps=[
            byteweld.Split(r"\p{N}", "removed", True),
            "prefix-space",
            byteweld.Split(byteweld.PATTERNS["gpt2"]),
        ],
        normalizer=["nfc", byteweld.Replace("a+", "b")],
        template=((256,), ()),
    )
    byteweld.Tokenizer(vocab).save("tokenizer.json")
    shown = run("inspect", "tokenizer.json").out.decode()
    for line in (
        "  normalizer   nfc, replace a+ with 'b'",
        "  pattern      a chain of 3 steps (run by a scanner)",
        r"  steps        removed: other than \p{N}",
        "               prefix-space",
        "               isolated: gpt2",
        "  added        <s> 256 (special lstrip), <x> 257 (not special)",
        "  template     <s> TEXT",
    ):
        assert line in shown.splitlines()
    assert "256 changed before splitting" in shown
    report = json.loads(run("inspect", "tokenizer.json", "--json").out)
    assert report["steps"][1] == "prefix-space" and report["template"] == [[256], []]


def use_gpt2_letters(export):
    """Rewrite an export as a training with GPT-2's byte map would write it."""
    vocab = byteweld.load(export).vocab
    texts = [
        token
        if token_id in vocab.special_tokens.values()
        else "".join(BYTE_TO_CHAR[byte] for byte in token).encode()
        for token_id, token in sorted(vocab.tokens.items())
    ]
    offsets = itertools.accumulate((len(text) + 1 for text in texts[:-1]), initial=0)
    (export / "vocab_strings.bin").write_bytes(b"".join(text + b"\0" for text in texts))
    (export / "vocab_offsets.bin").write_bytes(struct.pack(f"<{len(texts)}i", *offsets))


def test_the_byte_map_of_a_ck_export_is_shown(run, ck_corpus, tmp_path):
    line = ("train", "corpus", "--recipe", "ck", "--vocab-size", "264", "--binary-out", "export")
    assert run(*line).code == 0
    for byte_map in ("ck", "gpt2"):
        if byte_map == "gpt2":
            use_gpt2_letters(tmp_path / "export")
        text = run("inspect", "export").text
        assert f"\n  format       ck\n  byte map     {byte_map}\n" in text
        assert json.loads(run("inspect", "export", "--json").out)["byte_map"] == byte_map


def test_tokens_that_ck_cannot_reach_are_shown_with_the_reason(run, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"a b a b a b a b")
    assert run("train", "a.txt", "--recipe", "ck", "--vocab-size", "263").code == 0
    assert run("inspect", "tokenizer.json").text.endswith(
        "unreachable tokens\n"
        "  2 split by the pattern, as happens if training used no pattern (recipe ck)\n"
        "  261  a·b   becomes  a ·b\n"
        "  262  ·a·b  becomes  · a ·b\n"
    )
    report = json.loads(run("inspect", "tokenizer.json", "--json").out)
    assert report["unreachable"]["cut_by_pattern"]
    assert report["unreachable"]["never_merged"] == []


def test_tokens_that_other_merges_hide_are_shown_with_the_reason(run, tmp_path):
    vocab = {b: bytes([b]) for b in range(256)} | {256: b"bc", 257: b"ab", 258: b"abc"}
    tok = byteweld.Tokenizer.from_merges(vocab, [(b"b", b"c"), (b"a", b"b"), (b"ab", b"c")])
    tok.save(tmp_path / "t.json")
    text = run("inspect", "t.json").text
    assert text.endswith(
        "unreachable tokens\n"
        "  1 never produced: other merges come first\n"
        "  258  abc  becomes  a bc\n"
    )


def test_tokens_that_end_inside_a_character_are_listed_separately(run, tmp_path):
    """The first byte of a letter is not a letter alone, but the pattern does not split there."""
    token = "é".encode() + b"\xc3"
    vocab = {b: bytes([b]) for b in range(256)} | {256: "é".encode(), 257: token}
    merges = [(b"\xc3", b"\xa9"), ("é".encode(), b"\xc3")]
    byteweld.Tokenizer.from_merges(vocab, merges).save(tmp_path / "t.json")
    assert run("encode", "-t", "t.json", "--text", "éà").out == b"257 160\n"
    assert run("inspect", "t.json").text.endswith(
        "unreachable tokens\n"
        "  1 with part of a character: produced only inside longer pre-tokens\n"
        "  257  é⟨c3⟩  becomes  é ⟨c3⟩\n"
    )
    report = json.loads(run("inspect", "t.json", "--json").out)
    assert report["unreachable"] == {
        "cut_by_pattern": [], "part_of_character": [257], "never_merged": [],
        "changed_before": [],
    }  # fmt: skip


def test_merges_are_printed_as_left_and_right(run, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"low low low low low lower lower")
    line = ("train", "a.txt", "--recipe", "from-scratch", "--vocab-size", "260")
    assert run(*line).code == 0
    everything = (
        "0  256  o + w -> ow\n1  257  l + ow -> low\n2  258  · + low -> ·low\n3  259  e + r -> er\n"
    )
    assert run("inspect", "tokenizer.json", "--merges").text == everything
    assert run("inspect", "--merges", "tokenizer.json").text == everything
    assert run("inspect", "tokenizer.json", "--merges", "2").text.count("\n") == 2
    first = json.loads(run("inspect", "tokenizer.json", "--merges=1", "--json").out)
    assert first == [{"rank": 0, "left": 111, "right": 119, "new": 256, "bytes": "6f77"}]


@pytest.mark.parametrize("asked", [" low", "·low", "258"])
def test_a_token_is_found_by_its_text_its_shown_form_or_its_id(run, tmp_path, asked):
    (tmp_path / "a.txt").write_bytes(b"low low low low low lower lower")
    line = ("train", "a.txt", "--recipe", "from-scratch", "--vocab-size", "260")
    assert run(*line).code == 0
    assert run("inspect", "tokenizer.json", "--tree", asked).text == (
        "·low  258  rank 2\n"
        "├── ·  32\n"
        "└── low  257  rank 1\n"
        "    ├── l  108\n"
        "    └── ow  256  rank 0\n"
        "        ├── o  111\n"
        "        └── w  119\n"
    )
    tree = json.loads(run("inspect", "tokenizer.json", "--tree", asked, "--json").out)
    assert tree["tokens"]["257"] == {"bytes": "6c6f77", "text": "low"}
    assert len(tree["roots"]) == 1


# ---------------------------------------------------------------------------- bytes

UNUSED = " ".join([" ."] * 16)
HEAT_MAP = f"""\
a.txt: 9 bytes, 4 of 256 byte values used

       _0 _1 _2 _3 _4 _5 _6 _7 _8 _9 _A _B _C _D _E _F
  0x0_  .  .  .  .  .  .  .  .  .  . ██  .  .  .  .  .   11.1%  control characters, tab, line ends
  0x1_ {UNUSED}    0.0%  control characters
  0x2_ ██  .  .  .  .  .  .  .  .  .  .  .  .  .  .  .   22.2%  space and punctuation
  0x3_ {UNUSED}    0.0%  digits and punctuation
  0x4_ {UNUSED}    0.0%  @, uppercase letters
  0x5_ {UNUSED}    0.0%  uppercase letters and punctuation
  0x6_  . ██ ██  .  .  .  .  .  .  .  .  .  .  .  .  .   66.7%  `, lowercase letters
  0x7_ {UNUSED}    0.0%  lowercase letters and punctuation, DEL
  0x8_ {UNUSED}    0.0%  not ASCII: continuation bytes of UTF-8
  0x9_ {UNUSED}    0.0%  not ASCII: continuation bytes of UTF-8
  0xA_ {UNUSED}    0.0%  not ASCII: continuation bytes of UTF-8
  0xB_ {UNUSED}    0.0%  not ASCII: continuation bytes of UTF-8
  0xC_ {UNUSED}    0.0%  not ASCII: first bytes of UTF-8 characters
  0xD_ {UNUSED}    0.0%  not ASCII: first bytes of UTF-8 characters
  0xE_ {UNUSED}    0.0%  not ASCII: first bytes of UTF-8 characters
  0xF_ {UNUSED}    0.0%  not ASCII: first of four bytes, or never in UTF-8

        . unused   ░░ cold   ▒▒ warm   ▓▓ hot   ██ very hot

--ascii-only starts from 98 base tokens instead of 256, which leaves 158 more for merges
this file qualifies: every byte is a tab, a line end or in 0x20 to 0x7E
"""


def test_the_bytes_of_a_file_are_a_heat_map(run, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"ab ab ab\n")
    assert run("inspect", "--bytes", "a.txt") == (0, HEAT_MAP.encode(), "")


def test_the_heat_has_five_levels(run, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"a" * 1000 + b"b" * 100 + b"c" * 10 + b"d")
    row = next(
        line for line in run("inspect", "--bytes", "a.txt").text.splitlines() if "0x6_" in line
    )
    assert row.startswith("  0x6_  . ██ ▓▓ ▒▒ ░░  . ")


def test_bytes_that_ascii_only_would_refuse_are_reported(run, tmp_path):
    (tmp_path / "b.md").write_bytes("aaa bà\x00".encode())
    text = run("inspect", "--bytes", "b.md").text
    assert text.endswith(
        "this file does not qualify: 3 bytes other than tabs, line ends and 0x20 to 0x7E, "
        "the first of them 0xC3 at offset 5\n"
    )
    report = json.loads(run("inspect", "--bytes", "b.md", "--json").out)
    assert report["ascii_only"] == {
        "fits": False,
        "bytes_outside": 3,
        "files_outside": 1,
        "first_outside": 5,
        "first_outside_file": "b.md",
        "base_tokens_saved": 158,
    }  # fmt: skip
    assert sum(report["counts"]) == report["bytes"] == 8


def test_the_bytes_of_a_folder_are_those_of_its_documents(run, tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"ab " * 500_000)
    (folder / "b.jsonl").write_bytes('{"text": "é", "n": 7}\n'.encode() * 3)
    (folder / "c.txt.gz").write_bytes(gzip.compress(b"x\x00y"))
    (folder / "d.bin").write_bytes(b"ignored")
    result = run("inspect", "--bytes", "texts", "--json")
    assert result.err.startswith("skipped 1 file with other extensions: .bin (1)")
    report = json.loads(result.out)
    counts = Counter(b"ab " * 500_000 + "é".encode() * 3 + b"x\x00y")
    assert report["counts"] == [counts[byte] for byte in range(256)]
    assert (report["file"], report["files"], report["bytes"]) == ("texts", 3, counts.total())
    assert report["ascii_only"] == {
        "fits": False,
        "bytes_outside": 7,
        "files_outside": 2,
        "first_outside": None,  # in JSON there is no offset
        "first_outside_file": "texts/b.jsonl",
        "base_tokens_saved": 158,
    }
    text = run("inspect", "--bytes", "texts").text
    assert text.startswith("texts: 3 files, 1.5 MB, 8 of 256 byte values used\n")
    assert text.endswith(
        "this corpus does not qualify: 7 bytes other than tabs, line ends and 0x20 to 0x7E in 2 of "
        "3 files, the first of them 0xC3 in texts/b.jsonl\n"
    )
    text = run("inspect", "--bytes", "texts", "--ext", ".txt").text
    assert "in 1 of 2 files, the first of them 0x00 at offset 1 in texts/c.txt.gz\n" in text
    text = run("inspect", "--bytes", "texts/*.txt").text
    assert text.endswith(
        "this file qualifies: every byte is a tab, a line end or in 0x20 to 0x7E\n"
    )
    text = run("inspect", "--bytes", "texts/b.jsonl", "--field", "n", "--on-error", "skip").text
    assert text.startswith("texts/b.jsonl: 0 bytes")


def test_a_corpus_of_bytes_that_is_damaged_is_an_error(run, tmp_path):
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"x" * 1000)[:-9])
    result = run("inspect", "--bytes", "a.txt.gz")
    assert (result.code, result.out) == (2, b"")
    assert "a.txt.gz" in result.err


def test_the_bytes_of_standard_input_are_shown(run):
    assert run("inspect", "--bytes", "-", stdin=b"\n").text.startswith("-: 1 byte, 1 of 256")
    assert run("inspect", "--bytes", "-", stdin=b"").text.startswith("-: 0 bytes, 0 of 256")


# ---------------------------------------------------------------------------- a corpus

EVALUATION = """\
tokenizer on 2 files, 2 documents, 34 bytes
  tokens            17
  bytes per token   2.00
  words             6
  tokens per word   2.17
  whole words       50.0%
  vocabulary used   14 of 271 tokens, 5.2%
  Rényi efficiency  0.426 (order 2.5; Shannon 0.457)
  longest match     agrees on 100.0% of 9 pre-tokens
  round trip        every document decodes to its own bytes

by file
  bytes  tokens  bytes/token  words  tokens/word  whole words  file
     21       9         2.33      4         1.50        50.0%  texts/a.txt
     13       8         1.62      2         3.50        50.0%  texts/b.md
     34      17         2.00      6         2.17        50.0%  total

words by script
  words  bytes  tokens  bytes/token  tokens/word  whole words  script
      4     20       5         4.00         1.25        75.0%  latin
      1      6       6         1.00         6.00         0.0%  cyrillic
      1      2       2         1.00         2.00         0.0%  digits

the same sentence in 29 languages
  tokens  × English  bytes/token  tokens/word  whole words  language
      77       1.00         1.01         4.07         0.0%  English
      90       1.17         1.02         4.56        12.5%  Spanish
      84       1.09         1.05         3.88        17.6%  French
      83       1.08         1.01         4.06         0.0%  German
      84       1.09         1.02         4.53        13.3%  Italian
      89       1.16         1.03         4.50        12.5%  Portuguese
      73       0.95         1.03         4.14         0.0%  Dutch
      76       0.99         1.01         4.36         0.0%  Swedish
      80       1.04         1.00         5.08         7.7%  Polish
      73       0.95         1.01         4.54         7.7%  Czech
      78       1.01         1.03         4.85         0.0%  Finnish
      72       0.94         1.00         4.38         7.7%  Hungarian
      77       1.00         1.03         6.00         0.0%  Turkish
      92       1.19         1.00         4.69         0.0%  Vietnamese
      87       1.13         1.03         4.38         0.0%  Indonesian
      79       1.03         1.00         5.50         0.0%  Swahili
     138       1.79         1.00         8.13         0.0%  Greek
     135       1.75         1.00         9.23         0.0%  Russian
     139       1.81         1.00         9.54         0.0%  Ukrainian
     102       1.32         1.00         8.18         0.0%  Hebrew
     108       1.40         1.00         7.83         0.0%  Arabic
     119       1.55         1.00         6.80         0.0%  Persian
     173       2.25         1.00         9.00         0.0%  Hindi
     195       2.53         1.00        11.80         0.0%  Bengali
     232       3.01         1.00        18.25         0.0%  Tamil
     160       2.08         1.00        79.50         0.0%  Thai
      60       0.78         1.00        27.00         0.0%  Chinese
      90       1.17         1.00        42.00         0.0%  Japanese
     109       1.42         1.00         8.00         0.0%  Korean

digits
  10 of 10 numbers with 1 digit are a single token
  0 of 100 numbers with 2 digits are a single token
  0 of 1,000 numbers with 3 digits are a single token
  0 of 10,000 numbers with 4 digits are a single token
  1234567     1 | 2 | 3 | 4 | 5 | 6 | 7
  1,234,567   1 | , | 2 | 3 | 4 | , | 5 | 6 | 7
  3.14159     3 | . | 1 | 4 | 1 | 5 | 9
  2024-12-31  2 | 0 | 2 | 4 | - | 1 | 2 | - | 3 | 1
  0xff        0 | x | f | f

indentation, with the newline before it
  2 spaces   ⏎ | · | ·
  4 spaces   ⏎ | · | · | · | ·
  8 spaces   ⏎ | · | · | · | · | · | · | · | ·
  12 spaces  ⏎ | · | · | · | · | · | · | · | · | · | · | · | ·
  16 spaces  ⏎ | · | · | · | · | · | · | · | · | · | · | · | · | · | · | · | ·
  1 tab      ⏎ | ⇥
  2 tabs     ⏎ | ⇥ | ⇥
  3 tabs     ⏎ | ⇥ | ⇥ | ⇥

rarest tokens
   id  count  token
  264      1  newest
  270      1  ·lower
  259      1  ·low
  258      1  low
  261      1  est
   32      1  ·
   49      1  1
   50      1  2
  130      1  ⟨82⟩
  146      1  ⟨92⟩

unused tokens
  257 of 271, 94.8%; 0 of them are unreachable
  the first ones longer than a byte:
  257  ow
  260  st
  262  west
  263  ne
  265  ·newest
  266  wi
  267  wid
  268  widest
  269  er
  271  ·widest
"""


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("low lowest\nnewest 12\n")
    (tmp_path / "texts" / "b.md").write_text("Вот lower\n")
    return tmp_path / "texts"


def test_a_corpus_is_evaluated_in_full(program, saved, texts):
    result = program("inspect", "tokenizer.json", "--corpus", "texts")
    assert result == (0, EVALUATION.encode(), "")


def test_several_sources_are_one_corpus_in_the_json_report(run, saved, texts, tiny):
    line = ("inspect", "tokenizer.json", "--json")
    report = json.loads(run(*line, "--corpus", "texts").out)
    two = run(*line, "--corpus", "texts/a.txt", "--corpus", "texts/b.md").out
    assert json.loads(two) == report
    assert report["path"] == "tokenizer.json"
    assert report["fingerprint"] == tiny.vocab.fingerprint
    assert report["total"]["bytes_per_token"] == 2.0
    assert report["total"]["tokens_per_word"] == 13 / 6
    assert len(report["languages"]) >= 20
    assert report["indentation"]["1 tab"] == ["0a", "09"]


# ---------------------------------------------------------------------------- pages


def test_a_page_has_its_figures_first_and_long_lists_collapsed(run, saved, texts, tmp_path):
    assert run("inspect", "tokenizer.json", "--html", "page.html").code == 0
    page = (tmp_path / "page.html").read_text().partition("</style>")[2]
    assert page.index('class="figures"') < page.index('class="facts"') < page.index("<section")
    assert "<li><b>272</b>tokens</li><li><b>1</b>of them special</li>" in page
    assert "<summary>all languages</summary>" in page
    flags = ("--corpus", "texts", "--html", "page.html", "--force")
    assert run("inspect", "tokenizer.json", *flags).code == 0
    page = (tmp_path / "page.html").read_text().partition("</style>")[2]
    order = ["on 2 files", 'class="figures"', "Words by script", "The tokenizer", "Lengths"]
    assert sorted(order, key=page.index) == order


def test_lengths_are_in_groups():
    counted = [(1, 256), (5, 30), (6, 10), (12, 1), (33, 2), (128, 1)]
    assert length_groups(counted) == [
        ("1", 256), ("2", 0), ("3", 0), ("4", 0), ("5-6", 40), ("7-8", 0), ("9-12", 1),
        ("13-16", 0), ("17-32", 0), ("33 and more", 3),
    ]  # fmt: skip
    assert length_groups([(1, 256), (2, 4)]) == [("1", 256), ("2", 4)]
    assert length_groups([]) == []


def test_the_page_of_a_trained_tokenizer_has_its_curve(run, texts, tmp_path):
    assert run("train", "texts", "--recipe", "bpetite", "--vocab-size", "262").code == 0
    assert run("inspect", "tokenizer.json", "--html", "page.html").code == 0
    page = (tmp_path / "page.html").read_text()
    has_report = (tmp_path / "tokenizer.training.json").exists()
    assert ("curve-line" in page.partition("</style>")[2]) == has_report


def test_a_page_of_merges_has_no_more_than_it_can_hold(run, saved, tmp_path, monkeypatch):
    monkeypatch.setattr("byteweld.cli._overview._MAX_PAGE_MERGES", 4)
    run("inspect", "tokenizer.json", "--merges", "--html", "all.html")
    page = (tmp_path / "all.html").read_text()
    assert page.count("<tr>") == 5 and "and 11 more" in page
    run("inspect", "tokenizer.json", "--merges", "3", "--html", "some.html")
    assert "more" not in (tmp_path / "some.html").read_text().partition("</style>")[2]
