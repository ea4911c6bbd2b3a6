"""Small vocabularies: with one extra each, one that each format can hold, and random ones."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from byteweld import SpecialTokenError, patterns
from byteweld.vocab import AddedToken, Split, Vocabulary

ENDOFTEXT = "<|endoftext|>"
SPECIALS = {ENDOFTEXT: 5000, "<|a|>": 5001}
BYTES = {byte: bytes([byte]) for byte in range(256)}
AB = Vocabulary(BYTES | {256: b"ab"}, [(97, 98, 256)])

# Vocabularies with one of the extras each.
SPECIAL = BYTES | {256: b"<s>"}
EXTRAS = {
    "added token flags": Vocabulary(SPECIAL, added_tokens=[AddedToken("<s>", 256, lstrip=True)]),
    "shared ids": Vocabulary(SPECIAL, special_tokens={"<s>": 256, "<t>": 256}),
    "twin tokens": Vocabulary(
        BYTES | {256: "日".encode()[:2], 257: "日".encode(), 258: "日".encode()},
        [(0xE6, 0x97, 256), (256, 0xA5, 258)],
    ),
    "empty token": Vocabulary(BYTES | {256: b""}, ranking="ranks"),
    "normalizer": Vocabulary(BYTES, normalizer=["nfc"]),
    "prefix space": Vocabulary(BYTES, steps=["prefix-space"]),
    "steps": Vocabulary(BYTES, steps=[Split("[0-9]", "contiguous")]),
    "template": Vocabulary(SPECIAL, special_tokens={"<s>": 256}, template=((256,), ())),
    "partial alphabet": Vocabulary({97: b"a"}, alphabet="partial"),
}


def holder(name: str) -> Vocabulary:
    """Return a vocabulary that a format can hold."""
    if name == "bpetite":
        return Vocabulary(
            BYTES | {256: b"ab", 257: b"<|endoftext|>"},
            [(97, 98, 256)],
            special_tokens={"<|endoftext|>": 257},
            pattern=patterns.GPT2,
        )
    if name == "bpe1":
        roles = {role: 256 + n for n, role in enumerate(("bos", "eos", "pad", "unk"))}
        texts = {f"<|{role}|>": i for role, i in roles.items()}
        return Vocabulary(
            BYTES | {i: text.encode() for text, i in texts.items()},
            special_tokens=texts,
            roles=roles,
        )
    if name == "ck":
        roles = {role: n for n, role in enumerate(("unk", "bos", "eos", "pad"))}
        texts = {f"<|{role}|>": i for role, i in roles.items()}
        return Vocabulary(
            {i: text.encode() for text, i in texts.items()} | {4 + b: t for b, t in BYTES.items()},
            special_tokens=texts,
            roles=roles,
            pattern=patterns.GPT2,
        )
    if name == "tekken":
        return Vocabulary(AB.tokens, AB.merge_ids, pattern=patterns.GPT2)
    return AB


def with_traits(vocab: Vocabulary, **changes: Any) -> Vocabulary:
    """Return the same tokens and merges with other traits."""
    return Vocabulary(vocab.tokens, vocab.merge_ids, **(vocab.traits() | changes))


def with_added(vocab: Vocabulary, *added: AddedToken) -> Vocabulary:
    """Return a vocabulary with more added tokens."""
    tokens = {**vocab.tokens, **{token.id: token.text.encode() for token in added}}
    traits = vocab.traits() | {"added_tokens": (*vocab.added_tokens, *added)}
    return Vocabulary(tokens, vocab.merge_ids, **traits)


# ---------------------------------------------------------------------- random ones


def joined_tokens(rng: Random, letters: Sequence[bytes], most: int, longest: int) -> list[bytes]:
    """Return letters, and up to `most` tokens joined of two before them."""
    tokens = list(letters)
    for _ in range(most):
        token = rng.choice(tokens) + rng.choice(tokens)
        if token not in tokens and len(token) <= longest:
            tokens.append(token)
    return tokens


def any_tokens(rng: Random, letters: bytes, most: int, longest: int) -> list[bytes]:
    """Return up to `most` tokens of some letters; not every one is the sum of two others."""
    return sorted({bytes(rng.choices(letters, k=rng.randint(2, longest))) for _ in range(most)})


def shuffled_ids(rng: Random, tokens: Iterable[bytes]) -> dict[bytes, int]:
    """Return tokens and all bytes with ids in random order."""
    every = list(dict.fromkeys([*tokens, *BYTES.values()]))
    rng.shuffle(every)
    return {token: i for i, token in enumerate(every)}


def splits_of(ids: Mapping[bytes, int]) -> list[tuple[int, int, int]]:
    """Return the ids of every two tokens that make another one, and its id."""
    return [
        (ids[token[:at]], ids[token[at:]], i)
        for token, i in ids.items()
        for at in range(1, len(token))
        if token[:at] in ids and token[at:] in ids
    ]


def ranked_by_merges(rng: Random, ids: Mapping[bytes, int], **traits: Any) -> Vocabulary:
    """Return a vocabulary with merges in random order, several of them for one token."""
    merges = splits_of(ids)
    rng.shuffle(merges)
    merges = merges[: rng.randint(len(merges) // 2, len(merges))]
    return _with_specials(ids, merges, **traits)


def ranked_by_id(ids: Mapping[bytes, int], pattern: str | None) -> Vocabulary:
    """Return a vocabulary without a merge list."""
    return _with_specials(ids, pattern=pattern, ranking="ranks")


def _with_specials(ids: Mapping[bytes, int], *merges: Any, **traits: Any) -> Vocabulary:
    tokens = {i: token for token, i in ids.items()}
    tokens |= {i: text.encode() for text, i in SPECIALS.items()}
    return Vocabulary(tokens, *merges, special_tokens=SPECIALS, **traits)


# ---------------------------------------------------------------------- what they hold


def unambiguous(vocab: Vocabulary, ids: Iterable[int]) -> list[int]:
    """Replace ids that special tokens share by the parts of their merges, as `encode_spans` does.

    Raises if one has no parts.
    """
    parts = {new: (left, right) for left, right, new in reversed(vocab.merge_ids)}
    special = set(vocab.special_tokens.values())
    waiting, found = list(ids)[::-1], []
    while waiting:
        token_id = waiting.pop()
        if token_id not in special:
            found.append(token_id)
        elif token_id in parts:
            left, right = parts[token_id]
            waiting += [right, left]
        else:
            raise SpecialTokenError(f"id {token_id} has no parts")
    return found


def published(shared: Path, *kinds: str) -> list[dict[str, Any]]:
    """The entries of the real vocabularies in the shared data, if it is there."""
    index = shared / "vocabs" / "index.json"
    entries = json.loads(index.read_bytes())["vocabs"] if index.is_file() else []
    return [entry for entry in entries if entry["kind"] in kinds]


def unpack(shared: Path, entry: dict[str, Any], folder: Path) -> Path:
    """Unpack the file of an entry into a folder."""
    file = folder / Path(entry["file"]).name.removesuffix(".gz")
    file.write_bytes(gzip.decompress((shared / "vocabs" / entry["file"]).read_bytes()))
    return file


def snippets(shared: Path) -> dict[str, str]:
    """The texts of the frozen answers, by name."""
    lines = (shared / "golden" / "snippets.jsonl").read_text("utf-8").split("\n")
    return {snippet["id"]: snippet["text"] for snippet in map(json.loads, filter(None, lines))}


def golden(shared: Path, name: str) -> dict[str, dict[str, Any]]:
    """The frozen answers to all snippets for a vocabulary."""
    lines = gzip.decompress((shared / "golden" / f"{name}.jsonl.gz").read_bytes()).split(b"\n")
    found = [answer for answer in map(json.loads, filter(None, lines)) if "_meta" not in answer]
    assert len(found) == 312
    return {answer["id"]: answer for answer in found}


# tokenizer.json files that have answers.
GOLDEN_FILES = [
    *("gpt2", "gpt2_legacy", "text_davinci002", "gpt4", "gpt4o", "llama3_2", "mistral_nemo"),
    *("qwen2_5", "qwen3", "deepseek_v3", "command_r_plus", "claude", "gpt_neox", "modernbert"),
    *("starcoder", "falcon", "deepseek_coder", "v_prefix_space", "v_no_regex", "v_added_flags"),
    *("v_codegen",),
]


def expanded(vocab: Vocabulary, ids: Iterable[int], largest: int) -> list[int]:
    """Replace ids above the largest by the parts of their merges, again and again."""
    parts = {new: (left, right) for left, right, new in vocab.merge_ids}
    waiting, found = list(ids)[::-1], []
    while waiting:
        token_id = waiting.pop()
        if token_id > largest:
            waiting += reversed(parts[token_id])
        else:
            found.append(token_id)
    return found
