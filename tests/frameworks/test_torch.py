"""PyTorch: the example of the page about datasets, with worker processes of both kinds."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

import byteweld
from tests.helpers.byte_datasets import make_dataset, with_eot

torch = pytest.importorskip("torch", reason="no torch; run `make test-frameworks`")

DOCS = Path(__file__).parents[2] / "docs" / "guides"


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_the_example_of_the_page_loads_every_window(tmp_path, monkeypatch, method):
    documents = with_eot(*(f"line {number} of the corpus\n" for number in range(80)))
    make_dataset(tmp_path / "data", [documents[:30], documents[30:]])
    pages = "".join(page.read_text("utf-8") for page in sorted(DOCS.glob("datasets*.md")))
    (code,) = (
        c for c in re.findall(r"```python\n(.*?)```", pages, re.DOTALL) if "class Windows" in c
    )
    # A module, because spawned workers import the class.
    (tmp_path / f"example_{method}.py").write_text(code.split("\n\n\nloader")[0])
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    example = importlib.import_module(f"example_{method}")
    try:
        windows = example.Windows("data/", 16)
        loader = torch.utils.data.DataLoader(
            windows, batch_size=4, num_workers=2, multiprocessing_context=method
        )
        found = list(loader)
    finally:
        del sys.modules[example.__name__]
    ds = byteweld.open_dataset("data")
    expected = ds.tokens(0, len(windows) * 16 + 1).astype("int64")
    assert torch.cat([x for x, _ in found]).flatten().tolist() == expected[:-1].tolist()
    assert torch.cat([y for _, y in found]).flatten().tolist() == expected[1:].tolist()
    assert 16 * len(windows) > ds.num_tokens - 17
