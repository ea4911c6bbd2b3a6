"""`byteweld train`: the command lines of the five seeds, targets, sources, reports."""

from __future__ import annotations

import gzip
import hashlib
import json

import pytest

import byteweld

CK_MERGES_SHA256 = "eb7e6040c6ceee165f10bbde7f3f308491d2398250c36dc22a9c29b46a3a1c5d"
BPETITE_SHA256 = "83e34c1904279229b71aca25d62e8a00d84f3933d83bee909a44b60db9687bc2"
CK_FILES = {"tokenizer_meta.json", "vocab_merges.bin", "vocab_offsets.bin", "vocab_strings.bin"}


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def names(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


# ---------------------------------------------------------------------------- ck


def test_the_ck_seeds_command_line_writes_tokenizer_json_and_four_files(
    program, ck_corpus, tmp_path
):
    result = program(
        *("train", "corpus", "--recipe", "ck", "--vocab-size", "264", "--min-frequency", "2"),
        *("--out", "tokenizer.json", "--binary-out", "export"),
    )
    assert result == (
        0,
        b"",
        "counted 2 pre-tokens, 2 distinct, in 2 files, 17 bytes (TIME)\n"
        "learned 3 of 4 merges; stopped because the best pair occurred fewer than 2 times (TIME)\n"
        "longest tokens: ·ab  ab  aa\n"
        "total TIME\n"
        "lost: export has no field for the pattern gpt2: ck's runtime, and byteweld when it loads "
        "the export, split text with ck-runtime, so some text gets different ids\n"
        "wrote tokenizer.json and export: 263 tokens, "
        "1.55 bytes per token when encoded with pattern gpt2\n",
    )
    assert names(tmp_path / "export") == CK_FILES
    assert sha256(tmp_path / "export" / "vocab_merges.bin") == CK_MERGES_SHA256
    tok = byteweld.load("tokenizer.json")
    assert tok.vocab.merge_ids == ((101, 102, 260), (36, 260, 261), (101, 101, 262))
    assert byteweld.load("export", pattern="gpt2").vocab.fingerprint == tok.vocab.fingerprint


@pytest.mark.parametrize(
    "existing", ["tokenizer.json", *(f"export/{name}" for name in sorted(CK_FILES))]
)
def test_if_one_target_exists_nothing_is_written(run, ck_corpus, tmp_path, existing):
    (tmp_path / "export").mkdir()
    (tmp_path / existing).write_bytes(b"precious")
    before = names(tmp_path)
    result = run("train", "corpus", "--recipe", "ck", "--binary-out", "export")
    assert result == (2, b"", f"byteweld: {existing} exists; pass --force to replace it\n")
    assert names(tmp_path) == before
    assert (tmp_path / existing).read_bytes() == b"precious"


def test_the_recipe_or_ext_selects_the_files_of_a_folder(run, tmp_path):
    (tmp_path / "corpus").mkdir()
    for name in ("a.txt", "b.SVG", "c.jsonl", "d.py", "e.json"):
        (tmp_path / "corpus" / name).write_text('{"text": "ab"}\n')
    (tmp_path / "corpus" / "link.txt").symlink_to("a.txt")
    for flags, files in [
        (("--recipe", "ck"), 3),
        (("--recipe", "modern"), 4),
        (("--recipe", "ck", "--ext", ".py,jsonl"), 2),
        (("--recipe", "ck", "--ext", "*"), 5),
    ]:
        result = run("train", "corpus", *flags, "--vocab-size", "300", "--force", "--json")
        assert json.loads(result.out)["corpus"]["files"] == files


def test_ascii_only_with_ck_is_the_recipe_ck_ascii(run, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"ab ab ab\n")
    line = ("train", "a.txt", "--recipe", "ck", "--vocab-size", "104", "--ascii-only")
    result = run(*line, "--binary-out", "export", "--json")
    assert json.loads(result.out)["recipe"] == "ck-ascii"
    vocab = byteweld.load("tokenizer.json").vocab
    assert (vocab.alphabet, vocab.pattern, vocab.merge_ids[0].new) == ("ascii", None, 102)
    meta = json.loads((tmp_path / "export" / "tokenizer_meta.json").read_text())
    assert meta["mode"] == "ascii_bpe"


def test_ascii_only_changes_the_alphabet_of_another_recipe(run, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"ab ab ab\n")
    line = ("train", "a.txt", "--recipe", "plain", "--vocab-size", "100", "--ascii-only")
    assert run(*line).code == 0
    vocab = byteweld.load("tokenizer.json").vocab
    assert (vocab.alphabet, len(vocab)) == ("ascii", 100)


def test_a_specials_file_is_read_as_in_ck(run, tmp_path):
    (tmp_path / "names.txt").write_bytes("<a>\n\n<b>\r\n<a>\n<|unk|>\n   \n<é>".encode())
    (tmp_path / "a.txt").write_bytes(b"ab ab ab\n")
    line = ("train", "a.txt", "--recipe", "ck", "--special", "<b>", "--specials-file", "names.txt")
    assert run(*line).code == 0
    specials = byteweld.load("tokenizer.json").vocab.special_tokens
    assert list(specials) == ["<|unk|>", "<|bos|>", "<|eos|>", "<|pad|>", "<b>", "<a>", "<é>"]


def test_a_specials_file_that_is_not_utf8_is_refused(run, tmp_path):
    (tmp_path / "names.txt").write_bytes(b"<a>\n\xff")
    (tmp_path / "a.txt").write_bytes(b"ab")
    result = run("train", "a.txt", "--recipe", "ck", "--specials-file", "names.txt")
    assert result == (
        2, b"", "byteweld: names.txt: byte 4: expected UTF-8 (invalid start byte)\n"
    )  # fmt: skip


def test_a_vocabulary_that_a_format_cannot_hold_is_refused_before_reading(run, tmp_path):
    line = ("train", "nowhere", "--vocab-size", "300", "--out", "t.json", "--binary-out", "export")
    result = run(*line)
    assert result.code == 2
    assert result.err.startswith("byteweld: ck's binary export cannot hold this vocabulary: ")
    assert "'o200k'" in result.err
    assert names(tmp_path) == set()


def test_max_token_bytes_is_not_written_as_cks_limit_on_rendered_bytes(run, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"abcd abcd abcd abcd\n")
    line = ("train", "a.txt", "--recipe", "ck", "--max-token-bytes", "2", "--binary-out", "export")
    assert run(*line).code == 0
    meta = json.loads((tmp_path / "export" / "tokenizer_meta.json").read_text())
    assert meta["max_piece_bytes"] == 0
    assert max(len(token) for _, token in byteweld.load("export").vocab.ordinary()) == 2


def test_the_encode_pattern_of_ck_can_be_that_of_its_code(run, ck_corpus):
    line = ("train", "corpus", "--recipe", "ck", "--encode-pattern", "ck", "--vocab-size", "262")
    result = run(*line)
    assert result.err.endswith("when encoded with pattern ck\n")
    assert byteweld.load("tokenizer.json").vocab.pattern == byteweld.PATTERNS["ck"]


# ---------------------------------------------------------------------------- bpetite


def test_train_encode_and_decode_work_as_in_bpetite(program, tmp_path):
    (tmp_path / "corpus.txt").write_bytes(b"ab ab ab")
    line = ("train", "corpus.txt", "--recipe", "bpetite", "--vocab-size", "258")
    result = program(*line, "--out", "model.json", "--format", "bpetite")
    assert result.code == 0
    assert result.err.endswith("wrote model.json: 259 tokens, 2.67 bytes per token\n")
    assert sha256(tmp_path / "model.json") == BPETITE_SHA256
    assert program("encode", "-t", "model.json", "--text", "ab ab") == (0, b"256 257\n", "")
    assert program("decode", "-t", "model.json", "--ids", "256 257") == (0, b"ab ab", "")
    again = program(*line, "--out", "model.json", "--format", "bpetite")
    assert again == (2, b"", "byteweld: model.json exists; pass --force to replace it\n")


# ---------------------------------------------------------------------------- sources


def test_standard_input_is_one_document_and_nothing_is_stripped(run):
    assert run("train", "-", "--recipe", "plain", "--vocab-size", "258", stdin=b"\n\n\n ").code == 0
    assert byteweld.load("tokenizer.json").vocab.merges == [(b"\n", b"\n"), (b"\n", b" ")]


@pytest.mark.parametrize(
    ("flags", "merges"),
    [
        ((), [(b"a", b"b"), (b"ab", b"\n"), (b"ab\n", b"ab\n")]),
        (("--lines",), [(b"a", b"b"), (b"ab", b"\n")]),
        (("--separator", "b\n"), []),
    ],
)
def test_standard_input_is_split_into_documents_like_a_file(run, tmp_path, flags, merges):
    (tmp_path / "a.txt").write_bytes(b"ab\nab\nab\n")
    common = ("--recipe", "plain", "--min-frequency", "2", "--vocab-size", "259", *flags)
    assert run("train", "-", *common, "--out", "in.json", stdin=b"ab\nab\nab\n").code == 0
    assert run("train", "a.txt", *common, "--out", "file.json").code == 0
    vocab = byteweld.load("in.json").vocab
    assert vocab == byteweld.load("file.json").vocab
    assert vocab.merges == merges


def test_counts_split_at_other_special_tokens_are_refused(run, tmp_path):
    pytest.importorskip("pyarrow", reason="saved counts are Parquet files")
    (tmp_path / "a.txt").write_bytes(b"low<x>low")
    assert run("count", "a.txt", "--special", "<x>", "--out", "counts").code == 0
    result = run("train", "counts", "--vocab-size", "260")
    assert result.code == 2
    assert result.err.endswith("; count again with the same --special\n")
    assert run("train", "counts", "--special", "<x>", "--vocab-size", "260").code == 0


# ---------------------------------------------------------------------------- recipe and report


def test_flags_set_the_fields_of_the_recipe(run, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"ab ab ab cd cd cd ef")
    flags = ("--pattern", r"\S+|\s+", "--tie-break", "greatest-bytes", "--min-frequency", "3")
    line = ("train", "a.txt", "--vocab-size", "300", "--special", "<x>", "--special", "<y>")
    result = run(*line, *flags, "--json")
    assert result.code == 0, result.err
    vocab = byteweld.load("tokenizer.json").vocab
    assert vocab.merges == [(b"c", b"d"), (b"a", b"b")]
    assert vocab.pattern == r"\S+|\s+"
    assert list(vocab.special_tokens) == ["<x>", "<y>"]


def test_the_pattern_can_be_none(run, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"a b a b a b")
    assert run("train", "a.txt", "--pattern", "none", "--vocab-size", "258").code == 0
    assert byteweld.load("tokenizer.json").vocab.pattern is None


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--recipe", "modren"), "--recipe is 'modren'; it must be one of modern, from-scratch, ck, ck-ascii, bpetite, plain, bpe1, huggingface, rustbpe; did you mean 'modern'?"),  # noqa: E501
        (("--tie-break", "x"), "--tie-break is 'x'; it must be one of smallest-ids, greatest-bytes, smallest-bytes"),  # noqa: E501
        (("--on-error", "ignore"), "--on-error is 'ignore'; it must be one of fail, skip, replace"),
        (("--pattern", "gpt3"), "unknown pattern 'gpt3'; expected one of gpt2, cl100k, o200k, llama3, qwen2, qwen3_5, tekken, nanochat, ck, ck-runtime; did you mean 'gpt2'?"),  # noqa: E501
        (("--out", "t.xyz"), "the name 't.xyz' does not imply a format; pass --format, or use *.bpe1 (bpe1), *.json (huggingface), *tekken.json (tekken), *.tiktoken (tiktoken)"),  # noqa: E501
        (("--out", "folder/"), "'folder/' is a folder; pass --format 'ck' or 'gpt2', which write folders, or the path of a file"),  # noqa: E501
        (("--special", "<a>", "--special", "<a>"), "special token '<a>' is given twice"),
        (("--vocab-size", "100"), "--vocab-size is 100; it must be at least 256: 256 bytes"),
        (("--min-frequency", "-1"), "--min-frequency is -1; it must be at least 0"),
    ],
)  # fmt: skip
def test_an_invalid_choice_is_a_one_line_error(run, tmp_path, flags, message):
    (tmp_path / "a.txt").write_bytes(b"ab ab")
    assert run("train", "a.txt", "--vocab-size", "300", *flags) == (
        2, b"", f"byteweld: {message}\n"
    )  # fmt: skip


def test_the_json_report_is_complete(run, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"ab ab ab\n")
    result = run("train", "a.txt", "--vocab-size", "258", "--json")
    report = json.loads(result.out)
    assert report.pop("seconds").keys() == {"count", "layout", "merge", "write"}
    assert report.pop("peak_memory_bytes") > 1_000_000
    assert report == {
        "out": "tokenizer.json",
        "report": "tokenizer.training.json",
        "binary_out": None,
        "vocab_size": 258,
        "recipe": "modern",
        "tokens": 258,
        "merges": 2,
        "stop": "size",
        "bytes_per_token": 9 / 4,
        "fingerprint": byteweld.load("tokenizer.json").vocab.fingerprint,
        "corpus": {
            "files": 1,
            "bytes": 9,
            "pretokens": 4,
            "distinct_pretokens": 3,
            "skipped_documents": 0,
            "pruned_pretokens": 0,
        },
    }


@pytest.mark.parametrize("recipe", ["modern", "from-scratch", "ck", "plain", "huggingface"])
def test_bytes_per_token_is_that_of_the_encoded_corpus(run, tmp_path, recipe):
    text = "Low, lower and lowest:  the widths of 1234 newest\n\nrivers.  \n" * 3
    (tmp_path / "a.txt").write_text(text)
    report = json.loads(
        run("train", "a.txt", "--recipe", recipe, "--vocab-size", "300", "--json").out
    )
    tok = byteweld.load("tokenizer.json")
    documents = text.splitlines(keepends=True) if recipe == "huggingface" else [text]
    tokens = sum(tok.count(document) for document in documents)
    assert report["bytes_per_token"] == pytest.approx(len(text.encode()) / tokens)


def test_an_empty_corpus_has_no_bytes_per_token(run):
    result = run("train", "-", "--recipe", "plain", "--vocab-size", "300", stdin=b"")
    assert result.code == 0
    assert result.err.endswith("wrote tokenizer.json: 256 tokens\n")


def test_parent_folders_of_the_target_are_created(run, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"ab ab")
    line = ("train", "a.txt", "--vocab-size", "257", "--out")
    assert run(*line, "new/folder/t.tiktoken").code == 0
    assert names(tmp_path / "new" / "folder") == {
        *("t.tiktoken", "t.tiktoken.byteweld.json", "t.training.json")
    }
    assert run(*line, "other/g", "--format", "gpt2").code == 0
    assert (tmp_path / "other" / "g" / "vocab.json").is_file()
    assert (tmp_path / "other" / "g" / "training.json").is_file()
    assert byteweld.load("other/g", pattern="o200k", special_tokens={}).training is not None


def test_skipped_documents_are_reported(tmp_path, run):
    (tmp_path / "a.jsonl").write_text('{"text": "abab"}\nbroken\n{"text": "abab"}\n')
    result = run("train", "a.jsonl", "--vocab-size", "257", "--on-error", "skip", "--json")
    assert result.code == 0
    assert "1 distinct, in 1 file, 41 bytes (TIME); skipped 1 document\n" in result.err
    assert json.loads(result.text)["corpus"]["skipped_documents"] == 1


@pytest.mark.parametrize("verb", [("train", "--vocab-size", "300"), ("count",), ("tokens",)])
@pytest.mark.parametrize("field", ["text", "body"])
def test_a_field_without_effect_on_standard_input_is_refused(run, tiny, tmp_path, verb, field):
    tiny.save(tmp_path / "t.json")
    (tmp_path / "a.txt").write_bytes(b"ab ab")
    tokenizer = ("--tokenizer", "t.json") if verb == ("tokens",) else ()
    line = (*verb, *tokenizer, "a.txt", "-")
    assert run(*line, "--field", field, stdin=b"ab") == (
        2,
        b"",
        "byteweld: --field has no effect on standard input (-), which is plain text without "
        "--json-lines; pass that or the name of a file, or leave --field out\n",
    )
    assert run(*line, "--on-error", "skip", stdin=b"ab").code == 0
    force = ["--force"] if verb[0] == "train" else []
    assert run(*line[:-1], "--field", field, *force).code == 0


@pytest.mark.parametrize("verb", [("train", "--vocab-size", "300", "--force"), ("count",)])
def test_standard_input_is_read_like_a_file_and_its_size_is_known_at_the_end(run, tmp_path, verb):
    (tmp_path / "a.txt").write_bytes(b"ab ab")
    for content in (b"low low", gzip.compress(b"low low")):
        size = 5 + len(content)
        found = run(*verb, "a.txt", "-", stdin=content)
        assert f"counted 4 pre-tokens, 4 distinct, in 2 files, {size} bytes" in found.err
    found = run(*verb, "-", "--on-error", "skip", stdin=b"\xff")
    assert "skipped 1 document" in found.err
