"""`byteweld prove --work`: killed at any moment, it resumes and reports the same."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tokenizers", reason="the real tokenizers is not installed")

LINE = ("prove", "tokenizer.json", "texts", "--on-error", "skip", "--threads", "2")
WORK = ("--work", "scratch", "--slice", "10kB")
TIMES = ("elapsed_seconds", "seconds", "date", "command")

# Waits after each slice for a line on standard input.
STEPPING = """
import sys
from byteweld import cli
from byteweld.jobs._work import Work
put = Work.put
def stepped(self, *arguments, **options):
    result = put(self, *arguments, **options)
    print("step", file=sys.stderr, flush=True)
    sys.stdin.readline()
    return result
Work.put = stepped
sys.exit(cli.main())
"""


@pytest.fixture
def texts(saved, tmp_path):
    """Three files of records, of which a few are broken."""
    words = random.Random(7)
    folder = tmp_path / "texts"
    folder.mkdir()
    for number, lines in enumerate([70, 120, 90]):
        rows = []
        for row in range(lines):
            text = " ".join(words.choices(["low", "lower", "newest", "naïve", "🙂"], k=40))
            rows.append('{"tex' if row % 30 == 17 else json.dumps({"text": text}))
        (folder / f"{number}.jsonl").write_text("".join(f"{row}\n" for row in rows))
    return folder


def stopped_after(slices: int, sent: signal.Signals, *arguments: str) -> tuple[int, str]:
    """Run the program until it has compared some slices, then send it a signal."""
    with subprocess.Popen(
        [sys.executable, "-c", STEPPING, *LINE, *WORK, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None and process.stderr is not None
        said = ""
        while slices:
            line = process.stderr.readline()
            said += line
            if line == "step\n":
                slices -= 1
                if slices:
                    process.stdin.write("\n")
                    process.stdin.flush()
        process.send_signal(sent)
        said += process.communicate()[1]
    return process.returncode, said


def report(path: Path) -> dict[str, object]:
    found = json.loads(path.read_bytes())
    return {name: value for name, value in found.items() if name not in TIMES}


def test_a_proof_that_is_killed_resumes_and_reports_the_same(texts, tmp_path, program):
    assert program(*LINE, "--out", "whole.json").code == 0
    for number, sent in enumerate((signal.SIGKILL, signal.SIGINT, signal.SIGKILL)):
        code, said = stopped_after(2, sent, "--out", "report.json")
        assert code in (-signal.SIGKILL, 130)
        assert ("resuming after" in said) == (number > 0)
    done = program(*LINE, *WORK, "--out", "report.json")
    assert done.code == 0 and "resuming after" in done.err, done.err
    assert "skipped 9 documents" in done.err
    found, expected = report(tmp_path / "report.json"), report(tmp_path / "whole.json")
    assert found == expected and found["documents"] == 271
    assert not list((tmp_path / "scratch").iterdir())


def test_the_work_of_another_proof_is_not_used(texts, program, tmp_path):
    stopped_after(2, signal.SIGKILL)
    done = program(*LINE, *WORK, "--special-text", "text")
    assert done.code == 0 and "resuming" not in done.err
    (texts / "0.jsonl").write_text('{"text": "new"}\n')
    done = program(*LINE, *WORK)
    assert done.code == 0 and "resuming" not in done.err
    assert b"identical on 204 documents" in done.out
