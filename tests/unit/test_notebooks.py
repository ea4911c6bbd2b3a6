"""What notebooks display: tokenizers, encoded texts, explanations, reports; hostile ones too."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

import byteweld
from byteweld.comparison.corpora import compare_files
from byteweld.evaluation.corpora import evaluate_files

SPECIAL = '<|"><script>x</script>|>'
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&amp;\u202eabc\u202c\x00\x1b[31m"
ALLOWED = set(
    "b br code dd details div dl dt figcaption figure g h2 h3 li p section span style summary svg "
    "table tbody td text th thead title tr ul line path rect".split()
)


@pytest.fixture(scope="module")
def tok() -> byteweld.Tokenizer:
    """A tokenizer whose tokens look like markup."""
    texts = ["<script> </script> <img onerror=x> &lt; low lower lowest"] * 9
    return byteweld.train(
        iter(texts), vocab_size=330, recipe="from-scratch", special_tokens=[SPECIAL]
    )


class Reader(HTMLParser):
    """The tags and attributes that a browser would see."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.names: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.names.update(name for name, _ in attrs)

    def handle_data(self, data):
        self.text += data


def check_safe(page: str) -> Reader:
    seen = Reader(page)
    assert seen.tags <= ALLOWED, seen.tags - ALLOWED
    assert not {name for name in seen.names if name.startswith("on")}
    assert not {"style", "href", "src"} & seen.names
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)
    page.encode()
    return seen


def every_value(tok: byteweld.Tokenizer) -> dict[str, object]:
    """One of each value that a notebook can display."""
    files = [(HOSTILE, [HOSTILE.encode(), b"\xff\x00<b>", bytes(range(256))])]
    return {
        "tokenizer": tok,
        "text": tok.show(HOSTILE + SPECIAL, allowed_special="all"),
        "explanation": byteweld.explain(tok, HOSTILE + SPECIAL, allowed_special="all"),
        "training": byteweld.explain_training(documents=[HOSTILE] * 3, vocab_size=262),
        "tree": byteweld.merge_tree(tok.vocab, max(tok.vocab.tokens)),
        "evaluation": evaluate_files(tok, files),
        "comparison": compare_files([tok, tok.cut(270)], files, names=(HOSTILE, "b")),
    }


def test_every_value_is_displayed_as_text_and_never_interpreted(tok):
    values = every_value(tok)
    for name, value in values.items():
        page = value._repr_html_()
        seen = check_safe(page)
        assert page.startswith("<style>") and page.endswith("</div>"), name
        assert seen.text.strip(), name
    assert "<script>" in Reader(values["text"]._repr_html_()).text
    assert SPECIAL in Reader(values["tokenizer"]._repr_html_()).text


@given(st.binary(max_size=60))
def test_any_bytes_are_safe_and_complete(raw):
    tok = byteweld.Tokenizer.from_merges({b: bytes([b]) for b in range(256)}, [], pattern=None)
    shown = tok.show(raw)
    assert b"".join(span.bytes for span in shown.spans) == raw
    check_safe(shown._repr_html_())
    assert json.loads(json.dumps(shown.to_dict()))["bytes"] == len(raw)


def test_an_encoded_text_has_ids_offsets_and_a_short_repr(tok):
    text = "low lowest"
    shown = tok.show(text)
    ids, offsets = tok.encode_with_offsets(text)
    assert shown.ids == ids
    assert [(t["start"], t["end"]) for t in shown.to_dict()["tokens"]] == offsets
    assert str(shown) == "|".join(span.text for span in shown.spans)
    assert repr(shown) == f"<EncodedText {len(ids)} tokens of 10 bytes>"
    assert shown.bytes_per_token == 10 / len(ids)
    empty = tok.show("")
    assert (len(empty), empty.ids, empty.bytes_per_token, str(empty)) == (0, [], None, "")
    check_safe(empty._repr_html_())


def test_show_treats_special_tokens_as_encode_does(tok):
    with pytest.raises(byteweld.SpecialTokenError):
        tok.show(SPECIAL)
    assert tok.show(SPECIAL, allowed_special="all").spans[0].is_special
    assert len(tok.show(SPECIAL, disallowed_special=())) > 1


def test_a_long_text_is_truncated(tok):
    page = tok.show(b"\x01" * 6000)._repr_html_()
    assert page.count('class="t ') == 5000
    assert "and 1,000 more tokens" in page
    explained = byteweld.explain(tok, " ".join(["lowest"] * 4000))
    page = explained._repr_html_()
    shown = page.count("<h2>Pre-token ")
    assert 20 < shown < 4000 and f"and {4000 - shown:,} more pre-tokens" in page
    long = byteweld.explain(tok, b"\x01" * 1024 + b" low")._repr_html_()
    assert len(long) < 20_000_000 and long.count('class="t ') < 60_000


def test_an_explanation_shows_each_step():
    vocab = {b: bytes([b]) for b in range(256)} | {256: b"bc", 257: b"ab"}
    tok = byteweld.Tokenizer.from_merges(vocab, [(b"b", b"c"), (b"a", b"b")])
    text = Reader(byteweld.explain(tok, "abc")._repr_html_()).text
    assert "rank 0 → 256; waiting: ab 1" in text
    assert "no pair can merge" in text
    assert "longest match differs from byte 0: ab c  ids 257 99" in text
    training = byteweld.explain_training({b"low": 5, b"lower": 2}, 258, "from-scratch")
    text = Reader(training._repr_html_()).text
    assert "<- merged" in text and "tie at 7" in text
    assert "left b'o' is greater than b'l'" in text


def test_trees_are_drawn_without_recursion():
    size = 1000
    tokens = {b: bytes([b]) for b in range(256)}
    tokens |= {254 + n: b"a" * n for n in range(2, size + 1)}
    merges = [(b"a" * (n - 1), b"a") for n in range(2, size + 1)]
    tok = byteweld.Tokenizer.from_merges(tokens, merges, pattern=None)
    check_safe(byteweld.merge_tree(tok.vocab, max(tokens))._repr_html_())
