"""Vocabulary: the value everyone passes. Plain, immutable, checks itself when made.

Tokens by id, merges in rank order, special tokens, roles, the pattern. Everything else (ranks,
tables, caches) is derived from it. It knows no file format and no engine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Literal, NamedTuple

from byteweld.errors import VocabularyError
from byteweld.patterns import resolve_pattern

Ranking = Literal["merges", "ranks"]
VocabAlphabet = Literal["bytes", "ascii"]
Role = Literal["bos", "eos", "pad", "unk"]

ROLES: tuple[Role, ...] = ("bos", "eos", "pad", "unk")
# The alphabet "ascii": \t, \n, \r and 0x20-0x7E, ascending; 98 bytes.
ASCII_BYTES = bytes([0x09, 0x0A, 0x0D, *range(0x20, 0x7F)])
MAX_ID = 2**32 - 2  # ids travel as u32; the last value is the engine's "none"


class Merge(NamedTuple):
    """A pair of token ids and the id it becomes. Its rank is its place in the list."""

    left: int
    right: int
    new: int


class Vocabulary:
    """A byte-level BPE vocabulary.

    Args:
        tokens: id -> bytes, for every id; a special token's bytes are its text in UTF-8.
        merge_ids: merges in rank order, as (left id, right id, new id).
        special_tokens: text -> id.
        pattern: what cuts text into pre-tokens, by name or as a regular expression, or None for
            whole texts. Spellings of a known pattern become one.
        roles: which ids are bos, eos, pad, unk.
        alphabet: "bytes" (every byte has a token) or "ascii" (others give unk, or an error).
        ranking: "merges" (the lowest-ranked merge goes first) or "ranks" (the pair whose *result*
            has the lowest id goes first, as in tiktoken; `merge_ids` is then empty).
        ignore_merges: look a whole pre-token up first, and merge only if it is no token.

    >>> v = Vocabulary({b: bytes([b]) for b in range(256)} | {256: b"ab"}, [(97, 98, 256)])
    >>> v.merges
    [(b'a', b'b')]
    """

    __slots__ = (
        "__dict__",  # for the cached properties
        "alphabet",
        "ignore_merges",
        "merge_ids",
        "pattern",
        "ranking",
        "roles",
        "special_tokens",
        "tokens",
    )

    tokens: Mapping[int, bytes]
    merge_ids: tuple[Merge, ...]
    special_tokens: Mapping[str, int]
    pattern: str | None
    roles: Mapping[str, int]
    alphabet: VocabAlphabet
    ranking: Ranking
    ignore_merges: bool

    def __init__(
        self,
        tokens: Mapping[int, bytes],
        merge_ids: Iterable[Sequence[int]] = (),
        *,
        special_tokens: Mapping[str, int] | None = None,
        pattern: str | None = None,
        roles: Mapping[str, int] | None = None,
        alphabet: VocabAlphabet = "bytes",
        ranking: Ranking = "merges",
        ignore_merges: bool = False,
    ) -> None:
        for name, value in (("tokens", tokens), ("special_tokens", special_tokens or {})):
            if not isinstance(value, Mapping):
                raise TypeError(f"{name} must be a mapping, found {type(value).__name__}")
        put = super().__setattr__
        put("tokens", MappingProxyType(dict(sorted(tokens.items()))))
        put("merge_ids", tuple(Merge(*merge) for merge in merge_ids))
        put("special_tokens", MappingProxyType(_by_id(special_tokens or {})))
        put("pattern", resolve_pattern(pattern))
        put("roles", MappingProxyType({r: roles[r] for r in ROLES if r in roles} if roles else {}))
        put("alphabet", alphabet)
        put("ranking", ranking)
        put("ignore_merges", ignore_merges)
        unknown_roles = set(roles or ()) - set(ROLES)
        if unknown_roles:
            raise VocabularyError(f"unknown roles {sorted(unknown_roles)}; known are {list(ROLES)}")
        self._check_tokens()
        self._check_merges()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Vocabulary is immutable; make a new one to change {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Vocabulary is immutable; {name!r} cannot be deleted")

    # ------------------------------------------------------------------ checks

    def _check_tokens(self) -> None:
        if self.alphabet not in ("bytes", "ascii") or self.ranking not in ("merges", "ranks"):
            raise VocabularyError(
                f"alphabet is {self.alphabet!r} and ranking {self.ranking!r}; expected "
                "'bytes' or 'ascii', and 'merges' or 'ranks'"
            )
        for token_id, token in self.tokens.items():
            if type(token_id) is not int or not 0 <= token_id <= MAX_ID:
                raise VocabularyError(f"token id {token_id!r} is not an integer in 0..{MAX_ID}")
            if not isinstance(token, bytes) or not token:
                raise VocabularyError(f"token {token_id} is {token!r}; expected at least one byte")
        for text, token_id in self.special_tokens.items():
            if not isinstance(text, str) or self.tokens.get(token_id) != text.encode():
                raise VocabularyError(
                    f"special token {text!r} has id {token_id}, whose bytes are "
                    f"{self.tokens.get(token_id)!r}; expected the text's own UTF-8"
                )
        if len(set(self.special_tokens.values())) != len(self.special_tokens):
            raise VocabularyError("two special tokens share one id")
        for role, token_id in self.roles.items():
            if token_id not in self.tokens:
                raise VocabularyError(f"role {role!r} is id {token_id}, which is no token")
        seen: dict[bytes, int] = {}
        for token_id, token in self.ordinary():
            if token in seen:
                raise VocabularyError(
                    f"ids {seen[token]} and {token_id} are both {token!r}; every token has one id"
                )
            seen[token] = token_id
        needed = range(256) if self.alphabet == "bytes" else ()
        missing = [b for b in needed if bytes([b]) not in seen]
        if missing:
            raise VocabularyError(
                f"no token for {len(missing)} of 256 bytes, first 0x{missing[0]:02X}; "
                "a byte vocabulary needs one for each"
            )

    def _check_merges(self) -> None:
        if self.ranking == "ranks" and self.merge_ids:
            raise VocabularyError("a vocabulary ranked by id has no merge list")
        tokens = self.tokens
        only_special = self._only_special
        pairs: dict[tuple[int, int], int] = {}
        for rank, (left, right, new) in enumerate(self.merge_ids):
            for part in (left, right, new):
                if part not in tokens or part in only_special:
                    what = "a special token" if part in tokens else "no token"
                    raise VocabularyError(
                        f"merge {rank} is ({left}, {right}) -> {new}, but {part} is {what}"
                    )
            # Lengths first: joining two huge tokens for every merge would be quadratic.
            made, wanted = len(tokens[left]) + len(tokens[right]), len(tokens[new])
            if made != wanted or tokens[left] + tokens[right] != tokens[new]:
                raise VocabularyError(
                    f"merge {rank} makes {tokens[left]!r} + {tokens[right]!r}, "
                    f"but token {new} is {tokens[new]!r}"
                )
            if (left, right) in pairs:
                raise VocabularyError(
                    f"merges {pairs[left, right]} and {rank} merge the same pair ({left}, {right})"
                )
            pairs[left, right] = rank

    # ------------------------------------------------------------------ views

    @cached_property
    def _only_special(self) -> frozenset[int]:
        """Special ids that no merge makes. (In Hugging Face a learned token may share one.)"""
        made = {merge.new for merge in self.merge_ids}
        return frozenset(i for i in self.special_tokens.values() if i not in made)

    def ordinary(self) -> Iterator[tuple[int, bytes]]:
        """Yield (id, bytes) of every token that text can become, in order of id."""
        only_special = self._only_special
        return ((i, t) for i, t in self.tokens.items() if i not in only_special)

    @cached_property
    def ids(self) -> Mapping[bytes, int]:
        """Bytes -> id of every ordinary token."""
        return MappingProxyType({token: token_id for token_id, token in self.ordinary()})

    @property
    def merges(self) -> list[tuple[bytes, bytes]]:
        """Merges in rank order as (left bytes, right bytes)."""
        return [(self.tokens[left], self.tokens[right]) for left, right, _ in self.merge_ids]

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of everything that can change an id, and of nothing else (64 hex digits)."""
        digest = hashlib.sha256(b"byteweld vocabulary 1\n")
        head = {
            "alphabet": self.alphabet,
            "ignore_merges": self.ignore_merges,
            "pattern": self.pattern,
            "ranking": self.ranking,
            "roles": {r: i for r, i in self.roles.items() if r != "pad"},  # pad is never encoded
            "special_tokens": dict(self.special_tokens),
        }
        digest.update(json.dumps(head, sort_keys=True, ensure_ascii=True).encode())
        for token_id, token in self.tokens.items():
            digest.update(b"\nt %d %d " % (token_id, len(token)) + token)
        for left, right, new in self.merge_ids:
            digest.update(b"\nm %d %d %d" % (left, right, new))
        return digest.hexdigest()

    # ------------------------------------------------------------------ value

    def _key(self) -> tuple[object, ...]:
        return (
            dict(self.tokens),
            self.merge_ids,
            dict(self.special_tokens),
            self.pattern,
            dict(self.roles),
            self.alphabet,
            self.ranking,
            self.ignore_merges,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        # The fingerprint covers all but the role that is never encoded.
        return self.fingerprint == other.fingerprint and self.roles == other.roles

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, self._key())

    def __repr__(self) -> str:
        return (
            f"<Vocabulary {len(self)} tokens, {len(self.merge_ids)} merges, "
            f"{len(self.special_tokens)} special, sha {self.fingerprint[:8]}>"
        )


def _by_id(special_tokens: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(special_tokens.items(), key=lambda item: item[1]))


def _rebuild(
    tokens: Mapping[int, bytes],
    merge_ids: Iterable[Sequence[int]],
    special_tokens: Mapping[str, int],
    pattern: str | None,
    roles: Mapping[str, int],
    alphabet: VocabAlphabet,
    ranking: Ranking,
    ignore_merges: bool,
) -> Vocabulary:
    return Vocabulary(
        tokens,
        merge_ids,
        special_tokens=special_tokens,
        pattern=pattern,
        roles=roles,
        alphabet=alphabet,
        ranking=ranking,
        ignore_merges=ignore_merges,
    )
