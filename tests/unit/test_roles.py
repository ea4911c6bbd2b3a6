"""Roles: which special tokens are bos, eos, pad and unk, from training to files and back."""

from __future__ import annotations

import json

import pytest

import byteweld

TEXT = "low lower lowest low lower low"
END = "<|endoftext|>"


def train(**options):
    return byteweld.train(documents=[TEXT], **{"vocab_size": 270} | options)


def test_a_role_adds_its_special_token():
    tok = train(eos=END)
    assert tok.vocab.roles == {"eos": tok.vocab.special_tokens[END]}
    assert tok.encode("low", add_eos=True)[-1] == tok.vocab.special_tokens[END]
    assert tok == train(special_tokens=[END], eos=END)


def test_special_tokens_come_before_those_that_only_roles_name():
    tok = train(special_tokens=["<|user|>", "<|pad|>"], bos="<|bos|>", eos=END, pad="<|pad|>")
    assert list(tok.vocab.special_tokens) == ["<|user|>", "<|pad|>", "<|bos|>", END]
    assert set(tok.vocab.roles) == {"bos", "eos", "pad"}
    both = tok.encode("low", add_bos=True, add_eos=True)
    assert (both[0], both[-1]) == (tok.vocab.roles["bos"], tok.vocab.roles["eos"])


@pytest.mark.parametrize("special_ids", ["first", "after_alphabet", "last"])
def test_one_token_may_have_several_roles(special_ids):
    tok = train(bos=END, eos=END, pad=END, special_ids=special_ids)
    assert set(tok.vocab.roles.values()) == {tok.vocab.special_tokens[END]}


def test_roles_change_no_id_and_no_fingerprint():
    plain = train(special_tokens=[END])
    tok = train(special_tokens=[END], eos=END)
    assert tok.vocab.fingerprint == plain.vocab.fingerprint
    assert tok.vocab != plain.vocab  # they add different ids with add_eos
    assert dict(tok.vocab.tokens) == dict(plain.vocab.tokens)


def test_a_recipe_keeps_its_own_roles_and_takes_others():
    assert set(train(recipe="ck").vocab.roles) == {"bos", "eos", "pad", "unk"}
    tok = train(recipe="ck", eos=END)
    assert tok.vocab.roles["eos"] == tok.vocab.special_tokens[END]
    assert tok.vocab.roles["bos"] == tok.vocab.special_tokens["<|bos|>"]
    bpetite = byteweld.train(documents=[TEXT], vocab_size=260, recipe="bpetite", eos=END)
    assert bpetite.vocab.roles == {"eos": bpetite.eot_token}


def test_recipes_without_special_tokens_of_the_users_refuse_a_new_one():
    with pytest.raises(byteweld.UnsupportedError, match="rustbpe"):
        train(recipe="rustbpe", eos=END)
    with pytest.raises(byteweld.UnsupportedError, match="bpetite"):
        train(recipe="bpetite", eos="<|other|>")


@pytest.mark.parametrize("wrong", ["", 7, b"x"])
def test_a_role_is_the_text_of_a_token(wrong):
    with pytest.raises(ValueError, match=r"eos is .*; it must be the text of a special token"):
        train(eos=wrong)


def test_roles_survive_a_cut_and_an_extension():
    tok = train(eos=END, vocab_size=275)
    cut = tok.cut(262)
    assert cut.vocab.roles == {"eos": cut.vocab.special_tokens[END]}
    assert cut == train(eos=END, vocab_size=262)
    longer = byteweld.train(documents=["newest " * 9], start=tok, vocab_size=280)
    assert longer.vocab.roles == tok.vocab.roles
    named = byteweld.train(documents=["newest " * 9], start=tok, vocab_size=280, pad=END)
    assert named.vocab.roles == {"eos": tok.vocab.roles["eos"], "pad": tok.vocab.roles["eos"]}
    with pytest.raises(ValueError, match="bos is '<s>', which is not a special token"):
        byteweld.train(documents=["newest"], start=tok, vocab_size=280, bos="<s>")


def test_roles_reach_the_files_that_transformers_reads(tmp_path):
    tok = train(eos=END, pad="<|pad|>")
    tok.save(tmp_path / "tokenizer.json")
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert (config["eos_token"], config["pad_token"]) == (END, "<|pad|>")
    again = byteweld.load(tmp_path / "tokenizer.json")
    assert again.vocab.roles == tok.vocab.roles
    assert again.encode("low", add_eos=True) == tok.encode("low", add_eos=True)
