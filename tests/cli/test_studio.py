"""`byteweld studio`: the address on stdout, messages on stderr, Ctrl-C stops it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.helpers.events import wait_until


def start(
    *arguments: str,
    folder: Path,
    no_browser: bool = True,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> tuple[subprocess.Popen[str], int, str]:
    flags = ["--no-browser"] if no_browser else []
    process = subprocess.Popen(
        [sys.executable, "-m", "byteweld", "studio", *flags, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=os.environ | {"PYTHONUNBUFFERED": "1"} | environment,
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
        assert ask(port, token, "start")["first_view"] == "tokens"
    finally:
        code, err = end(process)
    assert answer["ids"] == tiny.encode("lower")
    assert code == 130
    assert err == "serving the studio; press Ctrl-C to stop\n"


def test_a_corpus_of_files_is_trained_on(saved: Path, tmp_path: Path):
    books = tmp_path / "books"
    books.mkdir()
    (books / "a.txt").write_text("low low lower\n" * 20_000)
    process, port, token = start("tokenizer.json", "--corpus", "books/", folder=tmp_path)
    try:
        assert ask(port, token, "start")["given_corpus"] == "books/"
        answer = ask(port, token, "training", source="given", recipe="ck", merges=2)
    finally:
        end(process)
    assert answer["total_bytes"] == 280_000
    assert [merge["pair_count"] for merge in answer["merges"]] == [60_000, 60_000]


def test_without_an_argument_the_quickstart_tokenizer_is_trained(tmp_path: Path):
    process, port, token = start(folder=tmp_path)
    try:
        answer = ask(port, token, "start")
    finally:
        _, err = end(process)
    assert answer["first_view"] == "how"
    (opened,) = answer["tokenizers"]
    assert (opened["name"], opened["tokens"], opened["has_training"]) == ("quickstart", 8192, True)
    assert err.startswith("training the quickstart tokenizer on Python's standard library\n")
    assert list(tmp_path.iterdir()) == []  # it is kept in memory


# Stands in for a browser: keeps what other users can see of it and the page that it was given, then
# stays open, as a browser in the foreground does.
_BROWSER = """\
#!/bin/sh
tr '\\0' '\\n' < /proc/$$/cmdline > "$SEEN/cmdline"
tr '\\0' '\\n' < /proc/$$/environ > "$SEEN/environ"
page="${1#file://}"
cp "$page" "$SEEN/page"
stat -c %a "$page" "$(dirname "$page")" > "$SEEN/modes"
echo $$ > "$SEEN/pid"
mv "$SEEN/page" "$SEEN/whole"
exec sleep 30 > /dev/null 2>&1
"""


def all_arguments() -> bytes:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # the process has ended
            found.append(path.read_bytes())
    return b"\n".join(found)


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="no /proc here")
def test_the_token_is_in_no_processs_arguments_or_environment(saved: Path, tmp_path: Path):
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    browser.write_text(_BROWSER)
    browser.chmod(0o700)
    seen.mkdir()
    environment = {"BROWSER": str(browser), "SEEN": str(seen), "TMPDIR": str(tmp_path)}
    process, port, token = start(
        "tokenizer.json", folder=tmp_path, no_browser=False, environment=environment
    )
    try:
        wait_until((seen / "whole").exists)
        assert token.encode() not in all_arguments()
        for name in ("cmdline", "environ"):
            assert token not in (seen / name).read_text()
        assert f"http://127.0.0.1:{port}/#token={token}" in (seen / "whole").read_text()
        assert (seen / "modes").read_text().split() == ["600", "700"]
        # The server answers although the browser has not ended, and the file goes once it is used.
        (folder,) = tmp_path.glob("byteweld-studio-*")
        ask(port, token, "start")
        wait_until(lambda: not folder.exists())
    finally:
        with contextlib.suppress(OSError, ValueError):
            os.kill(int((seen / "pid").read_text()), signal.SIGKILL)
        code, _ = end(process)
    assert code == 130


def test_the_redirecting_file_is_removed_at_the_end_if_it_was_never_used(
    saved: Path, tmp_path: Path
):
    process, _, _ = start(
        "tokenizer.json",
        folder=tmp_path,
        no_browser=False,
        environment={"BROWSER": "true", "TMPDIR": str(tmp_path)},
    )
    wait_until(lambda: list(tmp_path.glob("byteweld-studio-*")))
    end(process)
    assert list(tmp_path.glob("byteweld-studio-*")) == []
