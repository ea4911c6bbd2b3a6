"""Valid files of every kind to mutate: small, trained here or cut from real ones."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import byteweld
from byteweld import Tokenizer, Vocabulary, formats
from byteweld.counts import Counts
from byteweld.vocab import AddedToken, Replace, Split
from tests.fuzz.texts import TESTS, documents
from tests.helpers.vocabularies import (
    EXTRAS,
    holder,
    published,
    unpack,
    with_added,
    with_traits,
)

Files = dict[str, bytes]

SHARED = TESTS.parents[1] / "shared" / "data"
MAX_BASE_BYTES = 12_000
REAL_TOKENS = 60  # of a real tokenizer.json, besides its bytes
_NAMES = ("gpt2", "v_added_flags", "v_codegen", "v_split_behaviors", "gpt_neox", "falcon")


@cache
def trained(recipe: str = "modern", size: int = 300, **options: Any) -> Tokenizer:
    given = [text.encode("ascii", "ignore").decode() for text in documents()]
    return byteweld.train(
        iter(given if recipe == "ck-ascii" else documents()),
        vocab_size=size,
        recipe=recipe,
        **options,
    )


def saved(tok: Tokenizer, format: str, name: str) -> Files:
    """The files that saving writes, by their names in a folder."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        tok.save(folder / name, format=format)
        return read_folder(folder)


def read_folder(folder: Path) -> Files:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def without_reports(files: Files) -> Files:
    return {name: data for name, data in files.items() if not name.endswith("training.json")}


# ---------------------------------------------------------------------- vocabularies


@cache
def tokenizers() -> tuple[Tokenizer, ...]:
    """Vocabularies of every kind, as many as a format may hold."""
    plain = trained("modern", 300, pattern=r"\s+|\S+", special_tokens=("<|end|>", "<s>"))
    vocab = plain.vocab
    end = vocab.special_tokens["<|end|>"]
    flags = AddedToken("the", max(vocab.tokens) + 1, special=False, lstrip=True, normalized=True)
    ranks = Vocabulary(vocab.tokens, **(vocab.traits() | {"ranking": "ranks"}))
    changed = (
        with_traits(vocab, normalizer=("nfc", Replace("  +", " "), "lowercase")),
        with_traits(vocab, pattern=None, steps=("prefix-space", Split("[0-9]"), Split(r"\s+|\S+"))),
        with_traits(vocab, template=((end,), (end,))),
        with_traits(vocab, ignore_merges=True),
        with_traits(vocab, pattern=r"(?<=a)b+|(?!x)\S|\s+(?!\S)|\s"),
        with_added(vocab, flags),
        ranks,
        holder("tekken"),
        *EXTRAS.values(),
    )
    return (
        plain,
        trained("from-scratch", 290, special_tokens=("<|end|>",)),
        trained("modern", 280, pattern="cl100k", special_tokens=("<|end|>",), bos="<s>"),
        trained("huggingface", 300, special_tokens=("<|end|>", "the")),
        trained("ck", 300),
        trained("ck-ascii", 130),
        trained("bpe1", 290),
        trained("bpe1", 290, encode_pattern="gpt2"),
        trained("bpetite", 280),
        trained(
            "modern", 300, special_ids="first", pattern=r"\s+|\S+", special_tokens=("<s>", "</s>")
        ),
        *map(Tokenizer, changed),
    )


def of_format(format: str, name: str) -> list[Files]:
    """Every vocabulary that a format can hold, saved."""
    found = []
    for tok in tokenizers():
        try:
            formats.check(tok.vocab, name, format)
            found.append(without_reports(saved(tok, format, name)))
        except byteweld.UnsupportedError:
            continue
    return found


def real_json() -> Iterator[Files]:
    """Real tokenizer.json files, cut to a few hundred tokens."""
    for entry in published(SHARED, "hf"):
        if entry["name"] in _NAMES:
            with tempfile.TemporaryDirectory() as folder:
                whole = json.loads(unpack(SHARED, entry, Path(folder)).read_bytes())
            made = json.dumps(cut(whole), ensure_ascii=False).encode()
            if len(made) < MAX_BASE_BYTES:
                yield {"tokenizer.json": made}


def real_tekken() -> Iterator[Files]:
    """Real tekken.json files, cut to a few hundred tokens."""
    for path in sorted((SHARED / "vocabs" / "tekken").glob("*.json.gz")):
        document = json.loads(gzip.decompress(path.read_bytes()))
        document["vocab"] = document["vocab"][: 256 + REAL_TOKENS // 4]
        config = document["config"]
        config["default_num_special_tokens"] = 24
        config["default_vocab_size"] = 24 + len(document["vocab"])
        yield {"tekken.json": json.dumps(document).encode()}


def cut(document: Any) -> Any:
    """Keep the single letters, the first merges and a few added tokens of a tokenizer.json."""
    model = document["model"]
    pairs = [pair if isinstance(pair, list) else pair.split(" ") for pair in model["merges"]]
    pairs = pairs[:REAL_TOKENS]
    texts = [text for text in model["vocab"] if len(text) == 1][:400]
    texts += [text for text in map("".join, pairs) if text not in texts]
    unk = model.get("unk_token")
    texts += [unk] if unk and unk not in texts else []
    added = document["added_tokens"][:4]
    ids = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    for token in added:
        token["id"] = (
            ids.setdefault(token["content"], len(ids))
            if token["content"] in model["vocab"]
            else len(ids) + 10 + added.index(token)
        )
    model["vocab"], model["merges"] = ids, pairs
    document["post_processor"] = None
    return document


# ---------------------------------------------------------------------- everything else


_WORDS = "[a-z ]+"


def counts() -> list[Files]:
    found = []
    for given in (documents(), ("ab ab abc",), ()):
        with tempfile.TemporaryDirectory() as made:
            byteweld.count(documents=given, pattern=_WORDS).save(Path(made) / "counts")
            found.append(read_folder(Path(made) / "counts"))
    return found


CHECKPOINT_OPTIONS: dict[str, Any] = {
    "vocab_size": 280,
    "recipe": "from-scratch",
    "pattern": _WORDS,
}
_CORPUS = "the cat sat on the mat, the cat sat; low lower lowest " * 3


@cache
def corpus_counts() -> Counts:
    return byteweld.count(documents=[_CORPUS], recipe="from-scratch", pattern=_WORDS)


def checkpoints() -> list[Files]:
    """Checkpoints of a finished and of an interrupted run."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "checkpoint"
        byteweld.train(corpus_counts(), checkpoint=folder, num_threads=1, **CHECKPOINT_OPTIONS)
        files = read_folder(folder)
    log = files["merges.log"]
    return [files, files | {"merges.log": log[: 16 + 32 * 9 + 5]}, files | {"merges.log": log[:16]}]


def compressors() -> dict[str, Callable[[bytes], bytes]]:
    import pyarrow

    return {
        "": bytes,
        ".gz": lambda data: gzip.compress(data, mtime=0),
        ".xz": lzma.compress,
        ".zst": lambda data: pyarrow.Codec("zstd").compress(data, asbytes=True),
        ".bz2": bz2.compress,
    }
