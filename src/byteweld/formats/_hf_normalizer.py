"""The `normalizer` of a tokenizer.json <-> the normalizer of a Vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from byteweld.formats._hf_fields import (
    describe,
    read_pattern,
    read_sequence,
    read_text,
    write_pattern,
    write_sequence,
)
from byteweld.formats._json import check_keys, unreadable
from byteweld.vocab import NormalizerStep, Replace

_STEPS: Final[dict[str, NormalizerStep]] = {
    "NFC": "nfc",
    "NFD": "nfd",
    "NFKC": "nfkc",
    "NFKD": "nfkd",
    "Lowercase": "lowercase",
}
_NAMES: Final = {step: name for name, step in _STEPS.items()}


def read_normalizer(value: object, path: Path) -> tuple[NormalizerStep, ...]:
    """Return the steps of a normalizer, in order."""
    steps = read_sequence(value, "normalizer", "normalizers", path)
    return tuple(_read_step(step, path) for step in steps)


def _read_step(step: Mapping[str, object], path: Path) -> NormalizerStep:
    kind = str(step["type"])
    if kind in _STEPS:
        check_keys(step, ("type",), f"its normalizer {kind}", path)
        return _STEPS[kind]
    if kind != "Replace":
        raise unreadable(path, f"its normalizer uses {describe(step)}")
    what = "its normalizer Replace"
    check_keys(step, ("type", "pattern", "content"), what, path)
    return Replace(read_pattern(step, what, path), read_text(step, "content", what, path))


def write_normalizer(steps: tuple[NormalizerStep, ...]) -> dict[str, object] | None:
    """Return the normalizer of a file."""
    return write_sequence([_write_step(step) for step in steps], "normalizers")


def _write_step(step: NormalizerStep) -> dict[str, object]:
    if isinstance(step, Replace):
        pattern = write_pattern(step.pattern)
        return {"type": "Replace", "pattern": pattern, "content": step.content}
    return {"type": _NAMES[step]}
