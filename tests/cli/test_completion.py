"""`byteweld completion`: scripts for shells, tried in a real bash."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from byteweld.cli import VERBS


@pytest.fixture
def complete(run, tmp_path):
    """Complete the last of some words in a real bash."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash")
    (tmp_path / "script.bash").write_bytes(run("completion", "bash").out)

    def call(*words):
        quoted = " ".join(f"'{word}'" for word in words)
        script = (
            "source ./script.bash\n"
            f"COMP_WORDS=(byteweld {quoted}); COMP_CWORD={len(words)}\n"
            '_byteweld; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(
            [bash, "--norc", "-c", script], capture_output=True, text=True, check=True
        )
        assert done.stderr == ""
        return done.stdout.split()

    return call


def test_bash_completes_verbs(complete):
    assert complete("") == [*VERBS, "--help", "--version"]
    assert complete("co") == ["count", "convert", "compare", "completion"]
    assert complete("--v") == ["--version"]


def test_bash_completes_the_options_of_the_verb(complete):
    assert complete("encode", "--sp") == ["--special-text", "--special"]
    assert complete("compare", "a.json", "b.json", "--no") == ["--no-fail", "--no-special"]
    assert "-t" in complete("tokens", "-")
    assert "--corpus-dir" not in complete("train", "--")  # hidden


def test_bash_completes_the_values_of_options(complete):
    assert complete("encode", "--special-text", "") == ["fail", "text", "special"]
    assert complete("train", "--recipe", "b") == ["bpetite", "bpe1"]


def test_bash_leaves_files_to_bash(complete):
    assert complete("encode", "scr") == []
    assert complete("encode", "--tokenizer", "scr") == []


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_every_verb_and_option(run, shell):
    script = run("completion", shell).text
    for name in VERBS:
        assert name in script
    assert ("--special-text[" if shell == "zsh" else "-l special-text") in script
    assert "fail text special" in script
    program = shutil.which(shell)
    if program is not None:
        subprocess.run([program, "-n"], input=script.encode(), check=True)
