"""Comparing on a corpus: verdict, differing spans and rates equal those found by plain loops."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import byteweld
from byteweld.comparison import corpora
from byteweld.comparison.corpora import compare_files
from byteweld.evaluation.corpora import evaluate_files

BYTES = {b: bytes([b]) for b in range(256)}
PLAIN = byteweld.Tokenizer.from_merges(BYTES, [], pattern=None)
AB = byteweld.Tokenizer.from_merges(BYTES | {256: b"ab"}, [(b"a", b"b")], pattern=None)
BC = byteweld.Tokenizer.from_merges(BYTES | {256: b"bc"}, [(b"b", b"c")], pattern=None)
# Cuts as AB does, with different ids: the letters a and b are swapped.
SWAPPED = byteweld.Tokenizer.from_merges(
    BYTES | {97: b"b", 98: b"a", 256: b"ab"}, [(b"a", b"b")], pattern=None
)


@pytest.fixture(scope="module")
def trained(data) -> byteweld.Tokenizer:
    texts = [(data / name).read_bytes() for name in ("prose.txt", "code.txt")]
    return byteweld.train(iter(texts), vocab_size=600)


def plain_spans(tokenizers, text):
    """Find every segment between common boundaries in a loop: (start, end, kind or None)."""
    lanes = [tok.encode_with_offsets(text) for tok in tokenizers]
    common = sorted(set.intersection(*({end for _, end in offsets} for _, offsets in lanes)))
    found, start = [], 0
    for end in common:
        cuts, ids = [], []
        for token_ids, offsets in lanes:
            inside = [n for n, (a, b) in enumerate(offsets) if start <= a and b <= end]
            cuts.append([offsets[n] for n in inside])
            ids.append([token_ids[n] for n in inside])
        cut, other_ids = (any(own != lane[0] for own in lane) for lane in (cuts, ids))
        kind = "cut" if cut else "ids" if other_ids else None
        found.append((start, end, kind))
        start = end
    return found


@given(st.lists(st.text("abc ", max_size=12).map(str.encode), max_size=6))
def test_spans_equal_those_of_a_plain_loop(documents):
    pairs = [(AB, BC), (AB, PLAIN), (AB, AB), (AB, SWAPPED), (SWAPPED, BC)]
    for tokenizers in [*pairs, (AB, AB, SWAPPED), (AB, SWAPPED, BC), (PLAIN, AB, AB, BC)]:
        found = compare_files(tokenizers, [("f", documents)], max_differences=1000)
        spans = [
            (number, *span)
            for number, document in enumerate(documents, 1)
            for span in plain_spans(tokenizers, document)
        ]
        for kind, number, size in (
            ("cut", found.spans.cut, found.spans.cut_bytes),
            ("ids", found.spans.ids, found.spans.ids_bytes),
        ):
            own = [span for span in spans if span[3] == kind]
            assert number == len(own)
            assert size == sum(end - start for _, start, end, _ in own)
        assert found.spans.total == len(spans)
        differing = [d for d in documents if len({(*tok.encode(d),) for tok in tokenizers}) > 1]
        assert found.total.differing_documents == len(differing)
        assert found.is_identical == (not differing)
        kind = "cut" if found.spans.cut else "ids"
        if kind == "cut":
            assert [(d.document, d.start, d.end, d.kind) for d in found.differences] == [
                span for span in spans if span[3] == kind
            ]


def test_a_difference_holds_its_context_and_both_sides(trained):
    found = compare_files([AB, BC], [("a.txt", [b"xx", "é abc ü".encode()])])
    [difference] = found.differences
    assert difference == (
        "a.txt", 2, 3, 6, "cut", "é ".encode(), " ü".encode(),
        (((256, 99), (b"ab", b"c")), ((97, 256), (b"a", b"bc"))), True,
    )  # fmt: skip


def test_without_different_cuts_the_differences_are_those_of_ids():
    found = compare_files([AB, SWAPPED], [("a.txt", [b"ab a"])])
    assert not found.is_identical
    assert (found.spans.cut, found.spans.ids, found.spans.ids_bytes) == (0, 1, 1)
    [difference] = found.differences
    assert (difference.kind, difference.start, difference.lanes[0].ids) == ("ids", 3, (97,))
    assert difference.lanes[1].ids == (98,)
    assert "the first 1 of 1 tokens with different ids" in str(found)


def test_only_the_first_differences_are_kept_and_all_are_counted():
    found = compare_files([AB, BC], [("a", [b"abc " * 50]), ("b", [b"abc"])], max_differences=3)
    assert [d.start for d in found.differences] == [0, 4, 8]
    assert found.spans.cut == 51
    assert compare_files([AB, BC], [("a", [b"abc"])], max_differences=0).differences == ()


def test_three_tokenizers_are_ranked_and_compared_with_the_first(trained, files):
    middle, small = trained.cut(400), trained.cut(300)
    found = compare_files([middle, trained, small], files, names=("m", "t", "s"))
    tokens = found.total.tokens
    assert found.winner == 1 and tokens[1] < tokens[0] < tokens[2]
    shares = [f"{100 * (1 - tokens[1] / more):.1f}% fewer" for more in (tokens[0], tokens[2])]
    assert found.lines()[0].startswith(f"t needs {shares[0]} tokens than m and {shares[1]} than s:")
    assert found.to_dict()["fewer_tokens"]["share"] == 1 - tokens[1] / tokens[0]
    assert f"{100 * (tokens[2] / tokens[0] - 1):+.1f}%" in str(found)
    best_of_two = compare_files([small, trained, trained], files, names=("s", "t", "u"))
    assert best_of_two.winner is best_of_two.to_dict()["fewer_tokens"] is None
    assert best_of_two.lines()[0].startswith("t and u need ")
    for wrong in ([trained], [trained] * 27):
        with pytest.raises(ValueError, match=r"found \d+ tokenizers?; expected 2 to 26"):
            compare_files(wrong, files)


def test_a_long_span_is_truncated():
    long = {256: b"a" * 2000}
    whole = byteweld.Tokenizer.from_ranks(
        {bytes([b]): b for b in range(256)} | {b"a" * n: 254 + n for n in range(2, 2001)},
        pattern="gpt2",
        special_tokens={},
    )
    assert len(whole.encode(long[256])) < 2000
    found = compare_files([whole, PLAIN], [("a", [long[256]])])
    [difference] = found.differences
    assert (difference.start, difference.end, difference.is_whole) == (0, 2000, False)
    assert len(difference.lanes[1].ids) == corpora._MAX_SHOWN_BYTES
    assert "…" in str(found)
    json.dumps(found.to_dict())


def test_rates_by_file_and_script_equal_those_of_an_evaluation(trained, files):
    smaller = trained.cut(300)
    found = compare_files([trained, smaller], files)
    for lane, tok in enumerate((trained, smaller)):
        alone = evaluate_files(tok, files)
        assert found.scripts[lane] == alone.scripts
        for file, rate in zip(found.files, alone.files, strict=True):
            assert (file.name, file.bytes, file.tokens[lane]) == (
                rate.name,
                rate.bytes,
                rate.tokens,
            )
            assert file.bytes_per_token[lane] == rate.bytes_per_token


def test_the_json_report_is_complete(trained, files):
    found = compare_files([trained, trained.cut(300)], files, names=("big", "small"))
    report = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert report["identical"] is False
    assert [side["name"] for side in report["tokenizers"]] == ["big", "small"]
    assert report["tokenizers"][0]["fingerprint"] == trained.vocab.fingerprint
    assert report["total"]["tokens"] == list(found.total.tokens)
    assert report["spans"]["cut_differently"] == found.spans.cut
    first = report["differences"][0]
    sides = [b"".join(bytes.fromhex(t["bytes"]) for t in side) for side in first["tokens"]]
    assert sides[0] == sides[1] and len(sides[0]) == first["end"] - first["start"]


def test_special_tokens_are_special_unless_told_otherwise():
    special = byteweld.Tokenizer.from_merges(BYTES, [], special_tokens=["<s>"])
    files = [("a.txt", [b"a<s>"])]
    found = compare_files([PLAIN, special], files)
    assert not found.is_identical and found.special_tokens == (0, 1)
    assert "  special tokens in the text, each one id: A 0, B 1" in found.lines()
    with pytest.raises(byteweld.SpecialTokenError, match=r"^a\.txt: "):
        compare_files([PLAIN, special], files, allowed_special=())
    assert not byteweld.compare(PLAIN, special, documents=files[0][1]).is_identical
    plain = compare_files([PLAIN, special], files, disallowed_special=())
    assert plain.is_identical and "special" not in str(plain)


def test_context_consists_of_whole_characters():
    text = ("é" * 30 + "abc" + "ü" * 30).encode()
    [difference] = compare_files([AB, BC], [("a", [b"x" + text])]).differences
    assert difference.before.decode() == "é" * 20
    assert difference.after.decode() == "ü" * 20
    for cut in range(60, 64):
        shifted = b"x" * (cut % 2) + text
        [difference] = compare_files([AB, BC], [("a", [shifted])]).differences
        difference.before.decode()
        difference.after.decode()


def test_the_public_functions_accept_the_sources_of_train(tmp_path, trained):
    (tmp_path / "a.txt").write_text("low lower")
    (tmp_path / "b.jsonl").write_text('{"text": "lowest"}\n{"text": "new"}\n')
    by_paths = byteweld.compare(trained, PLAIN, str(tmp_path))
    assert [file.documents for file in by_paths.files] == [1, 2]
    in_memory = byteweld.compare(trained, PLAIN, iter(["low lower", b"lowest", "new"]))
    assert in_memory.total.tokens == by_paths.total.tokens
    assert in_memory.files[0].name == "documents"
    measured = byteweld.evaluate(trained, [str(tmp_path / "a.txt")])
    assert measured.total.bytes == 9
    several = byteweld.compare(trained, PLAIN, trained.cut(300), str(tmp_path))
    assert several.total.tokens[:2] == by_paths.total.tokens
    assert len(several.total.tokens) == 3
    trained.save(tmp_path / "t.json")
    with pytest.raises(byteweld.CorpusError, match=r"t\.json: this is a tokenizer \(format huggin"):
        byteweld.compare(trained, PLAIN, [tmp_path / "t.json", tmp_path / "a.txt"])
    with pytest.raises(TypeError, match="given twice"):
        byteweld.compare(trained, PLAIN, str(tmp_path), corpus=str(tmp_path))
    counts = byteweld.Counts({b"a": 1})
    with pytest.raises(TypeError, match="counts have no documents"):
        byteweld.evaluate(trained, counts)
    with pytest.raises(TypeError, match="counts have no documents"):
        byteweld.compare(trained, PLAIN, counts)
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        byteweld.compare(trained, PLAIN, str(tmp_path / "nowhere"))
