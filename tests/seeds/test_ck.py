"""The ck seed on the engine: ids, corpus rules, worked check, reserved specials, both outputs."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import byteweld
from byteweld import RECIPES, CorpusError, Tokenizer
from byteweld.corpus import open_corpus
from byteweld.evaluation import unreachable

WORKED = {"a.txt": b"ab ab ab\n", "sub/b.md": "aaa bà\n".encode()}
SVG = b'<svg viewBox="0 0 24 24">\n  <path d="M12 2L2 22h20z"/>\n</svg>\n'
DATA = Path(__file__).parents[3] / "shared" / "data"
REAL = DATA / "ck"
needs_real = pytest.mark.skipif(not REAL.is_dir(), reason=f"what ck's programs made: no {REAL}")
BINARY = ["vocab_offsets.bin", "vocab_strings.bin", "vocab_merges.bin", "tokenizer_meta.json"]
TEXTS = [
    "",
    " <path d=",
    "à",
    "bà",
    "aaa bà\n",
    "naïve café, mañana €5 🦊",
    "\x00\x7f\x80\xa0\xad\xff",
    "don't  stop\t\n\n 12345 <|bos|",
    '<svg viewBox="0 0 24 24">\r\n  <path d="M12 2L2 22h20z"/>\n</svg>',
]


def folder(root: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


def train(source: Any, vocab_size: int, recipe: str = "ck", **options: Any) -> Tokenizer:
    if isinstance(source, bytes):
        source = [source]
    return byteweld.train(source, vocab_size=vocab_size, recipe=recipe, **options)


def names(root: Path, **options: Any) -> list[str]:
    return [file.relative_to(root).as_posix() for file in open_corpus(root, **options).files]


def in_hugging_face(file: Path) -> Any:
    """Load a tokenizer.json with the real library."""
    tokenizers = pytest.importorskip("tokenizers")
    return tokenizers.Tokenizer.from_file(str(file))


def some_svg(seed: int) -> bytes:
    rng = random.Random(seed)
    rows = []
    for _ in range(60):
        numbers = " ".join(f"{rng.choice('MLHVz')}{rng.randint(0, 24)}" for _ in range(6))
        color = f"{rng.randint(0, 0xFFFFFF):06x}"
        rows.append(f'  <path d="{numbers}" stroke="#{color}" fill="none"/>\n')
    return f'<svg viewBox="0 0 24 24">\n{"".join(rows)}</svg>\n'.encode()


# ---------------------------------------------------------------------- ids


def test_byte_ids_are_four_and_the_byte_as_in_the_seeds_table():
    tok = train(b"", 260)
    specials = {"<|unk|>": 0, "<|bos|>": 1, "<|eos|>": 2, "<|pad|>": 3}
    assert dict(tok.vocab.special_tokens) == specials
    assert [tok.vocab.ids[bytes([byte])] for byte in range(256)] == list(range(4, 260))
    shown = {b"\0": 4, b" ": 36, b"0": 52, b"<": 64, b">": 66, b"A": 69, b"a": 101, b"z": 126}
    assert {token: tok.vocab.ids[token] for token in shown} == shown
    assert tok.encode("<svg") == [64, 119, 122, 107]
    assert {c: tok.vocab.ids[c.encode()] for c in "path"} == {
        "p": 116,
        "a": 101,
        "t": 120,
        "h": 108,
    }
    assert dict(tok.vocab.roles) == {"unk": 0, "bos": 1, "eos": 2, "pad": 3}


def test_ascii_ids_are_tab_newline_return_and_the_printable_ones():
    tok = train(b"", 102, "ck-ascii")
    alphabet = bytes([9, 10, 13, *range(0x20, 0x7F)])
    assert len(alphabet) == 98
    assert [tok.vocab.ids[bytes([byte])] for byte in alphabet] == list(range(4, 102))
    assert len(tok) == 102
    assert b"\0" not in tok.vocab.ids
    assert b"\x7f" not in tok.vocab.ids


def test_ascii_only_leaves_218_merges_at_320_tokens_and_bytes_leave_60():
    corpus = [some_svg(seed) for seed in range(4)]
    in_bytes = train(corpus, 320)
    in_ascii = train(corpus, 320, "ck-ascii")
    assert (in_bytes.training.merges_learned, in_bytes.training.stop) == (60, "size")
    assert (in_ascii.training.merges_learned, in_ascii.training.stop) == (218, "size")
    assert 218 - 60 == 256 - 98 == 158  # ids that ASCII-only frees for merges
    assert in_ascii.vocab.merges[:60] == in_bytes.vocab.merges


# ---------------------------------------------------------------------- the corpus


def test_a_folder_is_searched_recursively_for_the_seeds_extensions_in_any_case(tmp_path):
    wanted = ["a.svg", "b.TXT", "c.xml", "d.Html", "e/f/g.md", "h.JSON"]
    others = ["i.png", "j.py", "k.svgz", "l", "m.txt.bak", ".txt"]
    folder(tmp_path, dict.fromkeys(wanted + others, b"abab\n"))
    assert names(tmp_path) == wanted


def test_the_seeds_six_extensions_and_no_others_are_taken(tmp_path):
    records = b'{"text": "abab"}\n'
    folder(tmp_path, {"a.jsonl": records, "b.ndjson": records, "c.json": b'{"k": "v"}'})
    assert names(tmp_path) == ["a.jsonl", "b.ndjson", "c.json"]  # other recipes read all three
    tok = train(tmp_path, 300, min_frequency=1)
    assert tok.training.total_pretokens == 1
    assert b'{"k": "v"}' in tok.vocab.ids  # a .json file is one text, not parsed


def test_each_file_is_one_sequence_and_merges_never_cross_files(tmp_path):
    folder(tmp_path, {f"{n}.txt": b"ab" for n in range(5)})
    tok = train(tmp_path, 300)
    assert tok.vocab.merges == [(b"a", b"b")]
    assert tok.training.stop == "no pairs"
    # No pre-tokenization in training: within a file, merges cross spaces and line ends.
    whole = train(b"x y\nx y\nx y\nx y\n", 300)
    assert any(b" " in token and b"\n" in token for token in whole.vocab.ids)


def test_the_seeds_svg_fragment_begins_with_its_most_common_pair():
    tok = train(SVG, 262)
    pairs: dict[bytes, int] = {}
    for pair in itertools.pairwise(SVG):
        pairs[bytes(pair)] = pairs.get(bytes(pair), 0) + 1
    assert tok.vocab.tokens[260] == b" 2"
    assert tok.training.merge_counts[0] == max(pairs.values()) == pairs[b" 2"]


def test_svg_teaches_the_patterns_that_the_seed_expects():
    tokens = train([some_svg(seed) for seed in range(8)], 360).vocab.ids
    for fragment in (b'="', b"  <path d=", b"stroke=", b"fill=", b'" stroke="#'):
        assert any(fragment in token for token in tokens), fragment


# ---------------------------------------------------------------------- its own corpus


@pytest.fixture(scope="module")
def drawings(tmp_path_factory):
    """The seed's corpus, unpacked; and in another folder those of its files that are ASCII."""
    root = tmp_path_factory.mktemp("drawings")
    with tarfile.open(REAL / "assets.tar.xz") as archive:
        archive.extractall(root / "all", filter="data")
    files = sorted(path for path in (root / "all").rglob("*.svg") if path.is_file())
    (root / "ascii").mkdir()
    for path in files:
        if path.read_bytes().isascii():
            shutil.copy(path, root / "ascii")
    assert (len(files), len(list((root / "ascii").iterdir()))) == (97, 29)
    return root


@needs_real
@pytest.mark.parametrize("mode", ["bytes", "ascii"])
def test_its_drawings_give_the_three_tables_of_the_real_trainer(drawings, tmp_path, mode):
    recipe, source = ("ck", "all") if mode == "bytes" else ("ck-ascii", "ascii")
    train(drawings / source, 320, recipe).save(tmp_path / "out", format="ck")
    for name in BINARY:
        assert (tmp_path / "out" / name).read_bytes() == (
            REAL / f"export_{mode}" / name
        ).read_bytes(), name


@needs_real
@pytest.mark.parametrize(("mode", "texts"), [("bytes", 2884), ("ascii", 2138)])
def test_an_export_gives_the_ids_of_the_real_runtime(mode, texts):
    tok = byteweld.load(REAL / f"export_{mode}")
    with gzip.open(REAL / f"runtime_{mode}.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    assert len(rows) == texts
    assert [row for row in rows if tok.encode_ordinary(row["text"]) != row["ids"]] == []
    for row in rows[::50]:
        assert byteweld.reference.encode(tok.vocab, row["text"]) == row["ids"]


@needs_real
@pytest.mark.parametrize("mode", ["bytes", "ascii"])
def test_its_tokenizer_json_is_the_vocabulary_of_its_export(mode):
    pattern = byteweld.PATTERNS["ck"] if mode == "bytes" else None
    tok = byteweld.load(REAL / f"tokenizer_{mode}.json")
    assert tok.vocab.pattern == pattern
    assert tok == byteweld.load(REAL / f"export_{mode}", pattern=pattern)


# ---------------------------------------------------------------------- choosing a pair


def test_a_pair_below_min_frequency_is_not_merged_and_the_default_is_two():
    text = b"abab cdcd"
    assert RECIPES["ck"].min_frequency == RECIPES["ck-ascii"].min_frequency == 2
    assert train(text, 300).training.stop == "min frequency"
    assert train(text, 300, min_frequency=3).vocab.merge_ids == ()
    every = train(text, 300, min_frequency=1)
    assert every.training.stop == "no pairs"
    assert len(every.encode(text, disallowed_special=())) < len(train(text, 300).encode(text))


def test_token_bytes_are_unlimited_and_the_size_is_required():
    assert RECIPES["ck"].max_token_bytes is None
    assert b"q" * 64 in train(b"q" * 256, 300, min_frequency=1).vocab.ids
    with pytest.raises(TypeError, match="vocab_size"):
        byteweld.train(iter(["ab"]), recipe="ck")  # ck's own default is 1024


def test_the_limit_is_in_bytes_of_the_token_and_not_of_its_letters():
    # A space is one byte, but its letter in the file has two; ck counts those, byteweld the byte.
    tok = train(b"    " * 8, 261, max_token_bytes=2)
    assert tok.vocab.merges == [(b" ", b" ")]


# ---------------------------------------------------------------------- reserved special tokens

RESERVED = ("<row>", "<row><col>", "[SEP]")


def test_reserved_specials_have_the_ids_from_4_then_bytes_then_merges():
    tok = train(b"abab abab", 400, special_tokens=RESERVED)
    assert [tok.vocab.special_tokens[text] for text in RESERVED] == [4, 5, 6]
    assert tok.vocab.ids[b"\0"] == 7
    assert tok.vocab.ids[b"\xff"] == 262
    assert tok.vocab.merge_ids[0] == (7 + 97, 7 + 98, 263)
    in_ascii = train(b"abab abab", 400, "ck-ascii", special_tokens=RESERVED)
    assert (in_ascii.vocab.ids[b"\t"], in_ascii.vocab.merge_ids[0].new) == (7, 105)


# ---------------------------------------------------------------------- ASCII only


@pytest.mark.parametrize("threads", [1, 2])
def test_a_non_ascii_byte_is_rejected_with_its_file_and_offset(tmp_path, threads):
    folder(tmp_path, {"a.txt": b"fine\n" * 1000, "b/c.txt": "ok\nbà\n".encode()})
    with pytest.raises(CorpusError, match="0xC3") as caught:
        train(tmp_path, 300, "ck-ascii", num_threads=threads)
    assert caught.value.path == str(tmp_path / "b" / "c.txt")
    assert caught.value.offset == 4


@pytest.mark.parametrize("offset", [0, (1 << 18) - 1, 1 << 18, 1 << 20, 3_000_000])
@pytest.mark.parametrize("byte", [0x00, 0x0B, 0x7F, 0x80, 0xFF])
def test_every_byte_outside_the_98_is_rejected_at_any_offset(tmp_path, offset, byte):
    data = bytearray(b"word " * 700_000)
    data[offset] = byte
    folder(tmp_path, {"a.txt": bytes(data)})
    with pytest.raises(CorpusError, match=f"0x{byte:02X}") as caught:
        train(tmp_path, 300, "ck-ascii")
    assert caught.value.offset == offset
    assert "\n" not in str(caught.value)


def test_a_character_outside_ascii_is_one_unk_when_encoding():
    tok = train(b"ab ab", 110, "ck-ascii")
    a, b = tok.vocab.ids[b"a"], tok.vocab.ids[b"b"]
    assert tok.encode("aàb🦊") == [a, 0, b, 0]


def test_ascii_only_has_no_pattern_in_training_or_encoding():
    tok = train(b"a b a b a b ", 110, "ck-ascii")
    assert tok.vocab.pattern is None
    assert list(unreachable(tok)) == []
    assert any(b" " in token[1:] for token in tok.vocab.ids)


# ---------------------------------------------------------------------- encoding


def test_encoding_splits_by_gpt2_and_so_some_tokens_are_unreachable():
    tok = train(b"a b a b a b a b", 270)
    assert tok.vocab.pattern == byteweld.PATTERNS["gpt2"]
    assert tok.vocab.merges == [
        (b" ", b"b"),
        (b"a", b" b"),
        (b" ", b"a b"),
        (b" a b", b" a b"),
    ]
    assert list(unreachable(tok)) == [261, 262, 263]
    for token_id, token in tok.vocab.ordinary():
        reached = tok.encode(token) == [token_id]
        assert reached == (token_id not in (261, 262, 263))


# ---------------------------------------------------------------------- tokenizer.json


def save_both(tok: Tokenizer, root: Path) -> tuple[Path, Path]:
    tok.save(root / "tokenizer.json")
    tok.save(root / "binary", format="ck")
    return root / "tokenizer.json", root / "binary"


@pytest.mark.parametrize("special_tokens", [(), RESERVED], ids=["no reserved", "reserved"])
@pytest.mark.parametrize("recipe", ["ck", "ck-ascii"])
def test_one_training_gives_tokenizer_json_and_the_four_binary_files(
    tmp_path, recipe, special_tokens
):
    tok = train([some_svg(1), b"a b a b"], 400, recipe, special_tokens=special_tokens)
    file, binary = save_both(tok, tmp_path)
    assert {p.name for p in binary.iterdir()} == {*BINARY, "training.json"}
    assert byteweld.load(file).vocab == tok.vocab
    assert byteweld.load(binary, pattern=tok.vocab.pattern).vocab == tok.vocab
    meta = json.loads((binary / "tokenizer_meta.json").read_text())
    assert meta == {
        "schema": "ck.bpe.binary.v1",
        "mode": "bytelevel_bpe" if recipe == "ck" else "ascii_bpe",
        "vocab_size": len(tok),
        "num_merges": len(tok.vocab.merge_ids),
        "num_reserved_special_tokens": len(special_tokens),
        "max_piece_bytes": 0,
        "offsets": "vocab_offsets.bin",
        "strings": "vocab_strings.bin",
        "merges": "vocab_merges.bin",
    }


def test_tokenizer_json_has_the_parts_that_the_seed_shows(tmp_path):
    tok = train([b' <path st="a"', b' <path st="b"'], 265)
    tok.save(tmp_path / "tokenizer.json")
    value = json.loads((tmp_path / "tokenizer.json").read_text("utf-8"))
    model = value["model"]
    assert (value["version"], model["type"], model["unk_token"]) == ("1.0", "BPE", "<|unk|>")
    shown = {"<|unk|>": 0, "<|bos|>": 1, "<|eos|>": 2, "<|pad|>": 3, "Ā": 4, "ā": 5, "Ġ": 36}
    assert {text: model["vocab"][text] for text in shown} == shown
    assert ["Ġ", "<"] in model["merges"]
    pre = value["pre_tokenizer"]
    assert pre["type"] == "ByteLevel"
    assert (pre["add_prefix_space"], pre["use_regex"]) == (False, True)
    assert "trim_offsets" in pre  # which the printed file lacks


@pytest.mark.parametrize("special_tokens", [(), RESERVED], ids=["no reserved", "reserved"])
@pytest.mark.parametrize(
    ("recipe", "options"),
    [("ck", {}), ("ck", {"encode_pattern": "ck"}), ("ck-ascii", {})],
    ids=["gpt2's pattern", "ck's pattern", "ascii"],
)
def test_the_real_library_gives_identical_ids(tmp_path, recipe, options, special_tokens):
    corpus = [some_svg(n) for n in range(6)] + [b"ab ab ab\n", b"aaa ba\n"] * 3
    if recipe == "ck":
        corpus += ["aaa bà\n".encode(), "mañana café €5 ".encode() * 3]
    tok = train(corpus, 500, recipe, special_tokens=special_tokens, **options)
    tok.save(tmp_path / "tokenizer.json")
    theirs = in_hugging_face(tmp_path / "tokenizer.json")
    for text in [*TEXTS, some_svg(9).decode(), "".join(special_tokens) + "<|eos|>x"]:
        expected = theirs.encode(text, add_special_tokens=False).ids
        assert tok.encode(text, allowed_special="all") == expected, text


def test_cks_own_pattern_is_written_as_its_code_writes_it(tmp_path):
    tok = train([b"ab ab"], 262, encode_pattern="ck")
    tok.save(tmp_path / "tokenizer.json")
    split, byte_level = json.loads((tmp_path / "tokenizer.json").read_text("utf-8"))[
        "pre_tokenizer"
    ]["pretokenizers"]
    assert split["pattern"]["Regex"] == (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    assert split["behavior"] == "Isolated"
    assert (byte_level["type"], byte_level["use_regex"]) == ("ByteLevel", False)
