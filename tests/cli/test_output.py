"""Output and input of the verbs: sizes, progress, terminals, documents from stdin, errors."""

from __future__ import annotations

import gzip
import json
import os
import pty
import re
import shlex
import socket
import subprocess
import sys

import pytest

from byteweld.cli import _errors, _output


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (12_300_000_000, "12.3 GB"),
        (5 * 10**15, "5,000.0 TB"),
    ],
)
def test_sizes_have_units(count, text):
    assert _output.size(count) == text


def test_times_have_units():
    assert [_output.seconds(value) for value in (0.0004, 0.0123, 1.25)] == [
        "0 ms",
        "12 ms",
        "1.2 s",
    ]


def test_without_a_terminal_lines_have_88_columns(capsys):
    assert _output.width() == 88


def test_without_a_terminal_progress_is_an_occasional_line(capsys, monkeypatch):
    now = 0.0
    monkeypatch.setattr(_output.time, "monotonic", lambda: now)
    with _output.progress("counting", 4_000_000, "bytes") as advance:
        for now in (1.0, 4.9, 5.0, 6.0, 9.9, 10.1):
            advance(int(now * 100_000))
    with _output.progress("counting", None, "files") as advance:
        now = 20.0
        advance(1)
    assert capsys.readouterr().err == (
        "counting: 500.0 kB of 4.0 MB, about 35.0 s left\n"  # a speed needs 1 MB
        "counting: 1.0 MB of 4.0 MB, 100.0 kB/s, about 29.9 s left\n"
        "counting: 1 file\n"
    )


_AT_ONCE = "import sys; from byteweld.cli import _output, main; _output._SECONDS_BEFORE_BAR = 0; "


def in_a_terminal(arguments, **environment):
    """Run the program in its own terminal, with bars drawn at once, and return what it drew."""
    leader, follower = pty.openpty()
    variables = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-c", _AT_ONCE + "sys.exit(main())", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=follower,
        stderr=follower,
        env=variables | {"TERM": "xterm-256color", "COLUMNS": "90"} | environment,
    )
    os.close(follower)
    drawn = b""
    while True:
        try:
            block = os.read(leader, 1 << 16)
        except OSError:  # the other side is closed
            break
        if not block:
            break
        drawn += block
    os.close(leader)
    assert process.wait(60) == 0
    return drawn.decode()


def test_on_a_terminal_progress_is_a_bar_that_goes_away(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"low lower lowest " * 1000)
    drawn = in_a_terminal(["train", "a.txt", "--vocab-size", "260"])
    assert "counting" in drawn and "merging" in drawn and "━" in drawn
    assert drawn.rstrip().endswith("wrote tokenizer.json: 260 tokens, 2.83 bytes per token")


def test_a_terminal_gets_colors_unless_no_color(saved):
    line = ["encode", "--show", "--text", "lowest"]
    assert in_a_terminal(line).startswith("\x1b[38;5;16;48;5;")
    assert in_a_terminal(line, NO_COLOR="1") == "low|est\r\n"
    assert in_a_terminal(line, TERM="dumb") == "low|est\r\n"


@pytest.mark.parametrize(
    ("line", "start"),
    [
        ("encode --show --text lowest", "\x1b[38;5;16;48;5;"),
        ("tokens a.txt --show", "\x1b[1ma.txt, document 1\x1b[0m\n\x1b[38;5;16;48;5;"),
        ("explain 'newest 漢字'", ""),
        ("explain --train 'low low lower'", ""),
        ("compare tokenizer.json smaller.json a.txt", "\x1b[1mtokenizer.json needs "),
    ],
)
def test_color_is_used_if_forced_and_changes_nothing_else(
    run, saved, tiny, tmp_path, monkeypatch, line, start
):
    tiny.cut(262).save("smaller.json")
    (tmp_path / "a.txt").write_text("lower newest")
    arguments = shlex.split(line)
    plain = run(*arguments).text
    assert "\x1b" not in plain
    monkeypatch.setenv("FORCE_COLOR", "1")
    colored = run(*arguments).text
    assert colored.startswith(start) and "\x1b[38;5;16;48;5;" in colored
    # Tokens have colors in place of bars.
    expected = plain.replace("|", "") if "--show" in line else plain
    assert re.sub("\x1b\\[[0-9;]*m", "", colored) == expected
    monkeypatch.setenv("NO_COLOR", "1")
    assert run(*arguments).text == plain


def test_the_bar_of_a_terminal_obeys_no_color(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"low lower lowest " * 1000)
    drawn = in_a_terminal(["train", "a.txt", "--vocab-size", "260"], NO_COLOR="1")
    assert "━" in drawn
    assert "\x1b[38;5;" not in drawn and "\x1b[32m" not in drawn


@pytest.mark.parametrize("content", [b"", b"a", b"--", b"a--b", b"a--b--", b"-\r--b\n----c-\n"])
@pytest.mark.parametrize("flags", [(), ("--lines",), ("--separator", "--")])
def test_an_argument_standard_input_and_a_file_are_split_into_the_same_documents(
    run, saved, tmp_path, content, flags
):
    (tmp_path / "a.txt").write_bytes(content)
    shown = [
        json.loads(run("tokens", *source, *flags, "--show", "--json", stdin=content).out)
        for source in (["a.txt"], ["-"], ["--text", content.decode()])
    ]
    documents = [
        ["".join(token["bytes"] for token in found["tokens"]) for found in one["documents"]]
        for one in shown
    ]
    assert documents[0] == documents[1] == documents[2]


def test_standard_input_may_be_a_socket_or_a_file_that_was_read_in_part(saved, tmp_path):
    line = [sys.executable, "-m", "byteweld", "tokens", "-"]
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(b"low lower")
        ours.shutdown(socket.SHUT_WR)
        assert b"  9 " in subprocess.run(line, stdin=theirs, capture_output=True, check=True).stdout
    (tmp_path / "a.txt").write_bytes(b"header\nlow lower")
    with (tmp_path / "a.txt").open("rb", buffering=0) as file:
        file.seek(7)
        assert b"  9 " in subprocess.run(line, stdin=file, capture_output=True, check=True).stdout


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (FileNotFoundError(2, "No such file", "a.txt"), "a.txt: no such file"),
        (PermissionError(13, "Permission denied", b"a.txt"), "a.txt: permission denied"),
        (ValueError("one\n    and two"), "one and two"),
        (OSError("only words"), "only words"),
        (ValueError("use recipe 'modern' with pattern='gpt2' for more"), "use recipe 'modern' with --pattern gpt2 for more"),  # noqa: E501
        (ValueError("pass special_tokens={'<|x|>': 7, ...}"), "pass --special '<|x|>'=7"),
        (ValueError("pass special_tokens={text: id} or special_tokens={}"), "pass --special text=id or special_tokens={}"),  # noqa: E501
        (ValueError("x exists; pass overwrite=True to replace it"), "x exists; pass --force to replace it"),  # noqa: E501
        (ValueError("x exists; pass overwrite=True (--force) to replace it"), "x exists; pass --force to replace it"),  # noqa: E501
        (ValueError("out is ''; leave pattern out, or pass pattern=None"), "--out is ''; leave --pattern out, or pass --pattern none"),  # noqa: E501
        (ValueError("it differs: pattern was 'a'; field is 'b', out=x"), "it differs: --pattern was 'a'; field is 'b', --out x"),  # noqa: E501
        (KeyError("ours"), None),
        (TypeError("ours"), None),
    ],
)  # fmt: skip
def test_errors_become_one_line_with_options_instead_of_arguments(error, message, monkeypatch):
    flags = {"pattern": "--pattern", "special": "--special", "force": "--force", "out": "--out"}
    monkeypatch.setattr(_errors, "flags", flags)
    assert _errors.message_for_people(error) == message


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (["encode", "a.txt"], "encoding"),
        (["tokens", "a.txt"], "encoding"),
        (["inspect", "tokenizer.json", "--corpus", "a.txt"], "measuring"),
        (["compare", "tokenizer.json", "tokenizer.json", "a.txt"], "comparing"),
        (["prove", "tokenizer.json", "a.txt"], "proving"),
    ],
)
def test_verbs_that_encode_show_bytes_done_of_all_and_no_speed_of_so_little(
    run, saved, tmp_path, monkeypatch, line, what
):
    monkeypatch.setattr(_output, "_SECONDS_BETWEEN_LINES", 0)
    (tmp_path / "a.txt").write_bytes(b"low lower " * 1000)
    result = run(*line)
    assert result.code == 0
    shown = re.compile(rf"{what}: 10\.0 kB of 10\.0 kB, about \d+ ms left")
    assert shown.fullmatch(result.err.splitlines()[-1]), result.err


def test_progress_counts_the_bytes_of_compressed_files_and_says_so(
    run, saved, tmp_path, monkeypatch
):
    monkeypatch.setattr(_output, "_SECONDS_BETWEEN_LINES", 0)
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt.gz").write_bytes(gzip.compress(b"low lower " * 10_000))
    size = sum((tmp_path / f"{name}.txt.gz").stat().st_size for name in ("a", "b"))
    half, whole = run("tokens", "a.txt.gz", "b.txt.gz").err.splitlines()
    assert half.startswith(f"encoding: {size // 2} bytes of {size} bytes compressed, ")
    assert whole.startswith(f"encoding: {size} bytes of {size} bytes compressed, ")


def test_standard_input_has_no_total(run, saved, monkeypatch):
    monkeypatch.setattr(_output, "_SECONDS_BETWEEN_LINES", 0)
    (line,) = run("tokens", "-", stdin=b"low lower").err.splitlines()
    assert line == "encoding: 9 bytes"
