"""The options of a dataset: checked, and completed with the defaults of the format."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, get_args

from byteweld.dataset.formats import FORMATS, Format
from byteweld.dataset.formats._format import Eot
from byteweld.errors import check_text
from byteweld.tokenizer import Tokenizer

SpecialText = Literal["fail", "text", "special"]

_MAX_PREFIX_BYTES: Final = 200  # file systems have names of 255 bytes; a format adds up to 30


class Mark(NamedTuple):
    """A special token that is added to every document."""

    text: str
    id: int


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the bytes of a dataset depend on, apart from the tokenizer and the sources.

    Attributes:
        format: one of `FORMATS`.
        eot: where the end-of-text token goes: "append", "prepend" or "none". Default: where the
            format's users expect it.
        eot_token: the end-of-text token. Default: the tokenizer's eos, else <|endoftext|>.
        bos: start every document with the tokenizer's bos token.
        special_text: what becomes of special tokens that occur in the text: "text" encodes them as
            ordinary text, "special" as their ids, "fail" is an error.
        validation: the fraction of documents for the validation split. Default: 0.
        seed: for the choice of these documents, and for shuffling. Default: 0.
        shuffle: put the documents in a random order, chosen by the seed.
        shard_tokens: start a new shard after the document that reaches this many tokens.
        pack: make rows of exactly this many tokens, across documents.
        dtype: the type of the ids, such as uint16. Default: the smallest that the
            format has for the vocabulary.
        prefix: the start of file names, for formats that have one (llmc, megatron).
    """

    format: str = "flat"
    eot: Eot | None = None
    eot_token: str | None = None
    bos: bool = False
    special_text: SpecialText = "text"
    validation: float = 0.0
    seed: int = 0
    shuffle: bool = False
    shard_tokens: int | None = None
    pack: int | None = None
    dtype: str | None = None
    prefix: str | None = None

    def __post_init__(self) -> None:
        choices: dict[str, Collection[str]] = {
            "format": FORMATS,
            "eot": get_args(Eot),
            "special_text": get_args(SpecialText),
        }
        for name, known in choices.items():
            value = getattr(self, name)
            if value not in known and (value is not None or name != "eot"):
                names = ", ".join(known if name == "format" else map(repr, known))
                raise ValueError(f"{name} is {value!r}; expected one of {names}")
        if not isinstance(self.validation, int | float) or not 0 <= self.validation < 1:
            raise ValueError(
                f"validation is {self.validation!r}; expected a fraction of the documents, "
                "at least 0 and below 1"
            )
        for name, least in (("shard_tokens", 1), ("pack", 1), ("seed", 0)):
            value = getattr(self, name)
            is_number = type(value) is int and least <= value < 1 << 63
            if not is_number and (value is not None or name == "seed"):
                raise ValueError(f"{name} is {value!r}; expected a whole number, at least {least}")
        for name in ("eot_token", "prefix"):
            if getattr(self, name) is not None:
                check_text(name, getattr(self, name))
        if self.prefix is not None and not _may_start_a_name(self.prefix):
            raise ValueError(
                f"prefix is {self.prefix!r}; expected the start of a file name, at most "
                f"{_MAX_PREFIX_BYTES} bytes"
            )

    def complete(self, tok: Tokenizer) -> Plan:
        """Fill in the defaults of the format for a tokenizer; raise if they do not fit."""
        format = FORMATS[self.format]
        dtype = _dtype(self.dtype, format, tok.n_vocab)
        if self.pack is not None and not format.has_rows:
            raise ValueError(
                f"pack is {self.pack}, but format {self.format!r} is one stream of ids, which "
                "its readers cut into windows themselves; leave pack out, or choose another format"
            )
        if self.prefix is not None and not format.has_prefix:
            names = ", ".join(known.name for known in FORMATS.values() if known.has_prefix)
            raise ValueError(
                f"prefix is {self.prefix!r}, but format {self.format!r} has names of its own; "
                f"leave prefix out, or choose a format that has one: {names}"
            )
        eot = format.eot if self.eot is None else self.eot
        mark = None if eot == "none" else _eot(tok, self.eot_token)
        bos = _bos(tok) if self.bos else None
        shard_tokens = format.shard_tokens if self.shard_tokens is None else self.shard_tokens
        most = format.max_shard_tokens
        if most is not None and shard_tokens is not None and shard_tokens > most:
            raise ValueError(
                f"shard_tokens is {shard_tokens}; a shard of format {format.name!r} has at most "
                f"{most}"
            )
        options = dataclasses.replace(
            self, eot=eot, eot_token=mark and mark.text, dtype=dtype, shard_tokens=shard_tokens
        )
        return Plan(options, format, mark, bos)


class Plan(NamedTuple):
    """Complete options, with the tokens they stand for."""

    options: Options
    format: Format
    eot: Mark | None
    bos: Mark | None

    @property
    def before(self) -> list[int]:
        """The ids before each document."""
        prepended = self.eot if self.options.eot == "prepend" else None
        return [mark.id for mark in (prepended, self.bos) if mark is not None]

    @property
    def after(self) -> list[int]:
        """The ids after each document."""
        return [self.eot.id] if self.eot is not None and self.options.eot == "append" else []

    def to_dict(self) -> dict[str, Any]:
        """Return the options for the manifest."""
        values = dataclasses.asdict(self.options)
        for name in ("format", "dtype"):  # the manifest has them
            del values[name]
        return values


def _may_start_a_name(prefix: str) -> bool:
    is_short = 0 < len(prefix.encode()) <= _MAX_PREFIX_BYTES
    return is_short and "/" not in prefix and "\0" not in prefix


def _dtype(dtype: str | None, format: Format, n_vocab: int) -> str:
    import numpy as np

    default = format.dtype(n_vocab)
    if dtype is None:
        return default
    if dtype not in format.dtypes:
        raise ValueError(
            f"dtype is {dtype!r}; format {format.name!r} has {', '.join(format.dtypes)}"
        )
    if n_vocab - 1 > np.iinfo(dtype).max:
        raise ValueError(
            f"dtype is {dtype!r}, but the vocabulary has ids up to {n_vocab - 1:,}; "
            f"choose {default!r}"
        )
    return dtype


def _eot(tok: Tokenizer, text: str | None) -> Mark:
    specials = tok.vocab.special_tokens
    if text is not None:
        if text not in specials:
            raise ValueError(
                f"eot_token is {text!r}, which is not a special token of this tokenizer; it has "
                f"{', '.join(map(repr, list(specials)[:20])) or 'none'}"
            )
        return Mark(text, specials[text])
    id = tok.vocab.roles.get("eos")
    if id is None:
        try:
            id = tok.eot_token
        except KeyError:
            raise ValueError(
                "the tokenizer has no end-of-text token: neither an eos role nor <|endoftext|>; "
                "name one of its special tokens as eot_token=, or pass eot='none'"
            ) from None
    return _mark(tok, id)


def _bos(tok: Tokenizer) -> Mark:
    id = tok.vocab.roles.get("bos")
    if id is None:
        raise ValueError(
            "bos is asked for, but the tokenizer has no bos token; declare one when it is trained "
            "(bos=) or in its tokenizer_config.json, or leave bos out"
        )
    return _mark(tok, id)


def _mark(tok: Tokenizer, id: int) -> Mark:
    return Mark(tok.decode_single_token_bytes(id).decode(errors="replace"), id)
