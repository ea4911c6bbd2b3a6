"""`byteweld studio`: the address on stdout, messages on stderr, Ctrl-C stops it."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import byteweld
from tests.helpers.processes import allow_interrupts


def start(*arguments: str, folder: Path) -> tuple[subprocess.Popen[str], int, str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "byteweld", "studio", "--no-browser", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        preexec_fn=allow_interrupts,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/#token=([\w-]{32,})\n", line)
    if found is None:
        process.kill()
        pytest.fail(f"{line!r} {process.communicate()}")
    return process, int(found[1]), found[2]


def end(process: subprocess.Popen[str]) -> tuple[int, str]:
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    return process.returncode, err


def ask(port: int, token: str, name: str, **fields: object):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"X-Token": token, "Content-Type": "application/json"}
    connection.request("POST", f"/api/{name}", json.dumps(fields), headers)
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer


def test_the_studio_opens_a_tokenizer_and_ends_with_ctrl_c(saved: Path, tiny, tmp_path: Path):
    process, port, token = start("tokenizer.json", folder=tmp_path)
    try:
        answer = ask(port, token, "why", text="lower newest")
    finally:
        code, err = end(process)
    assert answer["ids"] == tiny.encode("lower")
    assert code == 130
    assert err == "serving the studio; press Ctrl-C to stop\n"


def test_without_an_argument_the_quickstart_tokenizer_is_trained(tmp_path: Path):
    process, port, token = start(folder=tmp_path)
    try:
        (opened,) = ask(port, token, "start")["tokenizers"]
    finally:
        _, err = end(process)
    assert (opened["name"], opened["tokens"], opened["has_training"]) == ("quickstart", 8192, True)
    assert err.startswith("training the quickstart tokenizer on Python's standard library\n")
    assert list(tmp_path.iterdir()) == []  # it is kept in memory


def test_an_existing_quickstart_file_is_opened(tiny: byteweld.Tokenizer, tmp_path: Path):
    (tmp_path / "out" / "quickstart").mkdir(parents=True)
    tiny.save(tmp_path / "out" / "quickstart" / "tokenizer.json")
    process, port, token = start(folder=tmp_path)
    try:
        (opened,) = ask(port, token, "start")["tokenizers"]
    finally:
        end(process)
    assert (opened["name"], opened["tokens"]) == ("quickstart", len(tiny))


def test_wrong_use_is_one_line_on_stderr(run, tmp_path: Path):
    missing = run("studio", "none.json")
    assert missing.code == 2
    assert "none.json" in missing.err
    assert run("studio", "--port", "70000").err == (
        "byteweld: --port is 70000; it must be at most 65535\n"
    )
    assert run("studio", "--port", "-1").code == 2
    assert run("studio", *["x.json"] * 17).err == (
        "byteweld: the studio opens at most 16 tokenizers at once\n"
    )
