"""Parts of tokenizer.json, and whole files, as the library writes them."""

from __future__ import annotations

from typing import Any

Part = dict[str, Any]


def byte_level(**flags: bool) -> Part:
    plain = {"add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {"type": "ByteLevel", **plain} | flags


def split(kind: str, pattern: str, behavior: str = "Isolated", invert: bool = False) -> Part:
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def sequence(*steps: Part) -> Part:
    return {"type": "Sequence", "pretokenizers": list(steps)}


def replace(kind: str, pattern: str, content: str = "") -> Part:
    return {"type": "Replace", "pattern": {kind: pattern}, "content": content}


def added(text: str, token_id: int = 0, **flags: bool) -> Part:
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": token_id, "content": text, **plain, "special": True} | flags


def document(model: Part, **parts: Any) -> Part:
    """Return a whole file, by default one that splits as GPT-2 does."""
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": byte_level(use_regex=True),
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True},
        "model": model,
    } | parts
