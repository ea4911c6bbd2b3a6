"""For tests of work in tasks: small corpora of every kind, and a runner that mixes tasks up."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

from byteweld import Tokenizer
from byteweld.corpus import Corpus, open_corpus
from byteweld.jobs import LocalRunner

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    pa = None

BROKEN = None
# A tokenizer, one with other ids for some texts, and one with the same tokens by other ids.
BYTES = {b: bytes([b]) for b in range(256)}
MERGES = [(b"a", b"b"), (b"ab", b"c")]
END = {"<|end|>": 300}
SAME = Tokenizer.from_merges(BYTES | {256: b"ab", 257: b"abc"}, MERGES, special_tokens=END)
OTHER = Tokenizer.from_merges(BYTES | {256: b"ab"}, MERGES[:1], special_tokens=END)
IDS = Tokenizer.from_merges(BYTES | {257: b"ab", 256: b"abc"}, MERGES, special_tokens=END)
# Words that the tokenizers of a test may take differently, or not at all, and ends of documents.
PIECES = ["a", "ab", "abc", "ba", "cab", " ", "é", "漢", "<|end|>", "!", "\n", "--"]
texts = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)


class Drawn(NamedTuple):
    """Files by name, and how they are read."""

    files: dict[str, list[str | None]]
    how: dict[str, Any]

    def write(self, folder: Path) -> Corpus:
        """Write the files, and return the corpus in their order."""
        paths = []
        for name, documents in self.files.items():
            path = folder / name
            paths.append(path)
            if path.suffix == ".jsonl":
                lines = ["{broken" if t is BROKEN else json.dumps({"text": t}) for t in documents]
                path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
            elif path.suffix == ".parquet":
                column = [None if text is BROKEN else text.encode() for text in documents]
                table = pa.table({"text": pa.array(column, pa.string())})
                pq.write_table(table, path, row_group_size=2)
            else:
                parts = [b"\xff \xfe" if text is BROKEN else text.encode() for text in documents]
                path.write_bytes(b"\n".join(parts))
        return open_corpus(paths, **self.how)


@st.composite
def corpora(draw: Callable[[Any], Any], *, may_fail: bool = True) -> Drawn:
    """Corpora of one to four files; some records are broken."""
    kinds = ["jsonl", "txt", "parquet"] if pa else ["jsonl", "txt"]
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=4))
    documents = st.lists(st.one_of(texts, texts, texts, st.just(BROKEN)), max_size=8)
    files = {f"{number}.{kind}": draw(documents) for number, kind in enumerate(chosen)}
    how = draw(st.sampled_from([{}, {"unit": "line"}, {"separator": "--"}, {"separator": "a"}]))
    actions = ["skip", "replace", "fail"] if may_fail else ["skip"]
    return Drawn(files, {**how, "on_error": draw(st.sampled_from(actions))})


class Encoder(NamedTuple):
    """A side of a proof that fails on documents with some word."""

    name: str
    tok: Tokenizer
    bad: bytes | None = None

    def encode(self, texts: Sequence[bytes]) -> tuple[Any, float]:
        for text in texts:
            if self.bad is not None and self.bad in text:
                raise ValueError(f"{self.name} cannot take {text!r}")
        return self.tok.encode_ragged(texts, num_threads=1, disallowed_special=()), 0.5


class MixedUp(LocalRunner):
    """Runs tasks in another order and each of them twice; all that passes is pickled."""

    def __init__(self, seed: int = 0, *, window: int = 5, **options: Any) -> None:
        super().__init__(**options)
        self._random = random.Random(seed)
        self._window = window
        self.ran: list[Any] = []

    def _run(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        function = pickle.loads(pickle.dumps(function))
        upcoming = iter(items)
        waiting: list[Any] = []
        while True:
            waiting += [item for _, item in zip(range(self._window - len(waiting)), upcoming)]  # noqa: B905
            if not waiting:
                return
            item = pickle.loads(pickle.dumps(waiting.pop(self._random.randrange(len(waiting)))))
            self.ran.append(item)
            for result in super()._run(function, [item, item]):
                last = result
            yield pickle.loads(pickle.dumps(last))


class Ending(LocalRunner):
    """Ends after some tasks, as if the process were interrupted or killed."""

    def __init__(self, tasks: int, **options: Any) -> None:
        super().__init__(**options)
        self._tasks = tasks

    def _run(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        for result in super()._run(function, items):
            if not self._tasks:
                raise KeyboardInterrupt
            self._tasks -= 1
            yield result
