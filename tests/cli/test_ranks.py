"""Ranks: several processes, as in a Slurm array, and a merge, give the bytes of one process."""

from __future__ import annotations

import gzip
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.events import wait_until
from tests.helpers.tokenized import digests, make_documents, make_tokenizer, write_jsonl

WORLD = 4


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Files that are divided, small ones, a compressed one; names that need quoting."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    write_jsonl(folder / 'a b\'s "1".jsonl', make_documents(400, 1))
    write_jsonl(folder / "100%#.jsonl", make_documents(20, 2))
    (folder / "line\nend.txt").write_text("one document " * 3000, encoding="utf-8")
    write_jsonl(folder / "z.jsonl", make_documents(90, 3))
    (folder / "z.jsonl.gz").write_bytes(gzip.compress((folder / "z.jsonl").read_bytes()))
    make_tokenizer().save(tmp_path / "tokenizer.json")
    return folder


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "byteweld", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, said = process.communicate(timeout=60)
    return process.returncode, said


def in_ranks(*arguments: str, done: Path) -> None:
    """Run all ranks at the same time; one is killed while it works, and run again."""
    commands = {
        str(rank): [*arguments, "--rank", str(rank), "--world-size", str(WORLD), "--slice", "2kB"]
        for rank in range(WORLD)
    }
    order = random.Random(5).sample(list(commands), WORLD)
    running = {rank: start(*commands[rank]) for rank in order}
    victim = order[0]
    wait_until(lambda: list(done.glob("*.json")))
    running[victim].send_signal(signal.SIGKILL)
    for rank, process in running.items():
        code, said = ended(process)
        if rank != victim:
            assert (code, said) == (
                0,
                f"rank {rank} of {WORLD} is done; when all are: byteweld merge out\n",
            )
    first = start("merge", "out")
    code, said = ended(first)
    if running[victim].returncode:  # it may have been faster
        assert code == 2, said
        assert "not counted yet" in said or "not encoded yet" in said
        assert ended(start(*commands[victim]))[0] == 0
        code, said = ended(start("merge", "out"))
    assert code == 0, said


def test_four_ranks_count_like_one_process(corpus, tmp_path, run):
    in_ranks("count", "corpus", "--out", "out", done=tmp_path / "out.unfinished/slices")
    assert run("count", "corpus", "--out", "expected").code == 0
    assert digests(tmp_path / "out") == digests(tmp_path / "expected")
    assert not list(tmp_path.glob("*.unfinished"))
    again = run("merge", "out")
    assert (again.code, again.err) == (
        2,
        "byteweld: nothing to merge for out: neither out.unfinished of `byteweld count` nor "
        "out/.unfinished of `byteweld tokenize`, with --rank\n",
    )


OPTIONS = [
    ("--shard-tokens", "3000"),
    ("--validation", "0.2", "--shuffle", "--format", "megatron"),
]


@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
def test_four_ranks_tokenize_like_one_process(corpus, tmp_path, run, options):
    line = ["tokenize", "corpus", *options]
    in_ranks(*line, "--out", "out", done=tmp_path / "out/.unfinished/slices")
    assert run(*line, "--out", "expected").code == 0
    assert digests(tmp_path / "out") == digests(tmp_path / "expected")
    assert not (tmp_path / "out/.unfinished").exists()
    assert run("verify", "out").code == 0
    assert run("merge", "out").code == 2
    rank = run(*line, "--out", "out", "--rank", "0", "--world-size", "4", "--slice", "2kB")
    assert rank.code == 0, rank.err
    assert digests(tmp_path / "out") == digests(tmp_path / "expected")


def test_a_merge_says_what_is_missing(corpus, tmp_path, run):
    ranks = ["--world-size", "3", "--slice", "2kB"]
    for verb in (["count", "corpus"], ["tokenize", "corpus"]):
        out = verb[0]
        for rank in ("1", "2"):
            assert run(*verb, "--out", out, "--rank", rank, *ranks).code == 0
        merged = run("merge", out)
        assert merged.code == 2
        what = "counted" if out == "count" else "encoded"
        assert f"slices are not {what} yet, the first is number 0; run the ranks" in merged.err
    other = run("count", "corpus", "--out", "count", "--rank", "0", *ranks[:-1], "9kB")
    assert other.code == 2
    assert "has the unfinished work of another job: other slices" in other.err
    # The slices of a dataset are those of the rank that began.
    other = run("tokenize", "corpus", "--out", "tokenize", "--rank", "0", *ranks[:-1], "9kB")
    assert other.code == 0
    assert run("merge", "tokenize").code == 0
    assert run("tokenize", "corpus", "--out", "expected").code == 0
    assert digests(tmp_path / "tokenize") == digests(tmp_path / "expected")


def test_a_rank_of_files_that_changed_is_refused(corpus, run):
    line = ["count", "corpus", "--out", "out", "--world-size", "2", "--slice", "2kB", "--rank"]
    assert run(*line, "0").code == 0
    write_jsonl(corpus / "100%#.jsonl", make_documents(21, 2))
    refused = run(*line, "1")
    assert refused.code == 2
    assert "another job: sources was" in refused.err


@pytest.mark.parametrize("damage", [b"{", b"[]", b"\xff", b""])
def test_a_damaged_work_folder_is_named(corpus, tmp_path, run, damage):
    ranks = ["--rank", "0", "--world-size", "1"]
    for verb, work in (("count", "c.unfinished"), ("tokenize", "c/.unfinished")):
        line = [verb, "corpus", "--out", "c", *ranks]
        for name in ("job.json", "facts.json"):
            assert run(*line).code == 0
            file = tmp_path / work / name
            file.write_bytes(damage)
            for again in (["merge", "c"], line):
                done = run(*again)
                if name == "job.json" or again[0] != "merge" or verb == "count":
                    assert done.code == 2
                    assert f"{file}: damaged" in done.err and "start over" in done.err
            shutil.rmtree(tmp_path / work)


def test_files_that_change_while_a_rank_counts_are_noticed(tmp_path):
    from byteweld.corpus import open_corpus
    from byteweld.errors import CorpusError
    from byteweld.jobs import RankRunner, counting
    from byteweld.recipes import find_recipe

    write_jsonl(tmp_path / "a.jsonl", make_documents(30, 1))
    with (
        pytest.raises(CorpusError, match="changed while they were read"),
        RankRunner(0, 1, slice_bytes=900) as rank,
    ):
        counting.count_share(
            rank,
            open_corpus(tmp_path / "a.jsonl"),
            find_recipe("modern"),
            tmp_path / "out",
            progress=lambda done, total: os.utime(tmp_path / "a.jsonl", (1, 1)),
        )


def test_broken_records_name_the_slice_the_file_and_the_line(tmp_path, run):
    lines = write_jsonl(tmp_path / "a.jsonl", make_documents(200, 1)).read_text().splitlines()
    lines[60] = lines[150] = "{broken"
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    make_tokenizer().save(tmp_path / "tokenizer.json")
    for verb in ("count", "tokenize"):
        line = [verb, "a.jsonl", "--out", verb, "--rank", "0", "--world-size", "1"]
        first = run(*line, "--slice", "2kB")
        assert first.code == 2
        assert "byteweld: slice " in first.err
        assert "a.jsonl:61: " in first.err
        assert "a.jsonl:151: " not in first.err
        both = run(*line, "--slice", "2kB", "--max-failures", "5")
        assert both.code == 2
        assert "2 tasks failed:" in both.err
        assert "a.jsonl:61: " in both.err
        assert "a.jsonl:151: " in both.err


# ---------------------------------------------------------------------- wrong use

MISUSES = {
    ("--rank", "0"): "--rank and --world-size belong together; pass both",
    ("--world-size", "4"): "--rank and --world-size belong together; pass both",
    ("--rank", "4", "--world-size", "4"): "--rank is 4; expected a whole number from 0 to 3",
    ("--rank", "-1", "--world-size", "4"): "--rank is -1; it must be at least 0",
    ("--rank", "0", "--world-size", "0"): "--world-size is 0; it must be at least 1",
    ("--rank", "0", "--world-size", "2", "--runner", "ray"): "leave one out",
    ("--rank", "0", "--world-size", "2", "--work", "w"): "--work has no effect with --rank",
    ("--address", "auto"): "--address has no effect without --runner ray",
    ("--cpus-per-task", "2"): "--cpus-per-task has no effect without --runner ray",
    ("--slice", "9MB"): "--slice has no effect without --runner ray",
    ("--slice", "nonsense"): "--slice is 'nonsense'; expected a number with a unit",
    ("--runner", "rya"): "did you mean 'ray'?",
    ("--runner", "ray", "--cpus-per-task", "0"): "--cpus-per-task is 0; it must be at least 1",
    ("--runner", "ray", "--max-failures", "-2"): "--max-failures is -2; it must be at least 0",
    ("--runner", "ray", "--threads", "2"): "--threads has no effect with --runner ray",
}


@pytest.mark.parametrize("verb", ["count", "tokenize"])
@pytest.mark.parametrize("wrong", MISUSES, ids=" ".join)
def test_wrong_use_is_named(corpus, tmp_path, run, verb, wrong):
    done = run(verb, "corpus", "--out", "out", *wrong)
    assert done.code == 2
    assert MISUSES[wrong] in done.err
    assert not list(tmp_path.glob("out*"))


def test_ranks_do_not_write_among_other_files(corpus, tmp_path, run):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/notes.txt").write_text("mine")
    ranks = ["--rank", "0", "--world-size", "1"]
    done = run("tokenize", "corpus", "--out", "out", *ranks)
    assert done.code == 2
    assert "holds other files" in done.err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["notes.txt"]


def test_nothing_to_merge(run):
    done = run("merge", "nothing")
    assert done.code == 2
    assert "nothing to merge for nothing" in done.err
