"""tiktoken's API: with `import byteweld.tiktoken as tiktoken`, code written for tiktoken runs.

The public names of tiktoken 0.14 with its arguments, results and exceptions; vocabularies come from
`byteweld.get_encoding`. An Encoding is also a Tokenizer, with all its methods. Where tiktoken
panics or loses text, this does not; docs/migrating/tiktoken.md has the list.

>>> import byteweld.tiktoken as tiktoken
>>> tiktoken.encoding_name_for_model("gpt-4o")
'o200k_base'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from byteweld import encodings
from byteweld._cached import cached_property
from byteweld._text import Text
from byteweld.encodings import encoding_name_for_model, list_encoding_names
from byteweld.errors import ByteweldError, IdRangeError, UnknownIdError, VocabularyError
from byteweld.patterns import as_expression
from byteweld.tokenizer import Specials, Tokenizer
from byteweld.vocab import Vocabulary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from byteweld.tokenizer import Ids
    from byteweld.training import Training

__all__ = [
    "Encoding",
    "encoding_for_model",
    "encoding_name_for_model",
    "get_encoding",
    "list_encoding_names",
]

_registered: dict[str, Encoding] = {}


class CheckError(ByteweldError, AssertionError):
    """An argument fails one of tiktoken's assertions."""


class Encoding(Tokenizer):
    """A tokenizer with the API of `tiktoken.Encoding`; its methods take str only.

    Args:
        name: of the encoding.
        pat_str: the pattern, a regular expression.
        mergeable_ranks: the rank of every token, which is also its id.
        special_tokens: the id of each special token.
        explicit_n_vocab: if given, ids must be 0 to one less than that.

    Examples:
        >>> import byteweld.tiktoken as tiktoken
        >>> ranks = {bytes([b]): b for b in range(256)} | {b"ab": 256}
        >>> enc = tiktoken.Encoding(
        ...     "mine", pat_str=r"\\S+|\\s+", mergeable_ranks=ranks, special_tokens={"<|end|>": 257}
        ... )
        >>> enc, enc.encode("ab ab<|end|>", allowed_special="all")
        (<Encoding 'mine'>, [256, 32, 256, 257])
        >>> tiktoken.Encoding.from_ranks(ranks, pattern="gpt2", name="other").encode("ab")
        [256]
        >>> import byteweld
        >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=265)
        >>> tiktoken.Encoding.from_tokenizer(tok).encode("hello world")
        [263, 264]
    """

    def __init__(
        self,
        name: str,
        *,
        pat_str: str,
        mergeable_ranks: Mapping[bytes, int],
        special_tokens: Mapping[str, int],
        explicit_n_vocab: int | None = None,
    ) -> None:
        if not isinstance(pat_str, str):
            raise TypeError(f"pat_str is {pat_str!r}; it must be a regular expression")
        if not mergeable_ranks:
            raise VocabularyError("mergeable_ranks is empty; it must hold every byte")
        if not all(isinstance(token, bytes) for token in mergeable_ranks):
            raise TypeError("mergeable_ranks holds a token that is not bytes")
        if explicit_n_vocab:
            _check_size(mergeable_ranks, special_tokens, explicit_n_vocab)
        made = Tokenizer.from_ranks(
            mergeable_ranks,
            # A bare word is a regular expression here, never the name of a pattern.
            pattern=as_expression(pat_str),
            special_tokens=special_tokens,
            name=name,
        )
        vars(self).update(
            vars(made),
            _pat_str=pat_str,
            _mergeable_ranks=mergeable_ranks,
            _special_tokens=special_tokens,
        )

    @classmethod
    def from_tokenizer(cls, tokenizer: Tokenizer) -> Encoding:
        """Make an encoding from a tokenizer; the two share one engine."""
        if not isinstance(tokenizer, Tokenizer):
            raise TypeError(f"expected a Tokenizer, found {type(tokenizer).__name__}")
        made = cls.__new__(cls)
        vars(made).update(vars(tokenizer))
        return made

    # ------------------------------------------------------------------ encoding
    # `options` are the Tokenizer's own, such as add_bos.

    def encode(
        self,
        text: Text,
        *,
        allowed_special: Specials = frozenset(),
        disallowed_special: Specials = "all",
        **options: Any,
    ) -> list[int]:
        """Encode a str; special tokens in it raise unless allowed, or not disallowed."""
        return super().encode(
            _only_str(text),
            allowed_special=allowed_special,
            disallowed_special=_characters(disallowed_special),
            **options,
        )

    def encode_ordinary(self, text: Text) -> list[int]:
        """Encode a str as plain text: special tokens are neither recognized nor refused."""
        return super().encode_ordinary(_only_str(text))

    def encode_to_numpy(
        self,
        text: Text,
        *,
        allowed_special: Specials = frozenset(),
        disallowed_special: Specials = "all",
    ) -> NDArray[np.uint32]:
        """Encode a str to a read-only array of uint32."""
        ids = super().encode_to_numpy(
            _only_str(text),
            allowed_special=allowed_special,
            disallowed_special=_characters(disallowed_special),
        )
        ids.flags.writeable = False
        return ids

    def encode_batch(  # type: ignore[override]  # tiktoken calls it text
        self,
        text: Iterable[Text],
        *,
        num_threads: int | None = None,
        allowed_special: Specials = frozenset(),
        disallowed_special: Specials = "all",
        **options: Any,
    ) -> list[list[int]]:
        """Encode many strings on several threads."""
        return super().encode_batch(
            [_only_str(one) for one in text],
            num_threads=num_threads,
            allowed_special=allowed_special,
            disallowed_special=_characters(disallowed_special),
            **options,
        )

    def encode_ordinary_batch(
        self, text: Iterable[Text], *, num_threads: int | None = None
    ) -> list[list[int]]:
        """Encode many strings as plain text."""
        return super().encode_ordinary_batch(
            [_only_str(one) for one in text], num_threads=num_threads
        )

    def encode_with_unstable(
        self,
        text: str,
        *,
        allowed_special: Specials = frozenset(),
        disallowed_special: Specials = "all",
    ) -> tuple[list[int], list[list[int]]]:
        """Encode a str into stable ids and the sequences that its unstable end could become."""
        return super().encode_with_unstable(
            _only_str(text),
            allowed_special=allowed_special,
            disallowed_special=_characters(disallowed_special),
        )

    # ------------------------------------------------------------------ decoding

    def decode_bytes(self, tokens: Ids) -> bytes:
        """Decode ids to bytes; KeyError if one is unknown."""
        try:
            return super().decode_bytes(_byte_ids(tokens))
        except UnknownIdError as error:
            raise _key_error(error, "Invalid token for decoding: ") from None

    def decode(self, tokens: Ids, errors: str = "replace") -> str:
        """Decode ids to text; `errors` handles bytes that are not UTF-8, as in `bytes.decode`."""
        try:
            return super().decode(_byte_ids(tokens), errors)
        except UnknownIdError as error:
            raise _key_error(error, "Invalid token for decoding: ") from None

    def decode_single_token_bytes(self, token: int) -> bytes:
        """Return the bytes of one token; KeyError if its id is unknown."""
        try:
            return super().decode_single_token_bytes(token)
        except UnknownIdError as error:
            raise _key_error(error) from None

    def decode_tokens_bytes(self, tokens: Ids) -> list[bytes]:
        """Return the bytes of each token."""
        return [self.decode_single_token_bytes(token) for token in tokens]

    def decode_with_offsets(self, tokens: Ids) -> tuple[str, list[int]]:
        """Decode to text and the character offset where each token starts."""
        return super().decode_with_offsets(tokens)

    # ------------------------------------------------------------------ properties

    def is_special_token(self, token: int) -> bool:
        """Whether an id is that of a special token."""
        if not isinstance(token, int):
            raise CheckError(f"expected an id, found {token!r}")
        return super().is_special_token(token)

    def __repr__(self) -> str:
        return f"<Encoding {self.name!r}>"

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __reduce__(self) -> tuple[object, ...]:
        if self is _registered.get(self.name):
            return (get_encoding, (self.name,))
        given = {name: value for name, value in vars(self).items() if name in _GIVEN}
        return (_rebuild, (self._vocab, self._name, self.training), given)

    # ------------------------------------------------------------------ private, but widely used

    @cached_property
    def _pat_str(self) -> str | None:
        return self._vocab.pattern

    @cached_property
    def _mergeable_ranks(self) -> Mapping[bytes, int]:
        return dict(self._vocab.ids)

    @cached_property
    def _special_tokens(self) -> Mapping[str, int]:
        return dict(self._vocab.special_tokens)

    @cached_property
    def _without_pattern(self) -> Tokenizer:
        vocab = self._vocab
        whole = {"pattern": None, "steps": (), "normalizer": (), "template": ((), ())}
        return Tokenizer(Vocabulary(vocab.tokens, vocab.merge_ids, **(vocab.traits() | whole)))

    def _encode_single_piece(self, text_or_bytes: Text) -> list[int]:
        """Encode a text as one pre-token."""
        return self._without_pattern.encode_ordinary(text_or_bytes)

    def _encode_only_native_bpe(self, text: str) -> list[int]:
        """Return the ids of `encode_ordinary`; in tiktoken, the pattern runs in Python here."""
        return self.encode_ordinary(text)

    def _encode_bytes(self, text: bytes) -> list[int]:
        """Encode bytes as tiktoken does: invalid UTF-8 continues the pre-token before it."""
        if not isinstance(text, bytes):
            raise TypeError(f"expected bytes, found {type(text).__name__}")
        try:
            return self._encoder.encode(text.decode(), None, None)
        except UnicodeDecodeError as error:
            valid = text[: error.start]
        pieces = [self._encoder.encode(piece, None, None) for piece in self.pretokenize(valid)]
        ids = [token_id for piece in pieces for token_id in piece]
        stable = len(ids) - (len(pieces[-1]) if pieces else 0)
        if stable < len(ids) and self._is_white(ids[stable]):
            while stable and self._is_white(ids[stable - 1]):
                stable -= 1
        covered = self._encoder.decode_bytes(ids[:stable])
        return ids[:stable] + self._encode_single_piece(text[len(covered) :])

    def _is_white(self, token_id: int) -> bool:
        return not self._encoder.token_bytes(token_id).strip(b" \n\t")


# Arguments of the constructor, which pickles include.
_GIVEN = ("_pat_str", "_mergeable_ranks", "_special_tokens")


def get_encoding(encoding_name: str) -> Encoding:
    """Return an encoding by name, like `byteweld.get_encoding`; ValueError if it is unknown.

    Examples:
        >>> import byteweld.tiktoken as tiktoken
        >>> enc = tiktoken.get_encoding("o200k_base")  # doctest: +SKIP
        >>> enc.decode(enc.encode("hello world"))  # doctest: +SKIP
        'hello world'
    """
    if not isinstance(encoding_name, str):
        raise ValueError(f"expected the name of an encoding, found {encoding_name!r}")
    tokenizer = encodings.get_encoding(encoding_name)
    known = _registered.get(encoding_name)
    if known is not None and known.vocab is not tokenizer.vocab:
        _registered.pop(encoding_name, None)  # the folders have changed
    # If several threads get here at once, all return the encoding of the first.
    return _registered.setdefault(encoding_name, Encoding.from_tokenizer(tokenizer))


def encoding_for_model(model_name: str) -> Encoding:
    """Return the encoding of one of OpenAI's models; KeyError if the model is not known.

    Examples:
        >>> import byteweld.tiktoken as tiktoken
        >>> tiktoken.encoding_for_model("gpt-4o")  # doctest: +SKIP
        <Encoding 'o200k_base'>
    """
    return get_encoding(encoding_name_for_model(model_name))


def _check_size(
    ranks: Mapping[bytes, int], specials: Mapping[str, int], explicit_n_vocab: int
) -> None:
    tokens = len(ranks) + len(specials)
    n_vocab = max([*ranks.values(), *specials.values()]) + 1
    if not tokens == n_vocab == explicit_n_vocab:
        raise CheckError(
            f"explicit_n_vocab is {explicit_n_vocab}, but there are {tokens} tokens and the "
            f"highest id is {n_vocab - 1}; with it, ids must be 0 to {explicit_n_vocab - 1}"
        )


def _key_error(error: UnknownIdError, words: str = "") -> KeyError:
    """Return the error that tiktoken raises for an unknown id; an overflow stays one."""
    return error if isinstance(error, IdRangeError) else KeyError(f"{words}{error.id}")


def _only_str(text: Text) -> str:
    if not isinstance(text, str):
        raise TypeError(
            f"expected str, found {type(text).__name__}; a byteweld.Tokenizer takes bytes"
        )
    return text


def _byte_ids(tokens: Ids) -> Ids:
    """Turn bytes into a list of ids, as tiktoken does."""
    return list(tokens) if isinstance(tokens, bytes) else tokens


def _characters(disallowed: Specials) -> Specials:
    """Turn a str other than "all" into the set of its characters, as tiktoken does."""
    if isinstance(disallowed, str) and disallowed != "all":
        return frozenset(disallowed)
    return disallowed or ()  # tiktoken accepts None


def _rebuild(vocab: Vocabulary, name: str | None, training: Training | None) -> Encoding:
    return Encoding._of(vocab, name, training)
