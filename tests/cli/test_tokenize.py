"""`byteweld tokenize`: what a user sees."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import byteweld
from byteweld.cli import main
from byteweld.dataset import _stream
from tests.helpers.tokenized import EOT, encoded, flat, make_documents, make_tokenizer, write_jsonl


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    make_tokenizer().save("tokenizer.json")
    Path("corpus").mkdir()
    write_jsonl(Path("corpus/a.jsonl"), ["the cat sat", f"on {EOT} the mat", ""])
    Path("corpus/b.txt").write_text("naïve 12345")
    return tmp_path


def command(*arguments: str) -> list[str]:
    return ["tokenize", "corpus", "-t", "tokenizer.json", "--out", "data", *arguments]


def test_what_is_said(place, capsys):
    assert main(command()) == 0
    out, err = capsys.readouterr()
    tok = byteweld.load("tokenizer.json")
    texts = ["the cat sat", f"on {EOT} the mat", "", "naïve 12345"]
    ids = [id for document in encoded(tok, texts) for id in document]
    assert flat(Path("data/train.bin")) == ids
    size = sum(len(text.encode()) for text in texts)
    assert re.sub(r"\(\d+ ms\)", "(0 ms)", out).splitlines() == [
        f"4 documents, {size} bytes of text → {len(ids)} tokens, "
        f"{size / len(ids):.3f} bytes per token",
        "special tokens in the text, as text: <|endoftext|> ×1",
        f"data: 2 files, {2 * len(ids) + 32} bytes, format flat, uint16 (0 ms)",
    ]
    assert err == ""
    assert main(command()) == 0
    out, err = capsys.readouterr()
    assert "complete already" in err and "4 documents" in out


def test_a_corpus_that_seems_to_separate_documents_gets_a_hint(place, capsys):
    Path("corpus/a.jsonl").unlink()
    Path("corpus/b.txt").write_text(f"one{EOT}two{EOT}three")
    hint = f"  if it separates documents, run again with --force --separator '{EOT}'\n"
    assert main(command()) == 0
    out = capsys.readouterr().out
    assert out.startswith("1 document,") and hint in out
    options = ["--force", "--separator", EOT]
    assert main(command(*options)) == 0
    out = capsys.readouterr().out
    assert out.startswith("3 documents,") and hint not in out
    assert main(command("--force", "--special-text", "special")) == 0
    assert hint not in capsys.readouterr().out


def test_splits_rows_and_skipped_records(place, capsys):
    write_jsonl(Path("corpus/a.jsonl"), make_documents(200))
    with Path("corpus/a.jsonl").open("a") as file:
        file.write("broken\n")
    options = ["--format", "npy", "--pack", "16", "--validation", "0.4", "--shuffle"]
    assert main(command(*options)) == 2
    assert re.search(r"a\.jsonl:201.*--on-error skip", capsys.readouterr().err)
    assert main(command(*options, "--on-error", "skip")) == 0
    out = capsys.readouterr().out
    assert re.search(r"^train: \d+ rows, [\d,]+ tokens$", out, re.M)
    assert re.search(r"^validation: \d+ rows, [\d,]+ tokens$", out, re.M)
    assert re.search(r"^dropped at the end: \d+ tokens$", out, re.M)
    assert "skipped 1 document, listed in manifest.json" in out


def test_json(place, capsys):
    assert main(command("--json", "--eot", "none")) == 0
    found = json.loads(capsys.readouterr().out)
    manifest = json.loads(Path("data/manifest.json").read_text())
    assert found["documents"] == 4 and found["tokens"] == manifest["tokens"]
    assert found["files"] == ["train.bin", "train.bin.index"]
    assert found["special_text"] == {EOT: 1} and found["was_complete"] is False


def test_dry_run_writes_nothing(place, capsys):
    assert main(command("--dry-run", "--format", "llmc")) == 0
    out = capsys.readouterr().out
    assert "read: 2 files" in out and "4 documents" in out
    assert "write: data, format llmc, uint16, " in out and "time: about" in out
    assert f"end of text: {EOT} (id " in out and "before each document" in out
    assert not Path("data").exists()
    tokens = int(re.search(r"uint16, ([\d,]+) tokens", out)[1].replace(",", ""))
    main(command("--json", "--format", "llmc"))
    assert json.loads(capsys.readouterr().out)["tokens"] == tokens  # it sampled all of it


def test_estimate_of_a_larger_corpus(place, capsys):
    texts = make_documents(200_000, 3)
    Path("corpus/c.jsonl.gz").write_bytes(
        gzip.compress("".join(json.dumps({"text": t}) + "\n" for t in texts).encode(), 1)
    )
    assert main(command("--dry-run", "--json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["is_exact"] is False
    assert main(command("--json")) == 0
    real = json.loads(capsys.readouterr().out)
    for name in ("documents", "tokens", "text_bytes"):
        assert 0.8 < found[name] / real[name] < 1.25, name


def test_standard_input(place):
    code = [sys.executable, "-m", "byteweld", *command()]
    code[code.index("corpus")] = "-"
    text = f"one{EOT}two{EOT}three"
    for data in (text.encode(), gzip.compress(text.encode())):
        done = subprocess.run(
            [*code, "--separator", EOT, "--force"], input=data, capture_output=True
        )
        assert done.returncode == 0, done.stderr
        tok = byteweld.load("tokenizer.json")
        ids = [id for document in encoded(tok, ["one", "two", "three"]) for id in document]
        assert flat(Path("data/train.bin")) == ids


def test_a_resumed_run_says_so(place, capsys, monkeypatch):
    write_jsonl(Path("corpus/a.jsonl"), make_documents(20_000))
    monkeypatch.setattr(_stream, "_RECORD_SECONDS", 0)
    real, calls = _stream.EncodingPass._receive, []

    def receive(self, *block):
        real(self, *block)
        calls.append(block)
        if len(calls) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_stream.EncodingPass, "_receive", receive)
        assert main(command()) == 130
    capsys.readouterr()
    assert main(command()) == 0
    out, err = capsys.readouterr()
    assert re.search(r"resuming after [\d,]+ documents", err)
    assert "20,001 documents" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--validation", "2"], "--validation is 2.0; expected a fraction"),
        (["--format", "nanogpt"], "--format is 'nanogpt'; it must be one of flat"),
        (["--pack", "0"], "--pack is 0; expected a whole number, at least 1"),
        (["--eot-token", "<x>"], "is not a special token of this tokenizer"),
        (["--dtype", "int8"], "--dtype is 'int8'"),
    ],
)
def test_wrong_use(place, capsys, arguments, message):
    assert main(command(*arguments)) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1
    assert not Path("data").exists()


def test_no_end_of_text_token_is_said_in_options(place, capsys):
    byteweld.train(documents=["a b"], vocab_size=258).save("plain.json")
    arguments = command()
    arguments[arguments.index("tokenizer.json")] = "plain.json"
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert "--eot-token" in err and "--eot none" in err and "eot_token=" not in err


def test_text_that_is_not_utf8_is_said_in_options(place, capsys):
    Path("corpus/b.txt").write_bytes(b"\xff")
    assert main(command()) == 2
    assert "pass --on-error replace or skip" in capsys.readouterr().err


@pytest.mark.parametrize("out", ["corpus", ".", ""])
def test_a_folder_that_has_the_corpus_in_it(place, capsys, out):
    assert main(["tokenize", "corpus", "-t", "tokenizer.json", "--out", out]) == 2
    message = f"all files of corpus are inside {out or '.'}, where the result is written"
    assert message in capsys.readouterr().err


def test_what_changed_is_said_in_options(place, capsys):
    assert main(command()) == 0
    options = ["--special-text", "special", "--eot", "none", "--seed", "3", "--shard-tokens", "9"]
    assert main(command(*options, "--field", "body")) == 2
    assert (
        "--eot was 'append', now 'none'; --eot-token was '<|endoftext|>', now None; "
        "--special-text was 'text', now 'special'; --seed was 0, now 3; "
        "--shard-tokens was None, now 9; --field was 'text', now 'body'; "
    ) in capsys.readouterr().err


def test_a_pipe_is_not_compared_with_what_was_read_before(place):
    call = [sys.executable, "-m", "byteweld", "tokenize", "-", "-t", "tokenizer.json"]
    for code in (0, 2):
        done = subprocess.run([*call, "--out", "data"], input=b"text", capture_output=True)
        assert done.returncode == code
    assert b"/dev/stdin had 4 bytes, now an unknown number of bytes, as from" in done.stderr


def test_only_the_first_skipped_records_are_listed(place, capsys):
    Path("corpus/a.jsonl").write_text("broken\n" * 1200)
    assert main(command("--on-error", "skip")) == 0
    assert "skipped 1,200 documents, the first 1,000 listed in" in capsys.readouterr().out


def test_too_few_open_files_for_a_shuffle(place):
    with Path("corpus/large.txt").open("wb") as file:
        file.truncate(20 << 30)  # sparse: nothing of it is read
    call = f"ulimit -n 64; {sys.executable} -m byteweld {shlex.join(command('--shuffle'))}"
    done = subprocess.run(["sh", "-c", call], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "shuffling this corpus needs 256 at once" in done.stderr
    assert "ulimit -n 512), or leave --shuffle out" in done.stderr
