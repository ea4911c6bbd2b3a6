"""Training: sizes, stop reasons, progress, and the fields of a recipe with their errors."""

from __future__ import annotations

import pytest

import byteweld
from byteweld import RECIPES, PatternError, Recipe, Training, TrainingEvent, UnsupportedError

DOCUMENT = " ".join(f"{a}{b}{c}" for a in "abcdefg" for b in "hijklmn" for c in "opqrstu")


def train(*documents, **options):
    defaults = {"recipe": "plain", "vocab_size": 300}
    return byteweld.train(iter(documents or ("ab ab ab cd",)), **(defaults | options))


# ---------------------------------------------------------------------- size


@pytest.mark.parametrize("name", RECIPES)
def test_the_smallest_size_gives_no_merges_and_one_below_is_refused(name):
    smallest = RECIPES[name].minimum_size
    tok = train(recipe=name, vocab_size=smallest)
    assert tok.vocab.merges == []
    assert tok.training.stop == "size"
    with pytest.raises(ValueError, match=str(smallest)):
        train(recipe=name, vocab_size=smallest - 1)


def test_the_error_for_a_small_size_lists_what_the_minimum_includes():
    with pytest.raises(ValueError, match=r"258.*at least 259.*256 bytes.*3 special tokens"):
        train(recipe="from-scratch", vocab_size=258, special_tokens=["x", "y", "z"])
    with pytest.raises(ValueError, match=r"^vocab_size must be >= 256, got 255$"):
        train(recipe="bpetite", vocab_size=255)


def test_the_size_is_checked_before_the_corpus_is_read():
    def documents():
        raise AssertionError("read")
        yield ""

    with pytest.raises(ValueError, match="vocab_size"):
        byteweld.train(documents(), vocab_size=3)


def test_a_size_far_beyond_the_corpus_is_allowed():
    tok = train(vocab_size=2**62)
    assert tok.training.stop == "no pairs"
    assert tok.training.merges_planned == 2**62 - 256


def test_the_recipe_decides_whether_special_tokens_count_in_the_size():
    assert len(train("abcd" * 9, recipe="modern", vocab_size=258, special_tokens=["<s>"])) == 258
    assert len(train("abcd" * 9, recipe="bpetite", vocab_size=258)) == 259


# ---------------------------------------------------------------------- the report


def test_training_says_why_it_stopped():
    assert train("abcab", vocab_size=257).training.stop == "size"
    assert train("abcab").training.stop == "no pairs"
    assert train("abcab", min_frequency=2).training.stop == "min frequency"
    assert train("").training.stop == "no pairs"


def test_training_says_what_it_learned():
    training = train("low low low low low", "lower lower").training
    assert isinstance(training, Training)
    assert training.merges_learned == len(training.merge_counts)
    assert training.merges_planned == 44
    assert training.total_pretokens == training.distinct_pretokens == 2
    assert training.vocab_size == 300
    assert training.count_seconds >= 0 and training.merge_seconds >= 0
    assert training.layout_seconds > 0
    assert list(training.merge_counts) == sorted(training.merge_counts, reverse=True)
    assert f"learned {training.merges_learned} of 44 merges" in str(training)


# ---------------------------------------------------------------------- progress


def test_progress_is_start_every_hundredth_merge_and_complete():
    events: list[TrainingEvent] = []
    tok = train(DOCUMENT, vocab_size=600, recipe="bpetite", progress=events.append)
    learned = tok.training.merges_learned
    assert learned > 200
    assert events[0] == TrainingEvent("start", 0, 344)
    assert events[-1] == TrainingEvent("complete", learned, 344)
    assert events[1:-1] == [TrainingEvent("merge", n, 344) for n in range(100, learned + 1, 100)]
    assert {(event.stage, event.total) for event in events} == {("merge", 344)}
    assert [event.done for event in events] == [event.merges_completed for event in events]


def test_progress_reports_a_training_without_merges():
    events: list[TrainingEvent] = []
    train("", progress=events.append)
    assert events == [TrainingEvent("start", 0, 44), TrainingEvent("complete", 0, 44)]


def test_an_exception_in_progress_propagates():
    def fail(event):
        if event.kind == "merge":
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        train(DOCUMENT, vocab_size=600, progress=fail)


# ---------------------------------------------------------------------- recipes


def test_an_unknown_recipe_is_an_error_with_a_suggestion():
    with pytest.raises(ValueError, match="did you mean 'from-scratch'"):
        train(recipe="from_scratch")


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("min_freq", "min_frequency"),
        ("special_token", "special_tokens"),
        ("max_token_byte", "max_token_bytes"),
        ("tiebreak", "tie_break"),
        ("patern", "pattern"),
    ],
)
def test_an_unknown_field_is_an_error_with_a_suggestion(wrong, near):
    with pytest.raises(TypeError, match=f"{wrong!r}.*did you mean '{near}'"):
        train(**{wrong: 1})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tie_break": "largest"}, "tie_break is 'largest'.*smallest-ids"),
        ({"special_ids": "middle"}, "special_ids is 'middle'.*first"),
        ({"alphabet": "utf8"}, "alphabet is 'utf8'.*bytes"),
        ({"min_frequency": -1}, "min_frequency is -1"),
        ({"max_token_bytes": 0}, "max_token_bytes is 0"),
        ({"special_tokens": ["a", "a"]}, "'a' is given twice"),
        ({"special_tokens": [""]}, "non-empty"),
        ({"special_tokens": ["<|bos|>"], "recipe": "ck"}, "given twice"),
    ],
    ids=str,
)
def test_an_invalid_value_is_an_error_that_names_the_field(change, words):
    with pytest.raises(ValueError, match=words):
        train(vocab_size=400, **change)


@pytest.mark.parametrize(
    "change",
    [
        {"special_tokens": "abc"},
        {"special_tokens": 5},
        {"min_frequency": "2"},
        {"min_frequency": 1.5},
        {"min_frequency": None},
        {"max_token_bytes": "2"},
        {"max_token_bytes": 1.5},
        {"pattern": 5},
        {"pattern": b"a+"},
        *({"vocab_size": size} for size in ("300", 300.0, None, True, [300])),
        *({"recipe": recipe} for recipe in (5, b"plain", ["plain"])),
    ],
    ids=str,
)
def test_a_value_of_another_type_is_a_type_error_that_names_the_field(change):
    with pytest.raises(TypeError, match=next(iter(change))):
        train(**change)


def test_limits_beyond_the_engines_integers_are_accepted():
    assert train(max_token_bytes=2**70).vocab == train().vocab
    assert train(min_frequency=2**70).vocab.merges == []


def test_recipes_with_fixed_special_tokens_accept_no_others():
    with pytest.raises(UnsupportedError, match="exactly one special token"):
        train(recipe="bpetite", special_tokens=["<s>"])
    with pytest.raises(UnsupportedError, match="no special tokens"):
        train(recipe="rustbpe", special_tokens=["<s>"])
    for name in ("bpetite", "rustbpe"):
        assert train(recipe=name, special_tokens=[]).vocab == train(recipe=name).vocab


def test_a_recipe_is_a_value():
    recipe = RECIPES["plain"].replace(min_frequency=2)
    assert recipe == RECIPES["plain"].replace(min_frequency=2) != RECIPES["plain"]
    assert train(recipe=recipe).vocab == train(min_frequency=2).vocab
    assert isinstance(recipe, Recipe)
    with pytest.raises(AttributeError):
        recipe.min_frequency = 3
    with pytest.raises(TypeError):
        RECIPES["new"] = recipe


def test_a_new_pattern_also_becomes_the_encode_pattern_unless_that_is_given():
    assert train(recipe="modern", pattern="gpt2").vocab.pattern == byteweld.PATTERNS["gpt2"]
    tok = train(recipe="modern", pattern=None, encode_pattern="gpt2")
    assert tok.vocab.pattern == byteweld.PATTERNS["gpt2"]
    assert train(recipe="ck").vocab.pattern == byteweld.PATTERNS["gpt2"]
    assert train(recipe="ck", encode_pattern="ck").vocab.pattern == byteweld.PATTERNS["ck"]


@pytest.mark.parametrize("field", ["pattern", "encode_pattern"])
def test_a_pattern_that_cannot_be_compiled_is_refused_before_the_corpus_is_read(field):
    def documents():
        raise AssertionError("read")
        yield ""

    with pytest.raises(PatternError):
        byteweld.train(documents(), vocab_size=300, **{field: "(a"})
    counts = byteweld.Counts({b"ab": 2}, pattern="(a")
    with pytest.raises(PatternError):
        byteweld.train(counts, vocab_size=300, **{"pattern": "(a", field: "(a"})


def test_a_misspelled_pattern_is_an_error_with_a_suggestion():
    with pytest.raises(PatternError, match="did you mean 'o200k'"):
        train(pattern="o200")


def test_a_special_token_that_would_share_an_id_in_hugging_face_is_refused():
    with pytest.raises(UnsupportedError, match="choose another"):
        train(recipe="huggingface", special_tokens=["a"], vocab_size=300)


# ---------------------------------------------------------------------- the rules


def test_min_frequency_and_max_token_bytes_are_respected():
    tok = train("abababab", "abab", "xyz xyz", min_frequency=2, max_token_bytes=4)
    assert min(tok.training.merge_counts) >= 2
    assert max(len(token) for _, token in tok.vocab.ordinary()) == 4
    assert train("abab", max_token_bytes=1).vocab.merges == []
    assert train("abab", max_token_bytes=1).training.stop == "no pairs"


def test_merges_do_not_cross_documents_pretokens_or_special_tokens():
    assert train("a", "b", "a", "b").vocab.merges == []
    assert train("ab", pattern="a|b").vocab.merges == []
    document = "a<s>b<s>" * 5
    assert train(document, special_tokens=["<s>"]).vocab.merges == []
    assert train(document, special_tokens=["<s>"], split_specials=False).vocab.merges


# ---------------------------------------------------------------------- cuts


def test_a_cut_needs_a_training_report_and_a_size_within_it():
    tok = train("abababab")
    with pytest.raises(ValueError, match="at most 300"):
        tok.cut(301)
    with pytest.raises(ValueError, match="at least 256"):
        tok.cut(255)
    with pytest.raises(TypeError, match="vocab_size"):
        tok.cut("257")
    with pytest.raises(UnsupportedError, match="trained"):
        byteweld.Tokenizer(tok.vocab).cut(257)
    assert tok.cut(257).vocab.merges == tok.vocab.merges[:1]
    assert tok.cut(300) == tok
    assert tok.cut(258).cut(257) == tok.cut(257)
    with pytest.raises(ValueError, match="at most 258"):
        tok.cut(258).cut(259)
