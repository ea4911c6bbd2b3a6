"""The program as a whole: verbs, help, wrong use, exit codes, pipes, interrupts, documentation."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import byteweld
from byteweld import cli
from byteweld.cli import VERBS, _command, _docs, _output

NO_TOKENIZER = (
    "tokenizer.json: no such file in this folder; name another tokenizer (`byteweld list` shows "
    "those on this machine), or make this one with `byteweld train`"
)


# ---------------------------------------------------------------------------- help


@pytest.fixture
def documentation():
    """The page of the reference that has all help texts in full."""
    page = Path(cli.__file__).parents[3] / "docs" / "reference" / "cli.md"
    if not page.parent.is_dir():
        pytest.skip(f"no docs folder at {page.parent}: not a checkout")
    return page.read_text(encoding="utf-8")


def test_the_documentation_is_current(documentation):
    assert documentation == _docs.page(), "run: python -m byteweld.cli._docs"


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["help"]])
def test_the_program_alone_lists_the_verbs(run, documentation, arguments):
    result = run(*arguments)
    assert (result.code, result.err) == (0, "")
    assert f"```text\n{result.text}```\n" in documentation


def test_the_version_is_that_of_the_package(run):
    assert run("--version") == (0, f"byteweld {byteweld.__version__}\n".encode(), "")


@pytest.mark.parametrize("name", VERBS)
def test_the_help_of_a_verb_is_one_page_with_examples_of_itself(
    run, documentation, monkeypatch, name
):
    monkeypatch.setattr(_output, "width", lambda: _docs._WIDTH)
    result = run(name, "--help")
    assert (result.code, result.err) == (0, "")
    assert f"## {name}\n\n```text\n{result.text}```\n" in documentation
    assert run(name, "-h") == run("help", name) == result
    head, _, examples = result.text.partition("\nExamples:\n")
    assert head.startswith(f"Usage: byteweld {name} [OPTIONS]")
    assert f"byteweld {name} " in examples + " "


@pytest.mark.parametrize("name", VERBS)
def test_every_option_has_a_sentence_of_help(name):
    command = _command.Command(name, cli.module_of(name))
    for parameter in command.params:
        if parameter.group != "Hidden":
            assert parameter.help[0].isupper(), parameter.name
    hidden = {flag for p in command.params if p.group == "Hidden" for flag in p.flags}
    assert not hidden or name in ("train", "megatron"), hidden


@pytest.mark.parametrize("name", VERBS)
def test_the_examples_use_only_options_that_exist(name):
    module = cli.module_of(name)
    seen = 0
    for line in module.EXAMPLES.strip().splitlines():
        for part in re.split(r"\s\|\s", line):
            words = shlex.split(part.partition(" > ")[0].replace("$SLURM_ARRAY_TASK_ID", "3"))
            if words[0] != "byteweld":
                continue
            seen += 1
            other = cli.module_of(words[1])
            _command.Command(words[1], other).parse(words[2:])  # or raises
    assert seen >= 2


def test_only_the_module_of_the_chosen_verb_is_imported():
    code = (
        "import sys; from byteweld.cli import main; main(['decode', '--ids', 'x'])\n"
        "print(sorted(m for m in sys.modules if m.startswith('byteweld.cli.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "'byteweld.cli.decode'" in done.stdout
    for name in set(VERBS) - {"decode"}:
        assert f"'byteweld.cli.{name}'" not in done.stdout


def test_a_small_input_needs_no_slow_imports(saved, tmp_path):
    """numpy takes longer to import than everything else; rich is only for visible progress."""
    (tmp_path / "a.txt").write_bytes(b"low lower")
    lines = [
        ["encode", "a.txt"],
        ["encode", "--show", "--text", "low"],
        ["decode", "--ids", "258"],
        ["tokens", "a.txt"],
        ["explain", "low"],
        ["explain", "--train", "low low"],
        ["inspect", "tokenizer.json"],
        ["inspect", "--bytes", "a.txt"],
        ["count", "a.txt"],
        ["train", "a.txt", "--vocab-size", "257", "--out", "out.json"],
        *([name, "--help"] for name in VERBS if name != "compare"),
    ]
    code = (
        "import sys; from byteweld.cli import main\n"
        f"for line in {lines!r}:\n"
        "    assert main(line) == 0, line\n"
        "    slow = {'numpy', 'rich', 'pyarrow', 'asyncio'} & set(sys.modules)\n"
        "    assert not slow, (line, slow)\n"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)


# ---------------------------------------------------------------------------- wrong use


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian"], "no such verb 'trian'; did you mean 'train'?"),
        (["xyzzy"], "no such verb 'xyzzy'; run `byteweld` for a list of verbs"),
        (["--hlep"], "no such option '--hlep'; did you mean '--help'?"),
        (["count", "--lnes"], "count has no option '--lnes'; did you mean '--lines'?"),
        (["decode", "--idz=x"], "decode has no option '--idz'; did you mean '--ids'?"),
        (["decode", "--xyzzy"], "decode has no option '--xyzzy'"),
        (["train", "x", "--vocab-size", "many"], "--vocab-size is 'many'; expected a whole number, or one with k for 1024"),  # noqa: E501
        (["count", "x", "--threads", "0"], "--threads is 0; it must be at least 1"),
        (["train", "x"], "recipe 'modern' needs a vocabulary size; pass --vocab-size N"),
        (["count", "nowhere"], "nowhere: no such file or folder"),
        (["encode", "--text", "b"], NO_TOKENIZER),
        (["inspect"], NO_TOKENIZER),
        (["convert", "tokenizer.json", "a.tiktoken"], NO_TOKENIZER),
        (["compare", "tokenizer.json", "nothing", "x"], NO_TOKENIZER),
        (["inspect", "mine.json"], "mine.json: no such file or directory"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_line_on_stderr_and_exit_2(run, arguments, message):
    assert run(*arguments) == (2, b"", f"byteweld: {message}\n")


def test_the_real_program_shows_no_traceback_for_a_mistake(program):
    assert program("tokens", "nowhere", "-t", "nothing") == (
        2,
        b"",
        "byteweld: nothing: no such file, and no encoding of that name; `byteweld list` shows the "
        "names that can be loaded\n",
    )


def test_a_bug_keeps_its_traceback(monkeypatch):
    def broken(name, module, arguments):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(_command, "call", broken)
    with pytest.raises(ZeroDivisionError):
        cli.main(["decode"])


# ---------------------------------------------------------------------------- pipes and interrupts


def test_a_broken_pipe_is_a_success(saved, tmp_path):
    (tmp_path / "long.txt").write_bytes(b"low lower newest widest " * 100_000)
    writer = subprocess.Popen(
        [sys.executable, "-m", "byteweld", "encode", "long.txt"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert writer.stdout is not None and writer.stderr is not None
    assert writer.stdout.read(1)
    writer.stdout.close()
    assert writer.stderr.read() == b""
    writer.stderr.close()
    assert writer.wait(60) == 0


# Lines of every verb that write to stdout or read stdin, and their codes: in general, and if the
# stream that they use is closed. The answer of compare and prove is their exit code.
_USES_OF_STREAMS = {
    "train": ("- --vocab-size 260 --out new.json", "in", 0, 2),
    "extend": ("tokenizer.json - --add 3 --out new.json", "in", 0, 2),
    "count": ("-", "in out", 0, 2),
    "encode": ("--text low", "out", 0, 2),
    "decode": ("--ids 65", "out", 0, 2),
    "tokens": ("-", "in out", 0, 2),
    "inspect": ("tokenizer.json", "out", 0, 2),
    "explain": ("--text low", "out", 0, 2),
    "convert": ("tokenizer.json new.tiktoken --json", "out", 0, 2),
    "list": ("", "out", 0, 2),
    "fetch": ("", "out", 0, 2),
    "tokenize": ("a.txt --eot none --out data", "out", 0, 2),
    "compare": ("tokenizer.json tokenizer.json a.txt", "out", 0, 0),
    "prove": ("tokenizer.json a.txt", "out", 0, 0),
    "merge": ("missing", "out", 2, 2),
    "verify": ("missing", "out", 2, 2),
    "megatron": ("--input a.jsonl --output-prefix m --tokenizer-model tokenizer.json", "out", 0, 2),
    "studio": ("missing.json", "out", 2, 2),
    "quickstart": ("--vocab-size 9", "out", 2, 2),
    "completion": ("bash", "out", 0, 2),
}
_CLOSED = {"<&-": "in", ">&-": "out", "2>&-": "err", "<&- >&- 2>&-": "in out err"}


def test_every_verb_has_a_test_of_closed_streams():
    assert _USES_OF_STREAMS.keys() == VERBS.keys()


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("closed", _CLOSED)
def test_a_closed_stream_is_an_error_only_for_what_needs_it(saved, tmp_path, closed, verb):
    (tmp_path / "a.txt").write_text("low lower")
    (tmp_path / "a.jsonl").write_text('{"text": "low lower"}')
    arguments, used, code, code_if_closed = _USES_OF_STREAMS[verb]
    line = f'exec "$0" -m byteweld {verb} {arguments} {closed}'
    done = subprocess.run(
        ["bash", "-c", line, sys.executable], capture_output=True, input=b"low lower", check=False
    )
    is_closed = not set(used.split()).isdisjoint(_CLOSED[closed].split())
    assert done.returncode == (code_if_closed if is_closed else code), done
    assert b"Traceback" not in done.stderr and b"Exception ignored" not in done.stderr
    if is_closed and code_if_closed != code and closed in ("<&-", ">&-"):
        name = f"std{_CLOSED[closed]}"
        assert f"byteweld: {name}: the standard stream is closed; ".encode() in done.stderr
    # Nothing was written into a file that got the descriptor of a closed stream.
    if verb in ("train", "extend") and done.returncode == 0:
        byteweld.load("new.json")
    if verb == "convert":
        byteweld.load("new.tiktoken")


@pytest.mark.parametrize("verb", VERBS)
def test_a_python_program_without_standard_streams_can_call_main(
    saved, tmp_path, monkeypatch, verb
):
    (tmp_path / "a.txt").write_text("low lower")
    (tmp_path / "a.jsonl").write_text('{"text": "low lower"}')
    arguments, _, code, code_if_closed = _USES_OF_STREAMS[verb]
    with monkeypatch.context() as patch:
        for name in ("stdin", "stdout", "stderr"):
            patch.setattr(sys, name, None)
        assert cli.main([verb, *arguments.split()]) == code_if_closed
        assert cli.main([verb, "--no-such-option"]) == 2
        assert cli.main(["--help"]) == 2
        if code == code_if_closed:
            return
        for name in ("stdin", "stdout", "stderr"):
            closed = Path(os.devnull).open()
            closed.close()
            patch.setattr(sys, name, closed)
        assert cli.main([verb, *arguments.split(), *FORCE.get(verb, [])]) == code_if_closed


FORCE = {"convert": ["--force"]}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("verb", ["inspect", "encode", "completion"])
@pytest.mark.parametrize("is_buffered", [True, False])
def test_a_full_stdout_is_one_line_that_names_it(saved, monkeypatch, verb, is_buffered):
    monkeypatch.setenv("PYTHONUNBUFFERED", "" if is_buffered else "1")
    line = f'exec "$0" -m byteweld {verb} {_USES_OF_STREAMS[verb][0]} > /dev/full'
    done = subprocess.run(["bash", "-c", line, sys.executable], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (2, b"byteweld: stdout: no space left on device\n")


@pytest.mark.parametrize("is_buffered", [True, False])
def test_a_broken_pipe_does_not_turn_a_no_into_a_yes(saved, tmp_path, monkeypatch, is_buffered):
    monkeypatch.setenv("PYTHONUNBUFFERED", "" if is_buffered else "1")
    byteweld.train(documents=["ab " * 9], vocab_size=257).save(tmp_path / "other.json")
    code = (
        "import os, sys, byteweld.cli\n"
        "read, write = os.pipe(); os.dup2(write, 1); os.close(write); os.close(read)\n"
        "sys.exit(byteweld.cli.main(['compare', 'tokenizer.json', 'other.json', 'a.txt']))"
    )
    (tmp_path / "a.txt").write_text("low lower ab ab")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (1, b"")


def test_a_pipe_that_breaks_at_the_end_is_a_success(saved):
    """The output fits the buffer, so that the write fails only when the program ends."""
    code = (
        "import os, sys, byteweld.cli\n"
        "read, write = os.pipe(); os.dup2(write, 1); os.close(write); os.close(read)\n"
        "sys.exit(byteweld.cli.main(['encode', '--text', 'low']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_interrupt_is_one_line_and_exits_130(saved):
    program = subprocess.Popen(
        [sys.executable, "-m", "byteweld", "encode", "--lines"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert program.stdin is not None and program.stdout is not None
    program.stdin.write((b"low " * 250_000 + b"\n") * 9)  # more than is encoded at once
    program.stdin.flush()
    assert program.stdout.read(1)  # it is at work, and waits for the rest
    program.send_signal(signal.SIGINT)
    _, err = program.communicate(timeout=60)
    assert (program.returncode, err) == (130, b"interrupted\n")


def test_an_interrupt_inside_a_verb_exits_130(run, monkeypatch):
    def interrupted(name, module, arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(_command, "call", interrupted)
    assert run("decode") == (130, b"", "interrupted\n")


def test_an_interrupt_that_a_library_turned_into_another_error_exits_130(saved):
    code = (
        "import os, signal, sys, byteweld.cli\n"
        "def broken(name, module, arguments):\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    except KeyboardInterrupt:\n"
        "        raise SystemError('the library is confused')\n"
        "from byteweld.cli import _command\n"
        "_command.call = broken\n"
        "sys.exit(byteweld.cli.main())\n"
    )
    done = subprocess.run([sys.executable, "-c", code, "decode"], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (130, b"interrupted\n")


def test_an_ignored_interrupt_stays_ignored(saved):
    code = (
        "import os, signal, sys, byteweld.cli\n"
        "from byteweld.cli import _command\n"
        "call = _command.call\n"
        "def interrupted(*arguments):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    return call(*arguments)\n"
        "_command.call = interrupted\n"
        "sys.exit(byteweld.cli.main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "encode", "--text", "low"],
        capture_output=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"258\n", b"")


def test_only_one_module_uses_stdout_and_stderr():
    for file in Path(cli.__file__).parent.glob("*.py"):
        if file.name != "_output.py":
            assert not re.search(r"sys\.std(out|err)", file.read_text()), file.name
