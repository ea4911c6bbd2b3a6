"""From a corpus to a trained model: tokenizer, dataset, batches, steps. And the pages' examples."""

from __future__ import annotations

import argparse
import importlib.util
import math
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

import byteweld

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus, a tokenizer trained on it, and a dataset as nanoGPT reads it."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "corpus").mkdir()
    for module in (argparse, textwrap):
        source = Path(str(module.__file__))
        (folder / "corpus" / f"{source.stem}.txt").write_bytes(source.read_bytes())
    tok = byteweld.train(
        folder / "corpus", vocab_size=320, special_tokens=["<|endoftext|>"], lines=True
    )
    tok.save(folder / "tokenizer.json")
    byteweld.tokenize(
        folder / "corpus", tok, out=folder / "data", lines=True, validation=0.1, seed=3
    )
    return folder


SECTIONS = ("Reading a dataset", "In PyTorch", "As nanoGPT does")


def examples() -> list[str]:
    """The Python examples of these sections of the page about datasets."""
    pages = "".join(
        page.read_text("utf-8") for page in sorted((ROOT / "docs" / "guides").glob("datasets*"))
    )
    parts = re.split(r"^#+ (?:\d+\. )?(.*)$", pages, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    return [
        code
        for name in SECTIONS
        for code in re.findall(r"```python\n(.*?)```", sections[name], re.DOTALL)
    ]


def test_the_examples_of_the_page_run_and_the_model_learns(made, monkeypatch, capsys):
    """Those with torch are compiled at least."""
    monkeypatch.chdir(made)
    names: dict[str, Any] = {"__name__": "example"}
    assert len(examples()) == 3
    for code in examples():
        compiled = compile(code, "docs", "exec")
        if "import torch" not in code or importlib.util.find_spec("torch"):
            exec(compiled, names)
    losses = names["losses"]
    assert losses[0] == pytest.approx(math.log(names["n_vocab"]), abs=1e-6)
    assert losses[-1] < losses[0] - 1
    assert re.fullmatch(
        r"loss 5\.\d\d -> [34]\.\d\d, validation [34]\.\d\d\n", capsys.readouterr().out
    )


KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "sharded": {"shard_tokens": 500},
    "split": {"validation": 0.2, "seed": 5, "shard_tokens": 2000},
    "shuffled": {"shuffle": True, "seed": 2, "validation": 0.1, "shard_tokens": 700},
    "packed": {"pack": 64, "validation": 0.1, "shard_tokens": 1000},
    "packed and shuffled": {"pack": 64, "shuffle": True},
    "prepended": {"eot": "prepend", "special_text": "special"},
    "none": {"eot": "none"},
}


CASES = [
    (format, kind)
    for format, found in byteweld.DATASET_FORMATS.items()
    for kind, options in KINDS.items()
    if found.has_rows or "pack" not in options
]


@pytest.mark.parametrize(("format", "kind"), CASES)
def test_every_dataset_that_tokenize_makes_is_good(made, tmp_path, format, kind):
    options = KINDS[kind]
    tok = byteweld.load(made / "tokenizer.json")
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    text = (made / "corpus" / "textwrap.txt").read_text()
    (corpus / "a.txt").write_text(f"{text[:9000]}\nwith <|endoftext|> inside\n")
    (corpus / "b.jsonl").write_text('{"text": ""}\nbroken\n{"text": "é\\n"}\n{"text": null}\n')
    reading: Any = {"lines": True, "on_error": "skip"}
    out = tmp_path / "data"
    manifest = byteweld.tokenize(corpus, tok, out=out, format=format, **reading, **options)
    found = byteweld.verify(out, corpus, tokenizer=tok, sample="all")
    assert found.problems == ()
    assert found.sources == 2 and manifest.skipped_documents == 2
    if kind == "packed and shuffled":
        assert (found.encoded, found.compared) == (0, 0)
    elif kind == "packed":  # documents whose ids did not fill a row were dropped
        assert found.encoded == 0 and 200 < found.compared < manifest.documents
    else:
        assert found.encoded == found.compared == manifest.documents
    (corpus / "a.txt").write_text(f"{text[:8999]}?\nwith <|endoftext|> inside\n")
    assert not byteweld.verify(out, corpus, tokenizer=tok, sample="all").is_good
