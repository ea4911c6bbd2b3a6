"""Vocabulary: the value everyone passes. Plain, immutable, checks itself when made.

Tokens by id, merges in rank order, special tokens, roles, the pattern. Everything else (ranks,
tables, caches) is derived from it. It knows no file format and no engine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from byteweld.errors import VocabularyError
from byteweld.patterns import resolve_pattern

if TYPE_CHECKING:
    from byteweld import _native

Ranking = Literal["merges", "ranks"]
VocabAlphabet = Literal["bytes", "ascii", "partial"]
Role = Literal["bos", "eos", "pad", "unk"]
Behavior = Literal["isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous"]
Template = tuple[tuple[int, ...], tuple[int, ...]]

ROLES: tuple[Role, ...] = ("bos", "eos", "pad", "unk")
# The alphabet "ascii": \t, \n, \r and 0x20-0x7E, ascending; 98 bytes.
ASCII_BYTES = bytes([0x09, 0x0A, 0x0D, *range(0x20, 0x7F)])
MAX_ID = 2**32 - 2  # ids travel as u32; the last value is the engine's "none"


class Merge(NamedTuple):
    """A pair of token ids and the id it becomes. Its rank is its place in the list."""

    left: int
    right: int
    new: int


class AddedToken(NamedTuple):
    """A token that is found in text as a text, before anything is cut.

    A special one is recognised where the caller allows it, any other always. The flags are Hugging
    Face's: `single_word` (not inside a word), `lstrip` and `rstrip` (takes the white space beside
    it), `normalized` (is looked for in the normalised text, in its own normalised form).
    """

    text: str
    id: int
    special: bool = True
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether it is special and has no flags."""
        return self == AddedToken(self.text, self.id)


class Split(NamedTuple):
    """A step that cuts each piece by the matches of a regular expression (never a pattern's name).

    `behavior` says what becomes of a match (with `invert`: of what lies between matches).
    """

    pattern: str
    behavior: Behavior = "isolated"
    invert: bool = False


class Replace(NamedTuple):
    """A normaliser that replaces each match of a regular expression."""

    pattern: str
    content: str


# "prefix-space": each piece that does not start with a space gets one in front.
# "byte-letters": what follows sees each byte as its letter of GPT-2's alphabet.
Step = Split | Literal["prefix-space", "byte-letters"]
NormalizerStep = Replace | Literal["nfc", "nfd", "nfkc", "nfkd", "lowercase"]

_MARKS = ("prefix-space", "byte-letters")
_NORMAL_FORMS = ("nfc", "nfd", "nfkc", "nfkd", "lowercase")
_BEHAVIORS = get_args(Behavior)


class Vocabulary:
    """A byte-level BPE vocabulary.

    Args:
        tokens: id -> bytes, for every id; an added token's bytes are its text in UTF-8, unless its
            id is an ordinary token's too.
        merge_ids: merges in rank order, as (left id, right id, new id).
        special_tokens: text -> id of the plain special tokens.
        added_tokens: added tokens with flags, or that are not special.
        pattern: what cuts text into pre-tokens, by name or as a regular expression, or None for
            whole texts. Spellings of a known pattern become one.
        steps: what cuts text where one pattern does not say it: a chain, each step on the pieces
            of the one before. `pattern` is then None.
        normalizer: what is done to text before it is cut.
        template: ids to put before and after a text, where the caller asks for it.
        roles: which ids are bos, eos, pad, unk.
        alphabet: "bytes" (every byte has a token), "ascii" (any other character gives unk, or an
            error) or "partial" (a byte without a token gives unk, or is dropped, as in Hugging
            Face).
        ranking: "merges" (the lowest-ranked merge goes first) or "ranks" (the pair whose *result*
            has the lowest id goes first, as in tiktoken; `merge_ids` is then empty).
        ignore_merges: look a whole pre-token up first, and merge only if it is no token.

    >>> v = Vocabulary({b: bytes([b]) for b in range(256)} | {256: b"ab"}, [(97, 98, 256)])
    >>> v.merges
    [(b'a', b'b')]
    """

    __slots__ = (
        "__dict__",  # for the cached properties
        "_table",
        "added_tokens",
        "alphabet",
        "ignore_merges",
        "normalizer",
        "pattern",
        "ranking",
        "roles",
        "special_tokens",
        "steps",
        "template",
    )

    _table: _native.Table | None  # tokens and merges as a fast reader left them
    special_tokens: Mapping[str, int]  # every special token, with flags or without
    added_tokens: tuple[AddedToken, ...]  # every added token, in order of id
    pattern: str | None
    steps: tuple[Step, ...]
    normalizer: tuple[NormalizerStep, ...]
    template: Template
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
        added_tokens: Iterable[AddedToken] = (),
        pattern: str | None = None,
        steps: Iterable[Step] = (),
        normalizer: Iterable[NormalizerStep] = (),
        template: Template = ((), ()),
        roles: Mapping[str, int] | None = None,
        alphabet: VocabAlphabet = "bytes",
        ranking: Ranking = "merges",
        ignore_merges: bool = False,
    ) -> None:
        for name, value in (("tokens", tokens), ("special_tokens", special_tokens or {})):
            if not isinstance(value, Mapping):
                raise TypeError(f"{name} must be a mapping, found {type(value).__name__}")
        self.__dict__["tokens"] = MappingProxyType(dict(sorted(tokens.items())))
        self.__dict__["_merges"] = tuple(Merge(*merge) for merge in merge_ids)
        self.__dict__["merge_ids"] = self._merges
        self._complete(
            None,
            special_tokens=special_tokens,
            added_tokens=added_tokens,
            pattern=pattern,
            steps=steps,
            normalizer=normalizer,
            template=template,
            roles=roles,
            alphabet=alphabet,
            ranking=ranking,
            ignore_merges=ignore_merges,
        )

    @classmethod
    def _of_table(
        cls, table: _native.Table, *, makes_every_token: bool | None = None, **rest: Any
    ) -> Vocabulary:
        """The same of a table, with the other arguments as in `__init__`: the fast readers' door.

        The checks are the same; the engine does the long ones. Tokens and merges become Python's
        own when they are first asked for. `makes_every_token` is told where it is known.
        """
        vocab = cls.__new__(cls)
        vocab._complete(table, **rest)
        if makes_every_token is not None:
            vocab.__dict__["_makes_every_token"] = makes_every_token
        return vocab

    def _complete(
        self,
        table: _native.Table | None,
        *,
        special_tokens: Mapping[str, int] | None = None,
        added_tokens: Iterable[AddedToken] = (),
        pattern: str | None = None,
        steps: Iterable[Step] = (),
        normalizer: Iterable[NormalizerStep] = (),
        template: Template = ((), ()),
        roles: Mapping[str, int] | None = None,
        alphabet: VocabAlphabet = "bytes",
        ranking: Ranking = "merges",
        ignore_merges: bool = False,
    ) -> None:
        """Set all but tokens and merges, and check the whole."""
        put = super().__setattr__
        put("_table", table)
        added = [AddedToken(text, i) for text, i in (special_tokens or {}).items()]
        added += (AddedToken(*token) for token in added_tokens)
        added.sort(key=lambda token: (token.id, token.text))
        put("added_tokens", tuple(added))
        put("special_tokens", MappingProxyType({t.text: t.id for t in added if t.special}))
        chain = _steps(steps)
        if len(chain) == 1 and isinstance(chain[0], Split) and chain[0] == Split(chain[0].pattern):
            if pattern is not None:
                raise VocabularyError(f"steps and pattern {pattern!r} are both given; expected one")
            pattern, chain = chain[0].pattern, ()
        put("pattern", resolve_pattern(pattern))
        while chain and chain[-1] == "byte-letters":
            chain = chain[:-1]  # nothing comes after it that could see the letters
        put("steps", chain)
        put("normalizer", _normalizer(normalizer))
        if not isinstance(template, Sequence) or len(template) != 2:
            raise VocabularyError(f"template is {template!r}; expected the ids before and after")
        put("template", (tuple(template[0]), tuple(template[1])))
        put("roles", MappingProxyType({r: roles[r] for r in ROLES if r in roles} if roles else {}))
        put("alphabet", alphabet)
        put("ranking", ranking)
        put("ignore_merges", ignore_merges)
        unknown_roles = set(roles or ()) - set(ROLES)
        if unknown_roles:
            raise VocabularyError(f"unknown roles {sorted(unknown_roles)}; known are {list(ROLES)}")
        self._check()

    def _grown(
        self,
        merges: Sequence[tuple[int, int, int]],
        *,
        specials_after: Sequence[str] = (),
        roles: Mapping[str, int] | None = None,
    ) -> Vocabulary:
        """This vocabulary with further merges, whose tokens are made here, and then specials.

        The trainer's door: it costs what it makes. What the checks of `__init__` look for cannot
        be, or is looked for here: a part without token, an id with other bytes, bytes with two ids.
        """
        tokens = dict(self.tokens)
        try:
            for left, right, new in merges:
                token = tokens[left] + tokens[right]
                if tokens.setdefault(new, token) != token:
                    raise VocabularyError(
                        f"merge ({left}, {right}) -> {new} makes {token!r}, "
                        f"but token {new} is {tokens[new]!r}"
                    )
        except KeyError as error:
            raise VocabularyError(f"a merge has the part {error}, which is no token") from None
        ordinary = [token for _, token in self.ordinary()]
        ordinary += islice(tokens.values(), len(self.tokens), None)
        if len(set(ordinary)) < len(ordinary):
            raise VocabularyError("two merges make the same token with different ids")
        next_id = max(tokens, default=-1) + 1
        specials = {text: next_id + place for place, text in enumerate(specials_after)}
        tokens |= {token_id: _utf8(text) for text, token_id in specials.items()}
        ids = list(tokens)
        if ids != sorted(ids) or (ids and ids[-1] > MAX_ID):
            raise VocabularyError(f"the new ids are not ascending up to at most {MAX_ID}")
        grown = Vocabulary.__new__(Vocabulary)
        put = super(Vocabulary, grown).__setattr__
        for name in Vocabulary.__slots__:
            if name != "__dict__":
                put(name, getattr(self, name))
        put("_table", None)
        grown.__dict__["tokens"] = MappingProxyType(tokens)
        grown.__dict__["_merges"] = [*self._merges, *merges]
        if specials:  # new ids with their texts' own bytes: nothing else could be wrong
            twice = self.special_tokens.keys() & specials.keys()
            if twice:
                raise VocabularyError(f"special token {min(twice)!r} is given twice")
            added = [*self.added_tokens, *(AddedToken(t, i) for t, i in specials.items())]
            put("added_tokens", tuple(added))
            put("special_tokens", MappingProxyType(dict(self.special_tokens) | specials))
        if roles is not None:
            put("roles", MappingProxyType({role: roles[role] for role in ROLES if role in roles}))
        return grown

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Vocabulary is immutable; make a new one to change {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Vocabulary is immutable; {name!r} cannot be deleted")

    # ------------------------------------------------------------------ checks

    def _check(self) -> None:
        if self.alphabet not in get_args(VocabAlphabet) or self.ranking not in get_args(Ranking):
            raise VocabularyError(
                f"alphabet is {self.alphabet!r} and ranking {self.ranking!r}; expected "
                "'bytes', 'ascii' or 'partial', and 'merges' or 'ranks'"
            )
        if self.steps and self.pattern is not None:
            raise VocabularyError(f"steps and pattern {self.pattern!r} are both given")
        if self._table is None:
            self._check_kinds()
        self._check_added_tokens()
        for role, token_id in self.roles.items():
            if self._token(token_id) is None:
                raise VocabularyError(f"role {role!r} is id {token_id}, which is no token")
        for token_id in (*self.template[0], *self.template[1]):
            if self._token(token_id) is None:
                raise VocabularyError(f"the template holds id {token_id}, which is no token")
        if self._table is None or not self._is_sound(self._table):
            self._check_bytes()
            self._check_merges()

    def _is_sound(self, table: _native.Table) -> bool:
        """Whether the checks that look at every token and merge would find nothing."""
        if self._has_repeats or (self.ranking == "ranks" and table.num_merges):
            return False
        other = list(self._only_added)
        has_bytes = self.alphabet != "bytes" or len(table.single_bytes(other)) == 256
        return has_bytes and table.has_sound_merges(other)

    def _check_kinds(self) -> None:
        for token_id, token in self.tokens.items():
            if type(token_id) is not int or not 0 <= token_id <= MAX_ID:
                raise VocabularyError(f"token id {token_id!r} is not an integer in 0..{MAX_ID}")
            # A rank file may hold one empty token (Whisper's does); no text becomes it.
            if not isinstance(token, bytes) or (not token and self.ranking != "ranks"):
                raise VocabularyError(f"token {token_id} is {token!r}; expected at least one byte")

    def _check_bytes(self) -> None:
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

    def _check_added_tokens(self) -> None:
        texts: set[str] = set()
        for added in self.added_tokens:
            kind = "special" if added.special else "added"
            if not isinstance(added.text, str) or not added.text:
                raise VocabularyError(f"{kind} token {added.text!r} is no text")
            if added.text in texts:
                raise VocabularyError(f"{kind} token {added.text!r} is given twice")
            texts.add(added.text)
            token = self._token(added.id)
            if token is None or (
                added.is_plain and added.id not in self._only_added and token != _utf8(added.text)
            ):
                raise VocabularyError(
                    f"{kind} token {added.text!r} has id {added.id}, whose bytes are "
                    f"{token!r}; expected the text's own UTF-8"
                )

    def _check_merges(self) -> None:
        if self.ranking == "ranks" and self._merges:
            raise VocabularyError("a vocabulary ranked by id has no merge list")
        tokens = self.tokens
        only_added, special_ids = self._only_added, set(self.special_tokens.values())
        twins = self.twins
        pairs: dict[tuple[int, int], int] = {}
        for rank, (left, right, new) in enumerate(self._merges):
            for part in (left, right, new):
                if part not in tokens or part in only_added or part in twins:
                    what = "a twin of another token" if part in twins else "no token"
                    if part in only_added:
                        what = f"{'a special' if part in special_ids else 'an added'} token"
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
    def tokens(self) -> Mapping[int, bytes]:
        """Id -> bytes of every token, in order of id."""
        return MappingProxyType({} if self._table is None else self._table.tokens())

    @cached_property
    def _merges(self) -> Sequence[tuple[int, int, int]]:
        """As `merge_ids`, but plain."""
        return () if self._table is None else self._table.merges()

    def _token(self, token_id: int) -> bytes | None:
        """Return a token's bytes, without making Python's own of all the others."""
        if self._table is None or "tokens" in self.__dict__:
            return self.tokens.get(token_id)
        return self._table.get(token_id) if 0 <= token_id <= MAX_ID else None

    @cached_property
    def merge_ids(self) -> tuple[Merge, ...]:
        """The merges in rank order, as (left id, right id, new id)."""
        return tuple(map(Merge._make, self._merges))

    @cached_property
    def _only_added(self) -> frozenset[int]:
        """Ids that only an added token's text becomes: no merge makes them, and no byte has them.

        (In Hugging Face an added token may share its id with a learned token, or with a byte whose
        letter it looks like.)
        """
        texts: dict[int, set[bytes]] = {}
        for added in self.added_tokens:
            if isinstance(added.text, str):
                texts.setdefault(added.id, set()).add(_utf8(added.text))
        if not texts:
            return frozenset()
        made: Collection[int]
        if self._table is None:
            made = {new for _, _, new in self._merges}
            alone = {t for i, t in self.tokens.items() if len(t) == 1 and i not in texts}
        else:
            made = self._table.made_among(list(texts))
            alone = {bytes([byte]) for byte in self._table.single_bytes(list(texts))}
        return frozenset(
            i
            for i, own in texts.items()
            if i not in made
            and (token := self._token(i)) in own
            and (len(token or b"") > 1 or token in alone or self.ranking == "ranks")
        )

    @cached_property
    def _has_repeats(self) -> bool:
        if self._table is not None:
            return self._table.has_repeats()
        return len(set(self.tokens.values())) < len(self.tokens)

    @cached_property
    def _makes_every_token(self) -> bool:
        """Whether every ordinary token is what its own bytes merge to; False if that is not known.

        Then looking a pre-token up and merging it give the same.
        """
        if self._table is None or self.ranking == "ranks":
            return False
        return self._table.makes_every_token([i for i, _ in self.not_ordinary()])

    @cached_property
    def twins(self) -> frozenset[int]:
        """Ids that no text becomes, because a token that a merge makes has the same bytes.

        (Some of Hugging Face's files hold a character twice: in byte letters, and as itself.)
        """
        if not self._has_repeats:
            return frozenset()
        made = {new for _, _, new in self._merges}
        made_bytes = {self.tokens.get(i) for i in made}
        never = made | self._only_added
        return frozenset(
            i for i, t in self.tokens.items() if i not in never and len(t) > 1 and t in made_bytes
        )

    def ordinary(self) -> Iterator[tuple[int, bytes]]:
        """Yield (id, bytes) of every token that text can become, in order of id."""
        other = self._only_added | self.twins
        return ((i, t) for i, t in self.tokens.items() if i not in other)

    def not_ordinary(self) -> Iterator[tuple[int, bytes]]:
        """Yield (id, bytes) of the other tokens: added ones, and those that nothing becomes."""
        other = sorted(self._only_added | self.twins)
        return ((i, token) for i in other if (token := self._token(i)) is not None)

    @property
    def extras(self) -> tuple[str, ...]:
        """What this vocabulary has that many formats cannot hold, by name."""
        ids = [added.id for added in self.added_tokens]
        prefix_space = "prefix-space" in self.steps
        found = {
            "added token flags": any(not added.is_plain for added in self.added_tokens),
            "shared ids": len(set(ids)) != len(ids),
            "twin tokens": bool(self.twins),
            "empty token": b"" in self.ids,
            "normalizer": bool(self.normalizer),
            "prefix space": prefix_space,
            "steps": len(self.steps) > prefix_space,
            "template": self.template != ((), ()),
            "partial alphabet": self.alphabet == "partial",
        }
        return tuple(name for name, has in found.items() if has)

    @cached_property
    def ids(self) -> Mapping[bytes, int]:
        """Bytes -> id of every ordinary token."""
        return MappingProxyType({token: token_id for token_id, token in self.ordinary()})

    @property
    def merges(self) -> list[tuple[bytes, bytes]]:
        """Merges in rank order as (left bytes, right bytes)."""
        return [(self.tokens[left], self.tokens[right]) for left, right, _ in self._merges]

    def __len__(self) -> int:
        return len(self.tokens) if self._table is None else len(self._table)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of everything that can change an id, and of nothing else (64 hex digits)."""
        digest = hashlib.sha256(b"byteweld vocabulary 2\n")
        head = {
            "added_tokens": self.added_tokens,
            "alphabet": self.alphabet,
            "ignore_merges": self.ignore_merges,
            "normalizer": self.normalizer,
            "pattern": None if self.pattern is None else _canonical(self.pattern),
            "ranking": self.ranking,
            "roles": {r: i for r, i in self.roles.items() if r != "pad"},  # pad is never encoded
            "steps": [
                step if isinstance(step, str) else step._replace(pattern=_canonical(step.pattern))
                for step in self.steps
            ],
            "template": self.template,
        }
        digest.update(json.dumps(head, sort_keys=True, ensure_ascii=True).encode())
        if self._table is not None:
            digest.update(self._table.lines())
            return digest.hexdigest()
        for token_id, token in self.tokens.items():
            digest.update(b"\nt %d %d " % (token_id, len(token)) + token)
        for left, right, new in self._merges:
            digest.update(b"\nm %d %d %d" % (left, right, new))
        return digest.hexdigest()

    # ------------------------------------------------------------------ value

    def _key(self) -> tuple[object, ...]:
        return (
            dict(self.tokens),
            self.merge_ids,
            self.added_tokens,
            self.pattern,
            self.steps,
            self.normalizer,
            self.template,
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
            f"<Vocabulary {len(self)} tokens, {len(self._merges)} merges, "
            f"{len(self.special_tokens)} special, sha {self.fingerprint[:8]}>"
        )


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")  # a lone surrogate equals no token


@lru_cache(maxsize=64)
def _canonical(pattern: str) -> str:
    """A pattern as the engine reads it, so that its spelling does not matter, where that is known.

    Only the fingerprint asks, so a vocabulary can be made and looked at without the engine.
    """
    from byteweld import _native

    canonical = _native.canonical_pattern(pattern)
    return pattern if canonical is None else hashlib.sha256(canonical.encode()).hexdigest()


def _steps(steps: Iterable[Step]) -> tuple[Step, ...]:
    chain: list[Step] = []
    for step in steps:
        if isinstance(step, str):
            if step not in _MARKS:
                raise VocabularyError(f"step {step!r} is unknown; known are Split and {_MARKS}")
            chain.append(step)
            continue
        split = Split(*step)
        if split.pattern.isidentifier():  # a bare word is itself here, not the name of a pattern
            split = split._replace(pattern=f"(?:{split.pattern})")
        if split.behavior not in _BEHAVIORS:
            raise VocabularyError(
                f"a Split has the behavior {split.behavior!r}; known are {_BEHAVIORS}"
            )
        if split.behavior in ("isolated", "contiguous"):
            split = split._replace(invert=False)  # what is between matches is treated alike
        chain.append(split._replace(pattern=resolve_pattern(split.pattern) or ""))
    return tuple(chain)


def _normalizer(steps: Iterable[NormalizerStep]) -> tuple[NormalizerStep, ...]:
    chain: list[NormalizerStep] = []
    for step in steps:
        if isinstance(step, str) and step not in _NORMAL_FORMS:
            raise VocabularyError(
                f"normaliser {step!r} is unknown; known are Replace and {_NORMAL_FORMS}"
            )
        if not isinstance(step, str):
            step = Replace(*step)
            if step.pattern.isidentifier():  # as in _steps
                step = step._replace(pattern=f"(?:{step.pattern})")
        chain.append(step)
    return tuple(chain)


def _rebuild(
    tokens: Mapping[int, bytes],
    merge_ids: Iterable[Sequence[int]],
    added_tokens: Iterable[AddedToken],
    pattern: str | None,
    steps: Iterable[Step],
    normalizer: Iterable[NormalizerStep],
    template: Template,
    roles: Mapping[str, int],
    alphabet: VocabAlphabet,
    ranking: Ranking,
    ignore_merges: bool,
) -> Vocabulary:
    return Vocabulary(
        tokens,
        merge_ids,
        added_tokens=added_tokens,
        pattern=pattern,
        steps=steps,
        normalizer=normalizer,
        template=template,
        roles=roles,
        alphabet=alphabet,
        ranking=ranking,
        ignore_merges=ignore_merges,
    )
