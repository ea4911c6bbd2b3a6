"""What is done with a vocabulary that loads, and which errors a file may cause."""

from __future__ import annotations

import contextlib
import itertools
import json
import pickle
import shutil
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import byteweld
from byteweld import ByteweldError, Tokenizer, Vocabulary, formats
from byteweld.errors import NativeError
from byteweld.evaluation import pattern_engine, unreachable
from tests.helpers.plain_readers import plain_readers
from tests.helpers.strategies import NASTY
from tests.helpers.streams import decoded, pieces, streamed

TEXTS: tuple[str | bytes, ...] = (
    "The cat's 12 mats;\n\n  naïve café \t x=1",
    "aabab ab  the the\r\n'ſ漢字 e\u0301\u0301 👍🏽<|end|><s> ab",
    b"ab\xff\xfe\x80 the \xc3\xe2\x82 a\x00",
)
MORE_TEXTS: tuple[str | bytes, ...] = tuple(text for text in NASTY if len(text) <= 2000)[::12]


class Disagreement(Exception):
    """Two ways that must give the same result do not."""


def is_allowed(error: BaseException) -> bool:
    """Whether a file may cause this error: ours, or Python's own about files and values."""
    if isinstance(error, ByteweldError):
        return not isinstance(error, NativeError)
    if isinstance(error, UnicodeError | json.JSONDecodeError):
        return False
    return isinstance(error, OSError) or type(error) is ValueError


def signature(error: BaseException) -> str:
    """Where an error came from, without the values in its message."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/byteweld/" in frame.filename] or frames
    place = f"{Path(ours[-1].filename).name}:{ours[-1].name}" if ours else ""
    message = str(error)[:60] if isinstance(error, Disagreement) else ""
    return f"{type(error).__name__} in {place} {message}"


def attempt(call: Callable[[], Any]) -> Any:
    """The result of a call; the type of the error, if that is allowed."""
    try:
        return call()
    except Exception as error:
        if not is_allowed(error):
            raise
        return type(error)


def same(what: str, one: Any, other: Any) -> None:
    if one != other:
        raise Disagreement(f"{what}: {str(one)[:200]} and {str(other)[:200]}")


# ---------------------------------------------------------------------- a tokenizer


def use(tok: Tokenizer, folder: Path, *, number: int = 0, thorough: bool = False) -> None:
    """Encode, decode and count; if `thorough`, do everything a tokenizer can."""
    vocab = tok.vocab
    is_lossless = not set(vocab.extras) - {"template"} and vocab.alphabet == "bytes"
    texts = TEXTS + MORE_TEXTS if thorough else TEXTS
    for text in texts:
        ids = attempt(lambda text=text: tok.encode(text, disallowed_special=()))
        if isinstance(ids, type):
            continue
        raw = tok.decode_bytes(ids)
        if is_lossless and isinstance(text, bytes):
            same("decode", raw, text)
        everything = attempt(lambda text=text: tok.encode(text, allowed_special="all"))
        if not isinstance(everything, type):
            tok.decode(everything)
        if thorough:
            _use_thoroughly(tok, text, ids)
    _ = repr(tok), len(tok), tok.n_vocab
    if thorough:
        _use_whole(tok)
        _convert(tok, folder, number)


def _use_thoroughly(tok: Tokenizer, text: str | bytes, ids: list[int]) -> None:
    plain: dict[str, Any] = {"disallowed_special": ()}
    same("count", tok.count(text, **plain), len(ids))
    same("batch", tok.encode_batch([text, text], num_threads=2, **plain), [ids, ids])
    same("ordinary", attempt(lambda: tok.encode_ordinary(text)), ids)
    same("numpy", tok.encode_to_numpy(text, **plain).tolist(), ids)
    same("offsets", tok.encode_with_offsets(text, **plain)[0], ids)
    same("count to a limit", tok.count(text, limit=len(ids), **plain), len(ids))
    attempt(lambda: tok.encode_spans([(text, False), ("<|end|>", True)]))
    attempt(lambda: tok.encode(text))
    attempt(lambda: tok.truncate(text, 3, **plain))
    attempt(lambda: tok.encode(text, template=True, **plain))
    attempt(lambda: tok.pretokenize(text))
    attempt(lambda: str(tok.show(text, **plain)))
    with contextlib.suppress(UnicodeDecodeError):  # as tiktoken's does
        tok.decode_with_offsets(ids)
    same("stream", list(streamed(tok, pieces(text, 7), **plain)), ids)
    same("decode_stream", decoded(tok, ids), tok.decode(ids))


def _use_whole(tok: Tokenizer) -> None:
    vocab = tok.vocab
    again = pickle.loads(pickle.dumps(tok))
    same("pickle", again.vocab, vocab)
    same("pickle", again.vocab.fingerprint, vocab.fingerprint)
    _ = tok.max_token_value, tok.special_tokens_set, pattern_engine(tok), tok.training, tok.name
    _ = tok._repr_html_(), vocab.extras, vocab.traits(), repr(vocab), tok.token_byte_values()
    attempt(lambda: list(unreachable(tok)))
    for token_id in itertools.islice(vocab.tokens, 0, None, 50):
        same("token", tok.decode_single_token_bytes(token_id), vocab.tokens[token_id])
    attempt(lambda: tok.decode([2**32 - 1]))
    attempt(lambda: tok.decode([tok.max_token_value + 1]))


def _convert(tok: Tokenizer, folder: Path, number: int) -> None:
    """Save in one of the formats, and load it again."""
    names = list(formats.FORMATS)
    name = names[number % len(names)]
    folder.mkdir(exist_ok=True)
    target = folder / {"huggingface": "tokenizer.json", "tekken": "tekken.json"}.get(name, name)
    try:
        if attempt(lambda: tok.save(target, format=name, overwrite=True)) is not None:
            return
        again = byteweld.load(target, format=name)
        same(f"tokens saved as {name}", again.vocab.tokens, tok.vocab.tokens)
        same(f"added tokens saved as {name}", again.vocab.added_tokens, tok.vocab.added_tokens)
        for text in TEXTS + MORE_TEXTS:  # merges, ranks and ignore_merges may say the same
            found, right = (
                attempt(lambda made=made, text=text: made.encode(text, disallowed_special=()))
                for made in (again, tok)
            )
            same(f"ids saved as {name}", found, right)
    finally:
        shutil.rmtree(folder)


# ---------------------------------------------------------------------- fast readers


def content(vocab: Vocabulary) -> tuple[object, ...]:
    """Everything in a vocabulary."""
    return (vocab.traits(), dict(vocab.tokens), list(vocab.merge_ids), vocab.fingerprint)


def check_plain_reader(vocab: Vocabulary, path: Path, format: str, options: Any) -> None:
    """Reading without a table gives the same vocabulary."""
    if vocab._table is None:
        return
    try:
        with plain_readers():
            plain = formats.load(path, format=format, **options)
    except ByteweldError as error:
        message = getattr(error, "message", str(error))
        raise Disagreement(f"refused only without a table: {message}") from error
    same("fast and plain reader", content(vocab), content(plain))
