"""What reaches a terminal: no control character from a name, token, pattern, field or variable."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import byteweld
from byteweld._text import printable
from byteweld.cli import VERBS, _output, main
from tests.helpers.terminals import Shown, run_in_terminals

# A title, a color, CSI as one character, an override, an isolate, a line separator, DEL, BEL, BS.
HOSTILE = "\x1b]0;t\x07\x1b[31mr\x9b2J\u202eo\u2066\u2028\x7f\x08\x0b\x1b[8mx"
NAME = f"n{HOSTILE}\udcff\udc9b2J"  # bytes that are not UTF-8, too
FORGED = f"{NAME}\nwrote forged.json"
OURS = re.compile("\x1b\\[(?:[012]|38;5;\\d+|(?:1;)?38;5;\\d+;48;5;\\d+)m")
UNSAFE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)

# How each verb is run; TOK and CORPUS become paths, OUT a new one.
LINES: dict[str, list[list[str]]] = {
    "train": [["CORPUS", "--vocab-size", "270", "--out", "OUT"], ["CORPUS", "--vocab-size", "280",
              "--start", "TOK", "--out", "OUT"]],
    "extend": [["TOK", "CORPUS", "--add", "9", "--out", "OUT"],
               ["TOK", "--words", "CORPUS", "--out", "OUT"],
               ["TOK", "--word", f"a{HOSTILE}b", "--out", "OUT", "--json"]],
    "count": [["CORPUS"], ["CORPUS", "--out", "OUT"], ["CORPUS", "--json"]],
    "encode": [["-t", "TOK", "CORPUS", "--show", "--special-text", "special"],
               ["-t", "TOK", "CORPUS"], ["-t", "TOK", "--text", HOSTILE, "--show"]],
    "decode": [["-t", "TOK", "--ids", "27 93 48 59 116 7 155 50 74 258"], ["-t", "TOK", "CORPUS"]],
    "tokens": [["-t", "TOK", "CORPUS"],
               ["-t", "TOK", "CORPUS", "--show", "--special-text", "special"],
               ["-t", "TOK", "CORPUS", "--json"], ["-t", "TOK", "CORPUS", "--html", "OUT"]],
    "inspect": [["TOK"], ["TOK", "--json"], ["TOK", "--merges"], ["TOK", "--tree", HOSTILE],
                ["TOK", "--corpus", "CORPUS"], ["TOK", "--html", "OUT"]],
    "explain": [["-t", "TOK", "--text", f"low{HOSTILE}"], ["--train", "CORPUS"],
                ["-t", "TOK", "CORPUS"], ["-t", "TOK", "--text", HOSTILE, "--json"]],
    "convert": [["TOK", "OUT.tiktoken"], ["TOK", "OUT", "--to", "ck"],
                ["TOK", "OUT.json", "--json"]],
    "list": [[], ["--json"]],
    "fetch": [[], ["TOK"], ["gpt2"]],
    "tokenize": [["CORPUS", "-t", "TOK", "--out", "OUT", "--eot", "none"],
                 ["CORPUS", "-t", "TOK", "--out", "OUT", "--special-text", "fail"],
                 ["CORPUS", "-t", "TOK", "--out", "OUT", "--eot", "none", "--dry-run"],
                 ["CORPUS", "-t", "TOK", "--out", "OUT", "--eot-token", HOSTILE]],
    "merge": [["OUT"], ["CORPUS"]],
    "verify": [["OUT"], ["CORPUS", "--tokenizer", "TOK"]],
    "compare": [["TOK", "other.json", "CORPUS"], ["TOK", "other.json", "CORPUS", "--json"],
                ["TOK", "TOK", "CORPUS"]],
    "prove": [["TOK", "CORPUS"], ["TOK", "CORPUS", "--peer", "tiktoken", "--json"]],
    "megatron": [["--input", "CORPUS", "--output-prefix", "OUT", "--tokenizer-model", "TOK"]],
    "studio": [["TOK", "--no-browser"]],
    "quickstart": [["--out", "OUT", "--vocab-size", "9"]],
    "completion": [["bash"]],
}  # fmt: skip


def paths_of(folder: Path) -> dict[str, tuple[str, str, dict[str, str]]]:
    """Make the files of every kind of attack: TOK, CORPUS and the environment."""
    plain = byteweld.train(
        iter(["low low lower lowest newest"]), vocab_size=262, recipe="from-scratch"
    )
    plain.save(folder / "plain.json")
    byteweld.train(iter(["ab ab ab"]), vocab_size=258, recipe="from-scratch").save(
        folder / "other.json"
    )
    (folder / "plain.txt").write_text("low lower newest")
    (folder / "hostile.txt").write_text(f"low {HOSTILE} lower{HOSTILE}", newline="")
    hostile = HOSTILE.encode()
    merges = [(hostile[:1], hostile[1:2])]
    tokens = dict(plain.vocab.tokens)
    tokens = {i: t for i, t in tokens.items() if i < 256} | {256: hostile[:2], 257: hostile}
    merged = byteweld.Tokenizer.from_merges(
        tokens, merges, special_tokens={f"<{HOSTILE}>": 258}, pattern="gpt2"
    )
    merged.save(folder / "hostile.json")
    content = json.loads((folder / "plain.json").read_text())
    fields = {
        "type": content | {"model": content["model"] | {"type": HOSTILE}},
        "key": content | {HOSTILE: 1, "pre_tokenizer": {"type": HOSTILE, HOSTILE: HOSTILE}},
        "merges": content | {"model": content["model"] | {"merges": [HOSTILE]}},
        "added": content | {"added_tokens": [{"id": 3, "content": HOSTILE, HOSTILE: HOSTILE}]},
    }
    for name, value in fields.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    made = {
        "hostile name": (f"{NAME}.json", f"{NAME}.txt", {}),
        "hostile name with newline": (f"{FORGED}.json", f"{FORGED}.txt", {}),
        "missing file": (f"missing{NAME}.json", f"missing{NAME}.txt", {}),
        "hostile content": ("hostile.json", "hostile.txt", {}),
        **{f"hostile field {name}": (f"{name}.json", "plain.txt", {}) for name in fields},
        "hostile variable": ("missing_name", "plain.txt", {"BYTEWELD_PATH": NAME, "COLUMNS": NAME}),
        "hostile encoding": (
            "mine" + HOSTILE,
            "plain.txt",
            {"BYTEWELD_PATH": str(folder), "BYTEWELD_CACHE": NAME},
        ),
    }
    for name, source in [(NAME, "plain"), (FORGED, "plain")]:
        shutil.copy(folder / "plain.json", os.fsencode(folder / f"{name}.json"))
        shutil.copy(folder / f"{source}.txt", os.fsencode(folder / f"{name}.txt"))
    return made


def shown_by(folder: Path) -> dict[tuple[str, str], list[Shown]]:
    """Return the output of every verb under every attack."""
    runs: list[tuple[tuple[str, str], list[str], dict[str, str]]] = []
    for attack, (tok, corpus, environment) in paths_of(folder).items():
        for verb, lines in LINES.items():
            for number, line in enumerate(lines):
                out = f"{NAME}{len(runs)}"
                filled = [
                    part.replace("TOK", tok).replace("CORPUS", corpus).replace("OUT", out)
                    for part in line
                ]
                flags = {
                    "hostile content": ["--pattern", HOSTILE] if number and verb != "studio" else []
                }
                runs.append(((verb, attack), [verb, *filled], environment))
                if extra := flags.get(attack):
                    runs.append(((verb, "hostile pattern"), [verb, *filled, *extra], environment))
        if attack == "hostile name":
            for verb in LINES:
                options = (
                    [f"--{HOSTILE}"],
                    [HOSTILE] * 5,
                    ["--threads", NAME],
                    ["--pattern", f"({NAME}"],
                )
                for line in (
                    *options,
                    ["--special", NAME],
                    ["plain.json", "--special", f"{NAME}=999999"],
                ):
                    runs.append(((verb, "hostile arguments"), [verb, *line], {}))
            for name in (HOSTILE, f"--{NAME}", FORGED):
                runs.append((("overview", "hostile arguments"), [name], {}))
    results = run_in_terminals([(line, env) for _, line, env in runs], folder)
    by_attack: dict[tuple[str, str], list[Shown]] = {}
    for (key, _, _), result in zip(runs, results, strict=True):
        by_attack.setdefault(key, []).append(result)
    return by_attack


def test_every_verb_is_attacked():
    assert LINES.keys() == VERBS.keys()


def test_nothing_that_a_terminal_obeys_comes_out(tmp_path, monkeypatch):
    for variable in ("BYTEWELD_HOME", "BYTEWELD_MIRROR", "HF_HUB_CACHE", "TIKTOKEN_CACHE_DIR"):
        monkeypatch.setenv(variable, NAME)
    shown = shown_by(tmp_path)
    for key, results in shown.items():
        for result in results:
            text = result.out.decode()  # the bytes 0x80-0xFF do not come out raw, either
            assert UNSAFE.search(OURS.sub("", text)) is None, (key, text)
            assert "Traceback" not in text, (key, text)
            assert result.code in (0, 1, 2, 130), (key, result)
            assert not re.search(r"^wrote forged", text, re.MULTILINE), (key, text)
    # The attacks do reach the terminal, written out, or this test would pass without testing.
    for verb, attack in [
        ("inspect", "hostile name"),
        ("tokens", "hostile name"),
        ("inspect", "missing file"),
        ("prove", "missing file"),
        ("train", "hostile name"),
        ("decode", "hostile content"),
        ("encode", "hostile content"),
        ("inspect", "hostile pattern"),
        ("inspect", "hostile field type"),
        ("overview", "hostile arguments"),
        ("fetch", "hostile variable"),
    ]:
        written = b"".join(result.out for result in shown[verb, attack])
        assert re.search(rb"001B|\\x1b|\\u001b|\\u\{1b\}", written), (verb, attack, written)
    assert any(result.code == 0 for result in shown["inspect", "hostile name"])
    assert any(result.code == 0 for result in shown["inspect", "hostile content"])


def test_decoded_text_is_raw_in_a_pipe(program, tmp_path):
    paths_of(tmp_path)
    result = program("decode", "-t", "hostile.json", "--ids", "257 155")
    assert result.out == HOSTILE.encode() + b"\x9b"


def test_json_keeps_its_meaning(run, tmp_path):
    paths_of(tmp_path)
    result = run("inspect", "hostile.json", "--json")
    assert UNSAFE.search(result.text) is None
    assert list(json.loads(result.text)["special_tokens"]) == [f"<{HOSTILE}>"]
    result = run("tokens", "-t", "plain.json", f"{NAME}.txt", "--json")
    assert json.loads(result.text)["files"][0]["name"] == f"{NAME}.txt"


def test_tracebacks_and_warnings_are_written_out(program, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import warnings, byteweld.cli._command as c\n"
        "def broken(*rest):\n"
        f"    warnings.warn({HOSTILE!r})\n"
        f"    raise ZeroDivisionError({HOSTILE!r})\n"
        "c.call = broken\n"
    )
    result = program("decode", PYTHONPATH=str(tmp_path))
    assert result.code == 2
    assert "Traceback" in result.err and "UserWarning" in result.err
    assert UNSAFE.search(result.err) is None


def test_printable_leaves_ordinary_text_alone():
    text = "naïve café, 你好, 🙂👩‍🚀 עברית\ttab\nline"
    assert printable(text) == text
    assert printable("\u202eabc\ud800\udc80") == "⟨U+202E⟩abc⟨U+D800⟩⟨80⟩"


def test_only_our_own_colors_pass(monkeypatch, capsysbinary):
    monkeypatch.setenv("FORCE_COLOR", "1")
    _output.lines([_output.bold("a\x1b[31mb")])
    assert capsysbinary.readouterr().out == "\x1b[1ma⟨U+001B⟩[31mb\x1b[0m\n".encode()
    monkeypatch.setenv("NO_COLOR", "1")
    _output.lines(["\x1b[1m"])
    assert capsysbinary.readouterr().out == "⟨U+001B⟩[1m\n".encode()


def test_a_message_is_one_line(run):
    assert main([FORGED]) == 2
    result = run("inspect", FORGED)
    assert result.code == 2 and result.err.count("\n") == 1
