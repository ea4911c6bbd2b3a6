"""`byteweld quickstart`: train, save, load, encode, decode."""

from __future__ import annotations

import re
import shlex
import sysconfig
from pathlib import Path

import byteweld
from byteweld.cli import quickstart

EXPECTED = r"""corpus
  [\d,]+ files? of Python's standard library, \S+ [kM]B
  STDLIB
(  a small corpus: this Python was installed without most of its source files
)?
training
  [\d.]+ m?s(, \S+ [kM]B/s)?: counting [\d.]+ m?s, merging [\d.]+ m?s
  [\d,]+ pre-tokens, [\d,]+ distinct
  learned 243 of 243 merges; stopped because the vocabulary has the requested size
  500 tokens, \d\.\d\d bytes per token

first merges
    0  · \+ ·          -> ··         id 256    [\d,]+ times
(   [ \d]\d  .+ -> .+ id 2\d\d    [\d,]+ times
){11}
a sample in tokens
  .*def.*
(  .*
){3}
  195 bytes, \d+ tokens, \d\.\d\d bytes per token
  ids \d+( \d+){11} \.\.\.
  decodes to the same text

on the command line
  byteweld encode -t out/quickstart/tokenizer\.json --show --text 'hello world'
  byteweld explain -t out/quickstart/tokenizer\.json lowest
  byteweld studio out/quickstart/tokenizer\.json

in Python
  import byteweld

  tok = byteweld\.load\('out/quickstart/tokenizer\.json'\)
  ids = tok\.encode\("hello world"\)
  assert tok\.decode\(ids\) == "hello world"

wrote CURRENT/out/quickstart/tokenizer\.json: 500 tokens, \d\.\d\d bytes per token
"""


def test_running_twice_prints_the_same_complete_output(program, tmp_path):
    pattern = EXPECTED.replace("STDLIB", re.escape(sysconfig.get_path("stdlib")))
    pattern = pattern.replace("CURRENT", re.escape(str(tmp_path)))
    for _ in range(2):  # its own file may be there already
        result = program("quickstart", "--vocab-size", "500")
        assert (result.code, result.err) == (0, "")
        assert re.fullmatch(pattern, result.text), result.text
    tok = byteweld.load("out/quickstart/tokenizer.json")
    assert list(tok.vocab.special_tokens) == ["<|endoftext|>"]
    assert tok.vocab.pattern == byteweld.PATTERNS["o200k"]


def test_the_python_example_works(run, tmp_path):
    text = run("quickstart", "--vocab-size", "300", "--out", "my tokenizer").text
    shown = text.partition("in Python\n")[2].partition("\nwrote")[0]
    exec("\n".join(line.removeprefix("  ") for line in shown.splitlines()), {})
    assert (tmp_path / "my tokenizer" / "tokenizer.json").is_file()
    for line in re.findall(r"^  byteweld (encode|explain)(.*)$", text, re.MULTILINE):
        assert run(line[0], *shlex.split(line[1])).code == 0


def test_sources_are_those_of_the_standard_library(tmp_path):
    for name in ("b.py", "a/c.py", "a/test/t.py", "site-packages/s.py", "notes.txt", "empty.py"):
        file = tmp_path / "lib" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("" if name == "empty.py" else "pass\n")
    (tmp_path / "lib" / "loop").symlink_to(tmp_path / "lib")
    found = quickstart.find_sources(tmp_path / "lib")
    assert [path.relative_to(tmp_path / "lib") for path in found] == [Path("a/c.py"), Path("b.py")]


def test_few_sources_are_used_and_reported(run, tmp_path, monkeypatch):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a.py").write_text("def f():\n    return 1\n" * 100)
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path / "lib"))
    result = run("quickstart", "--vocab-size", "8192")
    assert result.code == 0
    assert "  1 file of Python's standard library, 2.2 kB\n" in result.text
    words = "a small corpus: this Python was installed without most of its source files"
    assert f"  {words}\n" in result.text
    assert "stopped because no pairs were left to merge" in result.text


def test_missing_sources_are_reported(run, tmp_path, monkeypatch):
    (tmp_path / "lib").mkdir()
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path / "lib"))
    result = run("quickstart")
    assert result == (
        2, b"", f"byteweld: {tmp_path / 'lib'}: no Python source files found to train on\n"
    )  # fmt: skip
