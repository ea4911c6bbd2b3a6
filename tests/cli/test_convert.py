"""`byteweld convert`: round trips of every format, the proof, its failure, and --drop."""

from __future__ import annotations

import json

import pytest

import byteweld
from byteweld.cli import _probe


def names(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def recipe_file(tmp_path):
    """Train a tokenizer with a recipe and save it as in.json."""

    def make(recipe, **changes):
        text = "low low low lower lowest, the newest; widest 1234\n  rivers"
        tok = byteweld.train(iter([text]), vocab_size=300, recipe=recipe, **changes)
        path = tmp_path / "in.json"
        tok.save(path)
        return path, tok

    return make


@pytest.mark.parametrize(
    ("recipe", "out", "format"),
    [
        ("modern", "r.tiktoken", None),
        ("modern", "other.json", None),
        ("from-scratch", "folder", "gpt2"),
        ("ck", "folder", "ck"),
        ("ck-ascii", "folder", "ck"),
        ("bpetite", "model.json", "bpetite"),
        ("bpe1", "model.bpe1", None),
        ("plain", "other.json", None),
        ("huggingface", "folder", "gpt2"),
    ],
)
def test_every_format_round_trips_its_recipe(run, recipe_file, tmp_path, recipe, out, format):  # fmt: skip # noqa: E501
    _, tok = recipe_file(recipe, min_frequency=1)
    chosen = ("--format", format) if format else ()
    result = run("convert", "in.json", out, *chosen)
    assert result.code == 0, result.err
    assert result.err.splitlines()[-1] == f"wrote {out}: {len(tok)} tokens"
    lacking = ("--pattern", "gpt2") if recipe == "ck" else ()  # its export has no pattern
    assert run("convert", out, "back.json", *lacking).code == 0
    assert (tmp_path / "back.json").read_bytes() == (tmp_path / "in.json").read_bytes()


def test_an_export_of_ck_loses_the_pattern_and_says_so(program, recipe_file, tmp_path):
    recipe_file("ck", min_frequency=1)
    result = program("convert", "in.json", "export", "--format", "ck", "--json")
    assert result.code == 0
    lost = (
        "export has no field for the pattern gpt2: ck's runtime, and byteweld when it loads the "
        "export, split text with ck-runtime, so some text gets different ids"
    )
    first, second, third = result.err.splitlines()
    assert first == f"lost: {lost}"
    assert second.startswith("verified: the same ")
    assert (
        " tokens, merges, special tokens and roles; the same ids with pattern ck-runtime for "
        in second
    )
    assert third.startswith("wrote export: ")
    report = json.loads(result.out)
    assert report["lost"] == lost
    assert report["fingerprint"] == byteweld.load(tmp_path / "export").vocab.fingerprint
    again = program("convert", "export", "again", "--format", "ck", "--json")
    assert json.loads(again.out)["lost"] is None
    for file in (tmp_path / "export").iterdir():
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes()


def test_a_pattern_over_bytes_becomes_a_tokenizer_json_only_without_it(run, recipe_file, tmp_path):
    recipe_file("ck", min_frequency=1)
    assert run("convert", "in.json", "export", "--format", "ck").code == 0
    result = run("convert", "export", "out.json")
    assert result == (
        2,
        b"",
        "byteweld: tokenizer.json cannot hold this vocabulary: its pattern 'ck-runtime' matches "
        "bytes, and other libraries cannot; to convert without it, pass --drop pattern\n",
    )
    assert not (tmp_path / "out.json").exists()
    dropped = run("convert", "export", "out.json", "--drop", "pattern")
    assert dropped.code == 0
    assert dropped.err.startswith("dropped: pattern; some text may get different ids\n")
    assert byteweld.load(tmp_path / "out.json").vocab.pattern is None


def test_the_proof_says_what_was_checked(program, saved, tmp_path):
    (tmp_path / "corpus.txt").write_bytes(b"low lower lowest\n" * 10)
    texts = 2 * 272 + 1 + len(_probe.HARD_STRINGS) + 1
    result = program("convert", "tokenizer.json", "v", "--format", "gpt2", "--json")
    report = json.loads(result.out)
    assert report["same"] is True
    assert (report["tokens"], report["texts_compared"]) == (272, texts)
    size = f"{report['bytes_compared'] / 1000:.1f} kB"
    assert result.err == (
        "verified: the same 272 tokens, merges, special tokens, pattern and roles; "
        f"the same ids for {texts} strings, {size} (use --corpus to add your own)\n"
        "wrote v: 272 tokens\n"
    )
    more = program(
        "convert", "tokenizer.json", "w", "--format", "gpt2", "--json", "--corpus", "corpus.txt"
    )
    assert json.loads(more.out)["bytes_compared"] == report["bytes_compared"] + 170
    assert "--corpus" not in more.err


def test_what_a_format_cannot_hold_is_refused_by_name(run, recipe_file, tmp_path):
    recipe_file("modern")
    result = run("convert", "in.json", "model.bpe1")
    assert result.code == 2
    assert result.err.startswith(
        "byteweld: BPE1 cannot hold this vocabulary: its special tokens are []"
    )
    assert names(tmp_path) == {"in.json", "in.training.json"}


def test_a_format_that_is_never_read_cannot_be_verified(run, recipe_file, tmp_path):
    recipe_file("modern")
    assert run("convert", "in.json", "out", "--format", "nanochat") == (
        2,
        b"",
        "byteweld: the format 'nanochat' is never read, so it cannot be verified; write it from "
        "Python: byteweld.load('in.json').save('out', format='nanochat')\n",
    )
    assert names(tmp_path) == {"in.json", "in.training.json"}


def different(tok, **changes):
    vocab = tok.vocab
    fields = {
        "special_tokens": vocab.special_tokens,
        "pattern": vocab.pattern,
        "roles": vocab.roles,
        "alphabet": vocab.alphabet,
    } | changes
    tokens = fields.pop("tokens", vocab.tokens)
    merges = fields.pop("merges", vocab.merge_ids)
    return byteweld.Tokenizer(byteweld.Vocabulary(tokens, merges, **fields))


@pytest.mark.parametrize("force", [False, True])
def test_if_the_proof_fails_nothing_is_written_and_the_exit_code_is_1(
    run, saved, tiny, tmp_path, monkeypatch, force
):
    wrong = different(tiny, pattern=byteweld.PATTERNS["o200k"])
    load = byteweld.load

    def load_wrong(path, **options):
        return load(path, **options) if path == "tokenizer.json" else wrong

    monkeypatch.setattr(byteweld, "load", load_wrong)
    if force:
        (tmp_path / "out.json").write_bytes(b"precious")
    before = names(tmp_path)
    line = ("convert", "tokenizer.json", "out.json", "--json")
    result = run(*line, *(["--force"] if force else []))
    assert result.code == 1
    assert json.loads(result.out)["same"] is False
    first, last = result.err.splitlines()
    assert first.startswith("byteweld: out.json would not be the same tokenizer: pattern: ")
    assert last == "nothing was written"
    assert names(tmp_path) == before
    if force:
        assert (tmp_path / "out.json").read_bytes() == b"precious"


def test_the_proof_finds_every_kind_of_difference(tiny):
    vocab = tiny.vocab
    tokens = dict(vocab.tokens)
    tokens[300] = b"new"
    ranks = (*vocab.merge_ids[:2], vocab.merge_ids[3], vocab.merge_ids[2], *vocab.merge_ids[4:])
    for changes, words in [
        ({"tokens": tokens}, "token 300 was None and is b'new'"),
        ({"merges": vocab.merge_ids[:-1]}, "the merges differ: 15 became 14"),
        ({"merges": ranks}, "the merges differ in their order"),
        ({"special_tokens": {}}, "special tokens: {'<|endoftext|>': 256} became {}"),
        ({"pattern": None}, "pattern: "),
        ({"roles": {"eos": 256}}, "roles: {} became {'eos': 256}"),
    ]:
        outcome = _probe.prove(tiny, different(tiny, **changes), [])
        assert isinstance(outcome, str)
        assert outcome.startswith(words)


def test_the_proof_compares_ids_and_shows_the_first_that_differ():
    """Two rankings of the same tokens: only the ids can be compared."""
    tokens = {b: bytes([b]) for b in range(256)} | {256: b"ab", 257: b"bc"}
    merges = [(98, 99, 257), (97, 98, 256)]
    by_merge = byteweld.Tokenizer(byteweld.Vocabulary(tokens, merges, pattern=None))
    by_rank = byteweld.Tokenizer(byteweld.Vocabulary(tokens, pattern=None, ranking="ranks"))
    outcome = _probe._compare_ids(by_merge, by_rank, [b"ab", b"abc"])
    assert outcome == "the ids of b'abc' differ from token 0: [97, 257] became [256, 99]"
    assert isinstance(_probe.prove(by_merge, by_rank, []), str)
    assert isinstance(_probe.prove(by_rank, by_rank, [b"abc"]), _probe.Probe)


def test_the_current_folder_can_be_the_target(run, saved, tmp_path):
    result = run("convert", "tokenizer.json", ".", "--format", "gpt2")
    assert result.code == 0, result.err
    assert {"vocab.json", "merges.txt", "byteweld.json"} <= names(tmp_path)
    assert run("convert", "tokenizer.json", ".", "--format", "gpt2").code == 2


def test_the_error_names_what_to_drop_and_dropping_it_is_reported(run, recipe_file, tmp_path):
    _, tok = recipe_file("bpe1", pattern="gpt2")
    different(tok, ignore_merges=True).save(tmp_path / "in.json", overwrite=True)
    result = run("convert", "in.json", "model.bpe1")
    assert result.code == 2
    assert result.err.endswith("; to convert without it, pass --drop ignore-merges\n")
    result = run("convert", "in.json", "model.bpe1", "--drop", "ignore-merges", "--json")
    assert result.code == 0, result.err
    assert result.err.startswith("dropped: ignore-merges; some text may get different ids\n")
    assert json.loads(result.out)["dropped"] == ["ignore-merges"]
    assert byteweld.load(tmp_path / "model.bpe1").vocab.tokens == tok.vocab.tokens


def test_dropping_roles_changes_no_ids(run, tiny, tmp_path):
    different(tiny, roles={"eos": 256}).save(tmp_path / "in.json")
    result = run("convert", "in.json", "out.json", "--drop", "roles")
    assert result.err.startswith("dropped: roles\n")
    assert names(tmp_path) >= {"out.json"}
    assert byteweld.load(tmp_path / "out.json").vocab == tiny.vocab


def test_a_config_beside_the_target_is_merged_into(run, tiny, tmp_path):
    different(tiny, roles={"eos": 256}).save(tmp_path / "in.json")
    config = tmp_path / "tokenizer_config.json"
    config.write_text('{"chat_template": "x"}')
    assert run("convert", "in.json", "tokenizer.json").code == 0
    expected = {"chat_template": "x", "eos_token": "<|endoftext|>"}
    assert json.loads(config.read_bytes()) == expected
    config.write_text('{"eos_token": "</s>", "chat_template": "x"}')
    (tmp_path / "tokenizer.json").unlink()
    refused = run("convert", "in.json", "tokenizer.json")
    assert refused.err == "byteweld: tokenizer_config.json exists; pass --force to replace it\n"
    assert run("convert", "in.json", "tokenizer.json", "--force").code == 0
    assert json.loads(config.read_bytes()) == expected
