"""`byteweld prove`: identical ids, the first difference, failures of a peer, the report."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

import byteweld
from byteweld import peers, proof
from byteweld.cli import _runner
from tests.helpers.sliced import MixedUp

tiktoken = pytest.importorskip("tiktoken", reason="the real tiktoken is not installed")
tokenizers = pytest.importorskip("tokenizers", reason="the real tokenizers is not installed")

RATES = re.compile(r" +\d+(?:\.\d)? m?s(?= |$)")  # too little text for a speed
BYTES = byteweld.Tokenizer.from_merges({b: bytes([b]) for b in range(256)}, [])
OURS = f"byteweld {byteweld.__version__}"
THEIRS = {name: f"{name} {metadata.version(name)}" for name in ("tiktoken", "tokenizers")}


def without_rates(text):
    """The lines of the output, without times."""
    return [re.sub(r"  +", "  ", RATES.sub("", line)) for line in text.splitlines()]


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"low lowest\n")
    (folder / "b.txt.gz").write_bytes(gzip.compress("newest, naïve <|endoftext|> 🙂\n".encode()))
    (folder / "c.jsonl").write_text('{"text": "lower"}\n{"text": ""}\n')
    return folder


@pytest.fixture
def ranks(tiny, tmp_path):
    """A rank file without a sidecar: pattern and special tokens must be given."""
    tok = byteweld.train(iter(["low low lower lowest"]), vocab_size=262, recipe="rustbpe")
    tok.save(tmp_path / "r.tiktoken")
    (tmp_path / "r.tiktoken.byteweld.json").unlink()
    return tmp_path / "r.tiktoken"


@pytest.fixture
def other_peer(monkeypatch):
    """Replace the peer by another tokenizer, to get a difference."""

    def install(tok):
        def run(texts, specials):
            return [tok.encode_ordinary(text) for text in texts]

        monkeypatch.setattr(
            peers, "open_peer", lambda *a, **k: peers.Peer("tiktoken", "0.0", False, False, run)
        )

    return install


# ---------------------------------------------------------------------- identical


def test_a_tokenizer_json_is_proved_by_tokenizers(program, saved, corpus, tiny):
    result = program("prove", "tokenizer.json", "texts")
    assert (result.code, result.err) == (0, "")
    texts = ["low lowest\n", "newest, naïve <|endoftext|> 🙂\n", "lower", ""]
    tokens = sum(len(tiny.encode(text, allowed_special="all")) for text in texts)
    assert without_rates(result.text) == [
        f"identical on 4 documents, {tokens} tokens",
        "  50 bytes in 3 files",
        f"  {OURS}",
        f"  {THEIRS['tokenizers']}",
    ]


def test_special_tokens_are_treated_the_same_on_both_sides(run, saved, corpus, tiny):
    line = ("prove", "tokenizer.json", "texts", "--json")
    special, again, plain = (
        json.loads(run(*line, *flags).out)
        for flags in [(), ("--special-text", "special"), ("--special-text", "text")]
    )
    assert plain["identical"] is special["identical"] is True
    assert plain["tokens"] - special["tokens"] == len(tiny.encode_ordinary("<|endoftext|>")) - 1
    assert special["tokens"] == again["tokens"]


def test_a_special_token_can_be_made_a_failure(run, saved, corpus):
    result = run("prove", "tokenizer.json", "texts", "--special-text", "fail")
    assert (result.code, result.out) == (2, b"")
    assert result.err.startswith(
        f"byteweld: texts/b.txt.gz: document 1: {OURS} failed: text contains the special token "
        "'<|endoftext|>'; pass --special-text special to encode it as one id, "
    )
    no_specials = ("texts/a.txt", "texts/c.jsonl", "--special-text", "fail")
    assert run("prove", "tokenizer.json", *no_specials).code == 0


def test_a_rank_file_is_proved_by_tiktoken_with_the_pattern_in_the_users_spelling(
    run, ranks, corpus, monkeypatch
):
    seen = []
    encoding = tiktoken.Encoding

    def spy(name, **options):
        seen.append(options)
        return encoding(name, **options)

    monkeypatch.setattr(tiktoken, "Encoding", spy)
    spelling = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    for pattern, expected in [
        ("gpt2", byteweld.PATTERNS["gpt2"]),
        (spelling, spelling),
        ("none", r"(?s:.+)"),
    ]:
        line = ("prove", "r.tiktoken", "texts", "--pattern", pattern)
        result = run(*line, "--special", "<|endoftext|>=300", "--json")
        assert result.code == 0, result.err
        report = json.loads(result.out)
        assert report["identical"] is True
        assert report["peer"]["name"] == "tiktoken"
        assert report["peer"]["with_copy"] is False
        assert seen[-1]["pat_str"] == expected
        assert seen[-1]["special_tokens"] == {"<|endoftext|>": 300}


def test_tiktoken_reads_the_file_as_it_is_now(run, ranks, corpus, tmp_path):
    line = ("prove", "r.tiktoken", "texts", "--pattern", "gpt2", "--no-special", "--json")
    first = json.loads(run(*line).out)
    bytes_only = b"".join(ranks.read_bytes().splitlines(keepends=True)[:256])
    ranks.write_bytes(bytes_only)
    second = json.loads(run(*line).out)
    assert first["identical"] is second["identical"] is True
    assert second["tokens"] == second["bytes"] == 50 > first["tokens"]


def test_gpt2s_pair_is_proved_by_tokenizers_from_the_two_files(run, tiny, corpus, tmp_path):
    tiny.save(tmp_path / "pair", format="gpt2")
    result = run("prove", "pair", "texts", "--json")
    assert json.loads(result.out)["peer"] == {
        "name": "tokenizers",
        "version": tokenizers.__version__,
        "with_copy": False,
    }
    assert result.code == 0


@pytest.mark.parametrize(
    ("recipe", "name", "format"),
    [
        ("bpetite", "model.json", "bpetite"),
        ("bpe1", "model.bpe1", None),
        ("ck", "folder", "ck"),
        ("modern", "r.tiktoken", None),
        ("from-scratch", "folder", "gpt2"),
    ],
)
@pytest.mark.parametrize("peer", ["tiktoken", "tokenizers"])
def test_a_peer_that_cannot_read_the_format_gets_a_copy(
    run, corpus, tmp_path, recipe, name, format, peer
):
    text = "low low low lower lowest, the newest; widest 1234\n  rivers"
    tok = byteweld.train(iter([text]), vocab_size=300, recipe=recipe, min_frequency=1)
    tok.save(tmp_path / name, format=format)
    lacking = ("--pattern", "gpt2") if recipe == "ck" else ()  # its export has no pattern
    result = run("prove", name, "texts", "--peer", peer, "--json", *lacking)
    assert result.code == 0, result.err
    readers = {"tiktoken": "tiktoken", "gpt2": "tokenizers"}
    kind = format or byteweld.recognize(tmp_path / name)
    assert json.loads(result.out)["peer"]["with_copy"] is (readers.get(kind) != peer)
    told = run("prove", name, "texts", "--peer", peer, *lacking).text
    assert ("(using a copy in its own format)" in told) is (readers.get(kind) != peer)


@pytest.mark.parametrize("peer", ["tiktoken", "tokenizers"])
def test_a_pattern_over_bytes_is_beyond_the_peers(run, corpus, tmp_path, peer):
    tok = byteweld.train(iter(["low lower"]), vocab_size=270, recipe="ck", min_frequency=1)
    tok.save(tmp_path / "folder", format="ck")
    result = run("prove", "folder", "texts", "--peer", peer)
    assert result == (
        2,
        b"",
        "byteweld: the real tiktoken and tokenizers cannot run this vocabulary: its pattern "
        "'ck-runtime' matches bytes, and other libraries cannot. A file that has no pattern of "
        "its own, such as ck's export, can be loaded with another one, such as --pattern gpt2, to "
        "compare that\n",
    )


def test_a_compressed_tokenizer_is_proved_with_a_copy(run, saved, ranks, corpus, tmp_path):
    for file in (saved, ranks):
        file.with_name(file.name + ".gz").write_bytes(gzip.compress(file.read_bytes()))
    for line, peer in [
        (["tokenizer.json.gz"], "tokenizers"),
        (["r.tiktoken.gz", "--pattern", "gpt2", "--no-special"], "tiktoken"),
    ]:
        result = run("prove", *line, "texts", "--json")
        assert result.code == 0, result.err
        report = json.loads(result.out)
        assert (report["peer"]["name"], report["peer"]["with_copy"]) == (peer, True)


def test_a_peers_own_truncation_and_padding_are_off(saved, tiny):
    theirs = tokenizers.Tokenizer.from_file(str(saved))
    theirs.enable_truncation(2)
    theirs.enable_padding(length=50)
    theirs.save(str(saved))
    peer = peers.open_peer(saved, "huggingface", tiny.vocab)
    (ids, offsets), _ = peer.encode([b"low lower lowest", b"low"])
    assert ids.tolist() == tiny.encode("low lower lowest") + tiny.encode("low")
    assert offsets.tolist() == [0, len(ids) - 1, len(ids)]


def test_an_encoding_is_proved_by_its_name(run, tiny, corpus, tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    tok = byteweld.train(iter(["low low lower lowest"]), vocab_size=262, recipe="rustbpe")
    tok.save(tmp_path / "folder" / "mine.json")
    monkeypatch.setenv("BYTEWELD_PATH", str(tmp_path / "folder"))
    result = run("prove", "mine", "texts", "--json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["peer"]["name"] == "tiktoken"
    other = run("prove", "mine", "texts", "--json", "--peer", "tokenizers")
    assert json.loads(other.out)["peer"] == {
        "name": "tokenizers",
        "version": tokenizers.__version__,
        "with_copy": True,
    }
    assert json.loads(other.out)["tokens"] == json.loads(result.out)["tokens"]
    assert run("prove", "mine", "texts", "--pattern", "gpt2").err == (
        "byteweld: 'mine' is the name of an encoding, which has its own format, pattern and "
        "special tokens; leave these options out\n"
    )
    assert (
        run("encode", "-t", "mine", "--text", "low").text == f"{tok.encode_single_token('low')}\n"
    )
    shown = run("inspect", "mine").text
    assert "  format       an encoding by name\n" in shown


def test_a_tekken_file_is_proved_by_tiktoken(run, corpus, tmp_path):
    tok = byteweld.train(
        iter(["low low lower lowest newest"]), vocab_size=270, recipe="rustbpe", pattern="tekken"
    )
    specials = [
        {"rank": n, "token_str": text, "is_control": True}
        for n, text in enumerate(["<unk>", "<s>", "</s>", "<|endoftext|>"])
    ]
    entries = [
        {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
        for rank, token in tok.vocab.tokens.items()
    ]
    content = {
        "config": {
            "pattern": byteweld.PATTERNS["tekken"],
            "num_vocab_tokens": len(entries),
            "default_vocab_size": len(entries) + 4 - 3,  # the last three are not used
            "default_num_special_tokens": 4,
            "version": "v7",
        },
        "vocab": entries,
        "special_tokens": specials,
    }
    (tmp_path / "tekken.json").write_text(json.dumps(content))
    for options in ([], ["--special-text", "text"]):
        result = run("prove", "tekken.json", "texts", "--json", *options)
        assert result.code == 0, result.err
        report = json.loads(result.out)
        assert report["identical"] is True
        assert (report["peer"]["name"], report["peer"]["with_copy"]) == ("tiktoken", False)


def test_documents_are_split_as_the_reading_options_say(run, saved, corpus, tmp_path):
    def documents(*options):
        return json.loads(run("prove", "tokenizer.json", *options, "--json").out)["documents"]

    (tmp_path / "l.txt").write_bytes(b"a\nb\nc")
    (tmp_path / "f.jsonl").write_text('{"body": "low"}\n')
    assert documents("l.txt") == 1
    assert documents("l.txt", "--lines") == 3
    assert documents("l.txt", "--separator", "b") == 2
    assert documents("f.jsonl", "--field", "body") == 1
    assert documents("texts", "--ext", ".jsonl") == 2


def test_standard_input_is_a_corpus(run, saved):
    result = run("prove", "tokenizer.json", "-", stdin=b"low lower")
    assert result.code == 0
    assert result.text.startswith("identical on 1 document, 2 tokens\n")


# ---------------------------------------------------------------------- different


def test_the_first_difference_is_shown_with_its_position(run, saved, tiny, corpus, other_peer):
    vocab = dict(tiny.vocab.tokens)
    merges = [merge for merge in tiny.vocab.merges if merge != (b"e", b"r")][:-2]
    kept = {a + b for a, b in merges} | {bytes([b]) for b in range(256)}
    other_peer(
        byteweld.Tokenizer.from_merges({i: t for i, t in vocab.items() if t in kept}, merges)
    )
    result = run("prove", "tokenizer.json", "texts", "--special-text", "text")
    assert (result.code, result.err) == (1, "")
    low, er = tiny.encode_single_token("low"), tiny.encode_single_token("er")
    before = [tiny.encode_ordinary(t) for t in ("low lowest\n", "newest, naïve <|endoftext|> 🙂\n")]
    assert without_rates(result.text) == [
        "different: texts/c.jsonl, document 1, byte 3, token 1",
        "  text  low▸er",
        f"  byteweld  {low} low | ▸{er} er",
        f"  tiktoken  {low} low | ▸101 e | 114 r",
        f"  identical before it: 2 documents, {sum(map(len, before))} tokens",
        "  45 bytes in 3 files",
        f"  {OURS}",
        "  tiktoken 0.0",
    ]


def test_a_difference_deep_in_a_document_is_shown_in_context(run, tmp_path, other_peer):
    tok = byteweld.train(iter(["ab ab ab"]), vocab_size=258, recipe="bpetite")
    tok.save(tmp_path / "tokenizer.json")
    other_peer(BYTES)
    (tmp_path / "x.txt").write_bytes(b"first\n")
    content = "é" * 100 + "xyz" + " ab" + "ü" * 100
    (tmp_path / "y.txt").write_text("q\n" + content + "\nmore", encoding="utf-8")
    result = run("prove", "tokenizer.json", "x.txt", "y.txt", "--lines", "--json")
    assert result.code == 1
    report = json.loads(result.out)
    assert report["identical"] is False
    assert (report["documents"], report["tokens"]) == (2, 8)
    ours = tok.encode_ordinary(content)
    assert report["difference"] == {
        "source": "y.txt",
        "document": 2,
        "byte": 203,
        "token": 203,
        "text_before": "é" * 18 + "xyz",
        "text_after": " ab" + "ü" * 18,
        "first_token_shown": 200,
        "byteweld": ours[200:208],
        "peer": list(content.encode()[200:208]),
    }
    shown = without_rates(run("prove", "tokenizer.json", "x.txt", "y.txt", "--lines").text)
    assert shown[1] == "  text  " + "é" * 18 + "xyz▸·ab" + "ü" * 18
    assert shown[2].startswith("  byteweld  … | 120 x | 121 y | 122 z | ▸")
    assert shown[2].endswith(" | …")


def test_ids_that_end_too_soon_are_a_difference(run, tmp_path, other_peer, saved):
    other_peer(SimpleNamespace(encode_ordinary=lambda text: []))
    (tmp_path / "a.txt").write_bytes(b"low")
    shown = without_rates(run("prove", "tokenizer.json", "a.txt").text)
    assert shown[3] == "  tiktoken  ▸end"


# ---------------------------------------------------------------------- failures


def test_invalid_utf8_must_be_repaired_or_skipped(run, saved, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"low\n")
    (tmp_path / "b.txt").write_bytes(b"low \xff\n")
    line = ("prove", "tokenizer.json", "a.txt", "b.txt")
    assert run(*line) == (
        2,
        b"",
        f"byteweld: b.txt: document 1: {THEIRS['tokenizers']} failed: byte 4 is not UTF-8, and it "
        "encodes only text; --on-error skip skips such documents, "
        "--on-error replace repairs invalid UTF-8\n",
    )
    report = json.loads(run(*line, "--json").out)
    assert report["identical"] is False
    assert report["failure"]["source"] == "b.txt"
    assert report["documents"] == 1
    skipped = run(*line, "--on-error", "skip", "--json")
    assert (skipped.code, skipped.err) == (0, "skipped 1 document\n")
    assert json.loads(skipped.out)["skipped_documents"] == 1
    replaced = json.loads(run(*line, "--on-error", "replace", "--json").out)
    assert (replaced["identical"], replaced["documents"]) == (True, 2)


def test_a_peer_that_panics_is_named_and_can_be_skipped(run, saved, tmp_path, monkeypatch):
    class PanicException(BaseException):
        pass

    tok = byteweld.load(saved)

    def panics(texts, specials):
        if any("  " in text for text in texts):
            raise PanicException("StackOverflow\n  in its regex")
        return [tok.encode_ordinary(text) for text in texts]

    monkeypatch.setattr(
        peers, "open_peer", lambda *a, **k: peers.Peer("tiktoken", "0.0", False, False, panics)
    )
    (tmp_path / "a.txt").write_bytes(b"low\nlo  w\nlower\n")
    line = ("prove", "tokenizer.json", "a.txt", "--lines")
    failed = run(*line)
    assert failed.code == 2
    words = "a.txt: document 2: tiktoken 0.0 failed: StackOverflow in its regex"
    assert failed.err.startswith(f"byteweld: {words}; ")
    passed = run(*line, "--on-error", "skip")
    assert (passed.code, passed.err) == (0, f"skipped {words}\n")
    assert passed.text.startswith("identical on 2 documents, ")


def test_a_missing_peer_is_reported_with_how_to_install_it(run, saved, corpus, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    assert run("prove", "tokenizer.json", "texts") == (
        2,
        b"",
        "byteweld: the real tokenizers is not installed; install it with: "
        "pip install 'byteweld[prove]' (or: pip install tokenizers)\n",
    )


def test_a_file_that_the_peer_cannot_read_is_reported(run, saved, corpus, monkeypatch):
    def broken(path):
        raise Exception("data did not match any variant")

    monkeypatch.setattr(tokenizers, "Tokenizer", SimpleNamespace(from_file=broken))
    assert run("prove", "tokenizer.json", "texts") == (
        2,
        b"",
        f"byteweld: tokenizer.json: {THEIRS['tokenizers']} cannot read this file: "
        "data did not match any variant\n",
    )


def test_a_copy_that_the_peer_cannot_hold_is_refused_by_name(run, tmp_path, corpus):
    tok = byteweld.train(iter(["ab ab abc"]), vocab_size=105, recipe="ck-ascii", min_frequency=1)
    tok.save(tmp_path / "ascii.json")
    result = run("prove", "ascii.json", "texts", "--peer", "tiktoken")
    assert result.code == 2
    assert "rank file" in result.err


# ---------------------------------------------------------------------- the report to keep


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_report_says_what_was_compared(run, saved, corpus, tiny, tmp_path):
    line = ("prove", "tokenizer.json", "texts", "--out", "proof.json", "--html", "proof.html")
    result = run(*line, "--threads", "2")
    assert result.code == 0
    assert result.text.startswith("identical on 4 documents, ")
    assert re.fullmatch(
        r"wrote proof\.json: [\d.]+ \w+\nwrote proof\.html: [\d.]+ \w+\n", result.err
    )
    report = json.loads((tmp_path / "proof.json").read_text())
    shown = json.loads(run("prove", "tokenizer.json", "texts", "--json", "--threads", "2").out)
    for name in ("elapsed_seconds", "seconds"):
        del shown[name]
    assert shown.items() <= report.items()
    assert report["fingerprint"] == tiny.vocab.fingerprint
    assert report["peer"]["version"] == tokenizers.__version__
    assert report["command"] == "byteweld " + " ".join([*line, "--threads", "2"])
    assert abs(datetime.now(UTC) - datetime.fromisoformat(report["date"])).total_seconds() < 600
    assert report["corpus"] == [
        {"path": str(path), "bytes": path.stat().st_size, "sha256": sha256(path)}
        for path in sorted(Path("texts").iterdir())
    ]
    page = (tmp_path / "proof.html").read_text()
    for part in (tiny.vocab.fingerprint, sha256(corpus / "a.txt"), THEIRS["tokenizers"]):
        assert part in page
    assert "identical on 4 documents" in page and "--threads 2" in page


def test_a_report_of_a_difference_is_written_too(run, saved, corpus, other_peer, tmp_path):
    other_peer(byteweld.train(iter(["ab ab"]), vocab_size=258, recipe="from-scratch"))
    result = run("prove", "tokenizer.json", "texts", "--out", "p.json", "--html", "p.html")
    assert result.code == 1
    report = json.loads((tmp_path / "p.json").read_text())
    assert report["identical"] is False
    assert report["difference"]["source"] == "texts/a.txt"
    assert len(report["corpus"]) == 3
    page = (tmp_path / "p.html").read_text()
    assert "First difference" in page and "different: texts/a.txt" in page


def test_a_report_has_the_digest_of_standard_input(run, saved, tmp_path):
    result = run("prove", "tokenizer.json", "-", "--out", "p.json", stdin=b"low lower")
    assert result.code == 0
    assert json.loads((tmp_path / "p.json").read_text())["corpus"] == [
        {"path": "-", "bytes": 9, "sha256": hashlib.sha256(b"low lower").hexdigest()}
    ]


def test_a_report_replaces_nothing_unless_told_to(run, saved, corpus, tmp_path):
    (tmp_path / "p.json").write_text("mine")
    line = ("prove", "tokenizer.json", "texts")
    assert "p.json" in run(*line, "--out", "p.json").err
    assert (tmp_path / "p.json").read_text() == "mine"
    assert run(*line, "--out", "p.json", "--force").code == 0
    assert json.loads((tmp_path / "p.json").read_text())["identical"] is True
    assert run(*line, "--out", "none/p.json").code == 2


def test_a_file_that_changes_during_the_proof_has_no_digest(
    run, saved, corpus, tmp_path, monkeypatch
):
    prove = proof.prove

    def slow(*arguments, **options):
        found = prove(*arguments, **options)
        (corpus / "a.txt").write_bytes(b"changed")
        return found

    monkeypatch.setattr(proof, "prove", slow)
    result = run("prove", "tokenizer.json", "texts", "--out", "p.json")
    assert result.code == 2 and "texts/a.txt: the file changed during the proof" in result.err
    assert not (tmp_path / "p.json").exists()


# ---------------------------------------------------------------------- in tasks


@pytest.fixture
def tasks(monkeypatch):
    """A runner in the place of Ray: small slices, mixed up, everything pickled."""
    opened = []

    def install(seed, **options):
        def open_runner(name, **given):
            assert name == "ray"
            opened.append(MixedUp(seed, window=50, num_threads=1, **options, **given))
            return opened[-1]

        monkeypatch.setattr(_runner, "open_runner", open_runner)
        return opened

    return install


def without_times(report):
    """A report in JSON without times, and without what says where it ran."""
    given = ("elapsed_seconds", "seconds", "date", "command", "runner", "threads")
    return {name: value for name, value in report.items() if name not in given}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("skip", [(), ("--on-error", "skip")])
def test_in_tasks_the_output_is_the_same(run, saved, tasks, tmp_path, seed, skip):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.jsonl").write_text('{"text": "low"}\n' * 20 + "{broken\n" * bool(skip) * 3)
    (folder / "b.txt").write_bytes(b"low lower\n" * 20 + b"low \xff\n" * 4)
    (folder / "c.txt.gz").write_bytes(gzip.compress(b"lowest\n"))
    line = ("prove", "tokenizer.json", "texts", "texts/a.jsonl", "--lines", *skip)
    tasks(seed)
    ray = ("--runner", "ray", "--slice", "40B")
    here, there = run(*line), run(*line, *ray)
    assert without_rates(there.text) == without_rates(here.text)
    assert (there.code, there.err) == (here.code, here.err) == (0 if skip else 2, here.err)
    here, there = run(*line, "--json"), run(*line, "--json", *ray)
    report = json.loads(there.out)
    assert (report["runner"], report["threads"]) == ("ray", 1)
    assert without_times(report) == without_times(json.loads(here.out))


def test_in_tasks_the_first_difference_is_the_same(run, saved, tasks, tmp_path, other_peer):
    other_peer(BYTES)
    for name in "ab":
        (tmp_path / f"{name}.txt").write_bytes(b"x y\n" * 30 + b"low\n" * 3 * (name == "b"))
    line = ("prove", "tokenizer.json", "a.txt", "b.txt", "a.txt")
    line += ("--lines", "--special-text", "text")
    tasks(5)
    here, there = run(*line), run(*line, "--runner", "ray", "--slice", "10B")
    assert there.text.startswith("different: b.txt, document 31, byte 0, token 0\n")
    assert "  240 bytes in 2 files" in there.text
    assert without_rates(there.text) == without_rates(here.text)
    assert (there.code, there.err) == (1, "")


def test_in_tasks_the_report_has_the_digests(run, saved, corpus, tasks):
    tasks(1)
    line = ("prove", "tokenizer.json", "texts")
    assert run(*line, "--out", "here.json").code == 0
    options = ("--runner", "ray", "--slice", "10B", "--out", "there.json", "--html", "there.html")
    assert run(*line, *options).code == 0
    here, there = (json.loads(Path(name).read_text()) for name in ("here.json", "there.json"))
    assert without_times(there) == without_times(here)
    assert "1 threads of each task on ray" in Path("there.html").read_text()


def test_threads_do_not_change_what_a_difference_reports(run, saved, tiny, tmp_path, other_peer):
    """Batches after the difference are read by then; their files and skips do not count."""
    other_peer(BYTES)
    (tmp_path / "a.jsonl").write_text('{broken\n{"text": "x"}\n{"text": "low"}\n{broken\n')
    (tmp_path / "b.jsonl").write_text('{broken\n{"text": "low"}\n')
    line = ("prove", "tokenizer.json", "a.jsonl", "b.jsonl", "--on-error", "skip")
    for threads in "13":
        result = run(*line, "--special-text", "text", "--threads", threads)
        assert (result.code, result.err) == (1, "skipped 1 document\n")
        assert "  1 byte in 1 file" in result.text


def test_a_difference_comes_before_an_error_after_it(run, saved, tmp_path, other_peer):
    other_peer(BYTES)
    (tmp_path / "a.jsonl").write_text('{"text": "x"}\n{"text": "low"}\n{broken\n')
    for threads in "13":
        result = run("prove", "tokenizer.json", "a.jsonl", "--threads", threads)
        assert (result.code, result.err) == (1, "")
