"""The `post_processor` of a tokenizer.json <-> the template of a Vocabulary.

A template has the ids that go before and after a text if the caller requests special tokens. The
template for pairs is not read; it is written as the template around each text of the pair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from byteweld.errors import FormatError
from byteweld.formats._hf_fields import BYTE_LEVEL_KEYS, describe, read_sequence, read_text
from byteweld.formats._json import (
    check_keys,
    read_list,
    read_object,
    require,
    show,
    unreadable,
)
from byteweld.vocab import MAX_ID, Template

_TEMPLATE_KEYS: Final = (*BYTE_LEVEL_KEYS, "single", "pair", "special_tokens")
_TWO_TOKENS: Final = ("RobertaProcessing", "BertProcessing")
_TWO_KEYS: Final = ("type", "sep", "cls", "trim_offsets", "add_prefix_space")


# ---------------------------------------------------------------------- reading


def read_post_processor(value: object, path: Path) -> Template:
    """Return the ids that a post-processor adds before and after one text."""
    template: Template = ((), ())
    for step in read_sequence(value, "post_processor", "processors", path):
        if step["type"] == "ByteLevel":  # it changes only offsets
            check_keys(step, BYTE_LEVEL_KEYS, "its post_processor", path)
            continue
        if template != ((), ()):  # the library itself fails on such files
            raise unreadable(path, "its post_processor adds tokens twice")
        before, after = _read_step(step, path)
        template = tuple(before), tuple(after)
    return template


def _read_step(step: Mapping[str, object], path: Path) -> tuple[list[int], list[int]]:
    kind = step["type"]
    if kind in _TWO_TOKENS:
        check_keys(step, _TWO_KEYS, "its post_processor", path)
        return [_read_two(step, "cls", path)], [_read_two(step, "sep", path)]
    if kind != "TemplateProcessing":
        raise unreadable(path, f"its post_processor uses {describe(step)}")
    check_keys(step, _TEMPLATE_KEYS, "its post_processor", path)
    return _read_template(step, path)


def _read_two(step: Mapping[str, object], key: str, path: Path) -> int:
    """Return the id of `cls` or `sep`, which is a pair of text and id."""
    pair = read_list(require(step, key, path, "the post_processor"), repr(key), path)
    if len(pair) != 2 or type(pair[0]) is not str:
        raise FormatError(f"{key!r} is {show(pair)}; expected a token and its id", path=path)
    return _read_id(pair[1], path)


def _read_template(step: Mapping[str, object], path: Path) -> tuple[list[int], list[int]]:
    what = "the post_processor TemplateProcessing"
    names = require(step, "special_tokens", path, what)
    tokens = read_object(names, "'special_tokens' of a template", path)
    around: tuple[list[int], ...] = ([],)
    for item in read_list(require(step, "single", path, what), "'single'", path):
        piece = read_object(item, "a piece of a template", path)
        kind = next(iter(piece), "")
        inner = read_object(piece.get(kind), f"the piece {show(kind)} of a template", path)
        name = read_text(inner, "id", "a piece of a template", path)
        if kind == "SpecialToken" and len(piece) == 1:
            around[-1].extend(_read_special(name, tokens, path))
        elif kind == "Sequence" and len(piece) == 1 and name == "A":
            around = (*around, [])
        else:
            raise unreadable(path, f"its template for one text has the piece {show(piece)}")
    if len(around) != 2:
        raise unreadable(path, f"its template has the text {len(around) - 1} times")
    return around[0], around[1]


def _read_special(name: str, tokens: Mapping[str, object], path: Path) -> list[int]:
    if name not in tokens:
        raise FormatError(
            f"a template has the special token {show(name)}, but its 'special_tokens' do not",
            path=path,
        )
    token = read_object(tokens[name], f"special token {show(name)} of a template", path)
    ids = require(token, "ids", path, f"special token {show(name)} of a template")
    return [_read_id(token_id, path) for token_id in read_list(ids, "'ids' of a template", path)]


def _read_id(value: object, path: Path) -> int:
    if type(value) is not int or not 0 <= value <= MAX_ID:
        raise FormatError(
            f"a template has the id {show(value)}; expected an integer in 0..{MAX_ID}", path=path
        )
    return value


# ---------------------------------------------------------------------- writing


def write_post_processor(
    template: Template, name_of: Callable[[int], str]
) -> dict[str, object] | None:
    """Return the post-processor of a file, or None if it adds nothing."""
    before, after = template
    if not before and not after:
        return None

    def around(sequence: str, type_id: int) -> list[dict[str, object]]:
        text: dict[str, object] = {"Sequence": {"id": sequence, "type_id": type_id}}
        tokens: list[dict[str, object]] = [
            {"SpecialToken": {"id": name_of(i), "type_id": type_id}} for i in (*before, *after)
        ]
        return [*tokens[: len(before)], text, *tokens[len(before) :]]

    return {
        "type": "TemplateProcessing",
        "single": around("A", 0),
        "pair": around("A", 0) + around("B", 1),
        "special_tokens": {
            name_of(i): {"id": name_of(i), "ids": [i], "tokens": [name_of(i)]}
            for i in sorted({*before, *after})
        },
    }
