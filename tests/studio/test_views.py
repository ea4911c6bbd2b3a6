"""The views' answers match the tokenizer exactly, for every byte, and work is bounded."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

import byteweld
from byteweld.evaluation import unreachable
from byteweld.samples import SENTENCES
from byteweld.studio.examples import CORPORA, FILES, SURPRISING_WORDS, TEXTS
from byteweld.studio.request import Refused, Request
from byteweld.studio.session import GivenCorpus, Session
from byteweld.studio.views import training, why
from byteweld.studio.views.tokens import answer as tokens_view
from byteweld.studio.views.tokens import packed

SPECIAL = "<|endoftext|>"
BYTES = {byte: bytes([byte]) for byte in range(256)}
HARD = ["", "a", "\x00\x7f\u0080", "<script>x</script>", "\u202eabc\u202c", "🙂👩‍🚀", "\ud800x"]
HARD += ["".join(map(chr, range(256)))]


def merges(answer: dict[str, Any], key: str = "merges") -> tuple[tuple[int, ...], ...]:
    """What was learned, as the engine's merges."""
    steps = answer[key] if key == "merges" else [step["merge"] for step in answer[key]]
    return tuple((step["left"], step["right"], step["new"]) for step in steps)


def engines(documents: Any, recipe: str, count: int) -> byteweld.Tokenizer:
    """The engine's training of `count` merges."""
    size = byteweld.RECIPES[recipe].minimum_size + count
    return byteweld.train(documents, vocab_size=size, recipe=recipe)


def refusal(post: Any, path: str, **fields: object) -> tuple[int, str]:
    response = post(f"/api/{path}", fields)
    return response.status, response.json["error"]


def numbers(packed: dict[str, Any]) -> list[int]:
    return np.frombuffer(base64.b64decode(packed["data"]), f"<u{packed['width']}").tolist()


# ---------------------------------------------------------------------------- start


def test_start_lists_the_open_tokenizers(ask, trained):
    start = ask("start")
    small, ck = start["tokenizers"]
    assert small["name"] == "small"
    assert small["tokens"] == len(trained)
    assert small["pattern"] == "o200k"
    assert small["fingerprint"] == trained.vocab.fingerprint
    assert small["has_training"]
    assert ck["pattern"] == "gpt2"
    assert len(start["sentences"]) >= 20
    assert ["plain", "plain: no pattern, ties go to the smallest bytes"] in start["recipes"]


# ---------------------------------------------------------------------------- how it works


def test_how_shows_every_phase_of_cks_training(ask):
    a, b, space = 4 + ord("a"), 4 + ord("b"), 4 + ord(" ")
    answer = ask(
        "how", corpus="ab ab\nabab\n\naab", merges=2, min_frequency=1, workers=2, recipe="ck"
    )
    assert answer["files"] == [["line 1", 5], ["line 2", 4], ["line 4", 3]]
    assert (answer["bytes"], answer["letters"], answer["size"]) == (12, 256, 262)
    assert answer["special_tokens"] == {"<|unk|>": 0, "<|bos|>": 1, "<|eos|>": 2, "<|pad|>": 3}
    assert answer["shards"] == [[0, 1], [1, 3]]
    assert bytes.fromhex(answer["first"]) == b"ab ab"
    assert answer["first_ids"] == [260, 261]
    assert answer["start"] == {
        "parts": [[a, b, space, a, b], [a, b, a, b], [a, a, b]],
        "lengths": [5, 4, 3],
        "total": 12,
    }
    first, second = answer["iterations"]
    assert first["merge"] == {"left": a, "right": b, "new": 260, "pair_count": 5}
    assert first["local"] == [
        {"rows": [[a, b, 2], [space, a, 1], [b, space, 1]], "pairs": 3, "winner": 2},
        {"rows": [[a, b, 3], [a, a, 1], [b, a, 1]], "pairs": 3, "winner": 3},
    ]
    assert first["rows"] == [[a, b, 5], [space, a, 1], [a, a, 1], [b, space, 1], [b, a, 1]]
    assert (first["tied"], first["total_tied"], first["pairs"]) == ([], 0, 5)
    assert first["after"]["parts"] == [[260, space, 260], [260, 260], [a, 260]]
    assert second["merge"]["pair_count"] == 1
    assert (second["tied"], second["total_tied"]) == ([[a, 260]], 3)
    assert second["after"]["total"] == 6
    assert answer["stopped"] == "size"
    assert bytes.fromhex(answer["tokens"]["261"]) == b" ab"


def test_how_learns_what_the_engine_learns_from_files_in_order_of_their_names(ask):
    files = {"b.svg": "<path d='x'/>\n" * 3, "a.svg": "<path/>\n<path/>", "empty": ""}
    for recipe in ("ck", "ck-ascii"):
        answer = ask("how", files=files, merges=20, recipe=recipe, workers=7)
        tok = engines(iter([files["a.svg"], files["b.svg"]]), recipe, 20)
        assert merges(answer, "iterations") == tok.vocab.merge_ids
        assert answer["files"] == [["a.svg", 15], ["b.svg", 42]]
        assert answer["first_ids"] == tok.encode(files["a.svg"])


def test_the_example_files_show_what_their_notes_say(ask):
    learned = []
    for example in FILES:
        answer = ask("how", corpus=example.text, recipe=example.recipe, merges=example.merges)
        new = [str(step["merge"]["new"]) for step in answer["iterations"]]
        learned.append([bytes.fromhex(answer["tokens"][i]) for i in new])
    weather, low, drawings = learned
    assert weather[:3] == [b"he", b"the", b"ther"]
    assert low[:2] == [b"lo", b"low"]
    assert low.index(b"es") < low.index(b"est")
    assert b'<svg viewBox="0 0 24 24"><' in drawings
    assert answer["letters"] == 98


def test_three_ways_to_encode_differ_on_a_word_of_the_files(ask):
    answer = ask("match")
    assert (answer["text"], answer["words"]) == (" there", [b" there".hex()])
    tokens = {int(i): bytes.fromhex(token) for i, token in answer["tokens"].items()}
    longest = [b" the", b"r", b"e"]
    assert [tokens[i] for i in answer["hash"]["ids"]] == longest
    assert [tokens[i] for i in answer["trie"]["ids"]] == longest
    assert [tokens[i] for i in answer["bpe"]["ids"]] == [b" ", b"ther", b"e"]
    # " there", " ther", " the"; "re", "r"; "e"
    assert (answer["hash"]["probes"], answer["hash"]["hashed_bytes"]) == (6, 19)
    assert (answer["bpe"]["merges"], answer["differs"]) == (3, [0])
    nodes = answer["trie"]["nodes"]
    assert nodes[0] == [None, None, None]
    assert all(parent < n for n, (parent, _, _) in enumerate(nodes) if n)
    # Every step leads from the node before it, or from the root after a token was taken.
    before = 0
    for _, node, taken in answer["trie"]["steps"]:
        assert node is None or nodes[node][0] == before
        before = 0 if taken is not None else node


def test_abc_is_the_smallest_difference(ask):
    answer = ask("match", vocabulary="abc")
    assert (answer["trie"]["ids"], answer["bpe"]["ids"]) == ([257, 99], [97, 256])
    assert answer["trie"]["steps"][:3] == [[0, 1, None], [1, 5, None], [2, None, 257]]


def test_a_text_is_matched_as_the_engine_encodes_it(ask):
    tok = byteweld.train(iter(["low lower lowest"]), vocab_size=266, recipe="ck")
    for text in ("low\nlowest na\u00efve \U0001f642", "\x00\u202e", "x"):
        answer = ask("match", corpus="low lower lowest", merges=6, text=text)
        assert answer["bpe"]["ids"] == tok.encode(text)
        assert b"".join(map(bytes.fromhex, answer["pretokens"])) == text.encode()
    assert ask("match", corpus="\n", text="")["bpe"]["ids"] == []


def test_an_empty_text_has_nothing_to_learn(ask):
    for corpus in ("", "\n\n"):
        answer = ask("how", corpus=corpus, workers=2)
        assert (answer["files"], answer["iterations"], answer["first_ids"]) == ([], [], [])
        assert (answer["stopped"], answer["size"]) == ("no pairs", 260)


@pytest.mark.parametrize(
    ("path", "fields", "status", "words"),
    [
        ("how", {"corpus": "x" * 20_001}, 413, "corpus has more than 20,000 bytes; use a part"),
        ("how", {"files": {"a": "x" * 15_000, "b": "x" * 15_000}}, 413, "30,000 bytes; at most 20"),
        ("how", {"corpus": "x" * 20_000, "merges": 200}, 413, "use fewer bytes, or 50 merges"),
        *(("how", {field: n}, 400, field) for field, n in (("merges", 201), ("workers", 0))),
        *(("how", {field: n}, 400, field) for field, n in (("workers", 9), ("min_frequency", 0))),
        ("how", {"recipe": "modern"}, 400, ""),
        ("match", {"text": "x" * 121}, 413, ""),
        ("match", {"vocabulary": "other"}, 400, ""),
        (
            "match",
            {"recipe": "ck-ascii", "text": "na\u00efve"},
            400,
            "no token for \u00ef (U+00EF)",
        ),
        ("training", {"corpus": "x" * (1 << 20 | 1)}, 413, ""),
        ("training", {"corpus": "low", "merges": 501}, 400, ""),
        ("training", {"recipe": "no-such"}, 400, ""),
        (
            *("training", {"corpus": "low\n\nna\u00efve", "recipe": "ck-ascii"}, 400),
            "recipe ck-ascii has no token for ï (U+00EF) in line 3, only for tab, newline, return "
            "and printable ASCII; remove it, or use recipe ck",
        ),
        ("training", {"corpus": "a\x00", "recipe": "ck-ascii"}, 400, "\\x00 (U+0000) in line 1"),
        ("why", {"text": "a" * 5000}, 413, "5,000 bytes"),
        ("open", {"name": "../../etc/passwd"}, 400, ""),
        ("open", {"name": "no-such"}, 400, ""),
        ("vocabulary", {"query": "xyz", "by": "bytes"}, 400, "'xyz' is not hex; expected bytes"),
        ("vocabulary", {"query": "(", "by": "regex"}, 400, ""),
        ("vocabulary", {"query": "one", "by": "id"}, 400, ""),
        ("vocabulary", {"sort": "size"}, 400, ""),
        ("vocabulary", {"rows": 501}, 400, ""),
        ("token", {"id": 4000}, 404, ""),
        ("token", {"id": -1}, 400, ""),
        *(("compare", {"tokenizers": t, "text": "low"}, 400, "") for t in ([], [0] * 5, [2])),
        ("bytes", {"counts": [1] * 255}, 400, "counts has 255 numbers; expected 256"),
        *(("bytes", {"counts": wrong}, 400, "") for wrong in ([0] * 257, [-1] * 256, "1", None)),
        *(("bytes", {"counts": wrong}, 400, "") for wrong in ([2**60] * 256, ["1"] * 256)),
    ],
)
def test_what_is_wrong_or_too_much_is_refused_and_says_why(post, path, fields, status, words):
    found, said = refusal(post, path, **fields)
    assert found == status and words in said


def test_a_token_of_thousands_of_bytes_is_shown_in_parts(ask):
    answer = ask("how", corpus="a" * 8000, merges=12)
    assert len(answer["iterations"]) == 12
    assert len(answer["iterations"][0]["after"]["parts"][0]) == 48
    assert answer["iterations"][0]["after"]["lengths"] == [4000]


# ---------------------------------------------------------------------------- tokens


def test_tokens_match_the_tokenizer_and_tile_the_text(ask, trained):
    for text in [*HARD, *(example.text for example in TEXTS)]:
        answer = ask("tokens", text=text)
        ids, offsets = trained.encode_with_offsets(text, allowed_special="all")
        assert numbers(answer["ids"]) == ids
        assert numbers(answer["lengths"]) == [end - start for start, end in offsets]
        assert answer["characters"] == len(text)


@pytest.mark.parametrize(
    ("largest", "width"), [(0, 1), (255, 1), (256, 2), (65_535, 2), (65_536, 4), (2**32 - 1, 4)]
)
def test_numbers_are_packed_in_as_few_bytes_as_the_largest_needs(largest, width):
    found = packed(np.array([7, largest], np.uint32))
    assert found["width"] == width
    assert numbers(found) == [7, largest]
    assert numbers(packed(np.array([], np.uint32))) == []


def test_a_special_token_is_marked_or_is_plain_text(ask, trained):
    text = f"low{SPECIAL}low"
    marked = ask("tokens", text=text)
    ids = numbers(marked["ids"])
    assert [ids[index] for index in marked["special"]] == [trained.eot_token]
    assert sum(numbers(marked["lengths"])) == len(text)
    plain = ask("tokens", text=text, special_text="text")
    assert plain["special"] == []
    assert numbers(plain["ids"]) == trained.encode_ordinary(text)


def test_a_megabyte_is_answered(ask, trained):
    text = ("the lowest tokenizer in the town\n" * 40_000)[: 1 << 20]
    assert len(numbers(ask("tokens", text=text)["ids"])) == trained.count(text)


@pytest.mark.parametrize(
    "options",
    [
        {"normalizer": ["nfc", "lowercase"]},
        {"steps": ["prefix-space"]},
        {"added_tokens": [byteweld.AddedToken("<x>", 256, rstrip=True)]},
    ],
)
def test_lengths_are_those_of_the_text_if_the_text_is_rewritten(options):
    tokens = dict(BYTES)
    if "added_tokens" in options:
        tokens[256] = b"<x>"
    tok = byteweld.Tokenizer(byteweld.Vocabulary(tokens, **options))
    text = "Ne\u0301 <x>  X"
    found = tokens_view(Session([("odd", tok)]), Request({"text": text}))
    ids, offsets = tok.encode_with_offsets(text, allowed_special="all")
    assert numbers(found["ids"]) == ids
    assert numbers(found["lengths"]) == [end - start for start, end in offsets]


# ---------------------------------------------------------------------------- why


def test_why_explains_the_pretoken_at_an_offset(ask, trained):
    text = "the lowest tokenizer"
    answer = ask("why", text=text, at=5)
    assert bytes.fromhex(answer["word"]) == b" lowest"
    assert answer["start"] == 3
    assert answer["ids"] == trained.encode(" lowest")
    assert answer["pretokens"][0]["steps"][-1]["parts"] == answer["ids"]


def test_why_finds_offsets_between_special_tokens(ask, trained):
    text = f"the{SPECIAL} lowest{SPECIAL}token"
    special = ask("why", text=text, at=4)
    assert special["ids"] == [trained.eot_token]
    assert special["pretokens"][0]["is_special"]
    assert bytes.fromhex(ask("why", text=text, at=17)["word"]) == b" lowest"
    last = ask("why", text=text, at=len(text) - 1)
    assert (bytes.fromhex(last["word"]), last["start"]) == (b"token", len(text) - 5)


def test_why_opens_on_a_word_that_greedy_would_cut_differently():
    tokens = BYTES | {256: b"en", 257: b"ke", 258: b"oke"}
    merges = [(b"e", b"n"), (b"k", b"e"), (b"o", b"ke")]
    tok = byteweld.Tokenizer.from_merges(tokens, merges)
    word = why.surprising_word(tok)
    explained = byteweld.explain(tok, word).pretokens[0]
    assert word in SURPRISING_WORDS
    assert explained.greedy_differs_at is not None


def test_why_accepts_an_empty_text_and_an_offset_beyond_the_end(ask):
    assert ask("why", text="low", at=900)["word"] == b"low".hex()
    assert ask("why", text="")["pretokens"] == []


def test_all_pre_tokens_of_a_text_are_listed_in_linear_time(ask, trained):
    text = f"the lowest{SPECIAL} tokenizer\n" * 3
    answer = ask("pretokens", text=text)
    assert numbers(answer["lengths"]) == [3, 7, len(SPECIAL), 10, 1] * 3
    assert answer["special"] == [2, 7, 12]
    assert (answer["text"], answer["bytes"]) == (None, None)
    plain = ask("pretokens", text=text, special_text="text")
    assert plain["special"] == []
    assert sum(numbers(plain["lengths"])) == len(text)
    assert numbers(ask("pretokens", text="")["lengths"]) == []
    assert len(numbers(ask("pretokens", text="a " * (1 << 19))["lengths"])) == (1 << 19) + 1


def test_without_text_the_pre_tokens_are_those_of_a_surprising_word(ask):
    answer = ask("pretokens")
    assert answer["text"] in SURPRISING_WORDS
    assert sum(numbers(answer["lengths"])) == len(answer["text"])


def test_pre_tokens_that_a_normalizer_changes_are_sent_as_they_are():
    vocab = byteweld.Vocabulary(BYTES, steps=[byteweld.Split(" ", "removed")])
    session = Session([("split", byteweld.Tokenizer(vocab))])
    answer = why.pretokens(session, Request({"text": "a bc"}))
    assert (numbers(answer["lengths"]), answer["bytes"]) == ([1, 2], b"abc".hex())


def _explained_ids(tok: byteweld.Tokenizer, text: str, *, special: bool) -> list[int]:
    """Return the ids of every pre-token that Why lists, in order."""
    session = Session([("one", tok)])
    given = {"text": text, "special_text": "special" if special else "text"}
    found: list[int] = []
    start = 0
    for length in numbers(why.pretokens(session, Request(given))["lengths"]):
        answer = why.answer(session, Request({**given, "at": start}))
        assert (answer["start"], len(answer["pretokens"])) == (start, 1)
        found += answer["ids"]
        start += length
    return found


@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize(
    "steps", [[], ["prefix-space"], ["prefix-space", byteweld.Split("[a-z]+")]], ids=len
)
def test_every_pre_token_has_the_ids_that_it_has_in_the_text(steps, special):
    tokens = BYTES | {256: b" a", 257: b"ab", 258: b"  ", 259: b"<end>", 260: b"<mask>", 261: b"xx"}
    vocab = byteweld.Vocabulary(
        tokens,
        [(32, 97, 256), (97, 98, 257), (120, 120, 261)],
        steps=steps,
        added_tokens=[
            byteweld.AddedToken("  ", 258, special=False),
            byteweld.AddedToken("<end>", 259),
            byteweld.AddedToken("<mask>", 260, special=False, lstrip=True),
        ],
    )
    tok = byteweld.Tokenizer(vocab)
    text = "ab (ab)  xx <mask>ab<end>ab xxx  "
    options = {"allowed_special": "all"} if special else {"disallowed_special": ()}
    assert _explained_ids(tok, text, special=special) == tok.encode(text, **options)


# ---------------------------------------------------------------------------- vocabulary


def test_the_vocabulary_is_searched_by_text_bytes_id_and_regex(ask, trained):
    tokens = trained.vocab.tokens

    def found(**fields: object) -> set[int]:
        answer = ask("vocabulary", rows=500, **fields)
        assert answer["total"] == len(answer["rows"])
        return {row["id"] for row in answer["rows"]}

    assert found() == set(tokens)
    assert found(query="est") == {i for i, t in tokens.items() if b"est" in t}
    assert found(query="·low") == {i for i, t in tokens.items() if b" low" in t}
    assert found(query="65 73", by="bytes") == {i for i, t in tokens.items() if b"es" in t}
    assert found(query="300-303", by="id") == {300, 301, 302, 303}
    assert found(query="0-2", by="rank") == {m.new for m in trained.vocab.merge_ids[:3]}
    assert found(query="^ ?low", by="regex") == {
        i for i, t in tokens.items() if t.startswith((b"low", b" low"))
    }


def test_a_regex_with_catastrophic_backtracking_is_answered_or_refused(post):
    for query in ("(a+)+$", "(a|a)*b", r"(.*)*\1x"):
        assert post("/api/vocabulary", {"query": query, "by": "regex"}).status in (200, 400)


def test_tokens_are_sorted_and_filtered(ask, trained):
    longest = ask("vocabulary", sort="length", descending=True, rows=5)["rows"]
    lengths = sorted(map(len, trained.vocab.tokens.values()), reverse=True)
    assert [row["length"] for row in longest] == lengths[:5]
    assert {row["id"] for row in ask("vocabulary", only="special")["rows"]} == {trained.eot_token}
    assert ask("vocabulary", only="bytes")["total"] == 256
    assert ask("vocabulary", min_bytes=2, max_bytes=2)["lengths"][0][0] == 2
    latin = ask("vocabulary", script="latin", rows=500)
    assert {row["script"] for row in latin["rows"]} == {"latin"}


def test_unreachable_tokens_are_found_with_a_reason(ask, without_pattern):
    never = ask("vocabulary", tokenizer=1, only="unreachable", rows=500)
    partial = ask("vocabulary", tokenizer=1, only="partial", rows=500)
    ids = [row["id"] for row in never["rows"] + partial["rows"]]
    assert sorted(ids) == list(unreachable(without_pattern))
    assert (never["unreachable"], never["partial"]) == (never["total"], partial["total"])
    assert "cut" in {row["unreachable"] for row in never["rows"]}
    assert "part" not in {row["unreachable"] for row in never["rows"]}
    assert {row["unreachable"] for row in partial["rows"]} <= {"part"}


def test_a_tokens_details_have_its_merges_and_the_tokens_that_contain_it(ask, trained):
    low = trained.vocab.ids[b" low"]
    page = ask("token", id=low)
    merges = trained.vocab.merge_ids
    assert page["makes"] == [
        [r, *m, trained.training.merge_counts[r]] for r, m in enumerate(merges) if m.new == low
    ]
    assert page["total_left"] == sum(merge.left == low for merge in merges)
    assert page["rank"] == page["makes"][0][0]
    assert (
        page["total_inside"] == sum(b" low" in token for token in trained.vocab.tokens.values()) - 1
    )
    assert page["alone"] == [low]
    assert page["unreachable"] is None
    assert page["tree"]["nodes"][page["tree"]["roots"][0]][0] == low


def test_an_unreachable_tokens_details_say_what_its_bytes_become(ask, without_pattern):
    token_id = next(iter(unreachable(without_pattern)))
    page = ask("token", tokenizer=1, id=token_id)
    assert page["unreachable"] is not None
    assert page["alone"] == without_pattern.encode_ordinary(without_pattern.vocab.tokens[token_id])


def test_every_token_has_details(ask, without_pattern):
    for token_id in without_pattern.vocab.tokens:
        assert ask("token", tokenizer=1, id=token_id)["id"] == token_id


# ---------------------------------------------------------------------------- training


def test_the_example_trainings_show_what_their_notes_say(ask):
    by_name = {}
    for corpus in CORPORA:
        answer = ask("training", corpus=corpus.text, recipe=corpus.recipe, merges=corpus.merges)
        tokens = {int(i): bytes.fromhex(token["bytes"]) for i, token in answer["tokens"].items()}
        by_name[corpus.name] = (answer, [tokens[merge["new"]] for merge in answer["merges"]])
        assert len(answer["steps"]) == corpus.merges, corpus.name
    low, merged = by_name["low, newest, widest"]
    assert low["steps"][0]["total_tied"] > 0
    assert merged.index(b"est") < merged.index(b"low")
    _, merged = by_name["I work, he works"]
    assert merged[:4] == [b" w", b" wo", b" wor", b" work"]
    _, merged = by_name["Who eats?"]
    assert b" eat" in merged and b"eat" not in merged
    _, merged = by_name["A drawing"]
    assert b'<path d="M' in merged or b'<path d="' in merged
    _, merged = by_name["A short tale"]
    assert b" the" in merged[:8]


def test_a_training_shrinks_the_corpus(ask):
    corpus = "low low lower newest"
    answer = ask("training", corpus=corpus, recipe="from-scratch", merges=6)
    after = answer["tokens_after"]
    assert after[0] == answer["total_bytes"] == len(corpus)
    assert after[-1] == engines(iter([corpus]), "from-scratch", 6).training.total_tokens
    assert after == sorted(after, reverse=True)


@pytest.mark.parametrize("recipe", byteweld.RECIPES)
def test_every_recipe_is_offered_and_trains_as_the_engine_does(ask, recipe):
    assert recipe in dict(ask("start")["recipes"])
    corpus = ["low low lower", "newest newest", "the widest"]
    answer = ask("training", corpus="\n".join(corpus), recipe=recipe, merges=5)
    assert merges(answer) == engines(iter(corpus), recipe, 5).vocab.merge_ids
    assert len(merges(answer)) == 5


def test_a_long_pre_token_is_shown_in_parts_for_every_merge(ask):
    han = "".join(map(chr, range(0x4E00, 0x4E00 + 8000)))  # 24 kB
    answer = ask("training", corpus=han, merges=500, recipe="plain")
    assert len(answer["steps"]) == 500
    used = {i for step in answer["steps"] for i in step["example"]["before"]}
    assert used <= {int(i) for i in answer["tokens"]}
    naive = ask("training", corpus="na\u00efve", recipe="ck", merges=1)
    assert naive["stopped"] == "min frequency"


def test_a_given_corpus_is_counted_once_per_recipe_and_trains_as_the_engine_does(tmp_path):
    for number, text in enumerate(["low low lower", "newest newest", "the widest"]):
        (tmp_path / f"{number}.txt").write_text(text)
    counted = []

    def count(recipe: byteweld.Recipe) -> byteweld.Counts:
        counted.append(recipe.name)
        return byteweld.count(tmp_path, recipe=recipe)

    session = Session([], corpus=GivenCorpus("books", count))
    for recipe in ["ck", "modern", "ck"]:
        fields = Request({"source": "given", "recipe": recipe, "merges": 4})
        answer = training.answer(session, fields)
        assert merges(answer) == engines(tmp_path, recipe, 4).vocab.merge_ids
        assert answer["total_bytes"] == 36
    assert counted == ["ck", "modern"]


def test_a_given_corpus_that_is_missing_or_fails_is_refused_with_the_reason(tmp_path):
    with pytest.raises(Refused, match="started without --corpus"):
        training.answer(Session([]), Request({"source": "given"}))

    def count(recipe: byteweld.Recipe) -> byteweld.Counts:
        return byteweld.count(tmp_path / "gone.txt", recipe=recipe)

    session = Session([], corpus=GivenCorpus("gone.txt", count))
    with pytest.raises(Refused, match=r"gone\.txt: no such file"):
        training.answer(session, Request({"source": "given"}))


def test_an_empty_corpus_has_nothing_to_learn(ask):
    answer = ask("training", corpus="\n\n", merges=5)
    assert (answer["steps"], answer["stopped"]) == ([], "no pairs")


def test_the_log_has_counts_and_a_curve_if_the_training_is_known(ask, trained):
    log = ask("log", rows=10, first=5)
    assert log["total"] == len(trained.vocab.merge_ids)
    assert [row[0] for row in log["rows"]] == list(range(5, 15))
    assert log["rows"][0][4] == trained.training.merge_counts[5]
    merges, tokens, rate = log["training"]["curve"][-1]
    assert (merges, tokens) == (len(trained.vocab.merge_ids), trained.training.total_tokens)
    assert rate == trained.training.bytes_per_token


# ---------------------------------------------------------------------------- compare


def test_segments_are_the_text_cut_at_common_boundaries(ask, trained, without_pattern):
    text = "the lowest tokenizer in the newest town"
    answer = ask("compare", tokenizers=[0, 1], text=text)
    assert answer["counts"] == [trained.count(text), without_pattern.count(text)]
    assert sum(segment[0] for segment in answer["segments"]) == len(text)
    for size, agrees, ids, lengths in answer["segments"]:
        assert [sum(lane) for lane in lengths] == [size, size]
        assert agrees == (len(ids[0]) == len(ids[1]) == 1)
    assert [i for segment in answer["segments"] for i in segment[2][0]] == trained.encode(text)
    assert answer["differing"] == sum(not segment[1] for segment in answer["segments"])


def test_a_tokenizer_agrees_with_itself(ask):
    answer = ask("compare", tokenizers=[0, 0], text="the lowest tokenizer")
    assert (answer["differing"], answer["most"]) == (0, [])


def test_up_to_four_tokenizers_are_compared(post):
    for indices in ([0], [0, 1, 0, 1]):
        assert post("/api/compare", {"tokenizers": indices, "text": "low"}).status == 200


def test_languages_cost_what_the_tokenizer_says(ask, trained):
    answer = ask("languages", tokenizers=[0])
    assert answer["names"] == list(SENTENCES)
    assert answer["tokens"] == [[trained.count(text) for text in SENTENCES.values()]]
    marked = {"a.txt": "low<|endoftext|>"}
    for policy, more in (
        ("special", {"allowed_special": "all"}),
        ("text", {"disallowed_special": ()}),
    ):
        found = ask("languages", tokenizers=[0], files=marked, special_text=policy)
        assert found["tokens"] == [[trained.count(marked["a.txt"], **more)]]
    assert ask("languages", tokenizers=[0], files=marked)["tokens"] == [[trained.count("low") + 1]]
    mine = ask("languages", tokenizers=[0], files={"a.txt": "low", "b.txt": ""})
    assert mine["tokens"] == [[trained.count("low"), 0]]


# ---------------------------------------------------------------------------- bytes


def test_bytes_are_counted_in_text_and_in_files(ask):
    answer = ask("bytes", text="aé\n")
    assert answer["bytes"] == 4
    assert [b for b, count in enumerate(answer["counts"]) if count] == [0x0A, 0x61, 0xA9, 0xC3]
    assert answer["outside"] == 2
    assert answer["letters"][0x20] == "Ġ"
    assert (answer["base_full"], answer["base_ascii"]) == (260, 102)


def test_counts_of_files_are_of_any_size(ask, post):
    counts = [0] * 256
    counts[ord("a")], counts[0xFF] = 5_000_000_000, 7
    answer = ask("bytes", counts=counts)
    assert (answer["bytes"], answer["outside"]) == (5_000_000_007, 7)
    assert answer["counts"] == counts
