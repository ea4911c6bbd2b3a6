"""Every public function and method with hostile arguments: errors of the documented kinds only.

The callables are found, not listed: a new one is attacked as soon as it is public. Only a parameter
with a new name needs a valid value here.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byteweld
import byteweld.tiktoken
from byteweld.errors import ByteweldError, NativeError

TEXT = "low low lower lowest newest"


class Boom(Exception):
    """Raised by hostile objects; it must arrive as it is."""


class BadIndex:
    def __index__(self) -> int:
        raise Boom

    def __len__(self) -> int:
        raise Boom


class LyingList(list):
    def __len__(self) -> int:
        return 2**62


class LyingMapping(Mapping):
    """Says that it is huge, and has other items each time."""

    def __init__(self) -> None:
        self.calls = 0

    def __len__(self) -> int:
        return 2**62

    def __iter__(self) -> Iterator[Any]:
        self.calls += 1
        return iter([self.calls, b"a", "text"])

    def __getitem__(self, key: object) -> Any:
        raise KeyError(key)


class Changing(dict):
    """A dict that grows while it is read."""

    def items(self) -> Any:
        for key, value in list(super().items()):
            self[len(self) + 1000] = value
            yield key, value
        raise Boom


class OddStr(str):
    def encode(self, *rest: Any) -> bytes:  # type: ignore[override]
        raise Boom

    def isidentifier(self) -> bool:
        raise Boom


class OddInt(int):
    def __index__(self) -> int:
        raise Boom

    def __lt__(self, other: object) -> bool:
        raise Boom


class BadHash:
    def __hash__(self) -> int:
        raise Boom


def exploding() -> Iterator[Any]:
    yield "low"
    raise Boom


def nested(depth: int) -> list[Any]:
    made: list[Any] = []
    for _ in range(depth):
        made = [made]
    return made


def hostile() -> Iterator[Any]:
    """Yield fresh values: some can be used only once."""
    yield from (None, True, -1, 0, 7, 2**31, 2**32 - 1, 2**32, 2**63, 2**64, -(2**70), 10**5000)
    yield from (1.5, float("nan"), float("inf"), 1j, "", "x", "all", "\ud800", "a\x00b", "x" * 5000)
    yield from (b"", b"a", b"\xff", bytearray(b"a"), memoryview(b"a"), OddStr("low"), OddInt(97))
    yield from ([], [None], [1], [-1], [2**64], [1.5], ["a"], ["\ud800"], [b"a"], [[]], [()], [{}])
    yield from ([("a", 1)], [("a", "b")], [(b"a", b"b")], [(1, 2, 3)], [(97, 98, 2**64)])
    yield from ([object()], {None: b""})
    yield from ({}, {1: 2}, {"a": 1}, {"a": None}, {"a": -1}, {"a": 2**64}, {"\ud800": 300})
    yield from ({b"a": 1}, {b"a": -1}, {b"a": 2**64}, {b"a": 1.5}, {1: b"a"}, {-1: b"a"})
    yield from ({"bos": "\ud800"}, {"bos": 2**64}, {"\ud800": "a"}, set(), {"a"}, frozenset({1}))
    yield from (object(), object, len, Boom, BadIndex(), [BadIndex()], BadHash(), [BadHash()])
    yield from (LyingList(["a"]), LyingList([1]), LyingMapping(), Changing({"a": 1}), exploding())
    yield from (Changing({1: b"a"}), iter([1]), range(3), nested(100), Path("missing"))
    yield from (np.float64(1), np.int64(-1), np.uint64(2**63), np.bool_(True), np.str_("low"))
    yield from (np.zeros((2, 2)), np.array([1.5]), np.array([None]), np.array([-1]), np.array("a"))
    yield from (np.datetime64("now"), np.array([2**63], np.uint64), np.zeros(0), np.array(97))
    yield [byteweld.AddedToken("\ud800", 300)]
    yield [byteweld.AddedToken(None, None)]  # type: ignore[arg-type]
    yield [byteweld.AddedToken("a", 2**64)]
    yield [byteweld.Split("\ud800"), byteweld.Split(None)]  # type: ignore[arg-type]
    yield [byteweld.Split("("), byteweld.Split("a", "nowhere")]  # type: ignore[arg-type]
    yield [byteweld.Replace("a", "\ud800")]
    yield [byteweld.Replace(1, 2)]  # type: ignore[arg-type]
    yield ((2**64,), (None,))
    yield ((), ([],))
    yield byteweld.Vocabulary({b: bytes([b]) for b in range(256)})
    yield byteweld.RECIPES["plain"]


# ---------------------------------------------------------------------- what is attacked


def made_tokenizer() -> byteweld.Tokenizer:
    return byteweld.train(
        documents=[TEXT], vocab_size=262, recipe="from-scratch", special_tokens=["<|x|>"]
    )


TOK = made_tokenizer()
RANKS = {bytes([b]): b for b in range(256)} | {b"lo": 256}
INSTANCES: dict[str, Any] = {
    "Tokenizer": TOK,
    "Vocabulary": TOK.vocab,
    "Counts": byteweld.Counts({b"low": 3}),
    "DecodeStream": TOK.decode_stream(),
    "EncodeStream": TOK.encode_stream(),
    "Evaluation": byteweld.evaluate(TOK, documents=[TEXT]),
    "Comparison": byteweld.compare(TOK, TOK, documents=[TEXT]),
    "Recipe": byteweld.RECIPES["modern"],
    "Training": TOK.training,
}
# Plain records without rules: what they hold is checked where it is used.
RECORDS = {
    *("AddedToken", "Comparison", "Evaluation", "Replace", "Split", "Training", "TrainingEvent"),
    *("DecodeStream", "EncodeStream", "Dataset", "Verification"),
}
# A valid value for each parameter.
VALID: dict[str, Any] = {
    name: value
    for names, value in (
        ("text text_or_bytes", "low"),
        ("token token_id", 97),
        ("ids tokens seen", [97]),
        ("paths source corpus", "corpus.txt"),
        ("path", "tokenizer.json"),
        ("name encoding_name", "mine"),
        ("model_name", "gpt-4"),
        ("first second tok tokenizer", TOK),
        ("vocab", TOK.vocab),
        ("texts", ["low"]),
        ("documents", [TEXT]),
        ("spans", [("low", True)]),
        ("batch", [[97]]),
        ("limit new_ids", 3),
        ("threshold", 2),
        ("vocab_size", 260),
        ("memory", "1GB"),
        ("merges", [(b"l", b"o")]),
        ("mergeable_ranks", RANKS),
        ("pattern", "gpt2"),
        ("pat_str", r"\S+|\s"),
        ("special_tokens", {"<|x|>": 300}),
        ("roles", {"bos": "<|x|>"}),
        ("counts", {b"low": 3}),
        ("tables", [byteweld.Counts({b"low": 3})]),
    )
    for name in names.split()
}
BY_CALL: dict[str, dict[str, Any]] = {
    "Vocabulary": {"tokens": dict(TOK.vocab.tokens), "special_tokens": None, "pattern": None},
    "Tokenizer.from_merges": {"vocab": {b: bytes([b]) for b in range(256)} | {256: b"lo"}},
    "Tokenizer.save": {"path": "new.json"},
    "Counts.save": {"path": "new-counts"},
    "Counts.load": {"path": "counts"},
    "Training.save": {"path": "new.training.json"},
    "Training.load": {"path": "tokenizer.training.json"},
    "DecodeStream.feed": {"ids": 97},
    "train": {"source": None},
    "Counts.check_saving": {"path": "new-counts"},
    "tokenize": {"tokenizer": TOK, "out": "new-data"},
    "open_dataset": {"path": "data"},
    "verify": {"path": "data"},
}
# Keyword arguments without a name in the signature.
OPTIONS = {
    "train": ["special_tokens", "pattern", "min_frequency", "max_token_bytes", "field", "ext"],
    "count": ["special_tokens", "pattern", "separator", "lines", "field", "ext", "on_error"],
    "load": ["pattern", "special_tokens"],
    "tokenize": [
        *("eot", "eot_token", "bos", "special_text", "validation", "seed", "shuffle", "pack"),
        *("shard_tokens", "dtype", "prefix", "separator", "field", "on_error"),
    ],
    "evaluate": ["separator", "field"],
    "Tokenizer.encode_files": ["separator", "field", "on_error"],
    "Recipe.replace": ["special_tokens", "pattern", "alphabet", "min_frequency"],
}


def callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield every public function, constructor and method with its name."""
    for name in byteweld.__all__:
        value = getattr(byteweld, name)
        if inspect.isclass(value):
            if issubclass(value, BaseException):
                continue
            if name not in RECORDS:
                yield name, value
            for method in dir(value):
                own = inspect.getattr_static(value, method)
                if method.startswith("_") or isinstance(own, property):
                    continue
                if name in INSTANCES and callable(getattr(value, method)):
                    yield f"{name}.{method}", getattr(INSTANCES[name], method)
        elif callable(value):
            yield name, value
    encoding = byteweld.tiktoken.Encoding("mine", pat_str=r"\S+|\s", mergeable_ranks=RANKS,
                                          special_tokens={"<|x|>": 300})  # fmt: skip
    yield "Encoding", byteweld.tiktoken.Encoding
    for method in vars(byteweld.tiktoken.Encoding):
        if not method.startswith("_") and callable(getattr(encoding, method)):
            yield f"Encoding.{method}", getattr(encoding, method)


CALLABLES = dict(callables())


def arguments_of(name: str, call: Callable[..., Any]) -> tuple[dict[str, Any], list[str]]:
    """Return valid arguments, and the names of all parameters."""
    own = BY_CALL.get(name) or BY_CALL.get(name.replace("Encoding.", "Tokenizer."), {})
    valid: dict[str, Any] = {}
    names = []
    for parameter in inspect.signature(call).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        names.append(parameter.name)
        if parameter.name in own:
            valid[parameter.name] = own[parameter.name]
        elif parameter.default is parameter.empty:
            assert parameter.name in VALID, f"add a valid value for {parameter.name!r} of {name}"
            valid[parameter.name] = VALID[parameter.name]
    if name in ("train", "count", "tokenize"):
        valid["documents"] = [TEXT]
    if name == "tokenize":
        valid["eot"] = "none"
    if name in ("evaluate", "compare"):
        valid["documents"] = [TEXT]
    return valid, [*names, *OPTIONS.get(name, [])]


def used(result: Any) -> None:
    """Use a result: what is lazy does its work now."""
    if inspect.isgenerator(result) or isinstance(result, Iterator):
        for _ in itertools.islice(result, 100):
            pass
    elif isinstance(result, byteweld.Tokenizer):
        repr(result)
        assert isinstance(result.encode_ordinary("low<|x|>"), list)
    elif isinstance(result, byteweld.Vocabulary):
        used(byteweld.Tokenizer(result))


EXPECTED = (ByteweldError, ValueError, TypeError, LookupError, OSError, OverflowError, Boom)
# Python itself raises UnicodeEncodeError for these.
PATHS = {*("path", "paths", "cache", "source", "corpus", "checkpoint", "tables"), "errors", "out"}


def is_expected(error: BaseException, parameter: str, value: object) -> bool:
    if isinstance(error, UnicodeEncodeError):
        return parameter in PATHS
    if isinstance(error, MemoryError):  # list() believes a length
        return isinstance(value, LyingList | LyingMapping)
    return isinstance(error, EXPECTED) and not isinstance(error, NativeError)


@pytest.fixture
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BYTEWELD_PATH", str(tmp_path))
    (tmp_path / "corpus.txt").write_text(TEXT)
    TOK.save(tmp_path / "tokenizer.json")
    pytest.importorskip("pyarrow")
    byteweld.Counts({b"low": 3}).save(tmp_path / "counts")
    byteweld.tokenize(documents=[TEXT], tokenizer=TOK, out=tmp_path / "data", eot="none")


@pytest.mark.usefixtures("_files")
@pytest.mark.parametrize("name", CALLABLES)
def test_hostile_arguments_give_errors_of_the_documented_kinds(name):
    call = CALLABLES[name]
    valid, parameters = arguments_of(name, call)
    flags = {p.name for p in inspect.signature(call).parameters.values() if p.default is False}
    findings = []
    for parameter in parameters:
        # Anything is true or false, so a few values will do.
        for value in itertools.islice(hostile(), 0, None, 10 if parameter in flags else 1):
            try:
                used(call(**(valid | {parameter: value})))
            except BaseException as error:
                if not is_expected(error, parameter, value):
                    kind = f"{type(error).__name__}: {str(error)[:100]}"
                    findings.append(f"{parameter}={ascii(value)[:60]}: {kind}")
    assert findings == []
