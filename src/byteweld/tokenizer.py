"""Tokenizer: a Vocabulary with its engine. Encode, decode, batches, offsets, counts.

Immutable, thread-safe, picklable, safe across fork. Options are call arguments, never state. Names,
arguments and results are tiktoken's where it has them.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, cast

from byteweld import _native
from byteweld._text import Text, character_offsets, span_bytes, start_of, utf8
from byteweld.errors import UnsupportedError, VocabularyError
from byteweld.formats._ranks import recover_merges
from byteweld.patterns import pattern_name
from byteweld.streams import DecodeStream, EncodeStream
from byteweld.vocab import Vocabulary

if TYPE_CHECKING:
    import numpy as np  # slow to import, and only arrays need it
    from numpy.typing import NDArray

    from byteweld.corpus import ReadingOptions
    from byteweld.render import EncodedText
    from byteweld.training import Training

    Ids = Sequence[int] | NDArray[np.uint32]

Specials = Literal["all"] | Set[str] | Sequence[str]
_Result = TypeVar("_Result")

# Files are encoded in batches of about this many bytes, and so is a stream.
_BATCH_BYTES = 32 << 20
_STREAM_BYTES = 1 << 16
_NO_LIMIT = 2**63 - 1  # no text has so many tokens
# How many different choices of special tokens are kept ready.
_CHOICES = 64
# The default of `allowed_special`; that it was not given is seen by its identity.
_NONE: frozenset[str] = frozenset()
# What the engine is then told: recognise none, refuse all.
_Chosen = tuple[bool | _native.SpecialChoice, bool | _native.SpecialChoice]
_REFUSE_ALL: _Chosen = (False, True)


class Tokenizer:
    """Encodes text to ids and decodes ids to text.

    Make one with `byteweld.train`, `byteweld.load`, `from_merges` or `from_ranks`.
    """

    def __init__(
        self,
        vocab: Vocabulary,
        *,
        name: str | None = None,
        training: Training | None = None,
    ) -> None:
        if not isinstance(vocab, Vocabulary):
            raise TypeError(f"expected a Vocabulary, found {type(vocab).__name__}")
        self._set(vocab, name=name, training=training)
        self._encoder = _engine(vocab)  # what is wrong shows here, not at the first text

    def _set(self, vocab: Vocabulary, **known: object) -> None:
        self._vocab = vocab
        # A plain attribute, since one that looks whether it is there takes a tenth of a short call.
        self._encoder = cast(_native.Encoder, _EngineToBe(self, lambda: _engine(vocab)))
        self._choices: dict[frozenset[str], _native.SpecialChoice] = {}
        # What is not given is found out when it is asked for.
        vars(self).update({f"_{name}": value for name, value in known.items() if value is not None})

    @classmethod
    def _trained(cls, vocab: Vocabulary, training: Training) -> Tokenizer:
        """The tokenizer of a training, whose vocabulary is right: the engine waits for a text."""
        tok = cls.__new__(cls)
        tok._set(vocab, training=training)
        return tok

    @classmethod
    def _loaded(cls, vocab: Vocabulary, path: Path, *, is_tried: bool = False) -> Tokenizer:
        """The tokenizer of a file or folder, which may have the report of its training beside.

        If it was made before, and so can be, the engine waits for a text.
        """
        tok = cls.__new__(cls)
        tok._set(vocab, name=path.stem)
        if not is_tried:
            tok._encoder = _engine(vocab)
        tok._beside = path.absolute()
        return tok

    _encoder: _native.Encoder
    _beside: Path | None = None

    @cached_property
    def _name(self) -> str:
        return f"byteweld-{self._vocab.fingerprint[:8]}"

    @cached_property
    def _training(self) -> Training | None:
        if self._beside is None:
            return None
        from byteweld.training import load_report

        return load_report(self._beside, self._vocab)

    def _share(self, other: Tokenizer) -> None:
        """Be the same tokenizer as another; there is one engine for both."""
        engine = other._encoder
        vars(self).update(vars(other))
        if isinstance(engine, _EngineToBe):
            vars(self).update(_encoder=_EngineToBe(self, engine._now))

    # ------------------------------------------------------------------ making

    @classmethod
    def from_merges(
        cls,
        vocab: Mapping[int, bytes],
        merges: Iterable[tuple[bytes, bytes]],
        *,
        special_tokens: Sequence[str] | Mapping[str, int] = (),
        pattern: str | None = "gpt2",
        name: str | None = None,
    ) -> Tokenizer:
        """Make a tokenizer of {id: bytes} and merges [(left bytes, right bytes)] in rank order.

        Special tokens that are not in `vocab` get the next free ids, in order.

        >>> vocab = {b: bytes([b]) for b in range(256)} | {256: b"ab"}
        >>> Tokenizer.from_merges(vocab, [(b"a", b"b")]).encode("abab")
        [256, 256]
        """
        tokens = dict(vocab)
        by_bytes = {token: token_id for token_id, token in tokens.items()}
        if isinstance(special_tokens, str):
            raise TypeError(f"special_tokens is a list of strings, found {special_tokens!r}")
        specials: dict[str, int] = {}
        for text in special_tokens:
            if isinstance(special_tokens, Mapping):
                token_id = special_tokens[text]
            else:
                token_id = by_bytes.get(text.encode(), max(tokens, default=-1) + 1)
            if text in specials:
                raise VocabularyError(f"special token {text!r} is given twice")
            _refuse_collision(text, token_id, tokens)
            tokens[token_id] = text.encode()
            specials[text] = token_id
        merge_ids = []
        for rank, (left, right) in enumerate(merges):
            for part in (left, right, left + right):
                if part not in by_bytes:
                    raise VocabularyError(
                        f"merge {rank} is ({left!r}, {right!r}), but {part!r} is no token"
                    )
            merge_ids.append((by_bytes[left], by_bytes[right], by_bytes[left + right]))
        return cls(
            Vocabulary(tokens, merge_ids, special_tokens=specials, pattern=pattern), name=name
        )

    @classmethod
    def from_ranks(
        cls,
        mergeable_ranks: Mapping[bytes, int],
        *,
        pattern: str | None,
        special_tokens: Mapping[str, int] | None = None,
        name: str | None = None,
    ) -> Tokenizer:
        """Make a tokenizer of {bytes: rank}, as `tiktoken.Encoding` takes them; ids are ranks.

        Where every token is made of exactly two others, the merges are recovered: that is the same
        tokenizer.
        """
        if not isinstance(mergeable_ranks, Mapping):
            raise TypeError(f"expected a mapping of bytes to rank, found {mergeable_ranks!r}")
        tokens = {rank: token for token, rank in mergeable_ranks.items()}
        if len(tokens) != len(mergeable_ranks):
            raise VocabularyError("two tokens have the same rank")
        specials = dict(special_tokens or {})
        for text, token_id in specials.items():
            _refuse_collision(text, token_id, tokens)
        texts: dict[int, bytes] = {}
        for text, token_id in specials.items():
            texts.setdefault(token_id, text.encode())  # the first of those that share an id
        try:
            merges = recover_merges(tokens)
        except (TypeError, OverflowError):
            Vocabulary(tokens)  # says better what is wrong
            raise
        return cls(
            Vocabulary(
                tokens | texts,
                merges or (),
                special_tokens=specials,
                pattern=pattern,
                ranking="ranks" if merges is None else "merges",
            ),
            name=name,
        )

    # ------------------------------------------------------------------ encoding

    def encode(
        self,
        text: Text,
        *,
        allowed_special: Specials = _NONE,
        disallowed_special: Specials = "all",
        add_bos: bool = False,
        add_eos: bool = False,
        template: bool = False,
    ) -> list[int]:
        """Encode a text.

        Special tokens in the text raise `SpecialTokenError` unless `allowed_special` (a set, or
        "all") permits them, which gives their id, or `disallowed_special=()` says that they are
        plain text. `bytes` need not be UTF-8; nothing is lost. `add_bos` and `add_eos` add the
        vocabulary's roles; `template` puts around the ids what the vocabulary's template says, as
        Hugging Face's `add_special_tokens` does.
        """
        # Said in full, here and below: for a short text, each call more is a tenth of the time.
        allowed, refused = (
            _REFUSE_ALL
            if allowed_special is _NONE and disallowed_special == "all"
            else self._special_arguments(allowed_special, disallowed_special)
        )
        if add_bos or add_eos or template:
            before, after = self._around(add_bos, add_eos, template)
            return [*before, *self._call(self._encoder.encode, text, allowed, refused), *after]
        try:
            return self._encoder.encode(text, allowed, refused)
        except UnicodeEncodeError:
            return self._encoder.encode(utf8(text), allowed, refused)

    def encode_ordinary(self, text: Text) -> list[int]:
        """Encode a text as plain text: special tokens are not recognised and not refused."""
        try:
            return self._encoder.encode(text, None, None)
        except UnicodeEncodeError:
            return self._encoder.encode(utf8(text), None, None)

    def encode_to_numpy(
        self,
        text: Text,
        *,
        allowed_special: Specials = _NONE,
        disallowed_special: Specials = "all",
    ) -> NDArray[np.uint32]:
        """Encode a text to an array of uint32."""
        allowed, refused = (
            _REFUSE_ALL
            if allowed_special is _NONE and disallowed_special == "all"
            else self._special_arguments(allowed_special, disallowed_special)
        )
        try:
            return self._encoder.encode_to_numpy(text, allowed, refused)
        except UnicodeEncodeError:
            return self._encoder.encode_to_numpy(utf8(text), allowed, refused)

    def encode_batch(
        self,
        texts: Sequence[Text],
        *,
        num_threads: int | None = None,
        allowed_special: Specials = _NONE,
        disallowed_special: Specials = "all",
        add_bos: bool = False,
        add_eos: bool = False,
        template: bool = False,
    ) -> list[list[int]]:
        """Encode many texts on several threads (by default as many as there are processors)."""
        chosen = self._special_arguments(allowed_special, disallowed_special)
        before, after = self._around(add_bos, add_eos, template)
        lists = self._call_batch(self._encoder.encode_batch, texts, *chosen, num_threads)
        if before or after:
            return [[*before, *ids, *after] for ids in lists]
        return lists

    def encode_ordinary_batch(
        self, texts: Sequence[Text], *, num_threads: int | None = None
    ) -> list[list[int]]:
        """Encode many texts as plain text."""
        return self._call_batch(self._encoder.encode_batch, texts, None, None, num_threads)

    def encode_ragged(
        self,
        texts: Sequence[Text],
        *,
        num_threads: int | None = None,
        allowed_special: Specials = _NONE,
        disallowed_special: Specials = "all",
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Encode many texts to one array of ids and an array of offsets.

        The ids of text i are `ids[offsets[i]:offsets[i + 1]]`. No Python integers are made.
        """
        chosen = self._special_arguments(allowed_special, disallowed_special)
        return self._call_batch(self._encoder.encode_ragged, texts, *chosen, num_threads)

    def encode_files(
        self,
        paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        num_threads: int | None = None,
        allowed_special: Specials = _NONE,
        disallowed_special: Specials = "all",
        **reading: Unpack[ReadingOptions],
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Encode the documents of files as `encode_ragged` does; they are read as in `train`."""
        import numpy as np

        from byteweld.corpus import Reading, open_corpus

        id_arrays: list[NDArray[np.uint32]] = [np.empty(0, np.uint32)]
        offset_arrays: list[NDArray[np.int64]] = [np.zeros(1, np.int64)]
        end = 0
        corpus = open_corpus(paths, Reading.of(reading))
        for batch in _batches(corpus.documents()):
            ids, offsets = self.encode_ragged(
                batch,
                num_threads=num_threads,
                allowed_special=allowed_special,
                disallowed_special=disallowed_special,
            )
            id_arrays.append(ids)
            offset_arrays.append(offsets[1:] + end)
            end += len(ids)
        return np.concatenate(id_arrays), np.concatenate(offset_arrays)

    def encode_iterable(
        self,
        texts: Iterable[Text],
        *,
        allowed_special: Specials = _NONE,
        disallowed_special: Specials = "all",
    ) -> Iterator[int]:
        """Encode one text that arrives in pieces (the lines of a file, say); yields ids lazily.

        The ids are those of the whole text. For the built-in patterns, and all others that need no
        backtracking, memory is bounded by the longest pre-token; for the rest, and where the
        vocabulary has steps, a normalizer or flags, the text is gathered first. For ids at the
        first moment, or without an iterable, see `encode_stream`.
        """
        stream = self._encode_stream(allowed_special, disallowed_special, _STREAM_BYTES)
        for text in texts:
            yield from stream.feed(text)
        yield from stream.finish()

    def encode_stream(
        self,
        *,
        allowed_special: Specials = _NONE,
        disallowed_special: Specials = "all",
    ) -> EncodeStream:
        """Encode one text that arrives in pieces, cut anywhere: feed them, then finish.

        `feed` gives ids as soon as nothing that follows can change them; all together they are
        those of the whole text. Memory is bounded as in `encode_iterable`.

        >>> vocab = {b: bytes([b]) for b in range(256)} | {256: b"ab"}
        >>> stream = Tokenizer.from_merges(vocab, [(b"a", b"b")]).encode_stream()
        >>> stream.feed("ab a"), stream.feed("b"), stream.finish()
        ([256], [], [32, 256])
        """
        return self._encode_stream(allowed_special, disallowed_special, 1)

    def _encode_stream(
        self, allowed: Specials, disallowed: Specials, block_bytes: int
    ) -> EncodeStream:
        chosen = self._special_arguments(allowed, disallowed)
        return EncodeStream(
            lambda text: self._encoder.encode(text, *chosen),
            lambda text: self._encoder.certain_end(text, *chosen),
            block_bytes=block_bytes,
        )

    def encode_spans(self, spans: Iterable[tuple[Text, bool]]) -> list[int]:
        """Encode one text made of spans, each trusted or not, such as a template and its fillings.

        The text is the spans joined, and pre-tokens may cross their edges. A special token is
        recognised only where its text lies wholly inside one trusted span: the leftmost such place
        first, and there the longest such token. Nothing else is ever a special id, whatever an
        untrusted span holds and wherever spans are cut; and nothing is refused. If all spans are
        trusted and none cuts a special token, the ids are those of `allowed_special="all"`; if
        none is, those of `disallowed_special=()`.

        >>> vocab = {b: bytes([b]) for b in range(256)}
        >>> tok = Tokenizer.from_merges(vocab, [], special_tokens=["<|"])
        >>> tok.encode_spans([("<|", True), ("<|", False), ("<", True), ("|", True)])
        [256, 60, 124, 60, 124]
        """
        return self._encoder.encode_spans(*span_bytes(spans))

    def encode_with_offsets(
        self,
        text: Text,
        *,
        unit: Literal["bytes", "characters"] = "bytes",
        allowed_special: Specials = _NONE,
        disallowed_special: Specials = "all",
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """Encode a text; returns ids and their (start, end) offsets.

        Offsets in bytes tile the text. In characters, which index the str, a token starts with the
        character that holds its first byte and ends after the one that holds its last: tokens that
        share a character both have it.
        """
        if unit not in ("bytes", "characters"):
            raise ValueError(f"unit is {unit!r}; it must be 'bytes' or 'characters'")
        if unit == "characters" and isinstance(text, bytes | bytearray):
            raise TypeError(
                f"offsets in characters are those of a str, found {type(text).__name__}, "
                "which need not be characters; decode it, or ask for unit='bytes'"
            )
        chosen = self._special_arguments(allowed_special, disallowed_special)
        ids, ends = self._call(self._encoder.encode_with_ends, text, *chosen)
        if unit == "characters" and isinstance(text, str):
            return ids, character_offsets(text, ends)
        return ids, list(zip([0, *ends], ends, strict=False))

    def encode_with_unstable(
        self,
        text: str,
        *,
        allowed_special: Specials = _NONE,
        disallowed_special: Specials = "all",
    ) -> tuple[list[int], list[list[int]]]:
        """Encode a text into certain ids and the sequences that its uncertain end could become."""
        chosen = self._special_arguments(allowed_special, disallowed_special)
        return self._call(self._encoder.encode_with_unstable, text, *chosen)

    def encode_single_token(self, text_or_bytes: Text) -> int:
        """The id of a text that is exactly one token, added ones included; else KeyError."""
        token = utf8(text_or_bytes)
        found = self._vocab.ids.get(token)
        if found is None:
            found = self._added_by_bytes.get(token)
        if found is None:
            raise KeyError(token)
        return found

    # ------------------------------------------------------------------ counting

    def count(
        self,
        text: Text,
        *,
        allowed_special: Specials = _NONE,
        disallowed_special: Specials = "all",
    ) -> int:
        """How many tokens a text has; no list is made."""
        allowed, refused = (
            _REFUSE_ALL
            if allowed_special is _NONE and disallowed_special == "all"
            else self._special_arguments(allowed_special, disallowed_special)
        )
        try:
            return self._encoder.count(text, allowed, refused)
        except UnicodeEncodeError:
            return self._encoder.count(utf8(text), allowed, refused)

    def count_until(
        self,
        text: Text,
        limit: int,
        *,
        allowed_special: Specials = _NONE,
        disallowed_special: Specials = "all",
    ) -> int | None:
        """How many tokens a text has, or None if more than `limit`; stops counting there."""
        chosen = self._special_arguments(allowed_special, disallowed_special)
        tokens, _, passed = self._call(self._encoder.count_until, text, _limit(limit), *chosen)
        return None if passed else tokens

    def truncate(
        self,
        text: Text,
        limit: int,
        *,
        allowed_special: Specials = _NONE,
        disallowed_special: Specials = "all",
    ) -> Text:
        """The start of a text that its first `limit` tokens cover, in whole characters.

        A text of at most `limit` tokens comes back as it is. Of a longer str, a last character
        that the tokens cover in part is left out; of bytes nothing is. Encoded alone, the start
        nearly always has `limit` tokens or fewer: more only where the pattern cuts it otherwise for
        want of what followed.
        """
        chosen = self._special_arguments(allowed_special, disallowed_special)
        _, covered, passed = self._call(self._encoder.count_until, text, _limit(limit), *chosen)
        if not passed:
            return text
        return start_of(text, covered) if isinstance(text, str) else text[:covered]

    # ------------------------------------------------------------------ decoding

    def decode(self, ids: Ids, errors: str = "replace") -> str:
        """Decode ids to text; `errors` says what becomes of bytes that are not UTF-8."""
        return self._encoder.decode(ids, errors)

    def decode_bytes(self, ids: Ids) -> bytes:
        """Decode ids to bytes. An id outside the vocabulary raises UnknownIdError."""
        return self._encoder.decode_bytes(ids)

    def decode_batch(
        self, batch: Sequence[Ids], *, errors: str = "replace", num_threads: int | None = None
    ) -> list[str]:
        """Decode many lists of ids.

        `num_threads` is taken for tiktoken's sake: reading the lists is most of the work, and that
        is done under Python's lock.
        """
        return [self.decode(ids, errors) for ids in batch]

    def decode_bytes_batch(
        self, batch: Sequence[Ids], *, num_threads: int | None = None
    ) -> list[bytes]:
        """Decode many lists of ids to bytes."""
        return [self.decode_bytes(ids) for ids in batch]

    def decode_stream(self, errors: str = "replace") -> DecodeStream:
        """Decode ids that arrive one by one or in blocks: feed them, then finish.

        `feed` gives text as soon as its bytes are whole characters; all together it is that of
        `decode` with the same `errors`.

        >>> stream = Tokenizer.from_merges({b: bytes([b]) for b in range(256)}, []).decode_stream()
        >>> stream.feed([0x61, 0xC3]), stream.feed(0xA9), stream.feed(0xE6), stream.finish()
        ('a', 'é', '', '\ufffd')
        """
        return DecodeStream(self._encoder.decode_bytes, errors)

    def decode_single_token_bytes(self, token_id: int) -> bytes:
        """The bytes of one token."""
        return self._encoder.token_bytes(token_id)

    def decode_tokens_bytes(self, ids: Ids) -> list[bytes]:
        """The bytes of each token."""
        if isinstance(ids, str | bytes):
            raise TypeError(f"expected a sequence of ids, found {type(ids).__name__}")
        return [self._encoder.token_bytes(token_id) for token_id in ids]

    def decode_with_offsets(self, ids: Ids) -> tuple[str, list[int]]:
        """Decode to text and the character offset where each token starts.

        A token that starts inside a character has the offset of that character.
        """
        offsets = []
        length = 0
        tokens = self.decode_tokens_bytes(ids)
        for token in tokens:
            inside = length > 0 and b"\x80" <= token[:1] < b"\xc0"
            offsets.append(length - inside)
            length += sum(1 for byte in token if not 0x80 <= byte < 0xC0)
        return b"".join(tokens).decode(errors="strict"), offsets

    # ------------------------------------------------------------------ what it is

    @property
    def vocab(self) -> Vocabulary:
        """The vocabulary."""
        return self._vocab

    @property
    def training(self) -> Training | None:
        """What the training did, where that is known.

        It is for a tokenizer that was trained in this process, and for one that was loaded from a
        file with its report beside it (`tokenizer.training.json`).
        """
        return self._training

    @property
    def name(self) -> str:
        """A name for people."""
        return self._name

    @property
    def n_vocab(self) -> int:
        """One more than the highest id."""
        return self.max_token_value + 1

    @property
    def max_token_value(self) -> int:
        """The highest id."""
        return max(self._vocab.tokens)

    @property
    def special_tokens_set(self) -> set[str]:
        """The texts of all special tokens."""
        return set(self._vocab.special_tokens)

    @property
    def eot_token(self) -> int:
        """The id of `<|endoftext|>`."""
        return self._vocab.special_tokens["<|endoftext|>"]

    def is_special_token(self, token_id: int) -> bool:
        """Whether an id is a special token's."""
        if not isinstance(token_id, int):
            raise TypeError(f"expected an id, found {token_id!r}")
        return token_id in self._special_ids

    def token_byte_values(self) -> list[bytes]:
        """The bytes of all ordinary tokens, sorted."""
        return sorted(token for _, token in self._vocab.ordinary())

    @property
    def pattern_engine(self) -> str:
        """What runs the pattern: "whole" (there is none), "scanner", "automaton" or "backtracking".

        The slowest one, where there are several steps.
        """
        slowness = ["whole", "scanner", "automaton", "backtracking"]
        return max(self._encoder.engines, key=slowness.index, default="whole")

    def unreachable_tokens(self) -> list[int]:
        """Ids of tokens that encoding their own bytes does not give.

        The pattern may cut them (as happens in `ck`), or other merges go first. A token that ends
        inside a character is listed too if its own bytes are cut otherwise, though it can occur in
        a longer text.
        """
        return [
            token_id
            for token_id, token in self._vocab.ordinary()
            if self._encoder.encode(token, None, None) != [token_id]
        ]

    def pretokenize(self, text: Text) -> list[bytes]:
        """Cut a text into the pre-tokens that are encoded one by one."""
        return self._call(self._encoder.pretokenize, text)

    def show(
        self,
        text: Text,
        *,
        allowed_special: Specials = _NONE,
        disallowed_special: Specials = "all",
    ) -> EncodedText:
        """Encode a text to look at it: `print` shows its tokens, a notebook shows them in colour.

        >>> vocab = {b: bytes([b]) for b in range(256)} | {256: b"ab"}
        >>> print(Tokenizer.from_merges(vocab, [(b"a", b"b")]).show("ab a"))
        ab|·|a
        """
        from byteweld.render import EncodedText, spans

        chosen = self._special_arguments(allowed_special, disallowed_special)
        ids, ends = self._call(self._encoder.encode_with_ends, text, *chosen)
        return EncodedText(tuple(spans(self._vocab, ids)), tuple(ends))

    def cut(self, vocab_size: int) -> Tokenizer:
        """The same training at a smaller size: what `train(vocab_size=...)` would have given."""
        if self._training is None:
            raise UnsupportedError(
                "only a tokenizer whose training is known can be cut: one that was trained in this "
                "process, or loaded with its report (tokenizer.training.json) beside it"
            )
        from byteweld.training.cut import cut_training

        vocab, training = cut_training(self._vocab, self._training, vocab_size)
        return Tokenizer._trained(vocab, training)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,
        overwrite: bool = False,
        **options: Any,
    ) -> None:
        """Write the vocabulary; the format is chosen by the name, or given.

        The report of the training is a file of its own: `tok.training.save(report_path(path),
        tok.vocab)` writes it where `byteweld.load` finds it.
        """
        from byteweld import formats

        formats.save(self._vocab, path, format=format, overwrite=overwrite, **options)

    def __len__(self) -> int:
        return len(self._vocab)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tokenizer):
            return NotImplemented
        return self._vocab == other._vocab

    def __hash__(self) -> int:
        return hash(self._vocab)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (self._vocab, self._name, self._training))

    def __repr__(self) -> str:
        pattern = self._vocab.pattern
        shown = pattern_name(pattern) or pattern
        return (
            f"<Tokenizer {len(self._vocab)} tokens, pattern {shown!r}, "
            f"sha {self._vocab.fingerprint[:8]}>"
        )

    def _repr_html_(self) -> str:
        from byteweld.markup import element, facts, fragment
        from byteweld.render import tile

        vocab = self._vocab
        longest = sorted(vocab.ordinary(), key=lambda item: (-len(item[1]), item[0]))[:8]
        shown = list(vocab.special_tokens.items())[:8]
        more = len(vocab.special_tokens) - len(shown)
        specials = [[tile(i, t.encode(), is_special=True), f" {i} "] for t, i in shown]
        pattern = "none" if vocab.pattern is None else element("code", vocab.pattern)
        return fragment(
            element("h2", self.name),
            facts(
                [
                    ("tokens", f"{len(vocab):,}"),
                    ("merges", f"{len(vocab.merge_ids):,}"),
                    ("pattern", pattern_name(vocab.pattern) or pattern),
                    (
                        "special tokens",
                        [*specials, f"and {more} more"] if more else specials or "none",
                    ),
                    ("longest tokens", [[tile(i, t[:80]), " "] for i, t in longest]),
                    ("fingerprint", element("code", vocab.fingerprint)),
                ]
            ),
        )

    # ------------------------------------------------------------------ private

    @cached_property
    def _special_ids(self) -> frozenset[int]:
        return frozenset(self._vocab.special_tokens.values())

    @cached_property
    def _added_by_bytes(self) -> dict[bytes, int]:
        return {added.text.encode(): added.id for added in self._vocab.added_tokens}

    def _special_arguments(self, allowed: Specials, disallowed: Specials) -> _Chosen:
        """What the engine is told of special tokens: which to recognise, which to refuse."""
        if not allowed and not isinstance(allowed, str):  # the usual cases, and the quickest
            if disallowed == "all":
                return _REFUSE_ALL
            if not disallowed and not isinstance(disallowed, str):
                return False, False
        known = self._vocab.special_tokens
        allowed_set = frozenset(known) if allowed == "all" else _special_set(allowed, "allowed")
        allowed_set &= frozenset(known)
        if disallowed == "all":
            disallowed_set = frozenset(known) - allowed_set
        else:
            disallowed_set = _special_set(disallowed, "disallowed")
        return (
            True if len(allowed_set) == len(known) else self._choice(allowed_set),
            self._choice(disallowed_set),
        )

    def _choice(self, texts: frozenset[str]) -> bool | _native.SpecialChoice:
        if not texts:
            return False
        choice = self._choices.get(texts)
        if choice is None:
            choice = self._encoder.choose(sorted(texts))
            if len(self._choices) < _CHOICES:  # only a memory: it never changes an answer
                self._choices[texts] = choice
        return choice

    def _around(
        self, add_bos: bool, add_eos: bool, template: bool
    ) -> tuple[Sequence[int], Sequence[int]]:
        """The ids to put before and after those of a text."""
        if template and (add_bos or add_eos):
            raise ValueError(
                "template says itself what goes around a text; pass it without add_bos and add_eos"
            )
        if template:
            return self._vocab.template
        return (
            [self._role("bos")] if add_bos else [],
            [self._role("eos")] if add_eos else [],
        )

    def _role(self, role: str) -> int:
        token_id = self._vocab.roles.get(role)
        if token_id is None:
            raise UnsupportedError(
                f"the vocabulary has no {role} token, so add_{role} cannot add it"
            )
        return token_id

    def _call(self, method: Callable[..., _Result], text: Text, *rest: object) -> _Result:
        """Call the engine; a lone surrogate, which has no UTF-8, is U+FFFD, as in tiktoken."""
        try:
            return method(text, *rest)
        except UnicodeEncodeError:
            return method(utf8(text), *rest)

    def _call_batch(
        self, method: Callable[..., _Result], texts: Sequence[Text], *rest: object
    ) -> _Result:
        if isinstance(texts, str | bytes):
            raise TypeError(f"expected a sequence of texts, found {type(texts).__name__}")
        try:
            return method(texts, *rest)
        except UnicodeEncodeError:
            return method([utf8(text) for text in texts], *rest)


def _engine(vocab: Vocabulary) -> _native.Encoder:
    ranking: Literal["merges", "merges-after-lookup", "ids"] = "merges"
    if vocab.ranking == "ranks":
        ranking = "ids"
    elif vocab.ignore_merges or vocab._makes_every_token:
        ranking = "merges-after-lookup"
    table = vocab._table
    return _native.Encoder(
        tokens=list(vocab.ordinary()) if table is None else table,
        merges=vocab._merges if table is None else (),
        ranking=ranking,
        added=vocab.added_tokens,
        added_bytes=list(vocab.not_ordinary()),
        pattern=vocab.pattern,
        steps=vocab.steps,
        normalizer=vocab.normalizer,
        gaps="bytes" if vocab.alphabet == "partial" else "characters",
        unk=vocab.roles.get("unk"),
    )


class _EngineToBe:
    """Stands where a tokenizer's engine will be, and makes it when anything is asked of it."""

    def __init__(self, tokenizer: Tokenizer, make: Callable[[], _native.Encoder]) -> None:
        self._tokenizer = weakref.ref(tokenizer)  # which holds this
        self._make = make
        self._made: _native.Encoder | None = None
        self._lock = threading.Lock()

    def _now(self) -> _native.Encoder:
        with self._lock:  # once, however many threads ask
            if self._made is None:
                self._made = self._make()
        tokenizer = self._tokenizer()
        if tokenizer is not None:
            tokenizer._encoder = self._made
        return self._made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._now(), name)


def _refuse_collision(text: str, token_id: int, tokens: Mapping[int, bytes]) -> None:
    """Two tokens cannot share an id: one of them would be lost."""
    if tokens.get(token_id, text.encode()) != text.encode():
        raise VocabularyError(
            f"special token {text!r} has id {token_id}, which is the token {tokens[token_id]!r}"
        )


def _special_set(texts: Specials, which: str) -> frozenset[str]:
    if isinstance(texts, str):
        raise TypeError(
            f"{which}_special is {texts!r}; it must be 'all' or a set of special tokens"
        )
    return frozenset(texts)


def _limit(limit: int) -> int:
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise TypeError(f"limit is {limit!r}; it must be an integer")
    if limit < 0:
        raise ValueError(f"limit is {limit}; it must be at least 0")
    return min(limit, _NO_LIMIT)


def _batches(documents: Iterable[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for document in documents:
        batch.append(document)
        size += len(document)
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _rebuild(vocab: Vocabulary, name: str, training: Training | None) -> Tokenizer:
    return Tokenizer(vocab, name=name, training=training)
