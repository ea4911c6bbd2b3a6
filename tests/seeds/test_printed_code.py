"""The code that the seeds print, run as it is printed, next to what byteweld gives for the same.

The lines are quoted to the letter; only indentation that the documents lost is restored. With the
documents at hand (../shared/seeds), tests check the quotes, and that no line of code is missing.
"""

from __future__ import annotations

import collections
import io
import itertools
import random
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

import byteweld
from byteweld import Tokenizer
from byteweld.cli import main
from byteweld.corpus import find_chunk_boundaries
from byteweld.reference.train import count_pairs, merge, pick

SEEDS = Path(__file__).parents[3] / "shared" / "seeds"
needs_seeds = pytest.mark.skipif(not SEEDS.is_dir(), reason=f"the seeds' documents: no {SEEDS}")

END = "<|endoftext|>"
BYTES = {byte: bytes([byte]) for byte in range(256)}
TEXTS = st.text(st.sampled_from("ab cdwork\n'sé€"), max_size=40)

BPETITE = "bpetite-core-algorithm.txt"
THEORY = "bpe-theory-worked.txt"
SCRATCH = "bpe-from-scratch.txt"
CK = "ck-kernel-bpe.txt"
BPE1 = "bpe1-section.txt"

SECTION = re.compile(r"=== (.+?): (.+)\n((?:(?!===).*\n)*)")
PRINTED = {  # (document, name) -> lines
    (document, name): lines
    for document, name, lines in SECTION.findall(
        (Path(__file__).parents[1] / "data" / "printed_code.txt").read_text("utf-8")
    )
}


def run(document: str, name: str, namespace: dict[str, Any]) -> dict[str, Any]:
    """Run printed lines; returns what they leave behind."""
    exec(compile(PRINTED[document, name], f"{document}: {name}", "exec"), namespace)
    return namespace


# ---------------------------------------------------------------------- commands

COMMANDS = {
    "default": "./ck-bpe-train --corpus-dir data/",
    "ascii": "./ck-bpe-train --ascii-only --corpus-dir data/",
    "quick reference": """\
./build/ck-bpe-train \\
  --corpus-dir docs/site/assets \\
  --vocab-size 320 \\
  --min-freq 2 \\
  --out tokenizer.json""",
}
FILES = {
    "icon.svg": b'<svg viewBox="0 0 24 24">\n  <path d="M12 2L2 22h20z"/>\n</svg>\n' * 20,
    "sub/notes.TXT": b"stroke style start path padding\n" * 40,
    "ignored.py": b"zzzz" * 1000,
}


def write_files(folder: Path) -> None:
    for name, data in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_commands_of_ck_run_as_they_are_printed(tmp_path, name):
    words = shlex.split(COMMANDS[name].replace("\\\n", " "))
    folder = tmp_path / words[words.index("--corpus-dir") + 1]
    write_files(folder)
    program = tmp_path / words[0]
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m byteweld train "$@"\n')
    program.chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", COMMANDS[name]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    recipe = "ck-ascii" if name == "ascii" else "ck"
    size = 320 if name == "quick reference" else 1024
    expected = byteweld.train(folder, vocab_size=size, recipe=recipe)
    assert byteweld.load(tmp_path / "tokenizer.json") == expected
    assert expected.training is not None
    assert expected.training.merges_planned == size - (102 if name == "ascii" else 260)
    assert b"zz" not in expected.vocab.ids


def test_every_option_of_ck_is_an_alias(tmp_path, monkeypatch, capfd):
    write_files(tmp_path / "data")
    (tmp_path / "reserved").write_text("<row>\n\n<|bos|>\n[SEP]\n")
    monkeypatch.chdir(tmp_path)
    theirs = (
        "--corpus-dir data --out theirs.json --vocab-size 200 --min-freq 3 --max-piece-bytes 4 "
        "--threads 2 --ext .svg,.py --binary-out-dir theirs --special-tokens-file reserved "
        "--ascii-only --verbose"
    )
    ours = (
        "data --recipe ck-ascii --out ours.json --vocab-size 200 --min-frequency 3 "
        "--max-token-bytes 4 --threads 1 --ext .svg,.py --binary-out ours --specials-file reserved"
    )
    assert main(["train", *theirs.split()]) == 0, capfd.readouterr().err
    assert main(["train", *ours.split()]) == 0, capfd.readouterr().err
    tok = byteweld.load("theirs.json")
    assert tok == byteweld.load("ours.json") == byteweld.load("theirs")
    assert tok.vocab.alphabet == "ascii"
    assert list(tok.vocab.special_tokens)[4:] == ["<row>", "[SEP]"]
    assert b"zz" in tok.vocab.ids
    assert b"stroke" not in tok.vocab.ids
    assert max(len(token) for _, token in tok.vocab.ordinary()) == 4
    for file in (tmp_path / "ours").iterdir():
        assert (tmp_path / "theirs" / file.name).read_bytes() == file.read_bytes()
    assert main(["train", "--help"]) == 0
    page = capfd.readouterr().out
    assert not [
        name for name in ("--corpus-dir", "--min-freq ", "--binary-out-dir") if name in page
    ]
    unlimited = "--corpus-dir data --max-piece-bytes 0 --out unlimited.json --threads 1"
    assert main(["train", *unlimited.split()]) == 0, capfd.readouterr().err
    longest = max(len(token) for _, token in byteweld.load("unlimited.json").vocab.ordinary())
    assert longest > 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--corpus-dir data data", "--corpus-dir and SOURCE ('data') cannot be combined"),
        ("--corpus-dir nowhere", "--corpus-dir is 'nowhere', which is not a folder"),
        ("--corpus-dir data/a.txt", "--corpus-dir is 'data/a.txt', which is not a folder"),
        ("--corpus-dir data --recipe plain", "--recipe is 'plain', but --corpus-dir means"),
        (
            "--corpus-dir data --ascii-only --recipe bpetite",
            "--recipe is 'bpetite', but --corpus-dir and --ascii-only mean recipe ck-ascii",
        ),
        ("--corpus-dir data --start x.json", "--corpus-dir cannot be used with --start"),
        ("data --min-freq 2 --min-frequency 2", "--min-freq and --min-frequency are the same"),
        ("data --max-piece-bytes 2 --max-token-bytes 2", "are the same option"),
        ("data --special-tokens-file f --specials-file f", "are the same option"),
        ("data --binary-out-dir d --binary-out d", "are the same option"),
        ("data --min-freq many", "--min-freq is 'many'; expected a whole number"),
        ("--vocab-size 320", "missing argument SOURCE..."),
    ],
)
def test_options_that_contradict_each_other_are_named(
    tmp_path, monkeypatch, capfd, arguments, words
):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_bytes(b"abab")
    monkeypatch.chdir(tmp_path)
    assert main(["train", *arguments.split()]) == 2
    err = capfd.readouterr().err
    assert words in err
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


# ---------------------------------------------------------------------- bpetite


def train_bpe(corpus: str, vocab_size: int) -> SimpleNamespace:
    """bpetite's `train_bpe` in byteweld: a TrainerResult with its four fields."""
    tok = byteweld.train(documents=[corpus], vocab_size=vocab_size, recipe="bpetite")
    return SimpleNamespace(
        vocab=tok.vocab.tokens,
        merges=tuple((left, right) for left, right, _ in tok.vocab.merge_ids),
        special_tokens=tok.vocab.special_tokens,
        mergeable_vocab_size=256 + len(tok.vocab.merge_ids),
    )


def select(pair_counts: dict[tuple[int, int], int]) -> tuple[int, int]:
    return pick(pair_counts, BYTES, "smallest-ids")


def test_the_worked_example_of_bpetite_runs_on_byteweld(monkeypatch):
    pretokenizer, trainer = ModuleType("bpetite._pretokenizer"), ModuleType("bpetite._trainer")
    tok = byteweld.train(documents=[], vocab_size=256, recipe="bpetite")
    pretokenizer.pretokenize = tok.pretokenize  # type: ignore[attr-defined]
    vars(trainer).update(train_bpe=train_bpe, _count_pairs=count_pairs, _select_best_pair=select)
    monkeypatch.setitem(sys.modules, "bpetite", ModuleType("bpetite"))
    monkeypatch.setitem(sys.modules, "bpetite._pretokenizer", pretokenizer)
    monkeypatch.setitem(sys.modules, "bpetite._trainer", trainer)
    seen = run(BPETITE, "worked example", {})  # its assertions hold
    assert seen["chunks"] == [b"ab", b" ab", b" ab"]
    assert seen["pair_counts"] == {(97, 98): 3, (32, 97): 2}
    assert seen["best"] == (97, 98)


@given(TEXTS, st.integers(256, 290))
def test_a_trainer_of_bpetites_printed_functions_learns_what_the_engine_learns(text, vocab_size):
    code: dict[str, Any] = {"END_OF_TEXT_TOKEN": END, "vocab": dict(BYTES)}
    for name in ("pattern", "count pairs", "select", "apply"):
        run(BPETITE, name, code)
    chunks = regex.findall(code["PRETOKENIZER_PATTERN"], text)
    words = Counter(tuple(chunk.encode()) for chunk in chunks)
    merges: list[tuple[int, int]] = []
    while len(merges) < vocab_size - 256 and (counts := code["_count_pairs"](words)):
        pair, new = code["_select_best_pair"](counts), 256 + len(merges)
        merges.append(pair)
        code["vocab"][new] = code["vocab"][pair[0]] + code["vocab"][pair[1]]
        merged: Counter[tuple[int, ...]] = Counter()
        for word, weight in words.items():
            merged[code["_apply_merge_to_word"](word, pair, new)] += weight
        words = merged
    assert code["PRETOKENIZER_PATTERN"] == byteweld.RECIPES["bpetite"].pattern
    reserved = run(BPETITE, "reserve", code | {"mergeable_vocab_size": 256 + len(merges)})
    ours = train_bpe(text, vocab_size)
    assert ours.special_tokens == reserved["special_tokens"]
    assert ours.merges == tuple(merges)
    assert ours.vocab == code["vocab"]


# ---------------------------------------------------------------------- worked theory

# The sketch has three gaps, "..."; SKETCH fills them.
SKETCH = (
    PRINTED[THEORY, "sketch"]
    .replace("vocab_size: int, ...", "vocab_size: int")
    .replace("self._reserve_specials_and_bytes(...)", "self._reserve_specials_and_bytes()")
    .replace(
        "collections.Counter(...)",
        "collections.Counter(tuple(bytes([b]) for b in text.encode()) for text in corpus)",
    )
)
STRINGS = ["I work", "I work", "I worked", "he works", "he worked"]


def replace_pair(pretoken: Any, pair: Any, new: Any) -> Any:
    return merge(pretoken, pair, new)  # the reference's works on any symbols


def make_sketch(corpus: Iterable[str], vocab_size: int, *, rule: Any = max) -> Any:
    """Train the seed's class, with the helpers that it does not print; `rule` picks the winner."""
    names: dict[str, Any] = {"collections": collections, "Iterable": Iterable, "max": rule}
    exec(SKETCH, names)

    class Sketch(names["BPETokenizer"]):  # type: ignore[misc]
        def _reserve_specials_and_bytes(self) -> None:
            for token in BYTES.values():
                self._add(token)

        def _add(self, token: bytes) -> None:
            self.bytes_to_id[token] = len(self.vocab)
            self.vocab.append(token)

        def _count_pairs(self, pretokens: Any) -> Any:
            corpus = {"corpus_with_counts": pretokens.items(), "pair_counts": Counter()}
            return run(THEORY, "count pairs", corpus)["pair_counts"]

        def _apply_merge(self, pretokens: Any, winner: Any) -> Any:
            merged: Counter[Any] = Counter()
            for pretoken, count in pretokens.items():
                merged[replace_pair(pretoken, winner, winner[0] + winner[1])] += count
            return merged

        def _record_merge(self, winner: Any) -> None:
            self.merges.append(winner)
            self._add(winner[0] + winner[1])

        def _merge_in_place(self, symbols: Any, a: bytes, b: bytes) -> Any:
            return list(replace_pair(tuple(symbols), (a, b), a + b))

    sketch = Sketch()
    sketch.train(corpus, vocab_size)
    return sketch


def smallest_of(pair_counts: Any, key: Any) -> Any:
    """Step 2 of the seed's prose: the key (-count, pair), and the minimum."""
    return min(pair_counts, key=lambda pair: (-pair_counts[pair], pair))


def test_the_sketch_learns_what_the_engine_learns_with_ties_to_the_greatest():
    sketch = make_sketch(STRINGS, 270)
    tok = byteweld.train(
        documents=STRINGS, vocab_size=270, recipe="plain", tie_break="greatest-bytes"
    )
    assert sketch.merges == tok.vocab.merges
    assert sketch.bytes_to_id == tok.vocab.ids


def test_the_sketch_with_the_rule_of_the_prose_is_the_recipe():
    for corpus in (STRINGS, ["he eats", "he eats", "I eat", "you eat"], ["mañana", "🦊🦊", ""]):
        sketch = make_sketch(corpus, 275, rule=smallest_of)
        tok = byteweld.train(documents=corpus, vocab_size=275, recipe="plain")
        assert sketch.merges == tok.vocab.merges
        assert dict(enumerate(sketch.vocab)) == tok.vocab.tokens


@given(TEXTS)
def test_the_sketch_encodes_and_decodes_as_the_engine(text):
    ids = THEORY_SKETCH.encode(text)
    assert ids == THEORY_TOK.encode(text)
    assert THEORY_SKETCH.decode(ids) == THEORY_TOK.decode(ids) == text
    assert THEORY_SKETCH.decode(ids[::-1]) == THEORY_TOK.decode(ids[::-1])


THEORY_SKETCH = make_sketch(STRINGS, 275, rule=smallest_of)
THEORY_TOK = byteweld.train(documents=STRINGS, vocab_size=275, recipe="plain")


def test_erratum_the_loop_of_step_3_leaves_the_corpus_as_it_was():
    corpus = [(b"w", b"o", b"r", b"k")]
    names = {"corpus": corpus, "winner": (b"o", b"r"), "replace_pair": replace_pair}
    printed = run(THEORY, "merge", names)
    assert printed["new_symbol"] == b"or"
    assert printed["pretoken"] == (b"w", b"or", b"k")  # what the engine goes on with
    assert corpus == [(b"w", b"o", b"r", b"k")]  # the name is rebound, the list is not changed
    tok = byteweld.train(documents=["work"], vocab_size=258, recipe="plain")
    assert tok.vocab.merges == [(b"o", b"r"), (b"or", b"k")]


# ---------------------------------------------------------------------- from scratch

DOCUMENTS = ["low low low low low lower lower", "newest € newest widest", "x" * 9, "abab abab"]


def pattern() -> Any:
    return run(SCRATCH, "pattern", {"re": regex})["PAT"]


def train_as_printed(documents: Iterable[str], vocab_size: int) -> dict[str, Any]:
    """The seed's trainer: its vocabulary, atoms, merge loop and `_apply_merge`, in its order."""
    code = run(SCRATCH, "vocab", {"special_tokens": [END]})
    run(SCRATCH, "apply merge", code)
    code |= {"merges": [], "pretoken_counts": Counter()}
    for document in documents:
        for match in pattern().finditer(document):
            token = run(SCRATCH, "atoms", {"match": match})["token"]
            code["pretoken_counts"][token] += 1
    code |= {"pair_counts": Counter(), "pair_to_pretokens": collections.defaultdict(set)}
    for pretoken, count in code["pretoken_counts"].items():
        for pair in itertools.pairwise(pretoken):
            code["pair_counts"][pair] += count
            code["pair_to_pretokens"][pair].add(pretoken)
    run(SCRATCH, "indices", code)
    while len(code["vocab"]) < vocab_size and code["pair_counts"]:
        run(SCRATCH, "merge loop", code)
    return code


def test_atoms_are_bytes_and_the_one_character_variant_has_atoms_that_no_merge_builds():
    tok = byteweld.train(documents=[], vocab_size=256, recipe="from-scratch")
    (match,) = pattern().finditer("€")
    right = run(SCRATCH, "atoms", {"match": match})["token"]
    assert tok.decode_tokens_bytes(tok.encode("€")) == list(right) == [b"\xe2", b"\x82", b"\xac"]
    (wrong,) = run(SCRATCH, "wrong atoms", {"match": match})["token"]
    assert wrong == "€".encode()
    assert wrong not in tok.vocab.ids


def scan_as_printed(data: bytes, start: int) -> int:
    names = {
        "file": io.BytesIO(data),
        "file_size": len(data),
        "initial_position": start,
        "split_special_token": END.encode(),
        "chunk_boundaries": [0, start, len(data)],
        "bi": 1,
    }
    return int(run(SCRATCH, "scan", names)["chunk_boundaries"][1])


def test_the_printed_scan_and_ours_find_the_same_boundaries():
    data = (b"once upon a time " * 900 + END.encode()) * 5
    for number in range(2, 7):
        found = find_chunk_boundaries(io.BytesIO(data), number, END)
        guesses = [len(data) // number * n for n in range(1, number)]
        assert found == sorted({0, len(data), *(scan_as_printed(data, g) for g in guesses)})


def test_erratum_the_printed_scan_misses_what_straddles_two_windows_and_ours_finds_it():
    half = 5000
    for shift in range(1, len(END)):
        at = half + 4096 - shift  # a window that starts at `half` ends inside the special token
        data = b"a" * at + END.encode() + b"b" * (2 * half - at - len(END))
        assert scan_as_printed(data, half) == len(data)
        assert find_chunk_boundaries(io.BytesIO(data), 2, END) == [0, at, len(data)]


@given(st.lists(TEXTS, max_size=4))
def test_the_printed_trainer_learns_what_the_engine_learns_on_any_text(documents):
    printed = train_as_printed(documents, 300)
    options: dict[str, Any] = {"recipe": "from-scratch", "special_tokens": [END]}
    tok = byteweld.train(documents=documents, vocab_size=300, **options)
    assert printed["merges"] == tok.vocab.merges
    assert printed["vocab"] == tok.vocab.tokens


class Printed:
    """The seed's `BPETokenizer(vocab, merges, special_tokens)`: its printed encode and decode."""

    def __init__(self, vocab: Any, merges: Any, special_tokens: list[str]) -> None:
        self.vocab = vocab
        self.merge_priorities = {pair: rank for rank, pair in enumerate(merges)}
        self.specials = special_tokens
        self.ids = {token: token_id for token_id, token in vocab.items()}

    def encode(self, text: str) -> list[int]:
        names = {"re": regex, "sorted_specials": sorted(self.specials, key=len, reverse=True)}
        cut = eval(PRINTED[SCRATCH, "split"].strip(), names)
        ids: list[int] = []
        for part in cut.split(text):
            if part in self.specials:
                ids.append(self.ids[part.encode()])
                continue
            for match in pattern().finditer(part):
                atoms = list(run(SCRATCH, "atoms", {"match": match})["token"])
                names = run(SCRATCH, "encode", {"self": self, "token_bytes": atoms})
                ids += [self.ids[token] for token in names["token_bytes"]]
        return ids

    def decode(self, ids: list[int]) -> str:
        return str(run(SCRATCH, "decode", {})["decode"](self, ids))


SPECIALS = [END, END * 2]
SCRATCH_TOK = byteweld.train(
    documents=DOCUMENTS, vocab_size=290, recipe="from-scratch", special_tokens=SPECIALS
)
SCRATCH_PRINTED = Printed(SCRATCH_TOK.vocab.tokens, SCRATCH_TOK.vocab.merges, SPECIALS)


@given(
    st.lists(st.sampled_from([*"lowernst €x", "lower", "newest", "don't", END, "<|endo"])).map(
        "".join
    )
)
def test_the_printed_tokenizer_encodes_and_decodes_as_the_engine(text):
    again = Tokenizer.from_merges(
        SCRATCH_TOK.vocab.tokens, SCRATCH_TOK.vocab.merges, special_tokens=SPECIALS
    )
    ids = SCRATCH_PRINTED.encode(text)
    assert ids == SCRATCH_TOK.encode(text, allowed_special="all")
    assert ids == again.encode(text, allowed_special="all")
    assert SCRATCH_PRINTED.decode(ids) == SCRATCH_TOK.decode(ids) == text
    assert SCRATCH_PRINTED.decode(ids[::-1]) == SCRATCH_TOK.decode(ids[::-1])


# ---------------------------------------------------------------------- ck


def train_as_pseudocode(corpus: list[bytes], vocab_size: int, min_freq: int) -> list[Any]:
    """The seed's "BPE Training", line by line."""
    symbols: dict[int, Any] = dict(enumerate(("<unk>", "<bos>", "<eos>", "<pad>")))
    symbols |= {4 + byte: bytes([byte]) for byte in range(256)}
    merges: list[Any] = []
    sequences = [tuple(4 + byte for byte in text) for text in corpus]
    while len(symbols) < vocab_size:
        pairs = Counter(pair for ids in sequences for pair in itertools.pairwise(ids))
        if not pairs:
            break
        left, right = min(pairs, key=lambda pair: (-pairs[pair], pair))
        if pairs[left, right] < min_freq:
            break
        new = len(symbols)
        symbols[new] = (left, right)
        merges.append((left, right, new))
        sequences = [merge(ids, (left, right), new) for ids in sequences]
    return merges


def test_the_pseudocode_of_ck_learns_and_encodes_as_the_engine():
    rng = random.Random(1)
    corpus = [" ".join(rng.choices(["path", "<path", "stroke", "à"], k=40)).encode()] * 2
    corpus += [data for name, data in FILES.items() if name != "ignored.py"]
    merges = train_as_pseudocode(corpus, 330, 2)
    tok = byteweld.train(documents=corpus, vocab_size=330, recipe="ck")
    assert [tuple(merge) for merge in tok.vocab.merge_ids] == merges
    for text in [*corpus, b"lowest", "à €".encode()]:
        ids: list[int] = []
        for word in regex.findall(byteweld.PATTERNS["gpt2"], text.decode()):
            symbols = tuple(4 + byte for byte in word.encode())
            for left, right, new in merges:  # "for (L, R, M) in merge_rules"
                symbols = merge(symbols, (left, right), new)
            ids += symbols
        assert tok.encode(text) == ids


# ---------------------------------------------------------------------- the documents themselves


def stripped(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


@needs_seeds
@pytest.mark.parametrize(("document", "name"), PRINTED)
def test_printed_lines_stand_in_their_document(document, name):
    page = stripped((SEEDS / document).read_text("utf-8"))
    lines = stripped(PRINTED[document, name])
    starts = [n for n, line in enumerate(page) if line == lines[0]]
    assert any(page[n : n + len(lines)] == lines for n in starts)


# A line of code, as opposed to prose: how Python's statements begin, or an assignment or a call.
CODE = re.compile(
    r"(def|class|from|import|assert|return) \S.*|(for|while|if) .*:|else:|break|continue|@\w+"
    r"|[\w.]+(\[[^]]*\])*(: [\w\[\], .]+)? [-+]?= .*|(\w+, )+\w+ = .*|\w+(\.\w+)+\(.*\)\)?"
)
# Lines that look like code and are none.
PROSE = {
    (CK, "for (L, R, M) in merge_rules:"),  # pseudocode, in train_as_pseudocode
    (CK, "for each word:"),
    (CK, "merges.append((L, R, M))"),
    (CK, "if pairs[(L,R)] < min_freq:"),
    (CK, "while (L, R) adjacent in symbols:"),
    (CK, "while |symbols| < vocab_size:"),
    (CK, "break"),
    (CK, "return ids"),
    (THEORY, 'merges = [("o","r")]. Vocab now: specials + 256 bytes + "or".'),
    (THEORY, 'merges = [("o","r"), ("or","k")].'),  # both in test_theory.py
    (THEORY, 'merges = [("o","r"), ("or","k"), ("w","ork")].'),
}


@needs_seeds
@pytest.mark.parametrize("document", [BPETITE, THEORY, SCRATCH, CK, BPE1])
def test_no_printed_line_of_code_is_missing(document):
    known = {
        line for (where, _), text in PRINTED.items() if where == document for line in stripped(text)
    }
    page = stripped((SEEDS / document).read_text("utf-8"))
    found = [line for line in page if CODE.fullmatch(line) and (document, line) not in PROSE]
    assert [line for line in found if line not in known] == []
    assert len(found) >= {BPETITE: 35, THEORY: 25, SCRATCH: 50}.get(document, 0)


@needs_seeds
def test_no_printed_command_is_missing():
    for document in (BPETITE, THEORY, SCRATCH, CK, BPE1):
        page = (SEEDS / document).read_text("utf-8")
        found = re.findall(r"^ *(?:\./|\$ )(?:.*\\\n)*.*$", page, flags=re.MULTILINE)
        assert found == (list(COMMANDS.values()) if document == CK else [])
