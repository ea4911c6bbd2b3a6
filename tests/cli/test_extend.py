"""`byteweld extend`: new tokens from a corpus or a list of words, its report, what it keeps."""

from __future__ import annotations

import json

import pytest

import byteweld

CORPUS_SAID = """\
counted 61 pre-tokens, 4 distinct, in 1 file, 501 bytes (TIME)
learned 6 merges (TIME)
6 new tokens, ids 272 to 277; ids 0 to 271 stay the same, special tokens included
  first    gr  ⟨9f⟩er  ⟨b6⟩⟨c3⟩  ö⟨c3⟩  grö⟨c3⟩
  longest  größer  grö⟨c3⟩  ⟨9f⟩er  ö⟨c3⟩  gr
bytes per token on this corpus: 1.47 before, 4.96 after, 70.4% fewer tokens
wrote longer.json: 278 tokens
"""

WORDS_SAID = """\
6 words: 3 made a single token, 1 already one, 2 cannot be
11 new tokens, ids 272 to 282; ids 0 to 271 stay the same, special tokens included
  first    gr  ⟨9f⟩er  ⟨b6⟩⟨c3⟩  ö⟨c3⟩  new
  longest  ·größer  größer  ·lowest  lowest  grö⟨c3⟩
cannot be a single token:
  <|endoftext|>: contains a special token
  c++: the pattern splits it into c | ++
  merges never join pre-tokens; instead, add such words where you use the tokenizer
  (`add_tokens` in transformers), or train with a pattern that keeps them whole
tokens per word, with and without a space before it: 3.00 before, 1.50 after
wrote longer.json: 283 tokens
"""


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "b.txt").write_text("größer größer newest " * 20 + "\n")
    return tmp_path / "b.txt"


@pytest.fixture
def words(tmp_path):
    (tmp_path / "terms.txt").write_bytes("\ufeffgrößer\r\nlow\n\nc++\n größer \n".encode())
    return tmp_path / "terms.txt"


def extend(run, *arguments, **options):
    return run("extend", "tokenizer.json", "--out", "longer.json", *arguments, **options)


def test_a_corpus_adds_tokens_after_the_highest_id(program, saved, corpus, tiny):
    result = extend(program, "b.txt", "--add", "6")
    assert (result.code, result.out, result.err) == (0, b"", CORPUS_SAID)
    longer = byteweld.load("longer.json")
    assert len(longer) == len(tiny) + 6
    assert tiny.vocab.tokens.items() <= longer.vocab.tokens.items()
    assert longer.vocab.special_tokens == tiny.vocab.special_tokens == {"<|endoftext|>": 256}
    assert longer.training.start.fingerprint == tiny.vocab.fingerprint


def test_words_become_single_tokens_and_the_others_are_named(program, saved, words):
    line = ("--words", "terms.txt", "--word", "lowest", "--word", "<|endoftext|>", "--word", "new")
    result = extend(program, *line)
    assert (result.code, result.out, result.err) == (0, b"", WORDS_SAID)
    longer = byteweld.load("longer.json")
    for word in ("größer", " größer", "lowest", " lowest", "new", " new", "low", " low"):
        assert longer.count(word) == 1, word
    assert longer.count("c++") == 3


def test_it_is_the_same_training_as_with_start(run, saved, corpus, tmp_path):
    assert extend(run, "b.txt", "--add", "6").code == 0
    line = ("train", "b.txt", "--start", "tokenizer.json", "--vocab-size", "278")
    assert run(*line, "--out", "trained.json").code == 0
    assert (tmp_path / "trained.json").read_bytes() == (tmp_path / "longer.json").read_bytes()


def test_the_json_report_of_a_corpus(run, saved, corpus, tiny):
    result = extend(run, "b.txt", "--add", "3", "--json")
    report = json.loads(result.out)
    longer = byteweld.load("longer.json")
    text = corpus.read_bytes()
    rates = [len(text) / tok.count(text) for tok in (tiny, longer)]
    assert list(report["bytes_per_token"].values()) == pytest.approx(rates)
    assert (report["tokens"], report["tokens_before"], report["first_new_id"]) == (275, 272, 272)
    assert [token["id"] for token in report["new_tokens"]] == [272, 273, 274]
    assert report["new_tokens"][0] == {"id": 272, "bytes": b"gr".hex(), "text": "gr"}
    assert report["corpus"]["bytes"] == len(text)
    assert report["fingerprint"] == longer.vocab.fingerprint
    assert report["report"] == "longer.training.json"


def test_the_json_report_of_words(run, saved):
    result = extend(run, "--word", "größer", "--word", "c++", "--word", "low", "--json")
    report = json.loads(result.out)
    got, split, low = report["words"]
    assert (got["word"], got["is_single"], got["was_single"], got["problem"]) == (
        "größer", True, False, None,
    )  # fmt: skip
    assert [form["tokens_after"] for form in got["forms"]] == [1, 1]
    assert (split["is_single"], split["problem"]) == (False, "split")
    assert split["forms"][0]["pretokens"] == [b"c".hex(), b"++".hex()]
    assert (low["is_single"], low["was_single"]) == (True, True)
    forms = [form for word in report["words"] for form in word["forms"]]
    mean = sum(form["tokens_before"] for form in forms) / len(forms)
    assert report["tokens_per_word"]["before"] == pytest.approx(mean)


def test_words_may_come_from_standard_input(run, saved):
    result = extend(run, "--words", "-", stdin=b"newer\nwider\n")
    assert result.code == 0, result.err
    assert [byteweld.load("longer.json").count(word) for word in ("newer", " wider")] == [1, 1]


def test_a_limit_leaves_words_unfinished_and_says_so(run, saved):
    result = extend(run, "--word", "größer", "--add", "3")
    assert result.code == 0
    assert "1 word: 0 made a single token\n3 new tokens, ids 272 to 274; " in result.err
    assert "1 word still of several tokens, since --add is 3:\n  größer (5 tokens)\n" in result.err


def test_words_that_need_nothing_add_nothing(run, saved, tiny):
    result = extend(run, "--word", "low")
    assert result.code == 0
    assert "1 word: 0 made a single token, 1 already one\nno new tokens; ids 0 to 271" in result.err
    assert byteweld.load("longer.json").vocab == tiny.vocab


def test_if_no_word_is_possible_nothing_is_written(run, saved, tmp_path):
    result = extend(run, "--word", "c++", "--word", "a b")
    assert (result.code, result.out) == (2, b"")
    assert "  c++: the pattern splits it into c | ++\n" in result.err
    assert result.err.endswith("none of the words can be a single token; nothing was written\n")
    assert not (tmp_path / "longer.json").exists()


def test_a_pattern_that_keeps_one_form_whole_is_reported(run, tmp_path):
    tok = byteweld.train(documents=["low 12 123"], vocab_size=258, pattern="cl100k")
    byteweld.Tokenizer(tok.vocab).save(tmp_path / "tokenizer.json")
    result = extend(run, "--word", "123")
    assert (
        "a single token only without a space before them, because of the pattern:\n  123\n"
        in result.err
    )


def test_long_lists_of_problems_are_cut(run, saved, tmp_path):
    (tmp_path / "terms.txt").write_text("\n".join(f"a+{n}" for n in range(30)) + "\nnewer\n")
    said = extend(run, "--words", "terms.txt").err
    assert said.count("the pattern splits it") == 10
    assert "  ... and 20 more\n" in said


def test_a_rank_file_is_extended_as_it_is_loaded(run, tiny, corpus, tmp_path):
    tiny.save(tmp_path / "ranks.tiktoken")
    (tmp_path / "ranks.tiktoken.byteweld.json").unlink(missing_ok=True)
    line = ("extend", "ranks.tiktoken", "--words", "-", "--out", "longer.tiktoken")
    result = run(*line, "--pattern", "gpt2", "--special", "<|endoftext|>=256", stdin=b"newer\n")
    assert result.code == 0, result.err
    ranks = (tmp_path / "longer.tiktoken").read_text().splitlines()
    assert [int(line.split()[1]) for line in ranks][-1] > 271


def test_a_tokenizer_that_cannot_be_extended_is_refused(run, saved, tmp_path):
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    content["model"]["ignore_merges"] = True
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    assert extend(run, "--word", "newer").err == (
        "byteweld: this tokenizer cannot be extended: training does not support its ignore_merges\n"
    )
