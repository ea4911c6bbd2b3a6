"""Tokenizer: a Vocabulary with its engine. Encodes, decodes, counts.

Immutable, thread-safe, picklable, and safe to use after a fork. Options are arguments of the calls,
never state. Names, arguments and results are tiktoken's where it has them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import partial
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from byteweld import _native
from byteweld._cached import cached_property
from byteweld._text import Text, batches, character_offsets, span_bytes, start_of, utf8
from byteweld.errors import UnsupportedError, VocabularyError, check_text
from byteweld.patterns import pattern_name
from byteweld.vocab import Vocabulary

if TYPE_CHECKING:
    from typing import Self, Unpack

    import numpy as np  # slow to import, and only arrays need it
    from numpy.typing import NDArray

    from byteweld.corpus import ReadingOptions
    from byteweld.report import EncodedText
    from byteweld.streams import DecodeStream, EncodeStream
    from byteweld.training import Training

    Ids = Sequence[int] | NDArray[np.uint32]

Specials = Literal["all"] | Set[str] | Sequence[str]
_NONE: frozenset[str] = frozenset()

_BATCH_BYTES = 32 << 20  # documents of files that are encoded at once
_NO_LIMIT = 2**63 - 1  # more tokens than any text has


class Tokenizer:
    """Encodes text to ids and decodes ids to text.

    Make one with `byteweld.train`, `byteweld.load`, `from_merges` or `from_ranks`. A tokenizer is
    immutable, may be shared by threads, and can be pickled. Two with the same vocabulary are equal.

    Args:
        vocab: the vocabulary, which says how text is split and merged.
        name: what `name` returns; by default, a part of the fingerprint.
        training: what the training run did, if it is known.

    Examples:
        >>> documents = ["hello world"] * 2
        >>> tok = byteweld.train(documents=documents, vocab_size=266, eos="<|endoftext|>")
        >>> tok.encode("hello world!"), tok.encode_to_numpy("hello world!")
        ([263, 264, 33], array([263, 264,  33], dtype=uint32))
        >>> tok.encode_with_unstable("hello wor")  # " wor" may become " world"
        ([263], [[262], [264]])
        >>> tok.encode_ordinary("<|endoftext|>")[:3], tok.encode("hello", add_eos=True)
        ([60, 124, 101], [263, 265])
        >>> tok.decode([263, 264, 33]), tok.decode_bytes([263, 0xC3])
        ('hello world!', b'hello\\xc3')
        >>> tok.decode_with_offsets(tok.encode("hello é!"))
        ('hello é!', [0, 5, 6, 6, 7])
        >>> tok.count("hello world!"), tok.truncate("hello world, hello world", 2)
        (3, 'hello world')
        >>> stream = tok.decode_stream()
        >>> [stream.feed(token_id) for token_id in tok.encode("hello é")], stream.finish()
        (['hello', ' ', '', 'é'], '')

        Many at once:

        >>> tok.encode_batch(["hello", "hello world", ""]), tok.encode_ordinary_batch(["<|"])
        ([[263], [263, 264], []], [[60, 124]])
        >>> tok.encode_ragged(["hello", "hello world"])  # all ids, and the offset of each text
        (array([263, 263, 264], dtype=uint32), array([0, 1, 3]))
        >>> tok.decode_batch([[263], [263, 264]]), tok.decode_bytes_batch([[263], [264]])
        (['hello', 'hello world'], [b'hello', b' world'])

        Pre-tokens, and single tokens:

        >>> print(tok.show("hello world, hello"))
        hello|·world|,|·|hello
        >>> tok.pretokenize("hello world, it's 2026!")
        [b'hello', b' world', b',', b" it's", b' ', b'202', b'6', b'!']
        >>> tok.decode_tokens_bytes([263, 264]), tok.decode_single_token_bytes(264)
        ([b'hello', b' world'], b' world')
        >>> tok.encode_single_token(" world"), tok.encode_single_token("<|endoftext|>")
        (264, 265)
        >>> tok.special_tokens_set, tok.eot_token, tok.is_special_token(265)
        ({'<|endoftext|>'}, 265, True)

        The vocabulary:

        >>> len(tok), tok.n_vocab, tok.max_token_value
        (266, 266, 265)
        >>> [token for token in tok.token_byte_values() if len(token) > 3]
        [b' wor', b' world', b'hello']
        >>> tok.vocab.merges[:3], tok.training.merges_learned
        ([(b' ', b'w'), (b'e', b'l'), (b'h', b'el')], 9)
        >>> byteweld.Tokenizer(tok.vocab, name="greeting").name
        'greeting'
    """

    def __init__(
        self, vocab: Vocabulary, *, name: str | None = None, training: Training | None = None
    ) -> None:
        if not isinstance(vocab, Vocabulary):
            raise TypeError(f"expected a Vocabulary, found {type(vocab).__name__}")
        self._fill(vocab, name, training)

    def _fill(
        self,
        vocab: Vocabulary,
        name: str | None = None,
        training: Training | None = None,
        *,
        path: Path | None = None,
        is_tried: bool = False,
    ) -> Self:
        """Set all fields.

        The file or folder at `path` may have a training report next to it. If `is_tried`, an engine
        of this vocabulary was built before; this one is built on first use.
        """
        self._vocab = vocab
        self._encoder = _native.Encoder(vocab, eager=not is_tried)
        self._name = name
        self._training = training
        self._path = path  # None once the training report is read
        return self

    @classmethod
    def _of(cls, vocab: Vocabulary, *facts: Any, **others: Any) -> Self:
        """Make one of this class, whatever arguments it takes itself, as `_fill` does."""
        return cls.__new__(cls)._fill(vocab, *facts, **others)

    # ------------------------------------------------------------------ construction

    @classmethod
    def from_merges(
        cls,
        vocab: Mapping[int, bytes],
        merges: Iterable[tuple[bytes, bytes]],
        *,
        special_tokens: Sequence[str] | Mapping[str, int] = (),
        pattern: str | None = "gpt2",
        name: str | None = None,
    ) -> Self:
        """Make a tokenizer from {id: bytes} and merges [(left bytes, right bytes)] in rank order.

        Args:
            vocab: the bytes of every token by id; all 256 single bytes must be among them.
            merges: the two halves of each merge. The one listed first is applied first.
            special_tokens: their texts, or their ids by text. Those that are not in `vocab` get the
                next free ids, in order.
            pattern: what splits text into pre-tokens: a name in `byteweld.PATTERNS`, a regular
                expression, or None for no splitting.
            name: what `name` returns.

        Raises:
            VocabularyError: if a merge needs a token that `vocab` lacks, or an id has two tokens.

        Examples:
            >>> vocab = {b: bytes([b]) for b in range(256)} | {256: b"ab", 257: b"abc"}
            >>> tok = byteweld.Tokenizer.from_merges(
            ...     vocab, [(b"a", b"b"), (b"ab", b"c")], special_tokens=["<|end|>"]
            ... )
            >>> tok.encode("abcab<|end|>", allowed_special="all")
            [257, 256, 258]
        """
        tokens = dict(vocab)
        by_bytes = {token: token_id for token_id, token in tokens.items()}
        if isinstance(special_tokens, str):
            raise TypeError(f"special_tokens is {special_tokens!r}; expected a list or a mapping")
        specials: dict[str, int] = {}
        next_id = max(tokens, default=-1) + 1
        for text in special_tokens:
            token = _special_bytes(text)
            if isinstance(special_tokens, Mapping):
                token_id = special_tokens[text]
            else:
                token_id = by_bytes.get(token, next_id)
                next_id += token_id == next_id
            if text in specials:
                raise VocabularyError(f"special token {text!r} is given twice")
            _refuse_collision(text, token_id, tokens)
            tokens[token_id] = token
            specials[text] = token_id
        merge_ids = []
        for rank, (left, right) in enumerate(merges):
            for part in (left, right, left + right):
                if part not in by_bytes:
                    raise VocabularyError(
                        f"merge {rank} is ({left!r}, {right!r}), but {part!r} is not a token"
                    )
            merge_ids.append((by_bytes[left], by_bytes[right], by_bytes[left + right]))
        vocabulary = Vocabulary(tokens, merge_ids, special_tokens=specials, pattern=pattern)
        return cls._of(vocabulary, name)

    @classmethod
    def from_ranks(
        cls,
        mergeable_ranks: Mapping[bytes, int],
        *,
        pattern: str | None,
        special_tokens: Mapping[str, int] | None = None,
        name: str | None = None,
    ) -> Self:
        """Make a tokenizer from {bytes: rank}, as `tiktoken.Encoding` takes them; ids are ranks.

        If every token is made of exactly two others, the merges are recovered, which changes no id.

        Args:
            mergeable_ranks: the rank of every token, which is also its id.
            pattern: as in `from_merges`; a rank file does not have one.
            special_tokens: the id of each special token.
            name: what `name` returns.

        Examples:
            >>> ranks = {bytes([b]): b for b in range(256)} | {b"ab": 256, b"abc": 257}
            >>> tok = byteweld.Tokenizer.from_ranks(
            ...     ranks, pattern="cl100k", special_tokens={"<|endoftext|>": 258}
            ... )
            >>> tok.encode("abcab")
            [257, 256]
        """
        from byteweld.formats._ranks import recover_merges

        if not isinstance(mergeable_ranks, Mapping):
            raise TypeError(f"expected a mapping of bytes to rank, found {mergeable_ranks!r}")
        tokens = {rank: token for token, rank in mergeable_ranks.items()}
        if len(tokens) != len(mergeable_ranks):
            raise VocabularyError("two tokens have the same rank")
        specials = dict(special_tokens or {})
        texts: dict[int, bytes] = {}
        for text, token_id in specials.items():
            _refuse_collision(text, token_id, tokens)
            texts.setdefault(token_id, text.encode())  # the first of several that share an id
        try:
            merges = recover_merges(tokens)
        except (TypeError, OverflowError):
            Vocabulary(tokens)  # raises a clearer error
            raise
        vocabulary = Vocabulary(
            tokens | texts,
            merges or (),
            special_tokens=specials,
            pattern=pattern,
            ranking="ranks" if merges is None else "merges",
        )
        return cls._of(vocabulary, name)

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
        """Encode text to a list of ids.

        By default, a special token in the text raises `SpecialTokenError`, so that untrusted text
        cannot smuggle one in.

        Args:
            text: a str, or bytes, which need not be UTF-8; nothing is lost.
            allowed_special: the special tokens to encode as their ids: a set, or "all". Default:
                none.
            disallowed_special: the special tokens that raise. Those that are neither allowed nor
                disallowed are plain text: `disallowed_special=()` makes all of them plain text.
            add_bos: whether to add the id of the vocabulary's bos token in front.
            add_eos: whether to add the id of its eos token at the end.
            template: whether to add the ids of the vocabulary's template, as Hugging Face's
                `add_special_tokens` does.

        Raises:
            SpecialTokenError: if the text has a special token that is disallowed.
            UnsupportedError: if the vocabulary has no token for `add_bos` or `add_eos`.

        Examples:
            >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=266, eos="<|end|>")
            >>> tok.encode("hello world!")
            [263, 264, 33]
            >>> tok.encode("hello<|end|>", allowed_special={"<|end|>"})
            [263, 265]
            >>> tok.encode("hello<|end|>", disallowed_special=())
            [263, 60, 124, 101, 110, 100, 124, 62]
            >>> tok.encode("hello", add_eos=True)
            [263, 265]
            >>> tok.encode(b"hello\\xff")
            [263, 255]
        """
        ids = self._encoder.encode(text, allowed_special, disallowed_special)
        if add_bos or add_eos or template:
            before, after = self._around(add_bos, add_eos, template)
            return [*before, *ids, *after]
        return ids

    def encode_ordinary(self, text: Text) -> list[int]:
        """Encode text as plain text: special tokens are neither recognized nor refused."""
        return self._encoder.encode(text, None, None)

    def encode_to_numpy(
        self, text: Text, *, allowed_special: Specials = _NONE, disallowed_special: Specials = "all"
    ) -> NDArray[np.uint32]:
        """Encode text to a NumPy array of uint32; takes the special-token arguments of `encode`."""
        return self._encoder.encode_to_numpy(text, allowed_special, disallowed_special)

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
        """Encode many strings at once, on several threads.

        Args:
            texts: the strings, or bytes.
            num_threads: default: one per processor. The result does not depend on it.
            allowed_special: as in `encode`, and so are all further arguments.

        Returns:
            A list of ids for each string, in the same order.
        """
        before, after = self._around(add_bos, add_eos, template)
        lists = self._encoder.encode_batch(texts, allowed_special, disallowed_special, num_threads)
        if before or after:
            return [[*before, *ids, *after] for ids in lists]
        return lists

    def encode_ordinary_batch(
        self, texts: Sequence[Text], *, num_threads: int | None = None
    ) -> list[list[int]]:
        """Encode many strings as plain text, as `encode_ordinary` does, on several threads."""
        return self._encoder.encode_batch(texts, None, None, num_threads)

    def encode_ragged(
        self,
        texts: Sequence[Text],
        *,
        num_threads: int | None = None,
        allowed_special: Specials = _NONE,
        disallowed_special: Specials = "all",
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Encode many strings to one array of ids and an array of offsets.

        The ids of string i are `ids[offsets[i]:offsets[i + 1]]`. No Python integers are created, so
        this is the fastest way to encode many strings. Takes the arguments of `encode_batch`.
        """
        return self._encoder.encode_ragged(texts, allowed_special, disallowed_special, num_threads)

    def encode_files(
        self,
        paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        num_threads: int | None = None,
        allowed_special: Specials = _NONE,
        disallowed_special: Specials = "all",
        **reading: Unpack[ReadingOptions],
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Encode the documents of files, as `encode_ragged` does.

        Args:
            paths: a path, folder or glob, or a list of them.
            num_threads: as in `encode_batch`, and so are the next two.
            **reading: how files are read, as in `byteweld.train`: `ext`, `lines`, `separator`,
                `field`, `json_lines`, `on_error`.

        Examples:
            >>> import pathlib, tempfile
            >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=265)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     path = pathlib.Path(folder, "lines.txt")
            ...     _ = path.write_bytes(b"hello world\\nhello\\n")
            ...     ids, offsets = tok.encode_files(path, lines=True)
            >>> ids.tolist(), offsets.tolist()
            ([263, 264, 10, 263, 10], [0, 3, 5])
        """
        import numpy as np

        from byteweld.corpus import Reading, open_corpus

        id_arrays: list[NDArray[np.uint32]] = [np.empty(0, np.uint32)]
        offset_arrays: list[NDArray[np.int64]] = [np.zeros(1, np.int64)]
        end = 0
        corpus = open_corpus(paths, Reading.of(reading))
        for batch in batches(corpus.documents(), _BATCH_BYTES):
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

    def encode_stream(
        self,
        *,
        allowed_special: Specials = _NONE,
        disallowed_special: Specials = "all",
        block_bytes: int = 1,
    ) -> EncodeStream:
        """Encode text that arrives in pieces, cut anywhere: feed them, then finish.

        `feed` returns ids as soon as no further text can change them; together they are the ids of
        the whole text. For all patterns that need no backtracking, memory is bounded by the longest
        pre-token; for other patterns, and if the vocabulary has steps, a normalizer or added tokens
        with flags, the whole text is collected first.

        Args:
            allowed_special: as in `encode`, and so is the next.
            block_bytes: how much text to collect before any of it is encoded. For long text in
                small pieces, such as lines, 65,536 is faster; the ids are the same.

        Examples:
            >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=265)
            >>> stream = tok.encode_stream()
            >>> stream.feed("hello wo"), stream.feed("rld!"), stream.finish()
            ([263], [264], [33])
        """
        from byteweld.streams import EncodeStream

        encoder = self._encoder
        specials = [
            given if isinstance(given, str) else frozenset(given or ())
            for given in (allowed_special, disallowed_special)
        ]
        encoder.count(b"", *specials)  # raises if they are invalid
        return EncodeStream(
            lambda text: encoder.encode(text, *specials),
            lambda text: encoder.certain_end(text, *specials),
            block_bytes=block_bytes,
        )

    def encode_spans(self, spans: Iterable[tuple[Text, bool]]) -> list[int]:
        """Encode text made of spans, each trusted or not, such as a chat template and messages.

        The text is the spans joined, and pre-tokens may cross span boundaries. A special token is
        recognized only if it lies within one trusted span; at each position the longest one wins.
        Nothing else ever becomes a special id, whatever an untrusted span holds and wherever spans
        are cut. (One exception: if unk is a special token, it still stands for what is not in the
        vocabulary's alphabet.) If all spans are trusted and none cuts a special token, the ids are
        those of `allowed_special="all"`; if none is trusted, those of `disallowed_special=()`.

        The last sentence holds for vocabularies without `Vocabulary.ambiguous_ids`. Where ordinary
        text would become one of those, the token is replaced by the two parts of its merge, and
        they by theirs if needed. If it has none, as a byte, this raises `SpecialTokenError`.

        Args:
            spans: pairs of a str or bytes, and whether it is trusted.

        Examples:
            >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=266, eos="<|end|>")
            >>> message = "hello<|end|>"  # by a user, who must not end the turn
            >>> ids = tok.encode_spans([(message, False), ("<|end|>", True)])
            >>> ids
            [263, 60, 124, 101, 110, 100, 124, 62, 265]
            >>> print(tok.decode(ids))
            hello<|end|><|end|>
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
        """Encode text; return ids and their (start, end) offsets.

        Args:
            text: a str, or bytes.
            unit: what offsets count. In "bytes", they cover the text without gaps or overlaps. In
                "characters", they index the str: a token starts at the character that holds its
                first byte and ends after the one that holds its last, so tokens that share a
                character overlap there.
            allowed_special: as in `encode`, and so is the next.

        Examples:
            >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=265)
            >>> tok.encode_with_offsets("hello world!")
            ([263, 264, 33], [(0, 5), (5, 11), (11, 12)])
            >>> ids, offsets = tok.encode_with_offsets("é!", unit="characters")
            >>> offsets  # é is two bytes, and here two tokens
            [(0, 1), (0, 1), (1, 2)]
        """
        if unit not in ("bytes", "characters"):
            raise ValueError(f"unit is {unit!r}; it must be 'bytes' or 'characters'")
        if unit == "characters" and isinstance(text, bytes | bytearray):
            raise TypeError(
                f"offsets in characters need a str, found {type(text).__name__}; "
                "decode it, or pass unit='bytes'"
            )
        ids, ends = self._encoder.encode_with_ends(text, allowed_special, disallowed_special)
        if unit == "characters" and isinstance(text, str):
            return ids, character_offsets(text, ends)
        return ids, list(zip([0, *ends], ends, strict=False))

    def encode_with_unstable(
        self, text: str, *, allowed_special: Specials = _NONE, disallowed_special: Specials = "all"
    ) -> tuple[list[int], list[list[int]]]:
        """Encode text into stable ids and the sequences that its unstable end could become.

        If more text follows, the ids at the end may change. Each sequence is one way to go on: its
        bytes start with those of the unstable end. Works as in tiktoken.
        """
        return self._encoder.encode_with_unstable(text, allowed_special, disallowed_special)

    def encode_single_token(self, text_or_bytes: Text) -> int:
        """Return the id of a token, given its text or bytes; added tokens are included.

        Raises:
            KeyError: if there is no such token.
        """
        token = utf8(text_or_bytes)
        found = self._vocab.ids.get(token)
        return self._added_by_bytes[token] if found is None else found

    # ------------------------------------------------------------------ counting

    @overload
    def count(
        self,
        text: Text,
        *,
        allowed_special: Specials = ...,
        disallowed_special: Specials = ...,
        limit: None = None,
    ) -> int: ...
    @overload
    def count(
        self,
        text: Text,
        *,
        allowed_special: Specials = ...,
        disallowed_special: Specials = ...,
        limit: int,
    ) -> int | None: ...
    def count(
        self,
        text: Text,
        *,
        allowed_special: Specials = _NONE,
        disallowed_special: Specials = "all",
        limit: int | None = None,
    ) -> int | None:
        """Count the tokens of a text without creating a list.

        Args:
            text: as in `encode`, and so are the next two.
            limit: stop, and return None, if there are more tokens than this. The rest of a long
                text is not encoded, so this is the fast way to tell whether a text fits into a
                model's context.

        Examples:
            >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=265)
            >>> tok.count("hello world", limit=8), tok.count("hello world" * 1000, limit=8)
            (2, None)
        """
        if limit is None:
            return self._encoder.count(text, allowed_special, disallowed_special)
        tokens, _, passed = self._encoder.count_until(
            text, _limit(limit), allowed_special, disallowed_special
        )
        return None if passed else tokens

    def truncate(
        self,
        text: Text,
        limit: int,
        *,
        allowed_special: Specials = _NONE,
        disallowed_special: Specials = "all",
    ) -> Text:
        """Return the start of a text that its first `limit` tokens cover, in whole characters.

        A text of at most `limit` tokens is returned unchanged. In a longer str, a last character
        that the tokens cover only in part is left out. Encoded alone, the result nearly always has
        at most `limit` tokens; it has more only if the pattern splits it differently without the
        text that followed. Takes the special-token arguments of `encode`.
        """
        _, covered, passed = self._encoder.count_until(
            text, _limit(limit), allowed_special, disallowed_special
        )
        if not passed:
            return text
        return start_of(text, covered) if isinstance(text, str) else text[:covered]

    # ------------------------------------------------------------------ decoding

    def decode(self, ids: Ids, errors: str = "replace") -> str:
        """Decode ids to text.

        Args:
            ids: a list or array of ids.
            errors: what to do with bytes that are not UTF-8, as in `bytes.decode`: "replace" shows
                them as U+FFFD, "strict" raises UnicodeDecodeError.

        Raises:
            UnknownIdError: if an id is not in the vocabulary.
        """
        return self._encoder.decode(ids, errors)

    def decode_bytes(self, ids: Ids) -> bytes:
        """Decode ids to bytes, which need not be UTF-8.

        Raises:
            UnknownIdError: if an id is not in the vocabulary.
        """
        return self._encoder.decode_bytes(ids)

    def decode_batch(
        self, batch: Sequence[Ids], *, errors: str = "replace", num_threads: int | None = None
    ) -> list[str]:
        """Decode many lists of ids.

        `num_threads` is accepted for compatibility with tiktoken and ignored: most of the work is
        reading the lists, which needs the GIL.
        """
        return [self.decode(ids, errors) for ids in batch]

    def decode_bytes_batch(
        self, batch: Sequence[Ids], *, num_threads: int | None = None
    ) -> list[bytes]:
        """Decode many lists of ids to bytes; `num_threads` is ignored, as in `decode_batch`."""
        return [self.decode_bytes(ids) for ids in batch]

    def decode_stream(self, errors: str = "replace") -> DecodeStream:
        """Decode ids that arrive one by one or in blocks: feed them, then finish.

        `feed` returns text as soon as its bytes are whole characters; together the pieces are what
        `decode` returns with the same `errors`. Made for showing the output of a model as it comes.
        """
        from byteweld.streams import DecodeStream

        return DecodeStream(self._encoder.decode_bytes, errors)

    def decode_single_token_bytes(self, token_id: int) -> bytes:
        """Return the bytes of one token.

        Raises:
            UnknownIdError: if the id is not in the vocabulary.
        """
        return self._encoder.token_bytes(token_id)

    def decode_tokens_bytes(self, ids: Ids) -> list[bytes]:
        """Return the bytes of each token."""
        if isinstance(ids, str | bytes):
            raise TypeError(f"expected a sequence of ids, found {type(ids).__name__}")
        return [self._encoder.token_bytes(token_id) for token_id in ids]

    def decode_with_offsets(self, ids: Ids) -> tuple[str, list[int]]:
        """Decode to text and the character offset where each token starts.

        A token that starts inside a character has the offset of that character.

        Raises:
            UnicodeDecodeError: if the bytes are not UTF-8.
        """
        offsets = []
        length = 0
        tokens = self.decode_tokens_bytes(ids)
        for token in tokens:
            inside = length > 0 and b"\x80" <= token[:1] < b"\xc0"
            offsets.append(length - inside)
            length += sum(1 for byte in token if not 0x80 <= byte < 0xC0)
        return b"".join(tokens).decode(errors="strict"), offsets

    # ------------------------------------------------------------------ properties

    @property
    def vocab(self) -> Vocabulary:
        """The vocabulary."""
        return self._vocab

    @property
    def training(self) -> Training | None:
        """What the training run did, or None if not known.

        It is known if the tokenizer was trained in this process, or loaded from a file that has a
        training report next to it (`tokenizer.training.json`), which `save` writes.
        """
        if self._path is not None:
            from byteweld.training import load_report

            self._training, self._path = load_report(self._path, self._vocab), None
        return self._training

    @property
    def name(self) -> str:
        """The name of its file or encoding, or else a part of its fingerprint, for people."""
        return self._name or f"byteweld-{self._vocab.fingerprint[:8]}"

    @property
    def n_vocab(self) -> int:
        """One more than the highest id: the number of rows that a model's embedding needs.

        It is greater than `len(tok)` if some ids are unused.
        """
        return self.max_token_value + 1

    @property
    def max_token_value(self) -> int:
        """The highest id."""
        return max(self._vocab.tokens)

    @property
    def special_tokens_set(self) -> set[str]:
        """All special tokens, as strings; `vocab.special_tokens` has their ids, too."""
        return set(self._vocab.special_tokens)

    @property
    def eot_token(self) -> int:
        """The id of `<|endoftext|>`; KeyError if it is not a special token."""
        return self._vocab.special_tokens["<|endoftext|>"]

    def is_special_token(self, token_id: int) -> bool:
        """Whether an id is that of a special token."""
        return index(token_id) in self._special_ids

    def token_byte_values(self) -> list[bytes]:
        """Return the bytes of all ordinary tokens, sorted; special tokens are left out."""
        return sorted(token for _, token in self._vocab.ordinary())

    def pretokenize(self, text: Text) -> list[bytes]:
        """Split a text into pre-tokens, as they are encoded."""
        return self._encoder.pretokenize(text)

    def show(
        self, text: Text, *, allowed_special: Specials = _NONE, disallowed_special: Specials = "all"
    ) -> EncodedText:
        """Encode text to look at it: `print` shows its tokens, a notebook shows them in color.

        Takes the special-token arguments of `encode`. The result also has `ids` and `to_dict()`.
        """
        from byteweld.render import spans
        from byteweld.report import EncodedText

        ids, ends = self._encoder.encode_with_ends(text, allowed_special, disallowed_special)
        return EncodedText(tuple(spans(self._vocab, ids)), tuple(ends))

    def cut(self, vocab_size: int) -> Tokenizer:
        """Return the tokenizer that the same training run gives at a smaller size.

        It has the first merges of this one, so a single training run gives any number of sizes.

        Raises:
            UnsupportedError: if the training is not known (see `training`).

        Examples:
            >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=265)
            >>> tok.cut(259) == byteweld.train(documents=["hello world"] * 2, vocab_size=259)
            True
        """
        training = self.training
        if training is None:
            raise UnsupportedError(
                "only a tokenizer whose training is known can be cut: one that was trained in this "
                "process, or loaded with its report (tokenizer.training.json) next to it"
            )
        from byteweld.training.cut import cut_training

        vocab, cut = cut_training(self._vocab, training, vocab_size)
        return Tokenizer._of(vocab, training=cut, is_tried=True)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,
        overwrite: bool = False,
        **options: Any,
    ) -> None:
        """Write the vocabulary to a file, or to a folder if the format is one.

        If the training is known, its report is written next to the vocabulary (`report_path`),
        where `byteweld.load` finds it.

        Args:
            path: the file or folder to write.
            format: one of `byteweld.FORMATS`, or "nanochat". Default: what the name implies:
                `.json`, `tekken.json`, `.tiktoken` or `.bpe1`.
            overwrite: whether to replace existing files.
            **options: those of the format.

        Raises:
            UnsupportedError: if the format cannot hold the vocabulary. The format "ck" has no field
                for a pattern: it accepts "gpt2", "ck" and "ck-runtime", and loads with the last,
                the one of ck's runtime.
            FileExistsError: if a file exists, unless `overwrite`.

        Examples:
            >>> import os, tempfile
            >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=265)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     tok.save(f"{folder}/tokenizer.json")
            ...     sorted(os.listdir(folder)), byteweld.load(f"{folder}/tokenizer.json") == tok
            (['tokenizer.json', 'tokenizer.training.json'], True)
        """
        from byteweld import formats

        beside = self._report_beside(path, format, overwrite)
        formats.save(self._vocab, path, format, overwrite, beside, **options)

    def _report_beside(
        self, path: str | os.PathLike[str], format: str | None, overwrite: bool
    ) -> dict[Path, bytes]:
        """Return the training report to write, by its path; raise if it cannot be written."""
        training = self.training
        if training is None:
            return {}
        from byteweld import formats
        from byteweld._files import check_file
        from byteweld.training import load_report, report_path

        target = f"{os.fspath(path)}{os.sep}" if formats.is_folder(format) else path
        held = formats.held(self._vocab, path, format)
        if not overwrite and load_report(target, held) is not None:
            return {}  # the same vocabulary in another format shares its report
        report = report_path(target)
        if not Path(path).is_file():  # formats.save refuses an existing file
            check_file(report, overwrite=overwrite)
        return {report: training.encoding_with(held.pattern).render(held)}

    def __len__(self) -> int:
        return len(self._vocab)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tokenizer):
            return NotImplemented
        return self._vocab == other._vocab

    def __hash__(self) -> int:
        return hash(self._vocab)

    def __reduce__(self) -> tuple[object, ...]:
        make = partial(Tokenizer, name=self._name, training=self.training)
        return make, (self._vocab,)

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

    def _around(
        self, add_bos: bool, add_eos: bool, template: bool
    ) -> tuple[Sequence[int], Sequence[int]]:
        """Return the ids to add before and after those of a text."""
        if template and (add_bos or add_eos):
            raise ValueError("template adds its own ids; pass it without add_bos and add_eos")
        if template:
            return self._vocab.template
        return ([self._role("bos")] if add_bos else [], [self._role("eos")] if add_eos else [])

    def _role(self, role: str) -> int:
        token_id = self._vocab.roles.get(role)
        if token_id is None:
            raise UnsupportedError(
                f"the vocabulary has no {role} token, so add_{role}=True cannot add it"
            )
        return token_id


def _refuse_collision(text: str, token_id: int, tokens: Mapping[int, bytes]) -> None:
    """Raise if the id already belongs to another token, which would be overwritten."""
    token = _special_bytes(text)
    if tokens.get(token_id, token) != token:
        raise VocabularyError(
            f"special token {text!r} has id {token_id}, which is the token {tokens[token_id]!r}"
        )


def _special_bytes(text: str) -> bytes:
    check_text("a special token", text, VocabularyError)
    return text.encode()


def _limit(limit: int) -> int:
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise TypeError(f"limit is {limit!r}; it must be an integer")
    if limit < 0:
        raise ValueError(f"limit is {limit}; it must be at least 0")
    return min(limit, _NO_LIMIT)
