"""`byteweld compare`: whether ids are identical, where they differ, what each costs; its report."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import byteweld
from byteweld.cli import _runner
from tests.helpers.sliced import MixedUp

ANSWER = """\
tokenizer.json needs 22.7% fewer tokens than smaller.json: 2.00 against 1.55 bytes per token
  A  tokenizer.json  sha SHA_A  vocabulary 272  17 tokens  2.00 bytes/token
  B  smaller.json    sha SHA_B  vocabulary 262  22 tokens  1.55 bytes/token
  A needs fewer tokens in 2 of 2 files and 1 of 3 scripts

words by script
  words  bytes/token A  bytes/token B  tokens/word A  tokens/word B   B vs A  script
      4           4.00           2.00           1.25           2.50  +100.0%  latin
      1           1.00           1.00           6.00           6.00    +0.0%  cyrillic
      1           1.00           1.00           2.00           2.00    +0.0%  digits

by file
  bytes  tokens A  tokens B  bytes/token A  bytes/token B  B vs A  differing  file
     21         9        12           2.33           1.75  +33.3%     1 of 1  texts/a.txt
     13         8        10           1.62           1.30  +25.0%     1 of 1  texts/b.md
     34        17        22           2.00           1.55  +29.4%     2 of 2  total

different ids in 2 of 2 documents, 34 bytes
  2 of 17 spans are cut differently, 12 bytes (35.3%)

the first 2 of 2 spans cut differently
  texts/a.txt, document 1, byte 11
    low·lowest⏎[newest]·12⏎
    A  newest 264
    B  n 110 | e 101 | w 119 | est 261
  texts/b.md, document 1, byte 6
    Вот[·lower]⏎
    A  ·lower 270
    B  ·low 259 | e 101 | r 114
"""


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("low lowest\nnewest 12\n")
    (tmp_path / "texts" / "b.md").write_text("Вот lower\n")
    return tmp_path / "texts"


@pytest.fixture
def smaller(tiny, tmp_path):
    tiny.cut(262).save(tmp_path / "smaller.json")
    return byteweld.load(tmp_path / "smaller.json")


def test_two_tokenizers_that_differ_are_compared_in_full(program, saved, smaller, corpus, tiny):
    result = program("compare", "tokenizer.json", "smaller.json", "texts")
    assert (result.code, result.err) == (1, "")
    expected = ANSWER.replace("SHA_A", tiny.vocab.fingerprint[:8])
    assert result.text == expected.replace("SHA_B", smaller.vocab.fingerprint[:8])


def test_the_json_report_and_the_exit_code(run, saved, smaller, corpus):
    result = run("compare", "tokenizer.json", "smaller.json", "texts", "--json")
    report = json.loads(result.out)
    assert (result.code, report["identical"]) == (1, False)
    assert report["total"] == {
        "name": "total", "documents": 2, "differing_documents": 2, "bytes": 34,
        "tokens": [17, 22], "bytes_per_token": [34 / 17, 34 / 22],
    }  # fmt: skip
    assert report["scripts"]["latin"][1]["tokens_per_word"] == 2.5
    same = run("compare", "tokenizer.json", "tokenizer.json", "texts", "--json")
    assert (same.code, json.loads(same.out)["identical"]) == (0, True)
    assert json.loads(same.out)["fewer_tokens"] is None
    assert report["fewer_tokens"] == {
        "name": "tokenizer.json", "index": 0, "share": pytest.approx(5 / 22),
    }  # fmt: skip
    assert [one["vocab_size"] for one in report["tokenizers"]] == [272, 262]
    assert report.keys() >= {"tokenizers", "files", "total", "scripts", "spans", "differences"}


def test_the_answer_names_the_one_that_needs_fewer_tokens(run, saved, smaller, corpus):
    def answer(*names):
        return run("compare", *names, "texts").text.partition("\n")[0]

    expected = "tokenizer.json needs 22.7% fewer tokens than smaller.json: 2.00 against 1.55 "
    assert answer("tokenizer.json", "smaller.json") == f"{expected}bytes per token"
    assert answer("smaller.json", "tokenizer.json") == f"{expected}bytes per token"


def test_tokenizers_of_one_name_are_told_apart_by_their_letters(saved, smaller, tiny, corpus):
    found = byteweld.compare(smaller, byteweld.load("tokenizer.json"), "texts")
    same = type(found)(**{**vars(found), "names": ("t", "t")})
    assert str(same).startswith("B needs 22.7% fewer tokens than A: 2.00 against 1.55 ")


def test_the_page_has_everything_and_the_verdict_is_printed(run, saved, smaller, corpus, tmp_path):
    line = ("compare", "tokenizer.json", "smaller.json", "texts", "--html", "report.html")
    result = run(*line)
    page = (tmp_path / "report.html").read_text()
    assert (result.code, result.out) == (1, b"")
    assert re.fullmatch(
        r"tokenizer\.json needs 22\.7% fewer tokens than smaller\.json: 2\.00 against 1\.55 "
        r"bytes per token; different ids in 2 of 2 documents, 34 bytes; "
        r"wrote report\.html: [\d.]+ kB\n",
        result.err,
    )
    body = page.partition("</style>")[2]
    order = ["needs 22.7% fewer", "Words by script", "By file", "Different ids in 2", "·lower"]
    assert sorted(order, key=body.index) == order


def test_more_tokenizers_are_compared_and_never_read_as_text(run, saved, smaller, tiny, corpus):
    tiny.cut(260).save("least.json")
    result = run("compare", "least.json", "smaller.json", "tokenizer.json", "texts", "--json")
    report = json.loads(result.out)
    names = [one["name"] for one in report["tokenizers"]]
    assert names == ["least.json", "smaller.json", "tokenizer.json"]
    assert report["total"]["bytes"] == 34 and report["total"]["tokens"] == [26, 22, 17]
    assert report["fewer_tokens"]["index"] == 2
    says = "least.json: this is a tokenizer (format huggingface), not text; to read it as text "
    for sources in (["least.json"], ["texts", "least.json"]):
        refused = run("compare", "tokenizer.json", "smaller.json", *sources)
        assert refused.code == 2 and says in refused.err
    content = Path("least.json").read_bytes()
    told = run("compare", "tokenizer.json", "smaller.json", "-", "--json", stdin=content)
    assert json.loads(told.out)["total"]["bytes"] == len(content)


def test_no_fail_exits_0_though_ids_differ(run, saved, smaller, corpus):
    line = ("compare", "tokenizer.json", "smaller.json", "texts")
    assert run(*line).code == 1
    assert run(*line, "--no-fail") == run(*line)._replace(code=0)


def test_standard_input_can_be_split_into_lines(run, saved, smaller):
    line = ("compare", "tokenizer.json", "smaller.json", "-", "--lines", "--json")
    report = json.loads(run(*line, stdin=b"low\nlower\n").out)
    assert (report["total"]["documents"], report["total"]["differing_documents"]) == (2, 1)
    assert report["differences"][0]["document"] == 2


# ---------------------------------------------------------------------- in tasks


@pytest.mark.parametrize("seed", range(4))
def test_in_tasks_the_output_is_the_same(run, saved, smaller, tmp_path, monkeypatch, seed):
    def open_runner(name, **options):
        return MixedUp(seed, window=50, num_threads=1, **options)

    monkeypatch.setattr(_runner, "open_runner", open_runner)
    (tmp_path / "a.txt").write_text("Вот lower\n" * 9 + "newest 12\n" * 9)
    (tmp_path / "b.jsonl").write_text('{"text": "low"}\n{broken\n{"text": "lowest"}\n' * 3)
    line = ("compare", "tokenizer.json", "smaller.json", "b.jsonl", "a.txt", "b.jsonl", "--lines",
            "--on-error", "skip", "--differences", "7")  # fmt: skip
    here, there = run(*line), run(*line, "--runner", "ray", "--slice", "25B")
    assert here.err == "skipped 6 documents\n"
    assert there == here
    here, there = (
        json.loads(run(*line, "--json", *options).out)
        for options in ((), ("--runner", "ray", "--slice", "25B"))
    )
    for report in (here, there):
        for tokenizer in report["tokenizers"]:
            del tokenizer["seconds"]
    assert there == here
