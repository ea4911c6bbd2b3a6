"""Changes that know the formats of vocabularies, with their sidecars and configs."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import byteweld
from byteweld._files import sha256
from byteweld._native import crc32c
from tests.harness import draw
from tests.harness.files import bases, mutate
from tests.harness.files.bases import Files
from tests.harness.files.kind import (
    THOROUGH_EVERY,
    change_bytes,
    load_and_use,
    write,
)
from tests.harness.files.use import use

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
        fresh = sha256(b"".join(files.get(name, b"") for name in main))
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
    """Change a field of the header, a token record or a merge record; sign version 2 again."""
    data = files["v.bpe1"]
    if len(data) < 76:
        return change_bytes(rng, files, other)
    version, *_, tokens, merges = struct.unpack_from("<8I", data, 4)
    at, starts = 36, []
    if version == 2:
        data = data[:-4]
        at = 72 + struct.unpack_from("<I", data, 36)[0]
    while at + 8 <= len(data) and len(starts) < min(tokens, 5000):
        starts.append(at)
        at += 8 + struct.unpack_from("<I", data, at + 4)[0]
    number = rng.randrange(6)
    if number == 0:
        data = mutate.change_u32(rng, data, 4, 72 if version == 2 else 36)
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
    if version == 2:
        data += struct.pack("<I", crc32c(data))
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
