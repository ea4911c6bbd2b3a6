"""Evaluating on a corpus: every figure equals that of a plain computation."""

from __future__ import annotations

import json
import math
import re
from collections import Counter

import numpy as np
import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

import byteweld
from byteweld.evaluation import script_of, token_lengths, unreachable
from byteweld.evaluation import words as words_module
from byteweld.evaluation._report import language_groups
from byteweld.evaluation.corpora import Changed, evaluate_files
from byteweld.evaluation.probes import Language, probe
from byteweld.evaluation.words import WordRate, words
from byteweld.reference.encode import encode_greedy, encode_steps
from byteweld.samples import SENTENCES

WORD = regex.compile(r"[\p{L}\p{N}][\p{L}\p{M}\p{N}]*")
SPECIAL = "<|endoftext|>"


@pytest.fixture(scope="module")
def tok(data) -> byteweld.Tokenizer:
    texts = [(data / name).read_bytes() for name in ("prose.txt", "code.txt")]
    return byteweld.train(iter(texts), vocab_size=600, special_tokens=[SPECIAL])


def plain_words(text: str) -> list[tuple[int, int]]:
    """Find the words of a text one by one, as byte offsets."""
    return [
        (len(text[: found.start()].encode()), len(text[: found.end()].encode()))
        for found in WORD.finditer(text)
    ]


def plain_pieces(tok: byteweld.Tokenizer, text: str) -> list[tuple[bytes, int]]:
    """Count the tokens that overlap each word, one by one."""
    _, offsets = tok.encode_with_offsets(text, disallowed_special=())
    raw = text.encode()
    return [
        (raw[start:end], sum(a < end and b > start for a, b in offsets))
        for start, end in plain_words(text)
    ]


def test_every_figure_equals_that_of_a_plain_computation(tok, files):
    found = evaluate_files(tok, files)
    counts: Counter[int] = Counter()
    by_script: dict[str, list[int]] = {}
    for (name, documents), rate in zip(files, found.files, strict=True):
        ids = [token_id for document in documents for token_id in tok.encode(document)]
        counts.update(ids)
        pieces = [piece for document in documents for piece in plain_pieces(tok, document.decode())]
        size = sum(map(len, documents))
        assert rate[:4] == (name, len(documents), size, len(ids))
        assert rate.bytes_per_token == size / len(ids)
        assert rate.words.fertility == sum(n for _, n in pieces) / len(pieces)
        assert rate.words.whole_share == sum(n == 1 for _, n in pieces) / len(pieces)
        for word, number in pieces:
            sums = by_script.setdefault(script_of(word), [0, 0, 0, 0])
            for index, value in enumerate((1, len(word), number, number == 1)):
                sums[index] += value
    assert found.scripts == {script: WordRate(*sums) for script, sums in by_script.items()}
    assert len(found.scripts) > 5
    assert next(iter(found.scripts)) == "latin"  # the most bytes
    assert found.total.tokens == counts.total()

    ordinary = dict(tok.vocab.ordinary())
    assert found.tokens == ordinary
    assert found.used == len(counts)
    assert found.unused == [i for i in ordinary if i not in counts]
    assert found.rarest(3)[0][1] == min(counts.values())
    assert found.commonest(1)[0] in counts.items()
    assert found.commonest(1)[0][1] == max(counts.values())
    assert found.unreachable == set(unreachable(tok))
    total, size = counts.total(), math.log(len(ordinary))
    renyi = math.log(sum((n / total) ** 2.5 for n in counts.values())) / (1 - 2.5)
    shannon = -sum(n / total * math.log(n / total) for n in counts.values())
    assert found.efficiency() == pytest.approx(renyi / size, rel=1e-12)
    assert found.efficiency(1) == pytest.approx(shannon / size, rel=1e-12)
    assert (found.changed_documents, found.changed) == (0, ())


def test_longest_match_is_compared_pretoken_by_pretoken():
    vocab = {b: bytes([b]) for b in range(256)} | {256: b"bc", 257: b"ab", 258: b"<|x|>"}
    tok = byteweld.Tokenizer.from_merges(
        vocab, [(b"b", b"c"), (b"a", b"b")], special_tokens=["<|x|>"], pattern="gpt2"
    )
    # abc is a|bc, but its longest matches are ab|c. The others agree: ab, ·|ab, ·|bc, ·|ab|d.
    documents = [b"abc ab bc abd<|x|>abc", b"", b"ab"]
    found = evaluate_files(tok, [("a.txt", documents[:2]), ("b.txt", documents[2:])])
    assert found.longest_match == (4, 6)
    assert found.to_dict()["longest_match"] == {"agreeing": 4, "pretokens": 6, "share": 4 / 6}
    assert "  longest match     agrees on 66.7% of 6 pre-tokens" in found.lines()
    assert "66.7%" in str(found.to_html())
    # As text, the special token is three more pre-tokens, <| x |>, on which both agree.
    found = evaluate_files(tok, [("a.txt", documents)], disallowed_special=())
    assert found.longest_match == (7, 9)


def test_longest_match_agrees_where_the_reference_says_so(tok, files):
    documents = [document for _, documents in files for document in documents]
    pretokens = [p for document in documents for p in tok.pretokenize(document)]
    same = [
        encode_greedy(tok.vocab, pretoken) == list(last.parts)
        for pretoken in pretokens
        for *_, last in [encode_steps(tok.vocab, pretoken)]
    ]
    found = evaluate_files(tok, files).longest_match
    assert found == (sum(same), len(pretokens))
    assert 0 < found.agreeing < found.pretokens


def test_longest_match_that_takes_too_many_steps_is_not_compared():
    vocab = {b: bytes([b]) for b in range(256)} | {256: b"a" * 5000 + b"b"}
    tok = byteweld.Tokenizer.from_merges(vocab, [])
    found = evaluate_files(tok, [("a.txt", [b"b", b"a" * 20_000, b"b"])])
    assert found.longest_match is None
    assert found.to_dict()["longest_match"] is None
    words = "not compared: the tokens are too long and too similar"
    assert f"  longest match     {words}" in found.lines()


def test_equal_shares_of_the_whole_vocabulary_are_fully_efficient():
    tok = byteweld.Tokenizer.from_merges({b: bytes([b]) for b in range(256)}, [], pattern=None)
    found = evaluate_files(tok, [("every byte", [bytes(range(256)) * 3])])
    for order in (1, 2, 2.5, 7):
        assert found.efficiency(order) == pytest.approx(1)
    assert found.used == 256 and found.unused == []
    one = evaluate_files(tok, [("one byte", [b"aaaa"])])
    assert one.efficiency() == pytest.approx(0)


def test_an_empty_corpus_has_no_rates(tok):
    for files in ([], [("empty", [])], [("empty", [b""])]):
        found = evaluate_files(tok, files)
        assert found.total.bytes_per_token is found.efficiency() is None
        assert found.total.words.fertility is found.total.words.whole_share is None
        assert "bytes per token   -" in str(found)
        assert found.longest_match == (0, 0)
        assert "longest match     -" in str(found)
        json.dumps(found.to_dict(), allow_nan=False)
        found.to_html()


@given(st.text(alphabet=st.sampled_from("ab é\u0301\n.1小ก\u0e34🙂\ufe0f'"), max_size=60))
def test_words_match_the_pattern(text):
    raw = text.encode()
    found = [
        (start, end)
        for some in words(raw)
        for start, end in zip(some.starts.tolist(), some.ends.tolist(), strict=True)
    ]
    assert found == plain_words(text)


@given(st.binary(max_size=60))
def test_words_of_any_bytes_are_in_order_and_have_a_script(raw):
    edge = 0
    for some in words(raw):
        for start, end, script in zip(some.starts, some.ends, some.scripts, strict=True):
            assert edge <= start < end <= len(raw)
            edge = end
            raw[start:end].decode()  # a word consists of whole characters
            assert script


@pytest.mark.parametrize("block", [1, 2, 7, 64])
def test_words_do_not_depend_on_the_block_size(monkeypatch, data, block):
    raw = (data / "many.txt").read_bytes()
    whole = [(s, e) for w in words(raw) for s, e in zip(w.starts, w.ends, strict=True)]
    monkeypatch.setattr(words_module, "_BLOCK_BYTES", block)
    cut = [(s, e) for w in words(raw) for s, e in zip(w.starts, w.ends, strict=True)]
    assert cut == whole


def test_the_pieces_of_a_word_are_the_tokens_that_overlap_it():
    [found] = words(b"low lower")
    ends = np.array([1, 3, 7, 9])  # l|ow| low|er
    assert found.pieces(ends).tolist() == [2, 2]
    assert found.pieces(np.array([9])).tolist() == [1, 1]  # one token may cover two words
    assert found.pieces(np.array([3, 4, 9])).tolist() == [1, 1]


def test_token_lengths_are_known_unless_the_text_is_rewritten(tok):
    lengths = token_lengths(tok)
    assert all(lengths[i] == len(t) for i, t in tok.vocab.tokens.items())
    tokens = {b: bytes([b]) for b in range(256)}
    changing = byteweld.Tokenizer(byteweld.Vocabulary(tokens, normalizer=["nfc"]))
    assert token_lengths(changing) is None


def test_a_document_that_decoding_changes_is_named():
    tokens = {b: bytes([b]) for b in range(256)}
    tok = byteweld.Tokenizer(byteweld.Vocabulary(tokens, normalizer=["nfc"]))
    decomposed = "e\u0301".encode()
    found = evaluate_files(tok, [("a.txt", [b"e", decomposed]), ("b.txt", [decomposed] * 9)])
    assert found.changed_documents == 10
    assert found.changed[0] == Changed("a.txt", 2)
    assert len(found.changed) == 5
    assert "10 documents changed: a.txt document 2, b.txt document 1" in str(found)
    # Offsets refer to the original text, so its words are counted all the same.
    assert found.total.words.words == 11


def test_special_tokens_are_special_unless_told_otherwise(tok):
    files = [("a.txt", [f"low{SPECIAL}".encode()])]
    special = evaluate_files(tok, files)
    with pytest.raises(byteweld.SpecialTokenError, match=r"^a\.txt: .*endoftext"):
        evaluate_files(tok, files, allowed_special=())
    plain = evaluate_files(tok, files, disallowed_special=())
    special_id = tok.vocab.special_tokens[SPECIAL]
    assert special.counts[special_id] == 1 and plain.counts[special_id] == 0
    assert special.total.tokens < plain.total.tokens
    assert "  special or added  1, each one id" in special.lines()
    assert "special or added" not in str(plain)
    assert special_id not in special.tokens  # only ordinary tokens can be used or unused
    for options, expected in (({}, special), ({"disallowed_special": ()}, plain)):
        found = byteweld.evaluate(tok, documents=files[0][1], **options)
        assert found.total.tokens == expected.total.tokens


def test_progress_is_reported_in_bytes(tok, files):
    reported: list[int] = []
    evaluate_files(tok, files, progress=reported.append)
    assert reported[-1] == sum(len(d) for _, documents in files for d in documents)


# ---------------------------------------------------------------------------- probes


def test_whole_numbers_are_counted_over_all_of_them(tok):
    for whole in probe(tok).whole_numbers:
        numbers = [f"{n:0{whole.digits}}" for n in range(10**whole.digits)]
        assert whole.total == len(numbers)
        assert whole.whole == sum(len(tok.encode(number)) == 1 for number in numbers)


def test_numbers_and_indents_are_cut_as_encode_cuts_them(tok):
    probes = probe(tok)
    for cut in probes.numbers:
        assert b"".join(cut.tokens).decode() == cut.name
        assert len(cut.tokens) == tok.count(cut.name)
    four = next(cut for cut in probes.indents if cut.name == "4 spaces")
    whole = b"".join(four.tokens)
    assert whole.strip(b"):return") == b"\n    "
    assert re.fullmatch(rb"(\):|:|)\n    r?e?t?u?r?n?", whole)


def test_languages_cost_what_their_sentences_cost(tok):
    found = {language.name: language for language in probe(tok).languages}
    assert list(found) == list(SENTENCES)
    for name, text in SENTENCES.items():
        assert found[name].tokens == tok.count(text)
        assert found[name].bytes == len(text.encode())
        pieces = plain_pieces(tok, text)
        assert found[name].words.fertility == sum(n for _, n in pieces) / len(pieces)


def test_a_language_that_cannot_be_encoded_is_skipped():
    tok = byteweld.train(
        iter(["low low lower"]), vocab_size=102, recipe="ck-ascii", min_frequency=1
    )
    ascii_only = byteweld.Tokenizer(
        byteweld.Vocabulary(
            dict(tok.vocab.ordinary()), tok.vocab.merge_ids, alphabet="ascii", pattern=None
        )
    )
    names = [language.name for language in probe(ascii_only).languages]
    assert names == [name for name, text in SENTENCES.items() if text.isascii()]
    assert "English" in names and "Greek" not in names
    str(evaluate_files(ascii_only, [("a", [b"low"])]))


def test_languages_are_grouped_by_their_tokens_compared_with_english():
    def language(name, tokens):
        return Language(name, 10, 10, tokens, WordRate())

    every = [language("English", 10), language("French", 12), language("Thai", 51)]
    every += [language("Dutch", 9), language("Greek", 50), language("Polish", 13)]
    assert language_groups(every) == [
        ("up to 1 ×", ["English", "Dutch"]),
        ("up to 1.25 ×", ["French"]),
        ("up to 1.5 ×", ["Polish"]),
        ("up to 5 ×", ["Greek"]),
        ("over 5 ×", ["Thai"]),
    ]
    assert language_groups(every[1:]) == []
