"""`byteweld train`: several sizes at once, a tokenizer to start from, the report, JSON progress."""

from __future__ import annotations

import json

import pytest

import byteweld

TEXT = "low low low low low lower lower newest newest newest widest widest the widths\n" * 20


@pytest.fixture(autouse=True)
def corpus(tmp_path):
    (tmp_path / "a.txt").write_text(TEXT)


def files(folder):
    return sorted(path.name for path in folder.iterdir())


# ---------------------------------------------------------------------------- sizes


def test_one_training_writes_several_sizes_and_shows_a_table(run, tmp_path):
    result = run("train", "a.txt", "--sizes", "260,265,270", "--out", "t.json")
    assert result.code == 0, result.err
    assert result.err.splitlines()[4:] == [
        "  size     tokens     merges  bytes per token",
        "   260        260          4            1.472",
        "   265        265          9            2.167",
        "   270        270         14            3.391",
        "wrote t-260.json: 260 tokens, 1.47 bytes per token",
        "wrote t-265.json: 265 tokens, 2.17 bytes per token",
        "wrote t-270.json: 270 tokens, 3.39 bytes per token",
    ]
    made = [f"t-{size}{end}" for size in (260, 265, 270) for end in (".json", ".training.json")]
    assert files(tmp_path) == sorted(["a.txt", *made])
    for size in ("260", "265", "270"):
        assert run("train", "a.txt", "--vocab-size", size, "--out", f"alone-{size}.json").code == 0
        alone = (tmp_path / f"alone-{size}.json").read_bytes()
        assert (tmp_path / f"t-{size}.json").read_bytes() == alone
        assert byteweld.load(f"t-{size}.json").training.vocab_size == int(size)


def test_sizes_can_be_written_with_k_for_1024_also_in_file_names(run, tmp_path):
    result = run("train", "a.txt", "--sizes", "1k, 300", "--json")
    report = json.loads(result.out)
    assert [size["out"] for size in report["sizes"]] == ["tokenizer-1k.json", "tokenizer-300.json"]
    assert [size["vocab_size"] for size in report["sizes"]] == [1024, 300]
    assert report["sizes"][0]["stop"] == "no pairs"
    assert report["corpus"]["files"] == 1
    assert run("train", "a.txt", "--vocab-size", "1k", "--out", "one.json", "--json").code == 0
    one = (tmp_path / "one.json").read_bytes()
    assert (tmp_path / "tokenizer-1k.json").read_bytes() == one


def test_other_targets_are_named_by_size_too(run, tmp_path):
    line = ("train", "a.txt", "--recipe", "ck", "--sizes", "262,264", "--binary-out", "export/")
    assert run(*line, "--out", "out/t.json").code == 0
    assert {"export-262", "export-264"} <= set(files(tmp_path))
    assert len(byteweld.load("export-264")) == 264
    assert len(byteweld.load("out/t-262.json")) == 262
    assert run("train", "a.txt", "--sizes", "260,261", "--format", "gpt2", "--out", "g").code == 0
    assert (tmp_path / "g-261" / "training.json").is_file()


@pytest.mark.parametrize(
    "existing", ["t-265.json", "t-270.training.json", "t-260.json.byteweld.json"]
)
def test_if_one_of_the_files_exists_nothing_is_read_or_written(run, tmp_path, existing):
    (tmp_path / existing).write_text("mine")
    line = ("train", "nowhere", "--sizes", "260,265,270", "--out", "t.json")
    assert run(*line) == (2, b"", f"byteweld: {existing} exists; pass --force to replace it\n")
    assert files(tmp_path) == sorted(["a.txt", existing])
    assert run("train", "a.txt", *line[2:], "--force").code == 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--sizes", "300", "--vocab-size", "300"), "--vocab-size and --sizes cannot be combined; pass one of them"),  # noqa: E501
        (("--sizes", "300,300"), "--sizes is '300,300'; a size is given twice"),
        (("--sizes", "1k,1024"), "--sizes is '1k,1024'; a size is given twice"),
        (("--sizes", "300,many"), "--sizes is '300,many'; expected whole numbers, or numbers with k for 1024, separated by commas, such as 8k,16k,32k"),  # noqa: E501
        (("--sizes", ""), "--sizes is ''; expected whole numbers, or numbers with k for 1024, separated by commas, such as 8k,16k,32k"),  # noqa: E501
        (("--sizes", "300,"), "--sizes is '300,'; expected whole numbers, or numbers with k for 1024, separated by commas, such as 8k,16k,32k"),  # noqa: E501
        (("--sizes", "300,100"), "--sizes is '300,100'; 100 must be at least 256: 256 bytes"),
        (("--sizes", "300,400", "--out", "."), "'.' has no file name for --sizes to add '300' to; pass one, such as tokenizer.json"),  # noqa: E501
        (("--vocab-size", "300", "--out", ""), "the path to write to is empty; pass one, such as tokenizer.json"),  # noqa: E501
        (("--vocab-size", "300", "--out", "."), "'.' is a folder; pass --format 'ck' or 'gpt2', which write folders, or the path of a file"),  # noqa: E501
        (("--vocab-size", "1m"), "--vocab-size is '1m'; expected a whole number, or one with k for 1024"),  # noqa: E501
        (("--vocab-size", "300", "--progress", "bar"), "--progress is 'bar'; it must be one of json"),  # noqa: E501
    ],
)  # fmt: skip
def test_an_invalid_size_is_a_one_line_error(run, tmp_path, flags, message):
    assert run("train", "a.txt", *flags) == (2, b"", f"byteweld: {message}\n")
    assert files(tmp_path) == ["a.txt"]


# ---------------------------------------------------------------------------- start


def test_a_tokenizer_can_be_extended(run, tmp_path):
    (tmp_path / "b.txt").write_text("größer größer newest " * 20)
    assert run("train", "a.txt", "--vocab-size", "265", "--special", "<|x|>").code == 0
    line = ("train", "b.txt", "--start", "tokenizer.json", "--out", "longer.json")
    result = run(*line, "--vocab-size", "270", "--json")
    assert result.code == 0, result.err
    start, longer = byteweld.load("tokenizer.json"), byteweld.load("longer.json")
    assert len(longer) == 270
    assert longer.vocab.special_tokens == {"<|x|>": 264}
    assert longer.vocab.merge_ids[:8] == start.vocab.merge_ids
    assert json.loads(result.out)["merges"] == 5
    assert longer.training.start.fingerprint == start.vocab.fingerprint
    tokens = longer.count((tmp_path / "b.txt").read_text())
    size = (tmp_path / "b.txt").stat().st_size
    assert json.loads(result.out)["bytes_per_token"] == pytest.approx(size / tokens)
    again = run(*line[:-1], "sized.json", "--sizes", "266,270")
    assert again.code == 0
    assert (tmp_path / "sized-270.json").read_bytes() == (tmp_path / "longer.json").read_bytes()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--vocab-size", "264"), "--vocab-size is 264; it must be at least 265, the size of the tokenizer to start from"),  # noqa: E501
        (("--vocab-size", "300", "--pattern", "gpt2"), "the tokenizer to start from has pattern 'o200k', but the recipe has 'gpt2'; leave --pattern out to keep the tokenizer's"),  # noqa: E501
        (("--vocab-size", "300", "--special", "<y>"), "special token '<y>' is not in the tokenizer to start from, and extending a tokenizer cannot add any; leave --special out to keep the tokenizer's"),  # noqa: E501
        (("--vocab-size", "300", "--ascii-only"), "--ascii-only cannot be used with --start, which sets the alphabet; leave one out"),  # noqa: E501
        (("--recipe", "ck"), "recipe 'ck' needs a vocabulary size; pass --vocab-size N"),
    ],
)  # fmt: skip
def test_options_that_conflict_with_a_start_are_refused(run, flags, words):
    assert run("train", "a.txt", "--vocab-size", "265").code == 0
    line = ("train", "nowhere", "--start", "tokenizer.json", "--out", "longer.json")
    assert run(*line, *flags) == (2, b"", f"byteweld: {words}\n")


# ---------------------------------------------------------------------------- the report


def test_the_report_is_next_to_the_tokenizer_and_shown_by_inspect(run, tmp_path):
    assert run("train", "a.txt", "--vocab-size", "265").code == 0
    report = json.loads((tmp_path / "tokenizer.training.json").read_text())
    assert report["files"] == 1
    assert report["file_bytes"] == report["total_bytes"] == len(TEXT)
    assert len(report["merge_counts"]) == 9
    assert report["count_seconds"] > 0
    shown = run("inspect", "tokenizer.json").text
    assert "  training     recipe modern, 1.6 kB of 1 file; learned 9 of 9 merges; " in shown
    assert json.loads(run("inspect", "tokenizer.json", "--json").out)["training"]["files"] == 1
    smaller = byteweld.load("tokenizer.json").cut(260).vocab
    byteweld.Tokenizer(smaller).save("tokenizer.json", overwrite=True)
    shown = run("inspect", "tokenizer.json").text
    assert "training.json belongs to another vocabulary and is ignored" in shown


# ---------------------------------------------------------------------------- progress


def test_progress_can_be_json_lines(run):
    result = run("train", "a.txt", "--vocab-size", "265", "--progress", "json")
    lines = [json.loads(line) for line in result.err.splitlines()]
    stages = [line["stage"] for line in lines if "stage" in line]
    assert list(dict.fromkeys(stages)) == ["count", "merge", "write"]
    for stage, total in (("count", len(TEXT)), ("merge", 9), ("write", 2)):
        last = [line for line in lines if line.get("stage") == stage][-1]
        assert (last["done"], last["total"]) == (total, total)
        assert last["seconds"] >= 0 and last["seconds_left"] in (0, None)
    said = [line["message"] for line in lines if "message" in line]
    assert said[-1] == "wrote tokenizer.json: 265 tokens, 2.17 bytes per token"
    assert run("train", "a.txt", "--vocab-size", "265", "--force").err.startswith("counted ")


@pytest.mark.parametrize(
    ("flags", "start"),
    [
        (("a.txt", "--vocab-size", "3", "--progress", "json"), "--vocab-size is 3; "),
        (("a.txt", "--vocab-size", "many", "--progress=json"), "--vocab-size is 'many'; "),
        (("a.txt", "--progress", "json", "--vocab-sise", "3"), "train has no option '--vocab-sise"),
        (("none.txt", "--vocab-size", "300", "--progress", "json"), "none.txt: no such file"),
        (("a.txt", "--vocab-size", "300", "--memory", "1", "--progress", "json"), "--memory is "),
    ],
)  # fmt: skip
def test_with_json_progress_the_final_error_is_a_json_line_too(run, flags, start):
    result = run("train", *flags)
    lines = [json.loads(line) for line in result.err.splitlines()]
    assert result.code == 2
    assert list(lines[-1]) == ["error"] and lines[-1]["error"].startswith(start)
    # It does not affect the next command.
    assert run("train", "none.txt", "--vocab-size", "300").err.startswith("byteweld: none.txt")


def test_a_target_that_cannot_be_written_is_refused_before_the_work(program, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"low lower lowest")
    found = program("train", "a.txt", "--vocab-size", "258", "--out", "a.txt/tok.json")
    assert found.code == 2
    assert found.err.startswith("byteweld: a.txt/tok.json cannot be written: ")
    assert "counted" not in found.err


@pytest.fixture
def corpus_file(tmp_path):
    words = " ".join(f"{a}{b}{c}" for a in "abcdefg" for b in "hijklmn" for c in "opqrstu")
    (tmp_path / "corpus.txt").write_text(f"{words} {words}")
    return ("train", "corpus.txt", "--vocab-size", "600", "--special", "<|x|>", "--eos", "<|x|>")


def test_roles_are_declared_by_flags(run, corpus_file, tmp_path):
    assert run(*corpus_file, "--out", "tokenizer.json").code == 0
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert config["eos_token"] == "<|x|>"
    assert byteweld.load("tokenizer.json").encode("ab", add_eos=True)[-1] == 599


def test_files_skipped_for_their_extension_are_reported_in_one_line(run, tmp_path):
    (tmp_path / "books").mkdir()
    for name in ("a.txt", "b.pdf", "c.pdf", "d.png"):
        (tmp_path / "books" / name).write_text("low lower lowest")
    found = run("train", "books", "--vocab-size", "258", "--min-frequency", "1")
    assert found.code == 0
    assert "skipped 3 files with other extensions: .pdf (2), .png (1); " in found.err
