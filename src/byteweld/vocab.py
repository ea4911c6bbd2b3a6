"""Vocabulary: the value that every part of byteweld passes around.

Tokens by id, merges in rank order, and the traits that say how text is split and rewritten. It is
immutable, checks itself when made, and knows neither file formats nor the engine. Ranks, tables and
caches are derived from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

from byteweld._cached import cached_property
from byteweld.errors import VocabularyError, check_text, show
from byteweld.patterns import as_expression, resolve_pattern

if TYPE_CHECKING:
    from byteweld import _native

Ranking = Literal["merges", "ranks"]
VocabAlphabet = Literal["bytes", "ascii", "partial"]
Role = Literal["bos", "eos", "pad", "unk"]
Behavior = Literal["isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous"]
# "prefix-space" adds a space before each piece that does not start with one. After
# "byte-letters", the steps see each byte as its letter in GPT-2's alphabet.
Mark = Literal["prefix-space", "byte-letters"]
NormalForm = Literal["nfc", "nfd", "nfkc", "nfkd", "lowercase"]
Template = tuple[tuple[int, ...], tuple[int, ...]]

ROLES: tuple[Role, ...] = get_args(Role)
# The alphabet "ascii": \t, \n, \r and 0x20-0x7E, ascending; 98 bytes.
ASCII_BYTES = bytes([0x09, 0x0A, 0x0D, *range(0x20, 0x7F)])
MAX_ID = 2**32 - 2  # ids are u32, and the engine uses the last value for "none"


class Merge(NamedTuple):
    """A pair of token ids and the id it becomes. Its rank is its index in the list of merges."""

    left: int
    right: int
    new: int


class AddedToken(NamedTuple):
    """A token that is matched verbatim in the text, before the text is split.

    A special token is recognized where the caller allows it, any other added token always. The
    flags are Hugging Face's.

    Attributes:
        text: what is matched.
        id: its id.
        special: whether it is a special token.
        single_word: whether it is not matched inside a word.
        lstrip: whether it includes the white space before it.
        rstrip: whether it includes the white space after it.
        normalized: whether it is normalized, and matched in normalized text.

    Examples:
        >>> tokens = {b: bytes([b]) for b in range(256)} | {256: b"<mask>"}
        >>> vocab = byteweld.Vocabulary(
        ...     tokens, added_tokens=[byteweld.AddedToken("<mask>", 256, lstrip=True)]
        ... )
        >>> byteweld.Tokenizer(vocab).encode("a <mask>", allowed_special="all")
        [97, 256]
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
        return self[2:] == (True, False, False, False, False)


class Split(NamedTuple):
    """A step that splits each piece at the matches of a regular expression.

    Attributes:
        pattern: the regular expression; never the name of a pattern.
        behavior: what happens to the matches or, with `invert`, to the text between them:
            "isolated" (a piece), "removed", "merged_with_previous", "merged_with_next" or
            "contiguous" (adjacent ones are one piece).
        invert: whether `behavior` is about the text between the matches.

    Examples:
        >>> vocab = byteweld.Vocabulary(
        ...     {b: bytes([b]) for b in range(256)},
        ...     steps=[byteweld.Split("[0-9]"), byteweld.Split(" ", "merged_with_next")],
        ... )
        >>> byteweld.Tokenizer(vocab).pretokenize("room 42 a")
        [b'room', b' ', b'4', b'2', b' a']
    """

    pattern: str
    behavior: Behavior = "isolated"
    invert: bool = False


class Replace(NamedTuple):
    """A normalizer that replaces each match of a regular expression.

    Attributes:
        pattern: the regular expression.
        content: what replaces a match.

    Examples:
        >>> vocab = byteweld.Vocabulary(
        ...     {b: bytes([b]) for b in range(256)},
        ...     normalizer=["lowercase", byteweld.Replace(r"\\s+", " ")],
        ... )
        >>> byteweld.Tokenizer(vocab).pretokenize("Hello \\n World")
        [b'hello world']
    """

    pattern: str
    content: str


Step = Split | Mark
NormalizerStep = Replace | NormalForm


class Traits:
    """Everything in a vocabulary except its tokens and merges, in canonical form.

    Each trait is a keyword argument and an attribute of `Vocabulary`, which documents it. Pickles,
    fingerprints and compiled vocabularies include every trait. (This is not a dataclass because
    importing `dataclasses` takes longer than loading a small vocabulary.)
    """

    added_tokens: tuple[AddedToken, ...] = ()  # in order of id, special tokens included
    pattern: str | None = None
    steps: tuple[Step, ...] = ()
    normalizer: tuple[NormalizerStep, ...] = ()
    template: Template = ((), ())
    roles: Mapping[str, int] = MappingProxyType({})
    alphabet: VocabAlphabet = "bytes"
    ranking: Ranking = "merges"
    ignore_merges: bool = False

    def __init__(self, **traits: Any) -> None:
        own = vars(self)
        own.update({name: traits.pop(name, getattr(Traits, name)) for name in TRAITS})
        if traits:
            raise TypeError(f"unknown trait {min(traits)!r}; expected one of {', '.join(TRAITS)}")
        added = [t if type(t) is AddedToken else AddedToken(*t) for t in self.added_tokens]
        own["added_tokens"] = tuple(sorted(added, key=lambda token: (token.id, token.text)))
        own["pattern"], own["steps"] = _canonical_splitting(self.pattern, self.steps)
        own["normalizer"] = tuple(map(_normalizer_step, self.normalizer))
        if not isinstance(self.template, Sequence) or len(self.template) != 2:
            raise VocabularyError(
                f"template is {self.template!r}; expected the ids before and after the text"
            )
        own["template"] = (tuple(self.template[0]), tuple(self.template[1]))
        roles = self.roles or {}
        unknown_roles = sorted(set(roles) - set(ROLES))
        if unknown_roles:
            raise VocabularyError(f"unknown roles {unknown_roles}; expected {_choices(Role)}")
        own["roles"] = MappingProxyType({role: roles[role] for role in ROLES if role in roles})
        for name, kind in (("alphabet", VocabAlphabet), ("ranking", Ranking)):
            _check_choice(name, getattr(self, name), kind)

    def traits(self) -> dict[str, Any]:
        """Return the traits by name, as `Vocabulary` takes them.

        With them, a changed copy is one call.
        """
        return {name: getattr(self, name) for name in TRAITS} | {"roles": dict(self.roles)}

    @cached_property
    def special_tokens(self) -> Mapping[str, int]:
        """Text -> id of every special token, with flags or without, in order of id."""
        return MappingProxyType({t.text: t.id for t in self.added_tokens if t.special})


TRAITS: Final = tuple(Traits.__annotations__)


class Vocabulary(Traits):
    """A byte-level BPE vocabulary: tokens by id, merges in rank order, and how text is split.

    A value: immutable, checked when it is made, and equal to every other with the same content.
    `Tokenizer.vocab` is one; make one yourself only to build a vocabulary from parts.

    Args:
        tokens: id -> bytes, for every id. The bytes of an added token are its text in UTF-8, unless
            it shares its id with an ordinary token.
        merge_ids: merges in rank order, as (left id, right id, new id).
        special_tokens: text -> id of the special tokens without flags.
        added_tokens: added tokens that have flags or are not special.
        pattern: the pattern that splits text into pre-tokens, by name or as a regular expression;
            None for no splitting. All spellings of a known pattern become the same one.
        steps: a chain of splits, where one pattern is not enough; each step splits the pieces of
            the previous one. `pattern` is then None.
        normalizer: how text is rewritten before it is split.
        template: the ids that `encode(template=True)` adds before and after those of the text.
        roles: the ids of bos, eos, pad and unk.
        alphabet: "bytes" (every byte has a token), "ascii" (any other character becomes unk, or is
            an error) or "partial" (a byte without a token becomes unk, or is dropped, as in Hugging
            Face).
        ranking: "merges" (the lowest-ranked merge goes first) or "ranks" (the pair whose *result*
            has the lowest id goes first, as in tiktoken; `merge_ids` is then empty).
        ignore_merges: first look up the whole pre-token, and merge only if it is not a token.

    Raises:
        VocabularyError: if the parts do not fit together; the message says which.

    Examples:
        >>> tokens = {b: bytes([b]) for b in range(256)} | {256: b"ab", 257: b"<|end|>"}
        >>> vocab = byteweld.Vocabulary(
        ...     tokens, [(97, 98, 256)], special_tokens={"<|end|>": 257}, pattern="gpt2"
        ... )
        >>> vocab
        <Vocabulary 258 tokens, 1 merges, 1 special, sha f3483448>
        >>> vocab.merges, vocab.tokens[256], vocab.ids[b"ab"], dict(vocab.special_tokens)
        ([(b'a', b'b')], b'ab', 256, {'<|end|>': 257})
        >>> list(vocab.ordinary())[255:], list(vocab.not_ordinary()), vocab.extras
        ([(255, b'\\xff'), (256, b'ab')], [(257, b'<|end|>')], ())
        >>> byteweld.Tokenizer(vocab).encode("abc")
        [256, 99]
        >>> changed = vocab.traits() | {"pattern": None}
        >>> byteweld.Vocabulary(vocab.tokens, vocab.merge_ids, **changed).pattern is None
        True
    """

    _table: _native.Table | None  # the tokens and merges that a fast reader read

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
        merges = tuple(Merge(*merge) for merge in merge_ids)
        vars(self).update(
            tokens=MappingProxyType(dict(sorted(tokens.items()))), _merges=merges, merge_ids=merges
        )
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
        """Make a vocabulary from a table, for fast readers; `rest` is as in `__init__`.

        The checks are the same, but the engine runs the expensive ones. Tokens and merges become
        Python objects when first used. Pass `makes_every_token` if it is known.
        """
        vocab = cls.__new__(cls)
        vocab._complete(table, **rest)
        if makes_every_token is not None:
            vars(vocab)["_makes_every_token"] = makes_every_token
        return vocab

    def _complete(
        self,
        table: _native.Table | None,
        *,
        special_tokens: Mapping[str, int] | None = None,
        added_tokens: Iterable[AddedToken] = (),
        **traits: Any,
    ) -> None:
        """Set everything except tokens and merges, then check the vocabulary."""
        vars(self)["_table"] = table
        plain = [AddedToken(text, i) for text, i in (special_tokens or {}).items()]
        super().__init__(added_tokens=(*plain, *added_tokens), **traits)
        self._check()

    def _grown(
        self,
        merges: Sequence[tuple[int, int, int]],
        *,
        specials_after: Sequence[str] = (),
        roles: Mapping[str, int] | None = None,
    ) -> Vocabulary:
        """Return this vocabulary with further merges, their tokens, and then special tokens.

        For the trainer. Runs only those checks of `__init__` that can fail here: a part that is not
        a token, an id that already has other bytes, bytes with two ids.
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
            raise VocabularyError(f"a merge needs id {error}, which is not a token") from None
        ordinary = [token for _, token in self.ordinary()]
        ordinary += islice(tokens.values(), len(self.tokens), None)
        if len(set(ordinary)) < len(ordinary):
            raise VocabularyError("two merges make the same token with different ids")
        next_id = max(tokens, default=-1) + 1
        specials = {text: next_id + n for n, text in enumerate(specials_after)}
        twice = self.special_tokens.keys() & specials.keys()
        if twice:
            raise VocabularyError(f"special token {min(twice)!r} is given twice")
        tokens |= {token_id: _utf8(text) for text, token_id in specials.items()}
        ids = list(tokens)
        if ids != sorted(ids) or (ids and ids[-1] > MAX_ID):
            raise VocabularyError(f"the new ids must be ascending and at most {MAX_ID}")
        traits = self.traits()
        traits["added_tokens"] += tuple(AddedToken(text, i) for text, i in specials.items())
        grown = Vocabulary.__new__(Vocabulary)
        vars(grown).update(
            vars(Traits(**(traits if roles is None else traits | {"roles": roles}))),
            _table=None,
            tokens=MappingProxyType(tokens),
            _merges=[*self._merges, *merges],
        )
        return grown

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Vocabulary is immutable; make a new one to change {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Vocabulary is immutable; {name!r} cannot be deleted")

    # ------------------------------------------------------------------ checks

    def _check(self) -> None:
        if self._table is None:
            self._check_kinds()
        self._check_added_tokens()
        for role, token_id in self.roles.items():
            if self._token(token_id) is None:
                raise VocabularyError(f"role {role!r} is id {token_id}, which is not a token")
        for token_id in (*self.template[0], *self.template[1]):
            if self._token(token_id) is None:
                raise VocabularyError(f"the template holds id {token_id}, which is not a token")
        if self._table is None or not self._is_sound(self._table):
            self._check_bytes()
            self._check_merges()

    def _is_sound(self, table: _native.Table) -> bool:
        """Whether the checks of all tokens and merges would pass."""
        if self._has_repeats or (self.ranking == "ranks" and table.num_merges):
            return False
        other = list(self._only_added)
        has_bytes = self.alphabet != "bytes" or len(table.single_bytes(other)) == 256
        return has_bytes and table.has_sound_merges(other)

    def _check_kinds(self) -> None:
        for token_id, token in self.tokens.items():
            if type(token_id) is not int or not 0 <= token_id <= MAX_ID:
                raise VocabularyError(f"token id {token_id!r} is not an integer in 0..{MAX_ID}")
            # A rank file may hold one empty token (Whisper's does); encoding never produces it.
            if not isinstance(token, bytes) or (not token and self.ranking != "ranks"):
                raise VocabularyError(
                    f"token {token_id} is {show(token)}; expected at least one byte"
                )

    def _check_bytes(self) -> None:
        seen: dict[bytes, int] = {}
        for token_id, token in self.ordinary():
            if token in seen:
                raise VocabularyError(
                    f"ids {seen[token]} and {token_id} are both {show(token)}; "
                    "every token has one id",
                    token_id=token_id,
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
        texts: dict[str, int] = {}
        for added in self.added_tokens:
            kind = "special" if added.special else "added"
            if not isinstance(added.text, str) or not added.text:
                raise VocabularyError(f"{kind} token {added.text!r} is not a non-empty string")
            check_text(f"{kind} token", added.text, VocabularyError)
            if {*map(type, added[2:])} != {bool}:
                raise VocabularyError(
                    f"{kind} token {added.text!r} has the flags {added[2:]!r}; expected booleans"
                )
            if added.text in texts:
                raise VocabularyError(
                    f"{kind} token {show(added.text)} is given twice, with ids {texts[added.text]} "
                    f"and {added.id}",
                    token_id=added.id,
                )
            texts[added.text] = added.id
            token = self._token(added.id)
            if token is None or (
                added.is_plain and added.id not in self._only_added and token != _utf8(added.text)
            ):
                raise VocabularyError(
                    f"{kind} token {added.text!r} has id {added.id}, whose bytes are "
                    f"{token!r}; expected its text in UTF-8"
                )

    def _check_merges(self) -> None:
        if self.ranking == "ranks" and self._merges:
            raise VocabularyError("a vocabulary ranked by id has no merge list")
        tokens = self.tokens
        not_merged = self._only_added | self.twins
        pairs: dict[tuple[int, int], int] = {}
        for rank, (left, right, new) in enumerate(self._merges):
            for part in (left, right, new):
                if part not in tokens or part in not_merged:
                    raise VocabularyError(
                        f"merge {rank} is ({left}, {right}) -> {new}, but {part} is "
                        f"{self._why_not_merged(part)}",
                        merge=rank,
                    )
            # Comparing lengths first keeps a hostile file with many long tokens cheap to reject.
            length = len(tokens[left]) + len(tokens[right])
            if len(tokens[new]) != length or tokens[new] != tokens[left] + tokens[right]:
                raise VocabularyError(
                    f"merge {rank} makes {show(tokens[left])} + {show(tokens[right])}, "
                    f"but token {new} is {show(tokens[new])}",
                    merge=rank,
                )
            if pairs.setdefault((left, right), rank) != rank:
                raise VocabularyError(
                    f"merges {pairs[left, right]} and {rank} merge the same pair ({left}, {right})",
                    merge=rank,
                )

    def _why_not_merged(self, token_id: int) -> str:
        if token_id not in self.tokens:
            return "not a token"
        if token_id in self.twins:
            return "a twin of another token"
        kind = "special" if token_id in self.special_tokens.values() else "added"
        return f"the {kind} token {show(self.tokens[token_id])}"

    # ------------------------------------------------------------------ views

    @cached_property
    def tokens(self) -> Mapping[int, bytes]:
        """Id -> bytes of every token, in order of id."""
        return MappingProxyType({} if self._table is None else self._table.tokens())

    @cached_property
    def _merges(self) -> Sequence[tuple[int, int, int]]:
        """The merges as plain tuples."""
        return () if self._table is None else self._table.merges()

    def _token(self, token_id: int) -> bytes | None:
        """Return a token's bytes without making Python objects of all tokens."""
        if self._table is None or "tokens" in self.__dict__:
            return self.tokens.get(token_id)
        return self._table.get(token_id) if 0 <= token_id <= MAX_ID else None

    @cached_property
    def merge_ids(self) -> tuple[Merge, ...]:
        """The merges in rank order, as (left id, right id, new id)."""
        return tuple(map(Merge._make, self._merges))

    @cached_property
    def _only_added(self) -> frozenset[int]:
        """Ids that only added tokens have: no merge makes them, and they are not those of bytes.

        In Hugging Face, an added token may share its id with a learned token, or with the byte
        whose letter it is.
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
        """Whether the bytes of every ordinary token merge to that token; False if not known.

        If so, a pre-token can be looked up before it is merged without changing an id.
        """
        if self._table is None or self.ranking == "ranks":
            return False
        return self._table.makes_every_token([i for i, _ in self.not_ordinary()])

    @cached_property
    def twins(self) -> frozenset[int]:
        """Ids that encoding never produces: a merge makes another token with the same bytes.

        Some of Hugging Face's files hold a character twice: in byte letters, and as itself.
        """
        if not self._has_repeats:
            return frozenset()
        made = {new for _, _, new in self._merges}
        made_bytes = {self.tokens.get(i) for i in made}
        never = made | self._only_added
        return frozenset(
            i for i, t in self.tokens.items() if i not in never and len(t) > 1 and t in made_bytes
        )

    @cached_property
    def ambiguous_ids(self) -> frozenset[int]:
        """Ids of special tokens that ordinary text may become, too.

        A learned token, a byte or an added token that is not special has the same id, as may happen
        in Hugging Face. `encode_spans` never returns such an id for anything but the special token;
        other calls do. ("shared ids" in `extras` are those of several added tokens.)
        """
        own = set(self.special_tokens.values())
        others = {added.id for added in self.added_tokens if not added.special}
        never = self._only_added | self.twins if own else frozenset()
        return frozenset(i for i in own if i in others or i not in never)

    def ordinary(self) -> Iterator[tuple[int, bytes]]:
        """Yield (id, bytes) of every token that is neither added nor a twin, in order of id."""
        other = self._only_added | self.twins
        return ((i, t) for i, t in self.tokens.items() if i not in other)

    def not_ordinary(self) -> Iterator[tuple[int, bytes]]:
        """Yield (id, bytes) of the added tokens and twins, in order of id."""
        other = sorted(self._only_added | self.twins)
        return ((i, token) for i in other if (token := self._token(i)) is not None)

    @property
    def extras(self) -> tuple[str, ...]:
        """Names of the features of this vocabulary that many formats cannot hold."""
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
        """SHA-256 of everything that can change an id, and of nothing else (64 hex digits).

        Roles change no id and are left out, except unk in a vocabulary that lacks some bytes.
        """
        import hashlib  # slow to import, and only fingerprints need these two
        import json

        digest = hashlib.sha256(b"byteweld vocabulary 2\n")
        decisive = () if self.alphabet == "bytes" else ("unk",)
        head = self.traits() | {
            "pattern": None if self.pattern is None else _canonical(self.pattern),
            "roles": {role: i for role, i in self.roles.items() if role in decisive},
            "steps": [
                step if isinstance(step, str) else step._replace(pattern=_canonical(step.pattern))
                for step in self.steps
            ],
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

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return self.fingerprint == other.fingerprint and self.roles == other.roles

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[object, ...]:
        return partial(Vocabulary, **self.traits()), (dict(self.tokens), self.merge_ids)

    def __repr__(self) -> str:
        return (
            f"<Vocabulary {len(self)} tokens, {len(self._merges)} merges, "
            f"{len(self.special_tokens)} special, sha {self.fingerprint[:8]}>"
        )


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")  # a lone surrogate matches no token


@lru_cache(maxsize=64)
def _canonical(pattern: str) -> str:
    """Return a key that all spellings of a pattern share, as far as the engine can tell.

    Only fingerprints need it, so making and reading a vocabulary does not load the engine.
    """
    import hashlib

    from byteweld import _native

    canonical = _native.canonical_pattern(pattern)
    return pattern if canonical is None else hashlib.sha256(canonical.encode()).hexdigest()


def _canonical_splitting(
    pattern: str | None, steps: Iterable[Step]
) -> tuple[str | None, tuple[Step, ...]]:
    """Return the canonical form of a way to split text: a pattern, or else a chain of steps."""
    chain = [_step(step) for step in steps]
    while chain and chain[-1] == "byte-letters":
        chain.pop()  # no later step sees the letters
    if chain and pattern is not None:
        raise VocabularyError(f"both steps and the pattern {pattern!r} are given; expected one")
    match chain:
        case [Split(only, "isolated", False)]:
            return resolve_pattern(only), ()
    return resolve_pattern(pattern), tuple(chain)


def _step(step: Step) -> Step:
    if isinstance(step, str):
        _check_choice("a step", step, Mark)
        return step
    split = Split(*step)
    _check_choice("the behavior of a Split", split.behavior, Behavior)
    if type(split.invert) is not bool:
        raise VocabularyError(f"invert of a Split is {split.invert!r}; expected a boolean")
    if split.behavior in ("isolated", "contiguous"):
        split = split._replace(invert=False)  # it makes no difference here
    return split._replace(pattern=resolve_pattern(_expression(split.pattern)) or "")


def _normalizer_step(step: NormalizerStep) -> NormalizerStep:
    if isinstance(step, str):
        _check_choice("a normalizer", step, NormalForm)
        return step
    replace = Replace(*step)
    for name, text in zip(("pattern", "content"), replace, strict=True):
        check_text(f"the {name} of a Replace", text, VocabularyError)
    return replace._replace(pattern=_expression(replace.pattern))


def _expression(pattern: str) -> str:
    if not isinstance(pattern, str):
        raise TypeError(f"the pattern of a Split is {pattern!r}; it must be a string")
    return as_expression(pattern)


def _check_choice(what: str, value: object, kind: object) -> None:
    if value not in get_args(kind):
        raise VocabularyError(f"{what} is {value!r}; expected {_choices(kind)}")


def _choices(kind: object) -> str:
    return ", ".join(map(repr, get_args(kind)))
