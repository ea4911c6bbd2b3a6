"""`--json-lines`: files of any name, and standard input, as JSON lines."""

from __future__ import annotations

import json

import pytest

import byteweld

RECORDS = b'{"text": "low low", "body": "x"}\n{"text": "lower", "body": "y"}\n'
PRETOKENS = "1  ·low\n1  low\n1  lower\n"


@pytest.fixture
def records(tiny, tmp_path):
    tiny.save(tmp_path / "t.json")
    (tmp_path / "a.json").write_bytes(RECORDS)
    (tmp_path / "a.jsonl").write_bytes(RECORDS)


def both(program, *arguments):
    """What a verb answers for a.json, and for the same records from standard input."""
    verb, *rest = arguments
    return [
        program(verb, "a.json", "--json-lines", *rest),
        program(verb, "-", "--json-lines", *rest, stdin=RECORDS),
    ]


def test_count(program, records):
    for result in both(program, "count"):
        assert (result.code, result.text) == (0, PRETOKENS)
    assert program("count", "a.json").text != PRETOKENS
    for result in both(program, "count", "--field", "body"):
        assert (result.code, result.text) == (0, "1  x\n1  y\n")


def test_tokenize(program, tiny, records):
    expected = [[*tiny.encode(text), tiny.eot_token] for text in ("low low", "lower")]
    line = ("--tokenizer", "t.json", "--force", "--out", "data")
    for result in both(program, "tokenize", *line, "--field", "text"):
        assert result.code == 0, result.err
        dataset = byteweld.open_dataset("data", tiny)
        assert [document.tolist() for document in dataset[:]] == expected
    assert program("tokenize", "-", *line, "--field", "text", stdin=RECORDS).code == 2


def test_a_changed_flag_is_noticed(program, records):
    line = ("tokenize", "a.json", "--tokenizer", "t.json", "--out", "data")
    assert program(*line, "--json-lines").code == 0
    result = program(*line)
    assert result.code == 2
    assert "--json-lines was True, now False" in result.err
    assert program("verify", "data", "--tokenizer", "t.json", "--source", "a.json").code == 0


def test_bytes_are_those_of_the_text(program, records):
    found = [
        json.loads(program("inspect", "--bytes", *source, "--json", stdin=RECORDS).out)
        for source in (["a.jsonl"], ["a.json", "--json-lines"], ["-", "--json-lines"])
    ]
    assert found[0]["bytes"] == found[1]["bytes"] == found[2]["bytes"] == len("low lowlower")
