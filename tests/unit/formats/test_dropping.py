"""Dropping by name what a format cannot hold, and finding the names."""

from __future__ import annotations

from pathlib import Path

import pytest

from byteweld import formats
from byteweld.errors import UnsupportedError
from byteweld.formats import dropping
from byteweld.formats.dropping import DROPPABLE, drop, droppable, find_drops
from byteweld.vocab import AddedToken, Split, Vocabulary
from tests.helpers.vocabularies import BYTES, EXTRAS, holder

SPECIALS = {"<s>": 256, "</s>": 257}
TOKENS = BYTES | {256: b"<s>", 257: b"</s>", 258: b"ab"}
MERGES = [(97, 98, 258)]


@pytest.mark.parametrize("extra", [name for name in EXTRAS if name != "partial alphabet"])
def test_dropping_an_extra_removes_nothing_else(extra: str) -> None:
    vocab = EXTRAS[extra]
    dropped = drop(vocab, [extra.replace(" ", "-")])
    assert dropped.extras == ()
    assert set(dropped.ids) - {b""} == set(vocab.ids) - {b""}
    assert dropped.merge_ids == vocab.merge_ids


def test_a_partial_alphabet_cannot_be_dropped() -> None:
    vocab = EXTRAS["partial alphabet"]
    assert droppable(vocab) == []
    with pytest.raises(ValueError, match="cannot drop 'partial-alphabet'; expected one of"):
        drop(vocab, ["partial-alphabet"])
    assert find_drops(vocab, "a.bpe1") is None


def test_what_always_has_to_go_is_dropped_once(monkeypatch: pytest.MonkeyPatch) -> None:
    dropped: list[str] = []
    without = dropping._without
    monkeypatch.setattr(
        dropping, "_without", lambda vocab, name: (dropped.append(name), without(vocab, name))[1]
    )
    vocab = Vocabulary(BYTES, normalizer=["nfc"], pattern="gpt2", ignore_merges=True)
    assert find_drops(vocab, "a.bpe1") is None
    assert dropped.count("normalizer") == 1


def test_each_trait_can_be_dropped() -> None:
    vocab = Vocabulary(
        TOKENS,
        MERGES,
        special_tokens=SPECIALS,
        pattern="gpt2",
        roles={"eos": 257},
        template=((256,), ()),
        ignore_merges=True,
    )
    assert drop(vocab, ["pattern"]).pattern is None
    assert dict(drop(vocab, ["roles"]).roles) == {}
    assert drop(vocab, ["ignore-merges"]).ignore_merges is False
    assert drop(vocab, ["template"]).template == ((), ())
    bare = drop(vocab, ["special_tokens"])
    assert (dict(bare.roles), bare.template) == ({}, ((), ()))
    assert dict(bare.tokens) == BYTES | {258: b"ab"}
    assert drop(vocab, droppable(vocab)[:-2]).ignore_merges is True


def test_a_prefix_space_and_steps_are_dropped_separately() -> None:
    split = Split("[0-9]", "contiguous")
    vocab = Vocabulary(BYTES, steps=["prefix-space", split])
    assert drop(vocab, ["prefix-space"]).steps == (split,)
    assert drop(vocab, ["steps"]).steps == ("prefix-space",)
    only_pattern = drop(Vocabulary(BYTES, steps=["prefix-space", Split("a|b")]), ["prefix-space"])
    assert (only_pattern.pattern, only_pattern.steps) == ("a|b", ())


def test_added_tokens_become_plain_special_tokens() -> None:
    vocab = Vocabulary(TOKENS, MERGES, added_tokens=[AddedToken("<s>", 256, False, rstrip=True)])
    assert drop(vocab, ["added token flags"]).added_tokens == (AddedToken("<s>", 256),)


def test_a_shared_id_keeps_the_text_that_it_decodes_to() -> None:
    vocab = Vocabulary(BYTES | {256: b"<t>"}, special_tokens={"<s>": 256, "<t>": 256})
    assert dict(drop(vocab, ["shared ids"]).special_tokens) == {"<t>": 256}


def test_unknown_names_and_names_of_absent_things_are_errors() -> None:
    vocab = Vocabulary(BYTES, pattern="gpt2", normalizer=["nfc"])
    with pytest.raises(
        ValueError, match=r"'normaliser'; expected one of .*; did you mean 'normalizer'"
    ):
        drop(vocab, ["normaliser"])
    with pytest.raises(ValueError, match="does not have; it has normalizer, pattern"):
        drop(vocab, ["roles"])
    with pytest.raises(ValueError, match="it has nothing that can be dropped"):
        drop(Vocabulary(BYTES), ["roles"])


@pytest.mark.parametrize(
    ("vocab", "name", "drops"),
    [
        (Vocabulary(BYTES, normalizer=["nfc"]), "a.tiktoken", ("normalizer",)),
        (Vocabulary(BYTES | {256: b"ab", 257: b"<s>"}, [(97, 98, 256)], special_tokens={"<s>": 257}, pattern="gpt2"), "tekken.json", ("special tokens",)),  # noqa: E501
        (Vocabulary(holder("bpe1").tokens, special_tokens=holder("bpe1").special_tokens, roles=holder("bpe1").roles, pattern="gpt2", ignore_merges=True), "a.bpe1", ("ignore merges",)),  # noqa: E501
        (Vocabulary(BYTES), "a.bpe1", None),
        (holder("bpe1"), "a.bpe1", ()),
    ],
)  # fmt: skip
def test_what_to_drop_is_found(
    tmp_path: Path, vocab: Vocabulary, name: str, drops: tuple[str, ...] | None
) -> None:
    assert find_drops(vocab, tmp_path / name) == drops
    if drops:
        with pytest.raises(UnsupportedError):
            formats.check(vocab, tmp_path / name)
        formats.save(drop(vocab, drops), tmp_path / name)


def test_the_names_are_those_of_the_extras() -> None:
    own = {"pattern", "roles", "special tokens", "ignore merges"}
    assert set(DROPPABLE) == set(EXTRAS) - {"partial alphabet"} | own
