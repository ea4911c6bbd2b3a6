"""The C reader, c/byteweld.h: compiled here under sanitizers, and compared with the engine."""

from __future__ import annotations

import gzip
import json
import math
import os
import random
import re
import struct
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

import byteweld
from byteweld import FormatError, Tokenizer, Vocabulary, formats
from byteweld.formats import bpe1
from tests.harness.files import mutate
from tests.helpers import exports
from tests.helpers.c_reader import (
    C_FLAGS,
    CPP_FLAGS,
    HEADER,
    ROOT,
    SANITIZER_OPTIONS,
    SANITIZERS,
    STATUSES,
    Loaded,
    Reader,
    compile_program,
    compiler,
)
from tests.helpers.sections import LOOSE, REFUSED, section, signed
from tests.helpers.vocabularies import with_traits

CC = compiler("CC", "cc", "gcc", "clang")
CXX = compiler("CXX", "c++", "g++", "clang++")
DRIVER = ROOT / "tests" / "c" / "driver.c"
EXAMPLE = ROOT / "c" / "example.c"

pytestmark = pytest.mark.skipif(
    CC is None, reason="no C compiler: install gcc or clang, or set CC, to test c/byteweld.h"
)

# How ck's runtime splits bytes (docs/formats/ck-binary.md), for Python's `re`.
OTHER = rb"[^A-Za-z0-9 \n\t\r]"
CK_RUNTIME = re.compile(
    rb"P?[A-Za-z]+|[0-9]| ?P+\n*| +\n+| +(?= [A-Za-z0-9])| [A-Za-z]+| [0-9]| +|\n+|[\s\S]".replace(
        b"P", OTHER
    )
)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The driver and the example, with every warning an error, under the sanitizers if possible."""
    assert CC is not None
    folder = tmp_path_factory.mktemp("c")
    (folder / "probe.c").write_text("int main(void) { return 0; }\n")
    probe = compile_program(CC, *SANITIZERS, folder / "probe.c", "-o", folder / "probe")
    sanitizers = SANITIZERS if probe.returncode == 0 else ()
    built = {}
    for source in (DRIVER, EXAMPLE):
        built[source.stem] = folder / source.stem
        made = compile_program(CC, *C_FLAGS, *sanitizers, "-O1", source, "-o", folder / source.stem)
        assert made.returncode == 0, made.stderr
    if sanitizers:
        built["sanitized"] = folder
    return built


@pytest.fixture(scope="module")
def reader(programs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    running = Reader(programs["driver"], tmp_path_factory.mktemp("log") / "stderr")
    yield running
    running.close()


# ---------------------------------------------------------------------- vocabularies


def named_section(vocab: Vocabulary, name: bytes) -> bytes:
    """Return a section of version 2 with the name of a pattern that the engine may not know."""
    plain = bpe1.to_bytes(with_traits(vocab, pattern=None), version=2)
    return signed(plain[:36] + struct.pack("<I", len(name)) + plain[40:72] + name + plain[72:-4])


@cache
def trained(recipe: str, seed: int) -> Tokenizer:
    """Train on random text, so that each seed has other merges."""
    rng = random.Random(seed)
    letters = rng.choice(["ab", "aab \n", "the quick\n12", 'xyz;="<> \n0', "aé日🦊 "])
    if recipe == "ck-ascii":
        letters = "".join(filter(str.isascii, letters)) or "ab "
    text = "".join(rng.choices(letters, k=rng.choice([50, 400, 3000])))
    size = rng.choice([300, 340, 420])
    return byteweld.train(iter([text]), vocab_size=size, recipe=recipe, min_frequency=1)


def random_text(rng: random.Random) -> bytes:
    kind = rng.randrange(5)
    size = rng.choice([0, 1, 2, 3, 7, 20, 60, 200])
    if kind == 0:
        return rng.randbytes(size)
    if kind == 1:
        return bytes(rng.choices(b"ab", k=size))
    if kind == 2:
        return bytes(rng.choices(b"aB  \n\t\r1;=", k=size))
    if kind == 3:
        return bytes([rng.randrange(256)]) * size
    return "".join(rng.choices('the quick\n12 aé日🦊xyz;="<>', k=size)).encode()


def split_and_encode(tok: Tokenizer, text: bytes) -> list[int]:
    """Encode with ck's runtime: split by Python's `re`, each pre-token by the engine."""
    pieces = CK_RUNTIME.findall(text)
    assert b"".join(pieces) == text
    return [i for ids in tok.encode_ordinary_batch(pieces) for i in ids]


def without_pattern(tok: Tokenizer) -> Tokenizer:
    return Tokenizer(with_traits(tok.vocab, pattern=None))


# ---------------------------------------------------------------------- compiling


def test_the_sanitizers_were_on(programs: dict[str, Path]) -> None:
    if "sanitized" not in programs:
        pytest.skip(f"{CC} cannot link the sanitizers; the other tests ran without them")
    assert b"__asan_init" in programs["driver"].read_bytes()


def test_the_header_is_declarations_in_every_other_source_file(tmp_path: Path) -> None:
    assert CC is not None
    (tmp_path / "one.c").write_text(
        '#define BYTEWELD_IMPLEMENTATION\n#include "byteweld.h"\n#include "byteweld.h"\n'
    )
    (tmp_path / "two.c").write_text(
        '#include "byteweld.h"\n'
        "int main(void) { return byteweld_message(BYTEWELD_OK)[0] != 'n'; }\n"
    )
    files = [tmp_path / "one.c", tmp_path / "two.c"]
    for optimization in ("-O0", "-O2"):
        made = compile_program(CC, *C_FLAGS, optimization, *files, "-o", tmp_path / "two")
        assert made.returncode == 0, made.stderr
        assert subprocess.run([tmp_path / "two"], check=False).returncode == 0


@pytest.mark.skipif(CXX is None, reason="no C++ compiler: install g++ or clang++, or set CXX")
@pytest.mark.parametrize("source", [DRIVER, EXAMPLE], ids=["driver", "example"])
def test_the_header_is_cpp_too(tmp_path: Path, source: Path) -> None:
    assert CXX is not None
    made = compile_program(CXX, *CPP_FLAGS, "-c", source, "-o", tmp_path / "object.o")
    assert made.returncode == 0, made.stderr


def test_the_code_in_its_readme_compiles(tmp_path: Path) -> None:
    assert CC is not None
    readme = (ROOT / "c" / "README.md").read_text("utf-8")
    define, include, body = readme.split("```c\n")[1].split("```")[0].split("\n", 2)
    head = (
        "int use(const uint8_t *section, size_t section_size, const uint8_t *text,"
        " size_t text_size, uint32_t *ids, size_t capacity)"
    )
    (tmp_path / "readme.c").write_text(
        f"#include <stdio.h>\n#include <stdlib.h>\n{define}\n{include}\n"
        f"{head};\n{head}\n{{\n{body}\nreturn count == 0;\n}}\n"
    )
    made = compile_program(CC, *C_FLAGS, "-c", tmp_path / "readme.c", "-o", tmp_path / "readme.o")
    assert made.returncode == 0, made.stderr


def test_it_neither_allocates_nor_reads_files() -> None:
    text = HEADER.read_text("utf-8")
    assert set(re.findall(r"#include <(.*?)>", text)) == {"stddef.h", "stdint.h", "string.h"}
    assert not re.search(r"\b(malloc|calloc|realloc|alloca|fopen)\b", text)


def test_every_status_has_a_message() -> None:
    body = HEADER.read_text("utf-8").split("const char *byteweld_message", 2)[2]
    for status in STATUSES:
        assert re.search(rf"case BYTEWELD_{status}:\n +return \"", body)


# ---------------------------------------------------------------------- the same ids


def test_the_fixture(reader: Reader) -> None:
    loaded = reader.load_section(section())
    assert loaded.is_ok
    assert (loaded.vocab_size, loaded.merge_count, loaded.pattern) == (262, 2, "NO_PATTERN")
    assert loaded.roles == {"bos": 256, "eos": 257, "pad": 258, "unk": 259}
    assert reader.encode(b"the") == [261]
    assert reader.encode(b"") == []
    assert reader.encode(b"<|bos|>th\0\xff") == [*b"<|bos|>", 260, 0, 255]
    assert reader.decode([256, 261, 0, 255, 257]) == b"<|bos|>the\0\xff<|eos|>"
    assert reader.decode([]) == b""


def test_the_lowest_rank_goes_first_in_any_order_of_records(reader: Reader) -> None:
    tokens = [(260, b"bc"), (261, b"ab")]
    for ranks, expected in (((0, 1), [97, 260]), ((4_000_000_000, 7), [261, 99])):
        merges = [(98, 99, 260, ranks[0]), (97, 98, 261, ranks[1])]
        assert reader.load_section(section(tokens, merges)).is_ok
        assert reader.encode(b"abc") == expected
    assert reader.load_section(section([(260, b"aa")], [(97, 97, 260, 5)], vocab_size=261)).is_ok
    assert reader.encode(b"aaaaa") == [260, 260, 97]


@pytest.mark.parametrize("mode", ["bytes", "ascii"])
def test_the_real_runtime_gives_the_same_ids(reader: Reader, shared: Path, mode: str) -> None:
    loaded = reader.load_export(shared / "ck" / f"export_{mode}")
    assert loaded.is_ok
    assert loaded.pattern == ("CK_RUNTIME" if mode == "bytes" else "NO_PATTERN")
    with gzip.open(shared / "ck" / f"runtime_{mode}.jsonl.gz") as lines:
        rows = [json.loads(line) for line in lines]
    assert len(rows) == (2884 if mode == "bytes" else 2138)
    for row in rows:
        text = row["text"].encode()
        assert reader.encode(text) == row["ids"], row["text"]
        assert reader.decode(row["ids"]) == text


def _exported(reader: Reader, tok: Tokenizer, folder: Path) -> Loaded:
    tok.save(folder / "ck", format="ck", overwrite=True)
    return reader.load_export(folder / "ck")


def _with_runtimes_pattern(reader: Reader, tok: Tokenizer, folder: Path) -> Loaded:
    return reader.load_section(named_section(tok.vocab, b"ck-runtime"))


Open = Callable[[Reader, Tokenizer, Path], Loaded]
# The recipe, how it is opened, the pattern of the reader, and what gives the same ids.
SAME_IDS: dict[str, tuple[str, Open, str, Callable[[Tokenizer, bytes], list[int]]]] = {
    **{
        f"version {version}": (
            "bpe1",
            lambda reader, tok, _, v=version: reader.load_section(
                bpe1.to_bytes(tok.vocab, version=v)
            ),
            *("NO_PATTERN", lambda tok, text: tok.encode_ordinary(text)),
        )
        for version in (1, 2)
    },
    "the runtime's pattern": (
        *("ck", _exported, "CK_RUNTIME"),
        lambda tok, text: split_and_encode(without_pattern(tok), text),
    ),
    "a section with it": ("bpe1", _with_runtimes_pattern, "CK_RUNTIME", split_and_encode),
    "the engine's form of it": (
        *("bpe1", _with_runtimes_pattern, "CK_RUNTIME"),
        lambda tok, text: Tokenizer(with_traits(tok.vocab, pattern="ck-runtime")).encode_ordinary(
            text
        ),
    ),
    "ascii mode": (
        *("ck-ascii", _exported, "NO_PATTERN", lambda tok, text: tok.encode_ordinary(text)),
    ),
}


@pytest.mark.parametrize("name", SAME_IDS)
def test_random_texts_have_the_same_ids(reader: Reader, tmp_path: Path, name: str) -> None:
    recipe, load, pattern, encode = SAME_IDS[name]
    for seed in range(15):
        tok = trained(recipe, seed)
        loaded = load(reader, tok, tmp_path)
        assert (loaded.is_ok, loaded.pattern, loaded.vocab_size) == (True, pattern, len(tok.vocab))
        assert recipe != "ck-ascii" or loaded.roles["unk"] == 0
        rng = random.Random(f"{name} {seed}")
        for _ in range(100):
            text = random_text(rng)
            ids = reader.encode(text)
            assert ids == encode(tok, text)
            assert reader.decode(ids) == tok.decode_bytes(ids)
            assert recipe == "ck-ascii" or reader.decode(ids) == text


def test_reserved_special_tokens_and_gpt2s_letters_are_read(reader: Reader, tmp_path: Path) -> None:
    tok = byteweld.train(
        iter(["a\x7f\xa0 é à \xad" * 9]),
        vocab_size=290,
        recipe="ck",
        special_tokens=["<|é|>", "<|end|>"],
    )
    tok.save(tmp_path / "ck", format="ck")
    files = [(tmp_path / "ck" / name).read_bytes() for name in exports.NAMES]
    assert reader.load_export(files).is_ok
    text = "a\x7f\xa0 é à \xad<|é|>".encode()
    expected = split_and_encode(without_pattern(tok), text)
    assert reader.encode(text) == expected
    assert reader.decode([4, 5, *expected]) == "<|é|><|end|>".encode() + text

    from byteweld._byte_letters import BYTE_TO_CHAR, CK_BYTE_TO_CHAR

    letters = {ck: BYTE_TO_CHAR[byte] for byte, ck in CK_BYTE_TO_CHAR.items()}
    strings = files[2].decode().split("\0")[:-1]
    strings = strings[:6] + ["".join(letters[c] for c in text) for text in strings[6:]]
    raw = [text.encode() + b"\0" for text in strings]
    starts = [sum(map(len, raw[:n])) for n in range(len(raw))]
    files[1:3] = [struct.pack(f"<{len(raw)}i", *starts), b"".join(raw)]
    assert reader.load_export(files).is_ok
    assert reader.encode(text) == expected


def test_another_pattern_is_only_decoded(reader: Reader) -> None:
    tok = byteweld.train(iter(["the thin"]), vocab_size=262, recipe="bpe1", encode_pattern="gpt2")
    loaded = reader.load_section(bpe1.to_bytes(tok.vocab))
    assert (loaded.is_ok, loaded.pattern) == (True, "OTHER_PATTERN")
    answer, ids = reader.try_encode(b"the")
    assert (answer.status, ids) == ("DECODE_ONLY", [])
    assert reader.decode(tok.encode("the thin")) == b"the thin"


def test_an_unknown_id_is_refused_with_its_index(reader: Reader) -> None:
    reader.load_section(section())
    for wrong in (262, 2**31, 2**32 - 1):
        answer, text = reader.try_decode([97, 261, wrong, 97])
        assert (answer.status, answer.offset, text) == ("UNKNOWN_ID", 2, b"")


# ---------------------------------------------------------------------- hostile files


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_section_is_refused_with_its_offset(reader: Reader, name: str) -> None:
    data, offset, _, status = REFUSED[name]
    loaded = reader.load_section(data)
    assert loaded.answer.status == status
    if not loaded.is_ok:
        assert (loaded.answer.file, loaded.answer.offset) == ("SECTION", offset)
    if "billions" in name:
        assert loaded.needed == 0


def test_a_section_cut_at_any_byte_is_refused(reader: Reader) -> None:
    for data in (section(), LOOSE, section(version=2, pattern=b"ck-runtime")):
        assert reader.load_section(data).is_ok
        for length in range(len(data)):
            assert not reader.load_section(data[:length]).is_ok


def test_every_flipped_bit_of_version_2_is_found(reader: Reader) -> None:
    good = section(version=2, pattern=b"ck-runtime")
    for bit in range(8 * len(good)):
        data = bytearray(good)
        data[bit // 8] ^= 1 << bit % 8
        assert not reader.load_section(bytes(data)).is_ok


def use(reader: Reader, loaded: Loaded, rng: random.Random) -> None:
    """Encode and decode with whatever was loaded; a sanitizer would end the process."""
    for text in (rng.randbytes(40), b"the thin thread  12\n\n", b"aaaaaaaaa"):
        answer, ids = reader.try_encode(text)
        if answer.status == "OK" and loaded.roles["unk"] not in ids:
            assert reader.decode(ids) == text
    reader.try_decode([rng.randrange(loaded.vocab_size) for _ in range(20)])


def test_a_mutated_section_is_read_as_the_engine_reads_it(reader: Reader) -> None:
    rng = random.Random(20261117)
    tok = byteweld.train(iter(["the thin thread"]), vocab_size=268, recipe="bpe1")
    good = bpe1.to_bytes(tok.vocab)
    accepted = 0
    for _ in range(3000):
        data = mutate.change_bytes(rng, rng.choice([good, good, section(), LOOSE]))
        loaded = reader.load_section(data)
        try:
            vocab = bpe1.read(data)
        except FormatError:
            assert not loaded.is_ok, data
            continue
        assert loaded.is_ok, (data, loaded)
        accepted += 1
        tok = Tokenizer(vocab)
        use(reader, loaded, rng)
        for text in (b"the thin thread", rng.randbytes(20)):
            assert reader.encode(text) == tok.encode_ordinary(text)
    assert 50 < accepted < 2000


def test_a_mutated_section_of_version_2_that_is_signed_again(reader: Reader) -> None:
    rng = random.Random(20261118)
    good = section(version=2, pattern=b"ck-runtime")[:-4]
    accepted = 0
    for _ in range(3000):
        data = signed(mutate.change_bytes(rng, good))
        loaded = reader.load_section(data)
        try:
            bpe1.read(data)
        except FormatError as error:
            # C checks neither fingerprints nor, before all else, the names of patterns.
            if "unknown pattern" not in str(error):
                assert loaded.is_ok == ("the fingerprint is" in str(error)), error
        if loaded.is_ok:
            accepted += 1
            use(reader, loaded, rng)
    assert 50 < accepted < 2900


@pytest.fixture(params=["ck", "ck-ascii"])
def export(request: pytest.FixtureRequest, tmp_path: Path) -> list[bytes]:
    size = 268 if request.param == "ck" else 110
    documents = iter(["the thin\nthread"])
    tok = byteweld.train(documents, vocab_size=size, recipe=request.param, min_frequency=1)
    tok.save(tmp_path / "ck", format="ck")
    return [(tmp_path / "ck" / name).read_bytes() for name in exports.NAMES]


def load_in_python(folder: Path, files: list[bytes]) -> Vocabulary | None:
    folder.mkdir(exist_ok=True)
    for name, data in zip(exports.NAMES, files, strict=True):
        (folder / name).write_bytes(data)
    try:
        return formats.load(folder, format="ck")
    except FormatError:
        return None


def test_an_export_cut_at_any_byte_is_refused(reader: Reader, export: list[bytes]) -> None:
    assert reader.load_export(export).is_ok
    for number, data in enumerate(export):
        end = len(data) - (number == 0)  # the JSON file ends with a newline
        for length in range(end):
            files = [*export[:number], data[:length], *export[number + 1 :]]
            assert not reader.load_export(files).is_ok, (number, length)


def test_a_mutated_export_is_read_as_the_engine_reads_it(
    reader: Reader, export: list[bytes], tmp_path: Path
) -> None:
    rng = random.Random(20261119)
    accepted = 0
    for _ in range(600):
        number = rng.randrange(4)
        files = [*export]
        files[number] = mutate.change_bytes(rng, files[number])
        loaded = reader.load_export(files)
        vocab = load_in_python(tmp_path / "mutated", files)
        assert loaded.is_ok == (vocab is not None), (number, files[number], loaded)
        if vocab is not None:
            accepted += 1
            assert loaded.vocab_size == len(vocab)
            use(reader, loaded, rng)
    assert accepted > 5


@pytest.mark.parametrize("name", exports.REFUSED)
def test_a_wrong_export_is_refused(reader: Reader, name: str) -> None:
    wrong = exports.REFUSED[name]
    loaded = reader.load_export([wrong.files[file] for file in exports.NAMES])
    assert not loaded.is_ok
    if wrong.file == exports.META:
        assert (loaded.answer.status, loaded.answer.file, loaded.needed) == ("BAD_META", "META", 0)


def test_the_folder_in_an_export_does_not_matter(reader: Reader) -> None:
    files = exports.export_of(exports.AB)
    files[exports.META] = files[exports.META].replace(b': "vocab_', b': "some/where/vocab_')
    assert reader.load_export(list(files.values())).is_ok


# ---------------------------------------------------------------------- growth


def doubling() -> bytes:
    """Return a section that merges runs of `a` to tokens of 2, 4, ... 1024 bytes."""
    tokens = [(260 + n, b"a" * 2 ** (n + 1)) for n in range(10)]
    merges = [(97, 97, 260, 0)] + [(259 + n, 259 + n, 260 + n, n) for n in range(1, 10)]
    return section(tokens, merges, vocab_size=270)


HOSTILE = {"one letter": b"a", "many pairs": bytes(range(97, 123)) + b" \n", "in reverse": b"abcd"}


@pytest.mark.parametrize("name", HOSTILE)
def test_steps_grow_as_n_log_n(reader: Reader, name: str) -> None:
    """The number of comparisons, which no clock or machine changes, for n and 4n bytes."""
    if name == "one letter":
        assert reader.load_section(doubling()).is_ok
    else:
        corpus = HOSTILE[name] * 200
        tok = byteweld.train(iter([corpus]), vocab_size=400, recipe="bpe1")
        merges = list(tok.vocab.merge_ids)
        if name == "in reverse":  # the longest tokens have the lowest ranks
            merges.reverse()
        vocab = Vocabulary(tok.vocab.tokens, merges, **tok.vocab.traits())
        assert reader.load_section(bpe1.to_bytes(vocab)).is_ok
    steps = []
    most = 1 << (20 if name == "one letter" else 18)
    for size in (most // 4, most):
        text = (HOSTILE[name] * (size // len(HOSTILE[name]) + 1))[:size]
        answer, ids = reader.try_encode(text)
        assert answer.status == "OK"
        assert len(ids) <= size
        assert answer.steps <= 8 * size * math.log2(size)
        steps.append(answer.steps)
    assert steps[1] <= 4.6 * steps[0] + 1000


def test_loading_a_hostile_section_grows_as_n_log_n(reader: Reader) -> None:
    steps = []
    for count in (5_000, 20_000):
        rng = random.Random(count)
        names = rng.sample(range(1 << 24), count)  # in no order, with one long common prefix
        tokens = [
            (260 + n, b"prefix" * 4 + name.to_bytes(3, "big")) for n, name in enumerate(names)
        ]
        loaded = reader.load_section(section(tokens, [], vocab_size=260 + count))
        assert loaded.is_ok
        assert loaded.needed < 4 * len(section(tokens, []))
        steps.append(loaded.answer.steps)
    assert steps[1] <= 5 * steps[0]


# ---------------------------------------------------------------------- the example


def run_example(
    programs: dict[str, Path], *arguments: str | Path, given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    command = [programs["example"], *map(str, arguments)]
    return subprocess.run(
        command, input=given, capture_output=True, check=False, env=os.environ | SANITIZER_OPTIONS
    )


def test_the_example_encodes_and_decodes(programs: dict[str, Path], tmp_path: Path) -> None:
    text = "the thin thread, é\n".encode() * 50
    tok = trained("bpe1", 3)
    tok.save(tmp_path / "x.bpe1")
    data = (tmp_path / "x.bpe1").read_bytes()
    (tmp_path / "model.bin").write_bytes(b"weights" + data + b"more")
    trained("ck", 3).save(tmp_path / "folder", format="ck")
    for arguments in (
        (tmp_path / "x.bpe1",),
        (tmp_path / "model.bin", "7", str(len(data))),
        (tmp_path / "folder",),
    ):
        encoded = run_example(programs, "encode", *arguments, given=text)
        assert (encoded.returncode, encoded.stderr) == (0, b"")
        if arguments[0] != tmp_path / "folder":
            assert list(map(int, encoded.stdout.split())) == tok.encode_ordinary(text)
        decoded = run_example(programs, "decode", *arguments, given=encoded.stdout)
        assert (decoded.returncode, decoded.stdout, decoded.stderr) == (0, text, b"")


def test_the_example_says_what_is_wrong(programs: dict[str, Path], tmp_path: Path) -> None:
    assert run_example(programs).returncode == 2
    missing = run_example(programs, "encode", tmp_path / "nothing")
    assert (missing.returncode, b"No such file" in missing.stderr) == (2, True)
    (tmp_path / "x.bpe1").write_bytes(section()[:-1])
    broken = run_example(programs, "encode", tmp_path / "x.bpe1")
    assert broken.returncode == 2
    expected = "section: byte 57: the header claims more tokens or merges than the section holds\n"
    assert broken.stderr.decode().endswith(expected)
    (tmp_path / "x.bpe1").write_bytes(section())
    unknown = run_example(programs, "decode", tmp_path / "x.bpe1", given=b"97\n262\n")
    assert unknown.returncode == 2
    assert unknown.stderr == b"example: standard input: id number 2 is 262: no token has this id\n"
    for words in (["0", "x"], ["0", ""], ["-1", "5"], ["0", "90"]):
        assert run_example(programs, "encode", tmp_path / "x.bpe1", *words).returncode == 2
    trained("ck", 3).save(tmp_path / "folder", format="ck")
    folder = run_example(programs, "encode", tmp_path / "folder", "0", "5")
    assert b"is a folder, which has no OFFSET and LENGTH" in folder.stderr
