"""`byteweld encode` and `byteweld decode`."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import byteweld

HARD = [
    b"",
    b" ",
    b"\n",
    b" low \r\n\n",
    b"\x00\xff\xfe low",
    "naïve 你好 🙂\u2028".encode(),
    b"low " * 50_000,
]


@pytest.mark.parametrize("text", HARD)
def test_a_round_trip_strips_nothing(run, saved, tiny, text):
    encoded = run("encode", stdin=text)
    assert (encoded.code, encoded.err) == (0, "")
    assert encoded.out == b" ".join(b"%d" % i for i in tiny.encode(text)) + b"\n"
    assert run("decode", stdin=encoded.out) == (0, text, "")


def test_text_can_be_a_file_or_an_argument(run, saved, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"lowest")
    assert run("encode", "a.txt").out == run("encode", "--text", "lowest").out == b"258 261\n"


def test_bytes_of_an_argument_that_are_not_utf8_are_kept(saved):
    line = [sys.executable, b"-m", b"byteweld", b"encode", b"--text", b"\xff\xfelow"]
    done = subprocess.run(line, capture_output=True, check=True)
    assert done.stdout == b"255 254 258\n"


@pytest.mark.parametrize("verb", ["encode", "tokens"])
def test_text_in_place_of_a_file_is_pointed_to_the_option(run, saved, tmp_path, verb):
    result = run(verb, "hello world")
    message = "byteweld: hello world: no such file; to use it as text, pass --text\n"
    assert result == (2, b"", message)
    (tmp_path / "hello world").write_bytes(b"low")
    assert run(verb, "hello world").code == 0


def test_every_line_can_be_a_document(run, saved):
    text = b"low\nlower\r\n\nlow"
    result = run("encode", "--lines", stdin=text)
    assert result.text.splitlines() == ["258 10", "258 269 13 10", "10", "258"]
    assert run("decode", stdin=result.out).out == text
    assert run("encode", "--lines", "--text", text.decode()).out == result.out
    assert run("encode", "--lines", stdin=b"").out == b""


def test_json_is_one_list_per_document(run, saved):
    result = run("encode", "--lines", "--json", stdin=b"low\nlower\n")
    assert [json.loads(line) for line in result.text.splitlines()] == [[258, 10], [258, 269, 10]]
    assert run("encode", "--json", "--text", "").out == b"[]\n"
    assert run("decode", stdin=result.out).out == b"low\nlower\n"


@pytest.mark.parametrize(
    ("line", "default"),
    [
        (("encode", "--text", "low<|endoftext|>"), "fail"),
        (("explain", "--text", "low<|endoftext|>"), "fail"),
        (("tokens", "s.txt"), "special"),
        (("inspect", "tokenizer.json", "--corpus", "s.txt"), "special"),
        (("compare", "tokenizer.json", "tokenizer.json", "s.txt"), "special"),
    ],
)
def test_special_tokens_in_text_have_one_policy_in_every_verb(run, saved, tmp_path, line, default):
    (tmp_path / "s.txt").write_bytes(b"low<|endoftext|>")
    refused = run(*line, "--special-text", "fail")
    assert refused.code == 2
    assert "; pass --special-text special to " in refused.err
    found = {}
    for policy in ("text", "special"):
        report = json.loads(run(*line, "--json", "--special-text", policy).out)
        ids = report if isinstance(report, list) else report.get("ids")
        found[policy] = len(ids) if ids else report["total"]["tokens"]
    assert found in ({"text": 14, "special": 2}, {"text": [14, 14], "special": [2, 2]})
    usual = run(*line, "--json")
    if default == "fail":
        assert usual == refused
    else:
        assert json.loads(usual.out)["total"]["tokens"] == found[default]


def test_bos_and_eos_are_added_to_every_document(run, ck_corpus):
    assert run("train", "corpus", "--recipe", "ck", "--vocab-size", "263").code == 0
    line = ("encode", "--add-bos", "--add-eos", "--lines")
    assert run(*line, stdin=b"ab\n\nab").text == "1 260 14 2\n1 14 2\n1 260 2\n"
    assert run("encode", "--add-bos", "--json", "--text", "ab").text == "[1, 260]\n"


# ---------------------------------------------------------------------------- show


def test_tokens_are_shown_with_bars_without_color(run, saved):
    line = (
        "encode",
        "--show",
        "--special-text",
        "special",
        "--text",
        "lowest wider\n<|endoftext|>é",
    )
    assert run(*line).text == "low|est|·|wid|er|⏎\n⟦<|endoftext|>⟧|⟨c3⟩|⟨a9⟩\n"


# ---------------------------------------------------------------------------- decode


@pytest.mark.parametrize(
    "ids",
    [
        "258 261",
        "258,261",
        "[258, 261]",
        "[258]\n[261]\n",
        "  258\t\n261 ",
        "0258 261",
        "[[258],[261]]",
    ],
)
def test_ids_may_be_written_in_many_ways(run, saved, ids):
    assert run("decode", "--ids", ids) == (0, b"lowest", "")
    assert run("decode", stdin=ids.encode()) == (0, b"lowest", "")


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ("1 x 2", "--ids: byte 2: expected an id, found 'x'"),
        ("1 -2", "--ids: byte 2: expected an id, found '-2'"),
        ("1.5", "--ids: byte 0: expected an id, found '1.5'"),
        ("99999999999", "--ids: byte 0: expected an id, found '99999999999'"),
        ("9" * 5000, f"--ids: byte 0: expected an id, found '{'9' * 40}'"),
        ("9999", "invalid token for decoding: 9999 is not in the vocabulary"),
    ],
)
def test_a_wrong_id_is_reported_with_its_offset(run, saved, ids, message):
    assert run("decode", "--ids", ids) == (2, b"", f"byteweld: {message}\n")


# ---------------------------------------------------------------------------- loading


@pytest.fixture
def ranks(tiny, tmp_path):
    """The small tokenizer as a rank file without its sidecar."""
    byteweld.train(
        iter(["low low low lower"]), vocab_size=260, recipe="modern", min_frequency=1
    ).save(tmp_path / "r.tiktoken")
    (tmp_path / "r.tiktoken.byteweld.json").unlink()
    return tmp_path / "r.tiktoken"


def test_options_give_the_pattern_and_special_tokens(run, ranks):
    line = ("encode", "-t", "r.tiktoken", "--pattern", "o200k", "--text", "low<|e=1|>")
    result = run(*line, "--special", "<|e=1|>=1000", "--special-text", "special")
    assert result.out.split()[-1] == b"1000"
    assert run(*line, "--no-special").code == 0
    assert run(*line, "--no-special", "--format", "tiktoken").code == 0
