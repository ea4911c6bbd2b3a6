"""Recipe: every choice in a training run except the corpus and the size. Includes the presets.

>>> from byteweld import RECIPES
>>> ", ".join(RECIPES)
'modern, from-scratch, ck, ck-ascii, bpetite, plain, bpe1, huggingface, rustbpe'
>>> RECIPES["modern"].min_frequency, RECIPES["modern"].tie_break
(2, 'smallest-ids')
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, get_args

from byteweld._byte_letters import BYTE_TO_CHAR, BYTES_BY_LETTER, CHAR_TO_BYTE
from byteweld.errors import UnsupportedError, check_text, nearest
from byteweld.patterns import resolve_pattern
from byteweld.vocab import ASCII_BYTES, VocabAlphabet

Alphabet = Literal["bytes", "ascii", "huggingface"]
SpecialIds = Literal["first", "after_alphabet", "last"]
TieBreak = Literal["smallest-ids", "greatest-bytes", "smallest-bytes"]
DocumentUnit = Literal["file", "line"]

ALPHABETS: Mapping[str, bytes] = MappingProxyType(
    {"bytes": bytes(range(256)), "ascii": ASCII_BYTES, "huggingface": BYTES_BY_LETTER}
)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How to train: every choice except the corpus and the size. Immutable.

    `byteweld.train` takes the name of a preset in `byteweld.RECIPES`, and fields to change in it:
    `train(..., recipe="bpetite", min_frequency=2)`. To use the same recipe several times, take a
    preset and `replace` fields.

    Attributes:
        name: of the preset; "custom" for others.
        alphabet: the tokens before the first merge: "bytes" (all 256), "ascii" (tab, newline,
            return and the 95 printable characters; any other byte in the corpus is an error) or
            "huggingface" (all 256, in the order of Hugging Face's ids).
        initial_alphabet: Hugging Face's: byte letters that become tokens even if they do not occur
            in the corpus. None means all 256; `[]`, the default of their trainer, means only those
            that occur.
        built_in: the special tokens that the recipe always has.
        special_tokens: the user's.
        special_ids: where the ids of special tokens are: "first" (before the alphabet),
            "after_alphabet" or "last" (after the merges).
        split_specials: whether the user's special tokens are boundaries in the corpus and are not
            counted. If False, they are ordinary text.
        split_built_in: the same for built-in special tokens.
        pattern: splits the corpus into pre-tokens; None if a document is one pre-token.
        encode_pattern: the vocabulary's, which splits text when encoding.
        tie_break: which of the pairs with the highest count merges first: the one with the
            "smallest-ids", the "greatest-bytes" or the "smallest-bytes".
        min_frequency: stop when the most frequent pair occurs less often than this.
        max_token_bytes: learn no token longer than this, unless it is None. As in Hugging Face's
            trainer, the limit of `huggingface` is exclusive.
        roles: pairs of a role (bos, eos, pad, unk) and its special token.
        size_counts_specials: whether `vocab_size` includes special tokens.
        document_unit: whether a text file is one document, or each of its lines.
        extensions: the files to read in a folder; None for the default list.

    Examples:
        >>> recipe = byteweld.RECIPES["modern"].replace(special_tokens=["<|end|>"], min_frequency=1)
        >>> recipe.min_frequency, recipe.minimum_size
        (1, 257)
        >>> byteweld.train(documents=["low low"], vocab_size=260, recipe=recipe)
        <Tokenizer 260 tokens, pattern 'o200k', sha c22b5507>
        >>> chat = byteweld.RECIPES["ck"].replace(special_tokens=["<|user|>"])
        >>> chat.all_specials, chat.boundaries
        (('<|unk|>', '<|bos|>', '<|eos|>', '<|pad|>', '<|user|>'), ('<|user|>',))
        >>> chat.with_roles({"eos": "<|end|>"}).special_tokens
        ('<|user|>', '<|end|>')
        >>> ascii_only = byteweld.RECIPES["ck-ascii"]
        >>> ascii_only.letters[:5], ascii_only.vocab_alphabet
        (b'\\t\\n\\r !', 'ascii')
        >>> small = byteweld.RECIPES["huggingface"].replace(initial_alphabet=["a"])
        >>> small.with_letters(b"cab").letters
        b'abc'
    """

    name: str = "custom"
    alphabet: Alphabet = "bytes"
    initial_alphabet: tuple[str, ...] | None = None
    built_in: tuple[str, ...] = ()
    special_tokens: tuple[str, ...] = ()
    special_ids: SpecialIds = "last"
    split_specials: bool = True
    split_built_in: bool = False
    pattern: str | None = None
    encode_pattern: str | None = None
    tie_break: TieBreak = "smallest-ids"
    min_frequency: int = 1
    max_token_bytes: int | None = None
    roles: tuple[tuple[str, str], ...] = ()
    size_counts_specials: bool = True
    document_unit: DocumentUnit = "file"
    extensions: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.special_tokens, str) or not isinstance(self.special_tokens, Iterable):
            raise TypeError(
                f"special_tokens is {self.special_tokens!r}; it must be a list of strings"
            )
        for name, least in (("min_frequency", 0), ("max_token_bytes", 1)):
            number = getattr(self, name)
            if number is None and name == "max_token_bytes":
                continue
            if isinstance(number, bool) or not isinstance(number, int):
                raise TypeError(f"{name} is {number!r}; it must be an integer")
            if number < least:
                raise ValueError(f"{name} is {number}; it must be at least {least}")
        object.__setattr__(self, "special_tokens", tuple(self.special_tokens))
        for attribute, choices in _CHOICES.items():
            value = getattr(self, attribute)
            if value not in choices:
                raise ValueError(
                    f"{attribute} is {value!r}; it must be one of {', '.join(choices)}"
                )
        for text in self.special_tokens:
            if not isinstance(text, str) or not text:
                raise ValueError(f"a special token is {text!r}; it must be a non-empty string")
            check_text("a special token", text)
        every = (*self.built_in, *self.special_tokens)
        if len(set(every)) < len(every):
            repeated = next(text for text, times in Counter(every).items() if times > 1)
            raise ValueError(f"special token {repeated!r} is given twice")
        object.__setattr__(self, "initial_alphabet", self._checked_letters())
        object.__setattr__(self, "pattern", resolve_pattern(self.pattern))
        object.__setattr__(self, "encode_pattern", resolve_pattern(self.encode_pattern))

    def _checked_letters(self) -> tuple[str, ...] | None:
        """Return the initial alphabet in the order of its ids; None if it is the whole alphabet."""
        given = self.initial_alphabet
        if given is None:
            return None
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise TypeError(f"initial_alphabet is {given!r}; it must be a list of byte letters")
        if self.alphabet != "huggingface":
            raise ValueError(
                f"initial_alphabet requires alphabet 'huggingface', found {self.alphabet!r}; "
                "use recipe 'huggingface', or leave initial_alphabet out"
            )
        letters = set(given)
        for letter in letters:
            if letter not in CHAR_TO_BYTE:
                raise ValueError(
                    f"initial_alphabet contains {letter!r}; expected letters of Hugging Face's "
                    "ByteLevel.alphabet(), such as 'a', or 'Ġ' for a space"
                )
        return None if len(letters) == len(CHAR_TO_BYTE) else tuple(sorted(letters))

    def replace(self, **changes: Any) -> Recipe:
        """Return a copy with some fields changed; an unknown field is an error.

        A new `pattern` also becomes the `encode_pattern`, unless that is changed as well.
        """
        known = {f.name for f in dataclasses.fields(self)} - {"name", "built_in", "roles"}
        for name in changes:
            if name not in known:
                raise TypeError(f"unknown recipe field {name!r}{nearest(name, known)}")
        if "pattern" in changes and "encode_pattern" not in changes:
            changes["encode_pattern"] = changes["pattern"]
        if self.name == "bpetite" and changes.get("special_tokens"):
            raise UnsupportedError(
                "recipe 'bpetite' has exactly one special token, '<|endoftext|>' (FR-14); "
                "for more, use recipe 'modern' with pattern='gpt2'"
            )
        if self.name == "rustbpe" and changes.get("special_tokens"):
            raise UnsupportedError("recipe 'rustbpe' has no special tokens; use recipe 'modern'")
        return dataclasses.replace(self, **changes)

    def with_roles(self, roles: Mapping[str, str]) -> Recipe:
        """Declare special tokens as bos, eos, pad or unk, adding those that the recipe lacks."""
        if not isinstance(roles, Mapping):
            raise TypeError(f"roles is {roles!r}; it must be a mapping of role to special token")
        for role, text in roles.items():
            if not isinstance(text, str) or not text:
                raise ValueError(f"{role} is {text!r}; it must be the text of a special token")
        known = set(self.all_specials)
        new = [text for text in dict.fromkeys(roles.values()) if text not in known]
        recipe = self.replace(special_tokens=(*self.special_tokens, *new)) if new else self
        return dataclasses.replace(recipe, roles=tuple((dict(self.roles) | dict(roles)).items()))

    @property
    def all_specials(self) -> tuple[str, ...]:
        """All special tokens, in the order of their ids."""
        return (*self.built_in, *self.special_tokens)

    @property
    def boundaries(self) -> tuple[str, ...]:
        """The special tokens that split the corpus wherever their text occurs."""
        built_in = self.built_in if self.split_built_in else ()
        return (*built_in, *(self.special_tokens if self.split_specials else ()))

    @property
    def letters(self) -> bytes:
        """The bytes that are tokens before the first merge, in the order of their ids."""
        if self.initial_alphabet is None:
            return ALPHABETS[self.alphabet]
        return bytes(CHAR_TO_BYTE[letter] for letter in self.initial_alphabet)

    def with_letters(self, seen: Iterable[int]) -> Recipe:
        """Add the bytes of a corpus to the initial alphabet, if the recipe has one."""
        if self.initial_alphabet is None:
            return self
        letters = (*self.initial_alphabet, *(BYTE_TO_CHAR[byte] for byte in seen))
        return dataclasses.replace(self, initial_alphabet=letters)

    @property
    def vocab_alphabet(self) -> VocabAlphabet:
        """The alphabet of the vocabulary: "partial" if some bytes have no token."""
        if self.alphabet == "ascii":
            return "ascii"
        return "bytes" if self.initial_alphabet is None else "partial"

    @property
    def minimum_size(self) -> int:
        """The smallest possible `vocab_size`: the alphabet, plus special tokens if they count.

        An initial alphabet grows with the bytes of the corpus, and so does this.
        """
        specials = len(self.all_specials) if self.size_counts_specials else 0
        return len(self.letters) + specials


_CHOICES: dict[str, tuple[str, ...]] = {
    "alphabet": get_args(Alphabet),
    "special_ids": get_args(SpecialIds),
    "tie_break": get_args(TieBreak),
    "document_unit": get_args(DocumentUnit),
}

_CK = Recipe(
    name="ck",
    built_in=("<|unk|>", "<|bos|>", "<|eos|>", "<|pad|>"),
    roles=(("unk", "<|unk|>"), ("bos", "<|bos|>"), ("eos", "<|eos|>"), ("pad", "<|pad|>")),
    special_ids="first",
    encode_pattern="gpt2",
    min_frequency=2,
    extensions=(".svg", ".txt", ".xml", ".html", ".md", ".json"),
)

RECIPES: Mapping[str, Recipe] = MappingProxyType(
    {
        recipe.name: recipe
        for recipe in [
            Recipe(name="modern", pattern="o200k", encode_pattern="o200k", min_frequency=2),
            Recipe(
                name="from-scratch",
                special_ids="after_alphabet",
                pattern="gpt2",
                encode_pattern="gpt2",
                tie_break="greatest-bytes",
            ),
            _CK,
            dataclasses.replace(_CK, name="ck-ascii", alphabet="ascii", encode_pattern=None),
            Recipe(
                name="bpetite",
                built_in=("<|endoftext|>",),
                split_specials=False,
                pattern="gpt2",
                encode_pattern="gpt2",
                size_counts_specials=False,
            ),
            Recipe(name="plain", special_ids="first", tie_break="smallest-bytes"),
            Recipe(
                name="bpe1",
                built_in=("<|bos|>", "<|eos|>", "<|pad|>", "<|unk|>"),
                roles=tuple((role, f"<|{role}|>") for role in ("bos", "eos", "pad", "unk")),
                special_ids="after_alphabet",
                split_built_in=True,
            ),
            Recipe(
                name="huggingface",
                alphabet="huggingface",
                special_ids="first",
                split_specials=False,
                pattern="gpt2",
                encode_pattern="gpt2",
                min_frequency=0,
                document_unit="line",
            ),
            Recipe(
                name="rustbpe", pattern="gpt2", encode_pattern="gpt2", size_counts_specials=False
            ),
        ]
    }
)
"""The recipes by name, each a `Recipe`: how documents are split, and how merges are learned.

| name | when to use it |
|---|---|
| `modern` (the default) | For a new tokenizer. GPT-4o's pattern; special tokens get the last ids. |
| `from-scratch` | For exercises such as Stanford's CS336, whose tests expect these merges. |
| `ck` | To get what ck-bpe-train learns: no pattern in training, four special tokens first. |
| `ck-ascii` | The same for pure ASCII: 98 characters instead of 256 bytes. |
| `bpetite` | To get what bpetite learns: GPT-2's pattern, one special token. |
| `plain` | To follow BPE by hand: no pattern, ties by bytes. `explain_training` uses it. |
| `bpe1` | For the BPE1 format and its C reader: no pattern, ids 256 to 259 are special tokens. |
| `huggingface` | To get the merges and ids of Hugging Face's `BpeTrainer`. |
| `rustbpe` | To get the merges of rustbpe, nanochat's trainer; it has no special tokens. |
"""


def find_recipe(recipe: str | Recipe) -> Recipe:
    """Return a preset by name, or the recipe itself.

    >>> find_recipe("ck").minimum_size
    260
    """
    if isinstance(recipe, Recipe):
        return recipe
    if not isinstance(recipe, str):
        raise TypeError(f"recipe is {recipe!r}; it must be a name or a Recipe")
    if recipe not in RECIPES:
        hint = nearest(recipe, RECIPES)
        raise ValueError(f"unknown recipe {recipe!r}; expected one of {', '.join(RECIPES)}{hint}")
    return RECIPES[recipe]
