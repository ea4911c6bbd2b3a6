"""Explanations: steps, tables and trees of the seeds' examples, as values, text and JSON."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import byteweld
from byteweld.explanation import MAX_PARTS, MAX_ROWS, explain, explain_training, merge_tree
from byteweld.recipes import RECIPES
from byteweld.reference import encode, train
from byteweld.reference.train import merge
from byteweld.vocab import Vocabulary

BYTES = {byte: bytes([byte]) for byte in range(256)}
ABC = Vocabulary(BYTES | {256: b"bc", 257: b"ab"}, [(98, 99, 256), (97, 98, 257)])


def with_merges(*merges, **options):
    """Build a vocabulary of bytes and merges, given as (left bytes, right bytes)."""
    tokens = BYTES | {256 + n: left + right for n, (left, right) in enumerate(merges)}
    ids = {token: token_id for token_id, token in tokens.items()}
    return Vocabulary(tokens, [(ids[a], ids[b], ids[a + b]) for a, b in merges], **options)


# ---------------------------------------------------------------------------- encoding


def test_the_counterexample_abc_is_shown_in_full():
    assert (
        str(explain(byteweld.Tokenizer(ABC), "abc"))
        == """\
pre-token 1: abc  (byte 0)
  bytes: 61 62 63
  step 1: a [b c]
    rank 0  b c  -> 256  <- merged
    rank 1  a b  -> 257
  end: a bc  (no pair can merge)
  tree:
    a  97
    bc  256  rank 0
    ├── b  98
    └── c  99
  ids: 97 256
  longest match differs from byte 0: ab c  ids 257 99

ids: 97 256"""
    )


def test_lowest_is_the_same_by_longest_match():
    vocab = with_merges((b"e", b"s"), (b"es", b"t"), (b"l", b"o"), (b"lo", b"w"))
    explanation = explain(byteweld.Tokenizer(vocab), "lowest")
    (pretoken,) = explanation.pretokens
    parts = [[vocab.tokens[i].decode() for i in step.parts] for step in pretoken.steps]
    assert parts[0] == list("lowest")
    assert parts[-1] == ["low", "est"]
    assert [step.chosen.rank for step in pretoken.steps if step.chosen] == [0, 1, 2, 3]
    assert pretoken.greedy_differs_at is None
    assert "  longest match: the same" in explanation.lines()


def test_every_pretoken_is_explained_at_its_offset():
    vocab = with_merges((b"a", b"b"), pattern="gpt2")
    explanation = explain(byteweld.Tokenizer(vocab), "ab abé")
    assert [(p.pretoken, p.start) for p in explanation.pretokens] == [
        (b"ab", 0),
        (" abé".encode(), 2),
    ]
    assert explanation.ids == encode(vocab, "ab abé")


def test_a_difference_after_an_unk_is_counted_in_bytes_of_the_text():
    tokens = {0: b"<unk>", 97: b"a", 98: b"b", 99: b"c", 256: b"bc", 257: b"ab"}
    vocab = Vocabulary(
        tokens,
        [(98, 99, 256), (97, 98, 257)],
        special_tokens={"<unk>": 0},
        roles={"unk": 0},
        alphabet="ascii",
    )
    (pretoken,) = explain(byteweld.Tokenizer(vocab), "éabc").pretokens
    assert (pretoken.ids, pretoken.greedy_ids) == ((0, 97, 256), (0, 257, 99))
    assert pretoken.greedy_differs_at == 2


def test_a_token_found_whole_also_shows_what_merging_gives():
    tokens = BYTES | {256: b"bc", 257: b"ab", 258: b"abc"}
    merges = [(98, 99, 256), (97, 98, 257), (257, 99, 258)]
    explanation = explain(byteweld.Tokenizer(Vocabulary(tokens, merges, ignore_merges=True)), "abc")
    (pretoken,) = explanation.pretokens
    assert (pretoken.ids, pretoken.looked_up, pretoken.merged_ids) == ((258,), 258, (97, 256))
    text = str(explanation)
    assert "found whole, before any merge: token 258" in text
    assert "merging alone would give 97 256" in text


def test_a_rank_file_is_explained_by_the_ids_of_the_results():
    vocab = Vocabulary(BYTES | {256: b"ab", 257: b"abc"}, ranking="ranks")
    (pretoken,) = explain(byteweld.Tokenizer(vocab), "abcx").pretokens
    assert pretoken.looked_up is None
    assert [step.chosen.rank for step in pretoken.steps if step.chosen] == [256, 257]


def test_a_single_byte_does_not_count_as_found_whole():
    (pretoken,) = explain(byteweld.Tokenizer(Vocabulary(BYTES, ranking="ranks")), "a").pretokens
    assert (pretoken.ids, pretoken.looked_up) == ((97,), None)


def test_bytes_that_are_not_utf8_are_explained():
    explanation = explain(byteweld.Tokenizer(ABC), b"\xff\x1b")
    assert "pre-token 1: ⟨ff⟩⟨U+001B⟩  (byte 0)" in str(explanation)
    assert explanation.ids == [0xFF, 0x1B]


def test_an_explanation_as_json_lists_each_token_once():
    value = json.loads(json.dumps(explain(byteweld.Tokenizer(ABC), "abc").to_dict()))
    assert value["ids"] == [97, 256]
    assert value["tokens"]["256"] == {"bytes": "6263", "text": "bc"}
    (pretoken,) = value["pretokens"]
    assert pretoken["steps"][0] == {
        "parts": [97, 98, 99],
        "pairs": [
            {"at": 1, "left": 98, "right": 99, "rank": 0, "new": 256},
            {"at": 0, "left": 97, "right": 98, "rank": 1, "new": 257},
        ],
        "total_pairs": 2,
        "chosen": 1,
    }
    assert pretoken["tree"] == {
        "nodes": [
            [97, None, None, None],
            [98, None, None, None],
            [99, None, None, None],
            [256, 1, 2, 0],
        ],
        "roots": [0, 3],
    }
    assert (pretoken["greedy_ids"], pretoken["greedy_differs_at"]) == ([257, 99], 0)


def test_a_long_table_is_truncated_and_says_so():
    vocab = with_merges((b"a", b"a"))
    explanation = explain(byteweld.Tokenizer(vocab), "a" * 60)
    (pretoken,) = explanation.pretokens
    assert len(pretoken.steps[0].rows) == MAX_ROWS
    assert pretoken.steps[0].total_pairs == 59
    assert f"    ... and {59 - MAX_ROWS} more pairs" in explanation.lines()
    assert "  step 1: [a a]" + " a" * 38 + " ..." in explanation.lines()


def test_a_long_pretoken_shows_the_parts_around_the_merge():
    vocab = with_merges((b"a", b"b"))
    lines = explain(byteweld.Tokenizer(vocab), "x" * 100 + "ab" + "y" * 100).lines()
    assert "  step 1: ..." + " x" * 20 + " [a b]" + " y" * 18 + " ..." in lines
    lines = explain(byteweld.Tokenizer(vocab), "x" * 100 + "ab").lines()
    assert "  step 1: ..." + " x" * 38 + " [a b]" in lines


def test_a_pretoken_too_long_to_show_is_refused_unless_the_limit_is_raised():
    with pytest.raises(ValueError, match="has 1,025 bytes, too many to show"):
        explain(byteweld.Tokenizer(ABC), "x" * 1025)
    assert len(explain(byteweld.Tokenizer(ABC), "x" * 1025, max_pretoken_bytes=2000).ids) == 1025


CHAIN = with_merges(*((b"b" + b"a" * n, b"a") for n in range(1020)))


def test_a_tree_deeper_than_pythons_stack_is_drawn():
    tree = merge_tree(CHAIN, CHAIN.ids[b"b" + b"a" * 1020])
    lines = tree.lines()
    assert len(lines) == 2 * 1021 - 1
    assert len(tree.roots) == 1
    assert max(len(line) - line.count("a") for line in lines) < 140  # the indent has a limit
    assert any("[1020] b  98" in line for line in lines)
    json.dumps(tree.to_dict())


def test_the_merge_tree_of_path_is_that_of_the_seed():
    vocab = with_merges((b" ", b"<"), (b"p", b"a"), (b"t", b"h"), (b"pa", b"th"), (b" <", b"path"))
    assert (
        "\n".join(merge_tree(vocab, 260).lines())
        == """\
·<path  260  rank 4
├── ·<  256  rank 0
│   ├── ·  32
│   └── <  60
└── path  259  rank 3
    ├── pa  257  rank 1
    │   ├── p  112
    │   └── a  97
    └── th  258  rank 2
        ├── t  116
        └── h  104"""
    )


def test_the_tree_of_a_token_that_no_merges_build_has_several_roots():
    tokens = BYTES | {256: b"bc", 257: b"ab", 258: b"abc"}
    vocab = Vocabulary(tokens, [(98, 99, 256), (97, 98, 257), (257, 99, 258)])
    tree = merge_tree(vocab, 258)
    assert [tree.nodes[root].id for root in tree.roots] == [97, 256]


def test_a_special_token_is_a_single_node_and_an_unknown_id_an_error():
    vocab = Vocabulary(BYTES | {256: b"<s>"}, special_tokens={"<s>": 256})
    assert merge_tree(vocab, 256).lines() == ["<s>  256"]
    with pytest.raises(KeyError, match="id 999"):
        merge_tree(vocab, 999)


@given(st.text("abc é", max_size=20))
def test_explained_ids_are_the_encoded_ids(text):
    for vocab in (ABC, with_merges((b"a", b"b"), (b" ", b"ab"), pattern="gpt2")):
        explanation = explain(byteweld.Tokenizer(vocab), text)
        assert explanation.ids == encode(vocab, text)
        for pretoken in explanation.pretokens:
            roots = tuple(pretoken.tree.nodes[root].id for root in pretoken.tree.roots)
            assert roots == pretoken.merged_ids


# ---------------------------------------------------------------------------- training


def test_merges_and_tokens_are_listed_in_columns():
    shown = str(explain_training({b"low": 5, b"lower": 2}, 260, "from-scratch"))
    assert shown.endswith(
        """\
stopped after 4 merges: the vocabulary has the requested size

merges:
  rank 0  count 7  (o, w)     -> 256 ow
  rank 1  count 7  (l, ow)    -> 257 low
  rank 2  count 2  (low, e)   -> 258 lowe
  rank 3  count 2  (lowe, r)  -> 259 lower

vocabulary: 260 tokens
  ids 0 to 255: the 256 single bytes
  id 256: ow
  id 257: low
  id 258: lowe
  id 259: lower"""
    )


def test_the_worked_theory_shows_the_true_count_and_why_the_space_wins():
    corpus = ["I work", "I work", "I worked", "he works", "he worked"]
    training = explain_training(corpus, 257, "plain")
    (step,) = training.steps
    table = {(chr(row.left), chr(row.right)): row.count for row in step.rows}
    assert table[" ", "w"] == table["o", "r"] == table["r", "k"] == table["w", "o"] == 5
    assert table["I", " "] == 3
    assert [(chr(row.left), chr(row.right)) for row in step.tied] == [
        ("o", "r"),
        ("r", "k"),
        ("w", "o"),
    ]
    assert "left b' ' is smaller than b'o'" in step.why


def test_the_drills_page_shows_these_tables():
    page = (Path(__file__).parents[2] / "docs" / "about" / "drills.md").read_text(encoding="utf-8")
    drill = explain_training(["he eats", "he eats", "I eat", "you eat"], 260)
    theory = explain_training(["I work", "I work", "I worked", "he works", "he worked"], 257)
    tables = [line for line in drill.lines() + theory.lines() if "#" in line]
    assert len(tables) == 10 + 9 + 8 + 7 + 10
    assert [line for line in tables if line not in page.splitlines()] == []


def test_the_pair_table_of_ck_names_ids_and_truncates_long_tables():
    svg = '<svg viewBox="0 0 24 24">\n  <path d="M12 2L2 22h20z"/>\n</svg>\n'
    training = explain_training([svg], 261, "ck")
    (step,) = training.steps
    assert len(step.rows) == MAX_ROWS < step.total_pairs
    assert (step.merge.left, step.merge.right, step.merge.new) == (4 + 32, 4 + ord("2"), 260)
    lines = training.lines()
    assert f"  ... and {step.total_pairs - MAX_ROWS} more pairs" in lines
    assert "  id 1: <|bos|>  special" in lines
    assert "  ids 4 to 259: the 256 single bytes" in lines
    assert any(line.endswith(f"... {len(svg) - 40} more") for line in lines)


def test_ties_by_ids_say_which_id_is_smaller():
    (step,) = explain_training(["cab"], 257, "bpetite").steps
    assert step.why.endswith("left id 97 is smaller than 99")
    (step,) = explain_training({b"ac": 1, b"ab": 1}, 257, "bpetite").steps
    assert step.why.endswith("right id 98 is smaller than 99")


def test_a_single_best_pair_needs_no_tie_rule():
    (step,) = explain_training({b"ab": 2, b"cd": 1}, 257).steps
    assert (step.tied, step.why) == ((), "it has the highest count")


@pytest.mark.parametrize(
    ("size", "recipe", "reason", "words"),
    [
        (257, "plain", "size", "the vocabulary has the requested size"),
        (400, "plain", "no pairs", "no pair can merge"),
        (400, "ck", "min frequency", "the highest count is below min_frequency"),
    ],
)
def test_the_reason_for_stopping_is_explained(size, recipe, reason, words):
    training = explain_training(["abc"], max(size, RECIPES[recipe].minimum_size), recipe)
    assert training.stopped == reason
    merges = "1 merge" if len(training.steps) == 1 else f"{len(training.steps)} merges"
    assert f"stopped after {merges}: {words}" in training.lines()


def test_a_training_is_json():
    training = explain_training({b"low": 5, b"lower": 2}, 257, "from-scratch")
    value = json.loads(json.dumps(training.to_dict()))
    (step,) = value["steps"]
    assert step["pairs"][0] == {"left": 111, "right": 119, "count": 7}
    assert step["tied"] == [{"left": 108, "right": 111, "count": 7}]
    assert step["merge"] == {"left": 111, "right": 119, "new": 256, "pair_count": 7}
    assert step["corpus"][0] == {"parts": [108, 256], "total_parts": 2, "count": 5}
    assert value["tokens"]["256"] == {"bytes": "6f77", "text": "ow"}
    assert value["stopped"] == "size"


@pytest.mark.parametrize("text", ["abc", b"abc", "two\nlines", "x" * 100_000, Path("a.txt")])
def test_a_single_document_or_a_path_is_a_type_error(text):
    with pytest.raises(TypeError, match=r"takes a list of documents, .* pass documents=\[\.\.\.\]"):
        explain_training(text, 257)


def test_documents_are_never_paths(tmp_path):
    (tmp_path / "a.txt").write_text("low low")
    path = str(tmp_path / "a.txt")
    explained = explain_training(documents=[path, "b\nc" * 5000], vocab_size=257)
    assert explained.vocab == explain_training([path, "b\nc" * 5000], 257).vocab
    assert any(bytes(row.parts).decode() == path[:40] for row in explained.corpus)


def test_an_example_shows_a_merge_that_is_not_in_the_most_frequent_pretokens():
    frequent = {bytes([letter]): 100 for letter in b"abcdefghijkl"}
    training = explain_training(frequent | {b"xyzxy": 3, b"wxy": 7, b"vxy": 7}, 257)
    (step,) = training.steps
    assert (step.merge.left, step.merge.right, step.merge.pair_count) == (*b"xy", 20)
    assert not step.is_in_corpus
    # Of the two most frequent, the one with the smaller tokens before the pair.
    assert (step.example.before, step.example.after) == ((*b"vxy",), (ord("v"), 256))
    assert (step.example.is_start, step.example.is_end, step.example.count) == (True, True, 7)
    lines = training.lines()
    assert "  before: 7 x v x y" in lines
    assert "  after:  7 x v xy" in lines
    assert "before: 7 x " in str(training.to_html())
    assert training.to_dict()["steps"][0]["example"]["after"] == (ord("v"), 256)


def test_the_example_of_a_long_pretoken_is_a_window():
    training = explain_training(["." * 100 + "ab" + "," * 100 + "ab"], 258)
    step = training.steps[-1]
    assert len(step.example.after) == MAX_PARTS
    assert (step.example.is_start, step.example.is_end) == (False, False)


def test_a_corpus_without_a_pattern_is_one_long_pretoken(data):
    text = (data / "prose.txt").read_bytes()
    training = explain_training([text], 280)
    expected = train([text], 280, RECIPES["plain"])
    assert training.vocab == expected.vocab
    parts = tuple(text)
    for step, learned in zip(training.steps, expected.merges, strict=True):
        parts = merge(parts, learned[:2], learned.new)
        (row,) = step.corpus
        assert (row.parts, row.total_parts) == (parts[:MAX_PARTS], len(parts))


def test_a_memory_budget_that_training_may_exceed_is_refused():
    text = " ".join(f"{n:x}" for n in range(30_000))
    with pytest.raises(
        byteweld.BudgetError, match="the budget is 5GB; raise it, show fewer merges"
    ):
        explain_training([text], 100_000, memory="5GB")
    # A short text has few merges, whatever the size.
    assert explain_training(["low low lower"], 10**9, memory="5GB").stopped == "no pairs"


def test_counts_made_with_another_pattern_are_refused():
    counts = byteweld.count(documents=["low lower"], recipe="from-scratch")
    with pytest.raises(ValueError, match="the counts were made with pattern"):
        explain_training(counts, 257, "plain")


def test_progress_is_the_number_of_merges():
    seen: list[int] = []
    text = " ".join(f"{n}" for n in range(2000))
    training = explain_training([text], 256 + 250, progress=seen.append)
    assert seen == sorted(seen)
    assert 0 < seen[-1] <= len(training.steps) == 250
    few: list[int] = []
    assert len(explain_training(["low low"], 258, progress=few.append).steps) == few[-1] == 2


# U+1C8A is a letter since Unicode 16, U+A7D2 since 17; the engine's tables are Unicode 16.
_UNICODE = """
import sys
{hide}
import byteweld
explained = byteweld.explain_training(["a\u1c8ab a\u1c8ab a\ua7d2b"], 262, "bpetite")
print(ascii(str(explained)))
print([bytes(row.parts) for row in explained.corpus])
"""


@pytest.mark.parametrize(
    "hide",
    [
        "",
        "sys.modules['regex'] = None",  # the import fails
        "import re; sys.modules['regex'] = re",  # another version: it knows no \\p
    ],
)
def test_the_engine_cuts_whatever_version_of_regex_is_there(hide):
    done = subprocess.run(
        [sys.executable, "-c", _UNICODE.format(hide=hide)], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    shown, corpus = done.stdout.splitlines()
    here = explain_training(["a\u1c8ab a\u1c8ab a\ua7d2b"], 262, "bpetite")
    assert shown == ascii(str(here))
    pretokens = ["b", " a", "a\u1c8ab", " a\u1c8ab", "\ua7d2"]
    assert sorted(ast.literal_eval(corpus)) == sorted(text.encode() for text in pretokens)


def test_special_tokens_are_treated_as_in_encode():
    tok = byteweld.train(iter(["low low"]), vocab_size=260, special_tokens=["<|e|>"])
    with pytest.raises(byteweld.SpecialTokenError):
        byteweld.explain(tok, "low<|e|>")
    allowed = byteweld.explain(tok, "low<|e|>low", allowed_special="all")
    assert allowed.ids == tok.encode("low<|e|>low", allowed_special="all")
    assert [p.is_special for p in allowed.pretokens] == [False, True, False]
    assert "special token 2: <|e|>  (byte 3)" in str(allowed)
    assert allowed.to_dict()["pretokens"][1]["is_special"] is True
    plain = byteweld.explain(tok, "low<|e|>", disallowed_special=())
    assert plain.ids == tok.encode("low<|e|>", disallowed_special=())


@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("steps", [[], ["prefix-space"]], ids=len)
def test_added_tokens_are_found_where_the_tokenizer_finds_them(steps, special):
    tokens = {byte: bytes([byte]) for byte in range(256)}
    tokens |= {256: b" a", 257: b"  ", 258: b"<end>", 259: b"<mask>"}
    vocab = byteweld.Vocabulary(
        tokens,
        [(32, 97, 256)],
        steps=steps,
        added_tokens=[
            byteweld.AddedToken("  ", 257, special=False),
            byteweld.AddedToken("<end>", 258),
            byteweld.AddedToken("<mask>", 259, special=False, lstrip=True),
        ],
    )
    tok = byteweld.Tokenizer(vocab)
    text = "a  a <mask>a<end> a  <end>"
    options = {"allowed_special": "all"} if special else {"disallowed_special": ()}
    explained = explain(tok, text, **options)
    assert list(explained.ids) == tok.encode(text, **options)
    found = [part.pretoken for part in explained.pretokens if part.is_special]
    assert found.count(b"  ") == 2 and b" <mask>" in found
    assert found.count(b"<end>") == 2 * special
