"""`byteweld prove --checkpoint`: killed at any moment, it resumes and reports the same."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from byteweld import peers, proof
from byteweld.cli import _output, _proof_checkpoint

pytest.importorskip("tokenizers", reason="the real tokenizers is not installed")

LINE = ("prove", "tokenizer.json", "texts", "--on-error", "skip", "--threads", "2")
POINT = ("--checkpoint", "point")
TIMES = ("elapsed_seconds", "seconds", "date", "command")
INTERRUPTED = 130

# The real program, with a checkpoint after each batch, and batches of 4 KB.
PROGRAM = """
import sys
from byteweld import cli, proof
from byteweld.cli import _proof_checkpoint
_proof_checkpoint._WRITE_SECONDS = _proof_checkpoint._TIMES_AS_LONG = 0
proof._BATCH_BYTES = 4096
sys.exit(cli.main())
"""
# Presses Ctrl-C after 30 batches. The interval is long, so only that can write the checkpoint.
INTERRUPTING = """
import os, signal, sys
from byteweld import cli, proof
from byteweld.cli import _proof_checkpoint
_proof_checkpoint._WRITE_SECONDS = 1000
proof._BATCH_BYTES = 4096
keep, batches = _proof_checkpoint.Checkpoint.keep, []
def press(self, found):
    keep(self, found)
    batches.append(found)
    if len(batches) == 30:
        os.kill(os.getpid(), signal.SIGINT)
_proof_checkpoint.Checkpoint.keep = press
sys.exit(cli.main())
"""


@pytest.fixture
def texts(saved, tmp_path):
    """Three files of records, of which a few are broken."""
    words = random.Random(7)
    folder = tmp_path / "texts"
    folder.mkdir()
    for number, lines in enumerate([700, 1200, 900]):
        rows = []
        for row in range(lines):
            text = " ".join(words.choices(["low", "lower", "newest", "naïve", "🙂"], k=40))
            rows.append('{"tex' if row % 300 == 17 else json.dumps({"text": text}))
        (folder / f"{number}.jsonl").write_text("".join(f"{row}\n" for row in rows))
    return folder


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(_proof_checkpoint, "_WRITE_SECONDS", 0)
    monkeypatch.setattr(_proof_checkpoint, "_TIMES_AS_LONG", 0)
    monkeypatch.setattr(proof, "_BATCH_BYTES", 4096)


def start(*arguments, program=PROGRAM):
    return subprocess.Popen(
        [sys.executable, "-c", program, *LINE, *POINT, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def state(folder):
    try:
        return json.loads((folder / "point").read_bytes())["state"]
    except FileNotFoundError:
        return {"documents": -1, "finished": False}


def run_until(process, moment):
    """Run the process in short steps until a condition holds, and leave it stopped."""
    while process.poll() is None and not moment():
        process.send_signal(signal.SIGCONT)
        time.sleep(0.002)
        process.send_signal(signal.SIGSTOP)


def without_times(report):
    return {name: value for name, value in report.items() if name not in TIMES}


def test_a_proof_killed_twelve_times_reports_the_same(texts, tmp_path, program):
    whole = program(*LINE, "--out", "whole.json")
    assert whole.code == 0, whole.err
    expected = json.loads((tmp_path / "whole.json").read_bytes())
    assert (expected["documents"], expected["skipped_documents"]) == (2790, 10)
    killed = 0
    reached = []
    for stop in sorted(random.Random(5).sample(range(2700), 12)):
        process = start("--out", "report.json")
        run_until(process, lambda stop=stop: state(tmp_path)["documents"] >= stop)
        process.kill()
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        reached.append(state(tmp_path)["documents"])
    assert killed == 12 and reached == sorted(reached) and reached[-1] < 2790
    process = start("--out", "report.json")
    out, said = process.communicate()
    assert process.returncode == 0, said
    assert f"resuming from point, after {reached[-1]:,} documents" in said.decode()
    assert "skipped 10 documents" in said.decode()
    assert out.decode().splitlines()[:2] == whole.text.splitlines()[:2]
    report = json.loads((tmp_path / "report.json").read_bytes())
    assert without_times(report) == without_times(expected)


def test_ctrl_c_writes_the_checkpoint(texts, tmp_path, run):
    process = start(program=INTERRUPTING)
    _, said = process.communicate()
    assert process.returncode == INTERRUPTED, said
    assert said.decode().endswith("interrupted; run the same command to resume from point\n")
    assert 0 < state(tmp_path)["documents"] < 2790
    assert json.loads(run(*LINE, *POINT, "--json").out)["documents"] == 2790


def test_a_finished_proof_says_so_and_shows_its_result_again(run, texts, tmp_path, small_batches):
    first = run(*LINE, *POINT, "--json")
    assert first.code == 0
    content = (tmp_path / "point").read_bytes()
    assert json.loads(content)["state"]["finished"] is True
    again = run(*LINE, *POINT, "--json")
    assert again.code == 0
    assert again.err == (
        "point: this proof is finished; remove the file to run it again\nskipped 10 documents\n"
    )
    assert json.loads(again.out) == json.loads(first.out)
    assert (tmp_path / "point").read_bytes() == content


def stop_after(monkeypatch, batches):
    """Stop a proof in this process, as a read error would."""
    keep = _proof_checkpoint.Checkpoint.keep
    left = [None] * batches

    def stop(self, found):
        keep(self, found)
        if not left:
            raise OSError("the disk is gone")
        left.pop()

    monkeypatch.setattr(_proof_checkpoint.Checkpoint, "keep", stop)


@pytest.fixture
def stopped(run, texts, tmp_path, monkeypatch, small_batches):
    """A proof that stopped in its second file."""
    with monkeypatch.context() as patch:
        stop_after(patch, 60)
        result = run(*LINE, *POINT)
    assert (result.code, result.err) == (2, "byteweld: the disk is gone\n")
    assert state(tmp_path)["place"]["file"] == 1
    assert state(tmp_path)["place"]["skipped"] == 3
    return texts


def test_files_that_are_compared_are_not_read_again(run, stopped, monkeypatch):
    opened = []
    compare = proof._compare

    def watch(ours, theirs, batch):
        opened.extend(document.source for document in batch)
        return compare(ours, theirs, batch)

    monkeypatch.setattr(proof, "_compare", watch)
    result = run(*LINE, *POINT, "--json")
    assert result.code == 0, result.err
    assert set(opened) == {"texts/1.jsonl", "texts/2.jsonl"}
    report = json.loads(result.out)
    assert (report["documents"], report["skipped_documents"], report["files"]) == (2790, 10, 3)


def test_the_rate_counts_only_what_this_run_did(run, stopped, tmp_path, monkeypatch):
    seen = []
    progress = _output.progress

    def watch(*arguments, **options):
        seen.append(options["already"])
        return progress(*arguments, **options)

    monkeypatch.setattr(_output, "progress", watch)
    before = state(tmp_path)["stored_bytes"]
    size = sum(file.stat().st_size for file in stopped.iterdir())
    assert 0.3 * size < before < 0.9 * size
    assert run(*LINE, *POINT).code == 0
    assert seen == [before]


def test_a_slow_disk_is_written_to_less_often(run, texts, tmp_path, monkeypatch, small_batches):
    written = []
    write = _proof_checkpoint.write_atomic

    def slow(*arguments, **options):
        written.append(arguments)
        time.sleep(0.02)
        write(*arguments, **options)

    monkeypatch.setattr(_proof_checkpoint, "write_atomic", slow)
    assert run(*LINE, *POINT).code == 0
    often = len(written)
    assert often > 100  # once per batch
    (tmp_path / "point").unlink()
    monkeypatch.setattr(_proof_checkpoint, "_TIMES_AS_LONG", 1000)
    written.clear()
    assert run(*LINE, *POINT).code == 0
    assert len(written) < 10


def test_a_parquet_corpus_resumes(run, saved, tmp_path, monkeypatch, small_batches):
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = [f"low lower {number} " * 30 for number in range(300)]
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet", row_group_size=50)
    line = ("prove", "tokenizer.json", "a.parquet", "--json")
    whole = json.loads(run(*line).out)
    assert whole["documents"] == 300
    with monkeypatch.context() as patch:
        stop_after(patch, 9)
        assert run(*line, *POINT).code == 2
    assert 0 < state(tmp_path)["documents"] < 300
    assert without_times(json.loads(run(*line, *POINT).out)) == without_times(whole)


def test_another_proof_is_refused_with_the_changes(run, stopped, tmp_path, monkeypatch):
    before = (tmp_path / "point").read_bytes()
    refused = "byteweld: point is the checkpoint of another proof: "
    for change, words in [
        (("--field", "body"), "--field was None, now it is 'body'"),
        (("--on-error", "fail"), "--on-error was 'skip', now it is 'fail'"),
        (("--special-text", "text"), "--special-text was 'special', now it is 'text'"),
        (("--peer", "tiktoken"), "the peer was 'tokenizers "),
        (("texts/0.jsonl",), "there were 3 files, now there are 4"),
    ]:
        result = run(*LINE, *POINT, *change)
        assert result.code == 2 and result.err.startswith(refused), result.err
        assert words in result.err
    with monkeypatch.context() as patch:
        patch.setattr(peers.metadata, "version", lambda name: "9.9")
        assert "now it is 'tokenizers 9.9'" in run(*LINE, *POINT).err
    file = stopped / "2.jsonl"
    times = file.stat()
    os.utime(file, ns=(1, 1))
    assert "2.jsonl' has changed; " in run(*LINE, *POINT).err
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    saved = (tmp_path / "tokenizer.json").read_bytes()
    (tmp_path / "tokenizer.json").write_bytes(saved.replace(b"<|endoftext|>", b"<|endoftexts|>"))
    assert "the tokenizer's fingerprint was " in run(*LINE, *POINT).err
    (tmp_path / "tokenizer.json").write_bytes(saved)
    assert (tmp_path / "point").read_bytes() == before
    assert run(*LINE, *POINT, "--threads", "1").code == 0  # threads do not change the result
    with file.open("ab") as added:
        added.write(b'{"text": "more"}\n')
    assert "2.jsonl' had " in run(*LINE, *POINT).err


def test_a_difference_is_found_again(run, texts, tmp_path, monkeypatch, small_batches, tiny):
    def other(texts, specials):
        return [
            [*tiny.encode(text, allowed_special="all"), *([1] if "changed" in text else [])]
            for text in texts
        ]

    monkeypatch.setattr(
        peers, "open_peer", lambda *a, **k: peers.Peer("tokenizers", "0", False, True, other)
    )
    with (texts / "2.jsonl").open("a") as file:
        file.write('{"text": "changed"}\n')
    first = run(*LINE, *POINT, "--json")
    assert first.code == 1
    assert state(tmp_path)["finished"] is False
    assert 0 < state(tmp_path)["documents"] < 2790
    again = run(*LINE, *POINT, "--json")
    assert again.code == 1
    assert without_times(json.loads(again.out)) == without_times(json.loads(first.out))
    assert json.loads(again.out)["documents"] == 2790


def test_skipped_failures_are_kept(run, saved, tmp_path, monkeypatch, small_batches):
    open_peer = peers.open_peer

    def open_odd(*arguments, **options):
        peer = open_peer(*arguments, **options)

        def encode(texts, specials):
            if any("odd" in text for text in texts):
                raise RuntimeError("odd \udcff text")
            return peer.run(texts, specials)

        return peers.Peer(peer.library, peer.version, peer.copied, peer.specials, encode)

    monkeypatch.setattr(peers, "open_peer", open_odd)
    rows = ["low lowest " * 20] * 200
    rows[3] = rows[150] = "odd"
    (tmp_path / "a.txt").write_text("\n".join(rows))
    line = ("prove", "tokenizer.json", "a.txt", "--lines", "--json")
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        assert run(*line, "--on-error", "skip", *POINT).code == 2
    assert state(tmp_path)["skipped_documents"] == 1
    result = run(*line, "--on-error", "skip", *POINT)
    assert result.code == 0
    assert [said for said in result.err.splitlines() if said.startswith("skipped a.txt")] == [
        f"skipped a.txt: document {number}: tokenizers {json.loads(result.out)['peer']['version']} "
        "failed: odd ⟨ff⟩ text"
        for number in (4, 151)
    ]
    assert json.loads(result.out)["skipped_documents"] == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "point: "),
        (b"dear diary", "point: "),
        (b"[]", "point: "),
        (b'{"format": "byteweld checkpoint 1"}', "expected a checkpoint of `byteweld prove`"),
        (b'{"format": "byteweld proof checkpoint 1"}', "key 'facts' is missing"),
    ],
)
def test_a_file_that_is_not_a_checkpoint_is_left_alone(run, texts, tmp_path, content, words):
    (tmp_path / "point").write_bytes(content)
    result = run(*LINE, *POINT)
    assert (result.code, result.out) == (2, b"")
    assert result.err.startswith("byteweld: point: ") and words in result.err
    assert (tmp_path / "point").read_bytes() == content


@pytest.mark.parametrize(
    "change",
    [
        {"documents": -1},
        {"documents": True},
        {"tokens": 1.5},
        {"bytes": "many"},
        {"seconds": [1]},
        {"seconds": [1, -1]},
        {"elapsed_seconds": None},
        {"elapsed_seconds": 10**400},
        {"tokens": 10**400},
        {"stored_bytes": None},
        {"finished": 1},
        {"finished": True},  # but not at the end
        {"skipped": [["tokenizers", "a", 1]]},
        {"skipped": [["tokenizers", "a", "1", "b"]]},
        {"place": {"file": 0, "documents": 0, "skipped": 0}},
        {"place": {"file": 4, "documents": 0, "skipped": 0, "bytes": 0}},
        {"place": {"file": 3, "documents": 0, "skipped": 0, "bytes": 0}},
        {"place": {"file": 1, "documents": 10**9, "skipped": 0, "bytes": 0}},
    ],
)
def test_a_damaged_state_is_refused(run, stopped, tmp_path, change):
    found = json.loads((tmp_path / "point").read_bytes())
    found["state"] |= change
    (tmp_path / "point").write_text(json.dumps(found))
    result = run(*LINE, *POINT)
    assert (result.code, result.out) == (2, b"")
    assert "point: expected the state of a proof, found {" in result.err.replace("['", "{'")
    assert result.err.endswith("; remove the file, and the proof starts over\n")


def test_a_position_behind_the_end_of_a_file_is_reported(run, stopped, tmp_path):
    found = json.loads((tmp_path / "point").read_bytes())
    found["state"]["documents"] = 10**6
    (tmp_path / "point").write_text(json.dumps(found))
    result = run(*LINE, *POINT)
    assert result.code == 2
    assert "texts/1.jsonl: the file has 1,196 documents, but the checkpoint point" in result.err


def test_wrong_use_is_reported(run, saved, tmp_path):
    (tmp_path / "a.txt").write_text("low")
    line = ("prove", "tokenizer.json")
    assert "--checkpoint is empty" in run(*line, "a.txt", "--checkpoint", "").err
    result = run(*line, "-", "--checkpoint", "point", stdin=b"low")
    assert "--checkpoint cannot be used with standard input" in result.err
    assert "there is no folder none" in run(*line, "a.txt", "--checkpoint", "none/point").err
    assert not (tmp_path / "point").exists()
