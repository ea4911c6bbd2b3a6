"""Each kind of file: its bases, how to mutate it with its checksums, and how it is read and used.

`make(rng)` draws a case, a dict of file name to content. `run(files, folder, number)` writes it,
reads it and uses it; returns whether it was accepted, and raises what the reader raises.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import shutil
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import byteweld
from byteweld import Tokenizer, loading
from byteweld.counts import Counts
from byteweld.formats._sidecar import digest
from byteweld.training.report import Training
from tests.harness import draw
from tests.harness.files import bases, mutate
from tests.harness.files.bases import Files
from tests.harness.files.use import Disagreement, attempt, check_plain_reader, use

THOROUGH_EVERY = 32  # cases; the others are used briefly

# What a change may raise where an earlier one broke the file.
BROKEN = (ValueError, LookupError, TypeError, AttributeError, RecursionError, struct.error)

Change = Callable[[Random, Files, Files], Files]  # a case, and another to take parts from


@dataclass(frozen=True)
class Kind:
    """A kind of file. The first of `changes` that a draw selects is applied, several times."""

    name: str
    bases: Callable[[], Sequence[Files]]
    changes: Sequence[tuple[float, Change]]  # with weights
    run: Callable[[Files, Path, int], bool]
    finish: Callable[[Random, Files], Files] = field(default=lambda rng, files: files)

    def make(self, rng: Random, *, times: int | None = None) -> Files:
        """Draw a case."""
        every = self._bases
        files = dict(rng.choice(every))
        other = rng.choice(every)
        weights = [weight for weight, _ in self.changes]
        drawn = rng.choice((1, 1, 1, 2, 2, 3))
        for _ in range(drawn if times is None else times):
            (change,) = rng.choices([change for _, change in self.changes], weights)
            try:
                files = change(rng, files, other)
            except BROKEN:
                files = change_bytes(rng, files, other)
        return self.finish(rng, files)

    @property
    def _bases(self) -> Sequence[Files]:
        return _made(self.bases)


@cache
def _made(make: Callable[[], Sequence[Files]]) -> Sequence[Files]:
    found = list(make())
    if not found:
        raise ValueError("a kind without a base")
    return found


def write(files: Files, folder: Path) -> None:
    """Make a folder hold exactly these files."""
    wanted = {folder / name for name in files}
    for path in list(folder.rglob("*")):
        if path not in wanted and not path.is_dir():
            path.unlink()
    for name, data in files.items():
        path = folder / name
        if "/" in name:
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


# ---------------------------------------------------------------------- changes of any file


def change_bytes(rng: Random, files: Files, other: Files) -> Files:
    name = rng.choice(sorted(files))
    return files | {name: mutate.change_bytes(rng, files[name], other.get(name, b""))}


def lose_file(rng: Random, files: Files, other: Files) -> Files:
    name = rng.choice(sorted(files))
    if len(files) == 1 or rng.random() < 0.5:
        return files | {name: b""}
    return {key: data for key, data in files.items() if key != name}


def swap_file(rng: Random, files: Files, other: Files) -> Files:
    """Take a file of another vocabulary."""
    name = rng.choice(sorted(files))
    return files | {name: other.get(name, files[name])}


def on_json(name: str, edit: Callable[[Random, Any], Any]) -> Change:
    """Change the parsed content of a file."""

    def change(rng: Random, files: Files, other: Files) -> Files:
        return files | {name: mutate.dump(edit(rng, mutate.load(files[name])))}

    return change


def json_changes(name: str, *edits: Callable[[Random, Any], Any]) -> list[tuple[float, Change]]:
    """Changes of bytes and of values, and those that keep a document likely valid."""
    own = [(5.0 / len(edits), on_json(name, edit)) for edit in edits]
    tree = partial(mutate.change_json, deep=0.8)
    return [(2.0, change_bytes), (4.0, on_json(name, tree)), (0.1, lose_file), *own]


# ---------------------------------------------------------------------- loading a vocabulary


def load_and_use(
    files: Files, folder: Path, number: int, *, target: str, format: str, options: Any = None
) -> bool:
    write(files, folder)
    options = options or {}
    tok = byteweld.load(folder / target, format=format, **options)
    check_plain_reader(tok.vocab, folder / target, format, options)
    thorough = number % THOROUGH_EVERY == 0
    if thorough:
        attempt(lambda: byteweld.load(folder / target, **options))  # recognized
    use(tok, folder / "saved", number=number, thorough=thorough)
    return True


# ---------------------------------------------------------------------- huggingface


def edit_pipeline(rng: Random, document: Any) -> Any:
    """Other normalizers, steps, added tokens, templates."""
    vocab = document["model"]["vocab"]
    number = rng.randrange(6)
    if number == 0:
        document["normalizer"] = draw.normalizer(rng)
    elif number == 1:
        document["pre_tokenizer"] = draw.pre_tokenizer(rng)
    elif number == 2:
        used = max(vocab.values(), default=0)
        known = rng.choice((*vocab.values(), 0))
        at = rng.choice((used + 1, used + 2, 5000, known, 2**31, 2**32 - 2))
        document["added_tokens"].append(draw.added_token(rng, at))
    elif number == 3:
        for token in document["added_tokens"]:
            for flag in ("single_word", "lstrip", "rstrip", "normalized", "special"):
                token[flag] = rng.random() < 0.4
    elif number == 4:
        ids = [(token["content"], token["id"]) for token in document["added_tokens"]]
        document["post_processor"] = draw.post_processor(rng, ids or list(vocab.items())[-3:])
    else:
        key = rng.choice(("ignore_merges", "fuse_unk", "byte_fallback"))
        document["model"][key] = rng.random() < 0.5
        document["model"]["unk_token"] = rng.choice((None, "", "a", "<|end|>"))
    return document


def edit_model(rng: Random, document: Any) -> Any:
    """Other tokens and merges, often consistent ones."""
    model = document["model"]
    vocab, merges = model["vocab"], model["merges"]
    texts = list(vocab)
    number = rng.randrange(7)
    one, other = rng.choice(texts), rng.choice(texts)
    if number < 3:
        vocab.setdefault(one + other, rng.choice((max(vocab.values()) + 1, rng.randrange(700))))
        merges.insert(rng.randint(0, len(merges)), [one, other])
    elif number == 3 and merges:
        at, to = rng.randrange(len(merges)), rng.randrange(len(merges))
        merges[at], merges[to] = merges[to], merges[at]
    elif number == 4 and merges:
        pair = merges[rng.randrange(len(merges))]
        merges.append(pair[::-1] if rng.random() < 0.5 else pair)
    elif number == 5:
        del vocab[one]
    else:
        vocab[one] = rng.choice((*mutate.EDGES, vocab[other]))
    return document


def huggingface_bases() -> list[Files]:
    return [
        {"tokenizer.json": files["tokenizer.json"]}
        for files in bases.of_format("huggingface", "tokenizer.json")
    ] + list(bases.real_json())


# ---------------------------------------------------------------------- sidecars and configs


def sign_sidecar(main: Sequence[str], sidecar: str) -> Callable[[Random, Files], Files]:
    """Put the digest of the changed file into its sidecar, mostly."""

    def finish(rng: Random, files: Files) -> Files:
        if sidecar not in files or rng.random() < 0.05:
            return files
        try:
            value = mutate.load(files[sidecar])
        except (ValueError, RecursionError):
            return files
        if not isinstance(value, dict) or "sha256" not in value:
            return files
        found = json.dumps(value["sha256"]).encode()
        fresh = digest(b"".join(files.get(name, b"") for name in main))
        return files | {sidecar: files[sidecar].replace(found, json.dumps(fresh).encode())}

    return finish


def edit_sidecar(rng: Random, value: Any) -> Any:
    number = rng.randrange(5)
    if number == 0:
        value["pattern"] = rng.choice((None, draw.any_pattern(rng)))
    elif number == 1:
        text = rng.choice(("<s>", "ab", "a", " ", "the", "x" * 200, "ab" * 50, "漢"))
        known = rng.choice((300, 301, 5000, *value["special_tokens"].values()))
        value["special_tokens"][text] = known
    elif number == 2:
        value["roles"][rng.choice(("bos", "eos", "pad", "unk"))] = rng.choice((0, 97, 299, 300))
    elif number == 3:
        value["alphabet"] = rng.choice(("bytes", "ascii", "partial"))
    else:
        specials = list(value["special_tokens"].items())
        rng.shuffle(specials)
        value["special_tokens"] = dict(specials[:-1])
    return value


def sidecar_bases() -> list[Files]:
    return [
        files
        for name in ("r.tiktoken",)
        for files in bases.of_format("tiktoken", name)
        if "r.tiktoken.byteweld.json" in files
    ]


def run_sidecar(files: Files, folder: Path, number: int) -> bool:
    return load_and_use(files, folder, number, target="r.tiktoken", format="tiktoken")


def config_bases() -> list[Files]:
    made = bases.of_format("huggingface", "tokenizer.json")
    config = {"bos_token": "<s>", "eos_token": {"content": "<|end|>"}, "pad_token": None, "x": [1]}
    fallback = {"tokenizer_config.json": json.dumps(config).encode()}
    return [fallback | files for files in made[:4]]


def run_config(files: Files, folder: Path, number: int) -> bool:
    """A config makes no file unreadable, but saving refuses to merge into a bad one."""
    write(files, folder)
    path = folder / "tokenizer.json"
    if number % THOROUGH_EVERY == 0:
        tok = byteweld.load(path, format="huggingface")
        use(tok, folder / "saved", number=number)
        _ = tok.vocab.roles
    else:
        tok = byteweld.load(path, format="huggingface")
    tok.save(path, overwrite=True)
    byteweld.load(path)
    return True


def edit_config(rng: Random, value: Any) -> Any:
    key = rng.choice(("bos_token", "eos_token", "pad_token", "unk_token", "other"))
    text = rng.choice(("<s>", "<|end|>", "a", "", "no such", None, "Ġthe"))
    value[key] = rng.choice((text, {"content": text}, {"content": text, "lstrip": True}))
    return value


# ---------------------------------------------------------------------- bpe1, ck


def change_bpe1(rng: Random, files: Files, other: Files) -> Files:
    """Change a field of the header, a token record or a merge record."""
    data = files["v.bpe1"]
    if len(data) < 36:
        return change_bytes(rng, files, other)
    tokens, merges = struct.unpack_from("<2I", data, 28)
    at, starts = 36, []
    while at + 8 <= len(data) and len(starts) < min(tokens, 5000):
        starts.append(at)
        at += 8 + struct.unpack_from("<I", data, at + 4)[0]
    number = rng.randrange(6)
    if number == 0:
        data = mutate.change_u32(rng, data, 4, 36)
    elif number == 1 and starts:
        start = rng.choice(starts)
        data = mutate.change_u32(rng, data, start, start + 8)
    elif number == 2:
        data = mutate.change_u32(rng, data, at, at + 16 * min(merges, 5000))
    elif number == 3 and at < len(data):  # swap the ranks of two merges
        count = (len(data) - at) // 16
        ends = [at + 16 * rng.randrange(count) + 12 for _ in range(2)] if count else []
        if ends:
            one, two = (data[end : end + 4] for end in ends)
            made = bytearray(data)
            made[ends[0] : ends[0] + 4], made[ends[1] : ends[1] + 4] = two, one
            data = bytes(made)
    elif number == 4:
        data = _grow_bpe1(rng, data, at)
    else:  # drop the last merge
        head = struct.pack("<I", max(0, merges - 1) % 2**32)
        data = data[:32] + head + data[36 : max(36, len(data) - 16)]
    return files | {"v.bpe1": data}


def _grow_bpe1(rng: Random, data: bytes, at: int) -> bytes:
    """Add a token and its merge, with the counts to match."""
    size, *_, tokens, merges = struct.unpack_from("<7I", data, 8)
    if max(size, tokens, merges) > 5000:
        return data
    left, right = rng.randrange(256), rng.randrange(256)
    record = struct.pack("<2I2B", size, 2, left, right)
    rank = rng.choice((merges, merges + 7, 2**32 - 1))
    merge = struct.pack("<4I", left, right, size, rank)
    made = data[:at] + record + data[at:] + merge
    return (
        made[:8]
        + struct.pack("<I", size + 1)
        + made[12:28]
        + struct.pack("<2I", tokens + 1, merges + 1)
        + made[36:]
    )


def change_ck(rng: Random, files: Files, other: Files) -> Files:
    """Change a field of a table."""
    name = rng.choice(("ck/vocab_offsets.bin", "ck/vocab_merges.bin", "ck/vocab_merges.bin"))
    return files | {name: mutate.change_u32(rng, files.get(name, b""))}


def grow_ck(rng: Random, files: Files, other: Files) -> Files:
    """Add or remove a merge in all four files; or swap two."""
    meta = json.loads(files["ck/tokenizer_meta.json"])
    size, merges = meta["vocab_size"], files["ck/vocab_merges.bin"]
    offsets, strings = files["ck/vocab_offsets.bin"], files["ck/vocab_strings.bin"]
    if rng.random() < 0.3:
        one, two = (12 * rng.randrange(len(merges) // 12) for _ in range(2))
        made = bytearray(merges)
        made[one : one + 12], made[two : two + 12] = made[two : two + 12], made[one : one + 12]
        return files | {"ck/vocab_merges.bin": bytes(made)}
    starts = [offset for (offset,) in struct.iter_unpack("<i", offsets)]
    ends = [*starts[1:], len(strings)]
    parts = [rng.randrange(4, size) for _ in range(2)]
    text = b"".join(strings[starts[part] : ends[part]].rstrip(b"\0") for part in parts)
    meta["vocab_size"], meta["num_merges"] = size + 1, meta["num_merges"] + 1
    return files | {
        "ck/tokenizer_meta.json": json.dumps(meta).encode(),
        "ck/vocab_merges.bin": merges + struct.pack("<3i", *parts, size),
        "ck/vocab_offsets.bin": offsets + struct.pack("<i", len(strings)),
        "ck/vocab_strings.bin": strings + text + b"\0",
    }


# ---------------------------------------------------------------------- bpetite, tekken


def edit_bpetite(rng: Random, value: Any) -> Any:
    """Add or remove a merge with everything that follows from it; or swap two."""
    merges, vocab = value["merges"], value["vocab"]
    size = 256 + len(merges)
    if rng.random() < 0.6:
        left, right = rng.randrange(size), rng.randrange(size)
        merges.append([left, right])
        vocab[str(size)], vocab[str(size + 1)] = (
            vocab[str(left)] + vocab[str(right)],
            vocab[str(size)],
        )
        size += 1
    elif rng.random() < 0.6 and merges:
        merges.pop()
        vocab[str(size - 1)] = vocab.pop(str(size))
        size -= 1
    elif merges:
        one, two = rng.randrange(len(merges)), rng.randrange(len(merges))
        merges[one], merges[two] = merges[two], merges[one]
    value["mergeable_vocab_size"] = value["special_tokens"]["<|endoftext|>"] = size
    return value


def edit_tekken(rng: Random, value: Any) -> Any:
    config, vocab = value["config"], value["vocab"]
    number = rng.randrange(6)
    if number == 0:
        key = rng.choice(("default_vocab_size", "default_num_special_tokens"))
        config[key] += rng.choice((1, -1, 10, -10, 2**31))
    elif number == 1:
        token = base64.b64encode(rng.randbytes(rng.randint(0, 4))).decode()
        vocab.append({"rank": len(vocab), "token_bytes": token, "token_str": None})
        config["default_vocab_size"] += 1
    elif number == 2:
        one, two = rng.randrange(len(vocab)), rng.randrange(len(vocab))
        for key in rng.choice((("token_bytes",), ("rank",), ("token_bytes", "token_str"))):
            vocab[one][key], vocab[two][key] = vocab[two].get(key), vocab[one].get(key)
    elif number == 3:
        config["pattern"] = draw.any_pattern(rng)
    elif number == 4:
        specials = value.setdefault("special_tokens", []) or []
        text = rng.choice(("<s>", "ab", "", "x" * 300, "<unk>", "[INST]"))
        specials.append({"rank": len(specials), "token_str": text, "is_control": True})
        value["special_tokens"] = specials
    else:
        config["version"] = rng.choice(("v1", "v3", "v7", "v8", "v11", "v13", "v", 3, "v99999"))
    return value


# ---------------------------------------------------------------------- gpt2, tiktoken


def change_merges_txt(rng: Random, files: Files, other: Files) -> Files:
    name = "gpt2/merges.txt"
    spare = [b"a b", b"t h", "Ġ a".encode(), b"#version: 0.2", b"", b"a", b"a b c", b" ", b"th e"]
    return files | {name: mutate.change_lines(rng, files.get(name, b""), spare)}


def edit_vocab_json(rng: Random, value: Any) -> Any:
    texts = list(value)
    one, two = rng.choice(texts), rng.choice(texts)
    number = rng.randrange(4)
    if number == 0:
        value[one], value[two] = value[two], value[one]
    elif number == 1:
        value[one + two] = max(value.values()) + 1
    elif number == 2:
        value[one] = rng.choice((*mutate.EDGES, 700))
    else:
        value["日本"] = 700
    return value


def other_tokens(rng: Random, files: Files, other: Files) -> Files:
    """Other tokens with the ranks of the last lines, or two tokens that change places."""
    lines = files.get("r.tiktoken", b"").split(b"\n")
    for _ in range(rng.randint(1, 4)):
        at = rng.choice((-2, -3, rng.randrange(len(lines))))
        if rng.random() < 0.4:
            at, to = at % len(lines), rng.randrange(len(lines))
            one, two = lines[at].split(b" "), lines[to].split(b" ")
            if len(one) == len(two) == 2:
                lines[at], lines[to] = two[0] + b" " + one[1], one[0] + b" " + two[1]
        elif len(lines) > 3:
            token = rng.choice((rng.randbytes(2), rng.randbytes(3), b"th" * 90, b"ab", b"abc", b""))
            rank = lines[at].rpartition(b" ")[2]
            lines[at] = (base64.b64encode(token) or b"=") + b" " + rank
    return files | {"r.tiktoken": b"\n".join(lines)}


def change_ranks(rng: Random, files: Files, other: Files) -> Files:
    name = "r.tiktoken"
    made = base64.b64encode(rng.choice((b"ab", b"a", b"", b"zz", rng.randbytes(3), b"th" * 90)))
    rank = str(rng.choice((0, 299, 300, 301, 302, 5000, *mutate.WIDE))).encode()
    spare = [made + b" " + rank, made, b"= 300", b"YQ== 300", b"YR== 300", b" 300", b""]
    data = mutate.change_lines(rng, files.get(name, b""), spare)
    if rng.random() < 0.2:
        data = data.replace(b"\n", b"\r\n") if rng.random() < 0.5 else data.rstrip(b"\n")
    return files | {name: data}


# ---------------------------------------------------------------------- reports


@cache
def reported() -> Tokenizer:
    return bases.trained("from-scratch", 290, special_tokens=("<|end|>",))


def report_bases() -> list[Files]:
    files = bases.saved(reported(), "huggingface", "t.json")
    return [{"t.training.json": files["t.training.json"]}]


def edit_report(rng: Random, value: Any) -> Any:
    key = rng.choice(list(value))
    if isinstance(value[key], list) and value[key]:
        value[key][rng.randrange(len(value[key]))] = rng.choice((0, 1, 2**64, 2**127))
    elif key == "recipe":
        name = rng.choice(list(value["recipe"]))
        value["recipe"][name] = rng.choice(
            (None, 0, "gpt2", [], ["a"], draw.any_pattern(rng), True)
        )
    elif type(value[key]) in (int, float):
        value[key] = rng.choice((0, 1, 2**63, 2**127, 1.5, 10**5, -1, None))
    return value


def run_report(files: Files, folder: Path, number: int) -> bool:
    write(files, folder)
    vocab = reported().vocab
    training = Training.load(folder / "t.training.json", vocab)
    _ = str(training), repr(training), training.bytes_per_token, training.total_tokens
    tok = Tokenizer(vocab, training=training)
    attempt(lambda: tok.cut(280).encode("the cat"))
    attempt(lambda: byteweld.train(documents=["the new cat"], start=tok, vocab_size=292))
    training.save(folder / "again.json", vocab, overwrite=True)
    if Training.load(folder / "again.json", vocab) != training:
        raise AssertionError("a report changes when it is saved")
    return True


# ---------------------------------------------------------------------- compiled caches


def cache_bases() -> list[Files]:
    """The two parts of a compiled vocabulary: its traits and its table."""
    found = []
    for files in (*huggingface_bases(), *sidecar_bases()):
        source = next(name for name in ("tokenizer.json", "r.tiktoken") if name in files)
        with bases.tempfile.TemporaryDirectory() as made:
            write(files, Path(made))
            vocab = byteweld.load(Path(made) / source).vocab
        if vocab._table is not None:
            head = vocab.traits() | {"makes_every_token": vocab._makes_every_token}
            stored = {"head.json": json.dumps(head).encode(), "table.bin": vocab._table.store()}
            found.append(stored)
    return found


@cache
def _cached_source() -> Files:
    (files, *_) = bases.of_format("tiktoken", "r.tiktoken")
    return files


class Forged:
    """Looks like a vocabulary to the code that stores one, which then signs what it is given."""

    def __init__(self, files: Files) -> None:
        self._head, self._stored = files["head.json"], files["table.bin"]
        self._makes_every_token: Any = True

    @property
    def _table(self) -> Forged:
        return self

    def store(self) -> bytes:
        return self._stored

    def traits(self) -> Any:
        head = mutate.load(self._head)
        if isinstance(head, dict) and "makes_every_token" in head:
            self._makes_every_token = head.pop("makes_every_token")
        return head if isinstance(head, dict) else {}


def run_cache(files: Files, folder: Path, number: int) -> bool:
    """Load a forged compiled vocabulary, signed as ours are."""
    source = folder / "source"
    if not source.is_dir():
        source.mkdir()
        write(_cached_source(), source)
    path, kept = source / "r.tiktoken", folder / "cache"
    if kept.is_dir():
        shutil.rmtree(kept)
    if not {"head.json", "table.bin"} <= files.keys():
        return False
    real_write, real_read = loading._write, loading._read
    accepted: list[bool] = []

    def forge(vocab: Any, *rest: Any) -> None:
        try:
            real_write(Forged(files), *rest)  # type: ignore[arg-type]
        except (ValueError, RecursionError, TypeError, AttributeError):
            pass  # not even JSON

    def note(*given: Any) -> Any:
        found = real_read(*given)
        accepted.append(found is not None)
        return found

    loading._write, loading._read = forge, note
    try:
        byteweld.load(path, cache=kept)
        tok = byteweld.load(path, cache=kept)
    finally:
        loading._write, loading._read = real_write, real_read
    if not accepted or not accepted[-1]:
        return False
    with contextlib.suppress(Disagreement):  # a forgery may lie, but must not crash
        use(tok, folder / "saved", number=number, thorough=number % THOROUGH_EVERY == 0)
    return True


def change_table(rng: Random, files: Files, other: Files) -> Files:
    """Change a length, a start, a byte or a merge, often so that the table stays readable."""
    data = files["table.bin"]
    if len(data) < 12:
        return change_bytes(rng, files, other)
    starts, size, merges = struct.unpack_from("<3I", data)
    first = 12 + 4 * starts
    number = rng.randrange(6)
    if number == 0:
        data = mutate.change_u32(rng, data, 0, 12)
    elif number == 1:
        data = mutate.change_u32(rng, data, 12, first)
    elif number < 4 and len(data) > first + size:
        data = mutate.change_u32(rng, data, first + size)
    elif number == 4 and size and first + size <= len(data):
        at = first + rng.randrange(size)
        data = data[:at] + rng.randbytes(1) + data[at + 1 :]
    else:  # drop the last merges
        drop = rng.randint(0, min(merges, 10))
        if len(data) >= 12 * drop + first:
            data = data[:8] + struct.pack("<I", merges - drop) + data[12 : len(data) - 12 * drop]
    return files | {"table.bin": data}


def edit_head(rng: Random, value: Any) -> Any:
    number = rng.randrange(7)
    if number == 0:
        value["pattern"] = rng.choice((None, draw.any_pattern(rng)))
    elif number == 1:
        value["normalizer"] = [
            rng.choice(("nfc", "lowercase", ["a", "b"], ["(", ""], ["a", "a" * 99]))
        ]
    elif number == 2:
        value["steps"], value["pattern"] = [["x", "isolated", False], "byte-letters"], None
    elif number == 3:
        value["added_tokens"].append(
            ["new", rng.choice((3, 300, 5000)), True, *[rng.random() < 0.5] * 4]
        )
    elif number == 4:
        value["makes_every_token"] = not value["makes_every_token"]
    elif number == 5:
        value["alphabet"] = rng.choice(("bytes", "ascii", "partial"))
    else:
        value["ranking"] = rng.choice(("merges", "ranks"))
    return value


# ---------------------------------------------------------------------- counts, checkpoints

_PART = "part-{:02}.parquet"


def change_part(rng: Random, files: Files, other: Files) -> Files:
    """Write a part again with other rows, another schema or another footer."""
    import pyarrow
    import pyarrow.parquet

    name = rng.choice(sorted(name for name in files if name.endswith(".parquet")))
    try:
        table = pyarrow.parquet.read_table(pyarrow.BufferReader(files[name]))
        footer = pyarrow.parquet.read_metadata(pyarrow.BufferReader(files[name])).metadata
        rows = [list(row.values()) for row in table.to_pylist()]
        fields = {key.decode(): value.decode() for key, value in (footer or {}).items()}
    except (pyarrow.ArrowException, OSError, ValueError, AttributeError):
        return change_bytes(rng, files, other)
    kinds = [pyarrow.binary(), pyarrow.uint64()]
    number = rng.randrange(9)
    if number == 0:
        rows.append(
            [rng.choice((b"ab", b"", b"\xff", b"zzz", b"a" * 3000)), rng.choice((0, 1, 2**64 - 1))]
        )
    elif number == 1:
        rng.shuffle(rows)
    elif number == 2:
        rows += rows[:1]
    elif number == 3 and rows:
        rows[rng.randrange(len(rows))][1] = rng.choice((0, 2**63, 2**64 - 1))
    elif number == 4 and fields:
        key = rng.choice(sorted(fields))
        value = rng.choice(
            (*map(str, mutate.WIDE), "null", "[]", '"a"', "{", "9" * 70, '["\\ud800"]')
        )
        fields[key] = rng.choice((value, fields[key] + "0", fields[key][:-1]))
    elif number == 5:
        kinds[rng.randrange(2)] = rng.choice(
            (pyarrow.int64(), pyarrow.string(), pyarrow.large_binary())
        )
    elif number == 6 and fields:
        fields["pattern"] = json.dumps(rng.choice((None, "[a-z ]+", draw.any_pattern(rng))))
    elif number == 7 and rows:
        del rows[rng.randrange(len(rows))]
    if rng.random() < 0.7 and number < 4:
        rows.sort()
    if rng.random() < 0.6:  # sums that fit this part alone
        sums = (len(rows), sum(row[1] for row in rows), sum(len(row[0]) * row[1] for row in rows))
        fields |= dict(
            zip(("part_distinct", "part_total", "part_total_bytes"), map(str, sums), strict=True)
        )
    try:
        columns = [
            pyarrow.array([row[at] for row in rows], kinds[at], from_pandas=False) for at in (0, 1)
        ]
    except (pyarrow.ArrowException, OverflowError, TypeError):
        return files
    schema = pyarrow.schema(
        [
            pyarrow.field("bytes", kinds[0], nullable=rng.random() < 0.03),
            pyarrow.field("count", kinds[1], nullable=False),
        ]
    )
    out = pyarrow.BufferOutputStream()
    options: dict[str, Any] = {"use_dictionary": rng.random() < 0.05, "write_page_checksum": True}
    with pyarrow.parquet.ParquetWriter(
        out, schema, compression="zstd", store_schema=False, **options
    ) as writer:
        writer.add_key_value_metadata(fields)
        if rows:
            writer.write_table(pyarrow.Table.from_arrays(columns, schema=schema))
    return files | {name: out.getvalue().to_pybytes()}


def fit_sums(rng: Random, files: Files) -> Files:
    """Write the sums over all parts into every footer, mostly, so that other checks are reached."""
    import pyarrow
    import pyarrow.parquet

    if rng.random() < 0.2:
        return files
    try:
        read = {
            name: pyarrow.parquet.ParquetFile(pyarrow.BufferReader(data))
            for name, data in files.items()
            if name.endswith(".parquet")
        }
        metadata = {
            name: {k.decode(): v.decode() for k, v in (file.metadata.metadata or {}).items()}
            for name, file in read.items()
        }
        keys = ("distinct", "total", "total_bytes")
        sums = {
            key: str(sum(int(found[f"part_{key}"]) for found in metadata.values())) for key in keys
        }
    except (pyarrow.ArrowException, OSError, ValueError, KeyError):
        return files
    made = dict(files)
    for name, found in metadata.items():
        if any(found.get(key) != value for key, value in sums.items()):
            # The numbers are replaced in place, where they have as many digits.
            data = made[name]
            for key, value in sums.items():
                old = found.get(key, "")
                if len(old) == len(value):
                    tag = key.encode() + b"\x18" + bytes([len(old)])
                    data = data.replace(tag + old.encode(), tag + value.encode())
            made[name] = data
    return made


def run_counts(files: Files, folder: Path, number: int) -> bool:
    write(files, folder)
    counts = Counts.load(folder)
    if counts.total > 2**40:  # sums that a small file only claims
        return True
    _ = counts.most_common(3), len(counts), counts.pattern, repr(counts), counts.total_bytes
    attempt(lambda: counts + counts)
    attempt(lambda: counts.prune(2))
    if number % 4 == 0:
        attempt(
            lambda: byteweld.train(
                counts, vocab_size=270, recipe="from-scratch", num_threads=1, pattern=counts.pattern
            )
        )
        saved = folder.with_name("counts-saved")
        counts.save(saved, overwrite=True)
        if Counts.load(saved) != counts:
            raise AssertionError("counts change when they are saved")
    return True


def change_log(rng: Random, files: Files, other: Files) -> Files:
    """Change a record of the log and its checksum, or the order of records."""
    log = files.get("merges.log", b"")
    records = [log[at : at + 28] for at in range(16, len(log) - 31, 32)]
    if not records:
        return change_bytes(rng, files, other)
    at = rng.randrange(len(records))
    number = rng.randrange(7)
    if number < 3:
        stop = rng.choice((12, 12, 28))
        records[at] = mutate.change_u32(rng, records[at], 0, stop)
    elif number == 3:
        records.insert(rng.randint(0, len(records)), records[at])
    elif number == 4:
        del records[at]
    elif number == 5:
        del records[at:]
    else:
        end = struct.pack(
            "<IIIQQ", *[2**32 - 1] * 3, rng.choice((0, 1, 2, 3, 2**64 - 1)), rng.randrange(500)
        )
        records.insert(rng.randint(at, len(records)), end)
    signed = [
        record + struct.pack("<I", zlib.crc32(record, index))
        for index, record in enumerate(records)
    ]
    return files | {"merges.log": log[:16] + b"".join(signed)}


def change_counts_of_checkpoint(rng: Random, files: Files, other: Files) -> Files:
    return change_part(rng, files, other) if rng.random() < 0.5 else lose_file(rng, files, other)


def run_checkpoint(files: Files, folder: Path, number: int) -> bool:
    """Resume from a changed checkpoint."""
    write(files, folder)
    tok = byteweld.train(
        bases.corpus_counts(), checkpoint=folder, num_threads=1, **bases.CHECKPOINT_OPTIONS
    )
    tok.encode("the cat sat, lower")
    return True


# ---------------------------------------------------------------------- corpora

_LINES = "\n".join(
    json.dumps({"id": number, "text": text, "meta": {"a": [1, 2.5, None]}})
    for number, text in enumerate(("the cat sat", "naïve 漢字 👍", "", 'a\nb\\"\u2028', "x" * 300))
)


def corpus_bases(suffixes: Sequence[str]) -> list[Files]:
    compress = bases.compressors()
    texts = {"a.txt": bases.documents()[0][:800], "a.jsonl": _LINES, "b.txt": "", "c.jsonl": "\n\n"}
    return [
        {name + suffix: compress[suffix](text.encode())}
        for suffix in suffixes
        for name, text in texts.items()
        if text
    ]


def change_record(rng: Random, files: Files, other: Files) -> Files:
    """Change a value in one of the JSON lines."""
    ((name, data),) = files.items()
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    lines[at] = mutate.dump(mutate.change_json(rng, json.loads(lines[at])))
    return {name: b"\n".join(lines)}


def change_frame(rng: Random, files: Files, other: Files) -> Files:
    """Change the header or the end of a compressed frame, or join two frames."""
    ((name, data),) = files.items()
    number = rng.randrange(5)
    edge = min(24, len(data))
    if number == 0 and edge:
        at = rng.randrange(edge)
        data = (
            data[:at] + bytes([rng.choice((0, 1, 255, 127, rng.randrange(256)))]) + data[at + 1 :]
        )
    elif number == 1 and edge:
        at = len(data) - 1 - rng.randrange(edge)
        data = data[:at] + rng.randbytes(1) + data[at + 1 :]
    elif number == 2:
        data = data + data
    elif number == 3:
        data = data + next(iter(other.values()))
    else:
        inner = dict(bases.compressors())
        data = inner[rng.choice(sorted(inner))](data)
    return {name: data}


def repack(rng: Random, files: Files, other: Files) -> Files:
    """Compress changed text: the frame is valid and its content is not."""
    ((name, _data),) = files.items()
    suffix = next((end for end in (".gz", ".xz", ".zst") if name.endswith(end)), "")
    plain = _LINES.encode() if ".jsonl" in name else bases.documents()[1][:800].encode()
    changed = mutate.change_bytes(rng, plain)
    if rng.random() < 0.2:
        changed = b"a" * 10**6 + changed  # compresses well
    return {name: bases.compressors()[suffix](changed)}


def run_corpus(files: Files, folder: Path, number: int) -> bool:
    write(files, folder)
    ((name, _),) = files.items()
    path = folder / name
    policy = ("fail", "fail", "skip", "replace")[number % 4]
    options: dict[str, Any] = {"on_error": policy, "lines": number % 5 == 0}
    if number % 7 == 0:
        options["field"] = "id"
    counts = byteweld.count(
        path, recipe="from-scratch", pattern="[a-z ]+", num_threads=1, **options
    )
    _ = counts.total
    if number % THOROUGH_EVERY == 0:
        plain = bases.tokenizers()[0]
        ids, ends = plain.encode_files(path, disallowed_special=(), num_threads=1, **options)
        if int(ends[-1]) != len(ids) or any(a > b for a, b in pairwise(ends.tolist())):
            raise AssertionError("offsets do not fit the ids")
    return True


def packed_bases() -> list[Files]:
    """Compressed vocabulary files."""
    (plain, *_) = bases.of_format("tiktoken", "r.tiktoken")
    compress = bases.compressors()
    return [
        {"r.tiktoken" + suffix: compress[suffix](plain["r.tiktoken"])}
        for suffix in (".gz", ".xz", ".zst")
    ]


def repack_ranks(rng: Random, files: Files, other: Files) -> Files:
    ((name, _),) = files.items()
    plain = _cached_source()["r.tiktoken"]
    data = mutate.change_lines(rng, plain, [b"YWI= 300"])
    return {name: bases.compressors()[Path(name).suffix](data)}


def run_packed(files: Files, folder: Path, number: int) -> bool:
    ((name, _),) = files.items()
    options = {"pattern": None, "special_tokens": {"<|end|>": 298}}
    return load_and_use(files, folder, number, target=name, format="tiktoken", options=options)


# ---------------------------------------------------------------------- the table


def _loaded(target: str, format: str) -> Callable[[Files, Path, int], bool]:
    return partial(load_and_use, target=target, format=format)


_BYTES_AND_FILES: list[tuple[float, Change]] = [
    (2.0, change_bytes),
    (0.2, lose_file),
    (0.5, swap_file),
]

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "bpe1",
            partial(bases.of_format, "bpe1", "v.bpe1"),
            [(2.0, change_bytes), (5.0, change_bpe1)],
            _loaded("v.bpe1", "bpe1"),
        ),
        Kind(
            "ck",
            partial(bases.of_format, "ck", "ck"),
            [
                *_BYTES_AND_FILES,
                (2.0, change_ck),
                (4.0, grow_ck),
                (1.0, on_json("ck/tokenizer_meta.json", mutate.change_json)),
            ],
            _loaded("ck", "ck"),
        ),
        Kind(
            "bpetite",
            partial(bases.of_format, "bpetite", "b.json"),
            json_changes("b.json", edit_bpetite, edit_bpetite),
            _loaded("b.json", "bpetite"),
        ),
        Kind(
            "huggingface",
            huggingface_bases,
            json_changes("tokenizer.json", edit_pipeline, edit_pipeline, edit_model),
            _loaded("tokenizer.json", "huggingface"),
        ),
        Kind(
            "tekken",
            lambda: [*bases.of_format("tekken", "tekken.json"), *bases.real_tekken()],
            json_changes("tekken.json", edit_tekken),
            _loaded("tekken.json", "tekken"),
        ),
        Kind(
            "gpt2",
            partial(bases.of_format, "gpt2", "gpt2"),
            [
                *_BYTES_AND_FILES,
                (4.0, change_merges_txt),
                (1.0, on_json("gpt2/vocab.json", mutate.change_json)),
                (2.0, on_json("gpt2/vocab.json", edit_vocab_json)),
                (2.0, on_json("gpt2/byteweld.json", edit_sidecar)),
            ],
            _loaded("gpt2", "gpt2"),
            sign_sidecar(("gpt2/vocab.json", "gpt2/merges.txt"), "gpt2/byteweld.json"),
        ),
        Kind(
            "tiktoken",
            sidecar_bases,
            [*_BYTES_AND_FILES, (4.0, change_ranks), (5.0, other_tokens)],
            run_sidecar,
            sign_sidecar(("r.tiktoken",), "r.tiktoken.byteweld.json"),
        ),
        Kind(
            "sidecar",
            sidecar_bases,
            json_changes("r.tiktoken.byteweld.json", edit_sidecar),
            run_sidecar,
            sign_sidecar(("r.tiktoken",), "r.tiktoken.byteweld.json"),
        ),
        Kind(
            "config",
            config_bases,
            json_changes("tokenizer_config.json", edit_config),
            run_config,
        ),
        Kind("report", report_bases, json_changes("t.training.json", edit_report), run_report),
        Kind(
            "cache",
            cache_bases,
            [
                (1.0, change_bytes),
                (3.0, change_table),
                (1.0, swap_file),
                (2.0, on_json("head.json", edit_head)),
                (1.0, on_json("head.json", mutate.change_json)),
            ],
            run_cache,
        ),
        Kind(
            "counts",
            bases.counts,
            [(1.0, change_bytes), (4.0, change_part), (0.2, lose_file), (0.3, swap_file)],
            run_counts,
            fit_sums,
        ),
        Kind(
            "checkpoint",
            bases.checkpoints,
            [
                (6.0, change_log),
                (1.0, change_bytes),
                (1.0, on_json("checkpoint.json", mutate.change_json)),
                (0.5, change_counts_of_checkpoint),
            ],
            run_checkpoint,
        ),
        Kind(
            "archive",
            partial(corpus_bases, (".gz", ".xz", ".zst")),
            [(2.0, change_bytes), (3.0, change_frame), (2.0, repack)],
            run_corpus,
        ),
        Kind(
            "jsonl",
            partial(corpus_bases, ("",)),
            [(2.0, change_bytes), (6.0, change_record)],
            run_corpus,
        ),
        Kind(
            "packed",
            packed_bases,
            [(2.0, change_bytes), (2.0, change_frame), (3.0, repack_ranks)],
            run_packed,
        ),
    )
}


def fingerprint(files: Files) -> str:
    """A short name for a case."""
    made = hashlib.sha256()
    for name, data in sorted(files.items()):
        made.update(name.encode() + b"\0" + data)
    return made.hexdigest()[:12]
