"""Every case by name, `operation/subject/input`: a function from n to the call that is measured."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import byteweld
from byteweld import RECIPES, Tokenizer, Vocabulary, formats
from byteweld.counts import Counts
from byteweld.evaluation import unreachable
from byteweld.training.report import Training, report_path
from tests.harness.cost import subjects
from tests.harness.cost.measure import Run
from tests.harness.cost.texts import FAMILIES as TEXTS
from tests.harness.cost.texts import Text, text
from tests.harness.files.bases import compressors, saved
from tests.helpers.streams import decoded, pieces, streamed

Case = Callable[[int, Path], Run]  # a size, and a folder that is empty at first

PLAIN: dict[str, Any] = {"disallowed_special": ()}
ALL: dict[str, Any] = {"allowed_special": "all"}

# ---------------------------------------------------------------------- operations on text


def _spans(tok: Tokenizer, whole: Text) -> None:
    tok.encode_spans([(piece, number % 2 == 0) for number, piece in enumerate(pieces(whole, 20))])


ON_TEXT: dict[str, Callable[[Tokenizer, Text], object]] = {
    "encode": lambda tok, s: tok.encode(s, **PLAIN),
    "encode-all": lambda tok, s: tok.encode(s, **ALL),
    "encode-strict": lambda tok, s: tok.encode(s),
    "encode_ordinary": lambda tok, s: tok.encode_ordinary(s),
    "encode_to_numpy": lambda tok, s: tok.encode_to_numpy(s, **PLAIN),
    "encode_batch-short": lambda tok, s: tok.encode_batch(pieces(s, 12), num_threads=1, **PLAIN),
    "encode_batch-long": lambda tok, s: tok.encode_batch([s, s], num_threads=2, **ALL),
    "encode_ragged": lambda tok, s: tok.encode_ragged([s], num_threads=3, **PLAIN),
    "encode_with_offsets": lambda tok, s: tok.encode_with_offsets(s, **PLAIN),
    "encode_with_offsets-characters": lambda tok, s: tok.encode_with_offsets(
        s, unit="characters", **PLAIN
    ),
    "encode_spans": _spans,
    "encode_spans-untrusted": lambda tok, s: tok.encode_spans([(s, False)]),
    "encode_spans-trusted": lambda tok, s: tok.encode_spans([(s, True)]),
    "encode_stream-1": lambda tok, s: list(streamed(tok, pieces(s, 1), **PLAIN)),
    "encode_stream-16": lambda tok, s: list(streamed(tok, pieces(s, 16), **PLAIN)),
    "encode_stream-1000": lambda tok, s: list(streamed(tok, pieces(s, 1000), **PLAIN)),
    "encode_stream-blocks": lambda tok, s: list(
        streamed(tok, pieces(s, 50), block_bytes=1 << 16, **PLAIN)
    ),
    "count": lambda tok, s: tok.count(s, **PLAIN),
    "count to a limit": lambda tok, s: tok.count(s, limit=len(s) // 3, **PLAIN),
    "truncate": lambda tok, s: tok.truncate(s, len(s) // 3, **PLAIN),
    "pretokenize": lambda tok, s: tok.pretokenize(s),
    "show": lambda tok, s: str(tok.show(s, **PLAIN)),
    "show-html": lambda tok, s: tok.show(s, **PLAIN)._repr_html_(),
}
# What a text is encoded for first; only the rest is measured.
ON_IDS: dict[str, Callable[[Tokenizer, list[int]], object]] = {
    "decode": lambda tok, ids: tok.decode(ids),
    "decode_bytes": lambda tok, ids: tok.decode_bytes(ids),
    "decode_tokens_bytes": lambda tok, ids: tok.decode_tokens_bytes(ids),
    "decode_stream": decoded,
}


def _on_text(operation: str, subject: str, family: str, n: int, folder: Path) -> Run:
    tok = Tokenizer(subjects.FIXED[subject]())  # with empty caches
    given = text(family, n)
    return lambda: ON_TEXT[operation](tok, given)


def _on_ids(operation: str, subject: str, family: str, n: int, folder: Path) -> Run:
    tok = subjects.tokenizer(subject)
    ids = tok.encode(text(family, n), **PLAIN)
    return lambda: ON_IDS[operation](tok, ids)


# ---------------------------------------------------------------------- vocabularies that grow


TARGETS = {"huggingface": "tokenizer.json", "tekken": "tekken.json", "tiktoken": "r.tiktoken"}


def _once(folder: Path, n: int, name: str, write: Callable[[Path], object]) -> Path:
    """The path of a file for size n, written when it is first needed."""
    target = folder / str(n) / name
    if not target.parent.is_dir():
        target.parent.mkdir()
        write(target)
    return target


def _load(make: Callable[[int], Vocabulary], format: str, n: int, folder: Path) -> Run:
    save = lambda target: formats.save(make(n), target, format=format)  # noqa: E731
    target = _once(folder, n, TARGETS.get(format, format), save)
    return lambda: byteweld.load(target, format=format)


def _save(make: Callable[[int], Vocabulary], format: str) -> Case:
    make = lru_cache(maxsize=3)(make)

    def prepare(n: int, folder: Path) -> Run:
        target, vocab = folder / TARGETS.get(format, format), make(n)
        return lambda: formats.save(vocab, target, format=format, overwrite=True)

    return prepare


ON_VOCABULARY: dict[str, Callable[[Vocabulary], object]] = {
    "build": lambda vocab: Tokenizer(vocab),
    "make": lambda vocab: Vocabulary(vocab.tokens, vocab.merge_ids, **vocab.traits()),
    "fingerprint": lambda vocab: vocab.fingerprint,
    "pickle": lambda vocab: pickle.loads(pickle.dumps(vocab)),
    "html": lambda vocab: Tokenizer(vocab)._repr_html_(),
    "extras": lambda vocab: vocab.extras,
    "unreachable": lambda vocab: list(unreachable(Tokenizer(vocab))),
    "encode-own": lambda vocab: Tokenizer(vocab).encode("ab" * 100 + "x" * 100, **ALL),
    "recover": lambda vocab: Tokenizer.from_ranks(
        {token: i for i, token in vocab.ordinary()}, pattern=None
    ),
}


def _on_vocabulary(operation: str, make: Callable[[int], Vocabulary]) -> Case:
    make = lru_cache(maxsize=3)(make)

    def prepare(n: int, folder: Path) -> Run:
        vocab = pickle.loads(pickle.dumps(make(n)))  # without what it has cached
        return lambda: ON_VOCABULARY[operation](vocab)

    return prepare


# ---------------------------------------------------------------------- files by hand


@cache
def _document() -> str:
    vocab = subjects.made([(97, 98), (256, 97)], "huggingface", None)
    return saved(Tokenizer(vocab), "huggingface", "t.json")["t.json"].decode()


def _pipeline(**changes: Callable[[int], Any]) -> Callable[[int], bytes]:
    def write(n: int) -> bytes:
        document = json.loads(_document())
        for key, make in changes.items():
            part, _, inner = key.partition("__")
            (document[part] if inner else document)[inner or part] = make(n)
        return json.dumps(document).encode()

    return write


def _raw(text_of: Callable[[int], str]) -> Callable[[int], bytes]:
    """A file whose normalizer is any JSON text."""
    return lambda n: (
        _document().replace('"normalizer": null', f'"normalizer": {text_of(n)}').encode()
    )


def _replace(pattern: str, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}


def _split(pattern: str) -> dict[str, Any]:
    step = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": False,
    }
    return {"type": "Sequence", "pretokenizers": [step, level]}


def _steps(pattern: str, count: int) -> dict[str, Any]:
    made = _split(pattern)
    made["pretokenizers"] = made["pretokenizers"][:1] * count + made["pretokenizers"][1:]
    return made


def _letters(n: int) -> dict[str, int]:
    """Tokens outside the byte letters."""
    base = json.loads(_document())["model"]["vocab"]
    return base | {f"日{at}": 300 + at for at in range(n // 12)}


def _template(n: int) -> dict[str, Any]:
    pieces: list[Any] = [{"SpecialToken": {"id": "a", "type_id": 0}}] * (n // 40)
    return {
        "type": "TemplateProcessing",
        "single": [*pieces, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [],
        "special_tokens": {"a": {"id": "a", "ids": [97], "tokens": ["a"]}},
    }


JSON_FILES: dict[str, Callable[[int], bytes]] = {
    "long-content": _pipeline(normalizer=lambda n: _replace("q", "b" * n)),
    "many-replaces": _pipeline(
        normalizer=lambda n: {"type": "Sequence", "normalizers": [_replace("q", "b")] * (n // 60)}
    ),
    "many-forms": _pipeline(
        normalizer=lambda n: {"type": "Sequence", "normalizers": [{"type": "NFC"}] * (n // 16)}
    ),
    "nested-sequences": _raw(
        lambda n: '{"type":"Sequence","normalizers":[' * (n // 36) + "]}" * (n // 36)
    ),
    "many-splits": _pipeline(pre_tokenizer=lambda n: _steps("x", n // 90)),
    "many-alternatives": _pipeline(
        pre_tokenizer=lambda n: _split("|".join(f"a{at}" for at in range(n // 6)))
    ),
    "long-literal": _pipeline(pre_tokenizer=lambda n: _split("a" * n)),
    "long-class": _pipeline(
        pre_tokenizer=lambda n: _split(
            "[" + "".join(chr(0x4E00 + at % 20_000) for at in range(n // 3)) + "]"
        )
    ),
    "many-groups": _pipeline(pre_tokenizer=lambda n: _split("(?:a|b)" * (n // 7))),
    "nested-groups": _pipeline(
        pre_tokenizer=lambda n: _split("(?:" * (n // 4) + "a" + ")" * (n // 4))
    ),
    "many-lookarounds": _pipeline(pre_tokenizer=lambda n: _split("(?=a)" * (n // 5) + "a")),
    "many-optionals": _pipeline(pre_tokenizer=lambda n: _split("a?" * (n // 2))),
    "long-template": _pipeline(post_processor=_template),
    "foreign-tokens": _pipeline(model__vocab=_letters),
    "open-brackets": lambda n: b"[" * n,
    "open-braces": lambda n: b'{"model":' * (n // 9),
    "nested-value": _raw(lambda n: "[" * (n // 2) + "]" * (n // 2)),
    "long-number": _raw(lambda n: "1" * n),
    "long-string": _raw(lambda n: '"' + "a" * n + '"'),
    "escapes": _raw(lambda n: '"' + "\\u0061" * (n // 6) + '"'),
    "surrogate-escapes": _raw(lambda n: '"' + "\\ud83d\\ude00" * (n // 12) + '"'),
    "backslashes": _raw(lambda n: '"' + "\\\\" * (n // 2) + '"'),
    "open-string": lambda n: b'{"version": "' + b"a" * n,
    "spaces": lambda n: b" " * n + b"{",
    "many-keys": _raw(lambda n: "{" + ",".join(f'"{at}":1' for at in range(n // 8)) + "}"),
    "repeated-keys": _raw(lambda n: "{" + ",".join('"a":1' for _ in range(n // 6)) + "}"),
    "not-utf8": lambda n: b'{"version": "' + b"a" * n + b"\xff",
    "colons": lambda n: b'{"a":' + b":" * n,
    "quotes": lambda n: b'{"a":' + b'""' * (n // 2),
}


def _file(name: str, make: Callable[[int], bytes], n: int, folder: Path, **options: Any) -> Run:
    target = _once(folder, n, name, lambda path: path.write_bytes(make(n)))

    def run() -> object:
        tok = byteweld.load(target, **options)
        return tok.encode("ab abba " * 20, **PLAIN)

    return run


RANK_FILES: dict[str, Callable[[int], bytes]] = {
    "blank-lines": lambda n: b"\n" * n,
    "one-line": lambda n: b"YQ" * (n // 2),
    "spaces": lambda n: b"YQ== " + b" " * n,
    "digits": lambda n: b"YQ== " + b"1" * n,
    "same-line": lambda n: b"YQ== 1\n" * (n // 7),
    "bad-end": lambda n: b"".join(b"YWI%d= %d\n" % (at % 10, at) for at in range(n // 10)),
}

# ---------------------------------------------------------------------- training, counts, corpora


def _train(recipe: str, family: str, size: int | None, n: int, folder: Path) -> Run:
    whole = text(family, n)
    if recipe == "ck-ascii":
        raw = whole if isinstance(whole, bytes) else whole.encode("ascii", "ignore")
        whole = bytes(byte for byte in raw if byte in b"\t\n\r" or 32 <= byte < 127)
    least = RECIPES[recipe].minimum_size
    vocab_size = least + (size if size is not None else n // 40 + 1)
    # Without a limit, merges that occur once would make tokens of n bytes, n^2 in all.
    longest = 60 if size is None else None
    return lambda: byteweld.train(
        documents=[whole],
        vocab_size=vocab_size,
        recipe=recipe,
        num_threads=1,
        max_token_bytes=longest,
    )


def _count(family: str, pattern: str | None, n: int, folder: Path) -> Run:
    given = [text(family, n)]
    return lambda: byteweld.count(documents=given, pattern=pattern, num_threads=1)


@lru_cache(maxsize=8)
def _counts(family: str, n: int) -> Counts:
    return byteweld.count(documents=[text(family, n)], pattern="[a-z]+|.", num_threads=1)


ON_COUNTS: dict[str, Callable[[Counts, Path], object]] = {
    "add": lambda counts, folder: counts + counts,
    "prune": lambda counts, folder: counts.prune(2),
    "items": lambda counts, folder: counts.items(),
    "most_common": lambda counts, folder: counts.most_common(10),
    "pickle": lambda counts, folder: pickle.loads(pickle.dumps(counts)),
    "save": lambda counts, folder: counts.save(folder / "counts", overwrite=True),
}


def _on_counts(operation: str, family: str, n: int, folder: Path) -> Run:
    counts = _counts(family, n)
    return lambda: ON_COUNTS[operation](counts, folder)


def _load_counts(family: str, n: int, folder: Path) -> Run:
    target = _once(folder, n, "counts", _counts(family, n).save)
    return lambda: Counts.load(target)


@lru_cache(maxsize=3)
def _reported(n: int) -> Tokenizer:
    return byteweld.train(documents=[text("words", 8 * n)], vocab_size=256 + n // 40 + 1)


def _load_report(n: int, folder: Path) -> Run:
    tok = _reported(n)
    target = _once(folder, n, "t.json", tok.save)
    return lambda: Training.load(report_path(target), tok.vocab)


def _line(make: Callable[[int], str]) -> Callable[[int], bytes]:
    return lambda n: make(n).encode() + b"\n"


RECORDS: dict[str, Callable[[int], bytes]] = {
    "long-text": _line(lambda n: json.dumps({"text": "ab " * (n // 3)})),
    "escapes": _line(lambda n: '{"text": "' + "\\u0061" * (n // 6) + '"}'),
    "newline-escapes": _line(lambda n: '{"text": "' + "\\n" * (n // 2) + '"}'),
    "emoji-escapes": _line(lambda n: '{"text": "' + "\\ud83d\\ude00" * (n // 12) + '"}'),
    "long-other": _line(lambda n: '{"a": "' + "x" * n + '", "text": "b"}'),
    "many-keys": _line(
        lambda n: "{" + "".join(f'"k{at}": 1, ' for at in range(n // 10)) + '"text": "b"}'
    ),
    "same-keys": _line(lambda n: "{" + '"k": 1, ' * (n // 8) + '"text": "b"}'),
    "deep": _line(lambda n: '{"a": ' + "[" * (n // 2) + "]" * (n // 2) + ', "text": "b"}'),
    "open": _line(lambda n: '{"a": ' + "[" * n),
    "numbers": _line(lambda n: '{"a": [' + "1," * (n // 2) + '1], "text": "b"}'),
    "long-number": _line(lambda n: '{"a": ' + "1" * n + ', "text": "b"}'),
    "exponent": _line(lambda n: '{"a": 1e' + "1" * n + ', "text": "b"}'),
    "spaces": _line(lambda n: '{"text":' + " " * n + '"b"}'),
    "many-lines": lambda n: b'{"text": "ab"}\n' * (n // 15),
    "blank-lines": lambda n: b"\n" * n,
    "bad-lines": lambda n: b"{\n" * (n // 2),
    "no-newline": lambda n: b'{"text": "' + b"a" * n,
    "torn": lambda n: b'{"text": "' + b"\xff" * n + b'"}\n',
}


def _corpus(
    name: str, make: Callable[[int], bytes], on_error: str, n: int, folder: Path, **options: Any
) -> Run:
    target = _once(folder, n, name, lambda path: path.write_bytes(make(n)))
    return lambda: byteweld.count(
        target, pattern="[a-z]+|.", num_threads=1, on_error=on_error, **options
    )


ARCHIVES: dict[str, Callable[[int, Callable[[bytes], bytes]], bytes]] = {
    "zeros": lambda n, pack: pack(b"a" * n),
    "words": lambda n, pack: pack(str(text("words", n)).encode()),
    "lines": lambda n, pack: pack(b"a\n" * (n // 2)),
    "members": lambda n, pack: pack(b"the cat ") * (n // 40),
    "empty-members": lambda n, pack: pack(b"") * (n // 30),
    "trailing": lambda n, pack: pack(b"the cat") + b"\0" * n,
    "garbage": lambda n, pack: pack(b"the cat") + b"x" * n,
    "torn": lambda n, pack: pack(str(text("words", n)).encode())[:-7],
    "nested": lambda n, pack: pack(pack(b"a" * n)),
}

# ---------------------------------------------------------------------- the table


def _every() -> Iterator[tuple[str, Case]]:
    for family, pairs in subjects.FAMILIES.items():
        for format in formats.FORMATS:
            make = lambda n, f=format, p=pairs: subjects.made(p(n), f)  # noqa: E731
            yield f"load/{format}/{family}", partial(_load, make, format)
            yield f"save/{format}/{family}", _save(make, format)
        for operation in ON_VOCABULARY:
            make = lambda n, p=pairs: subjects.made(p(n), "huggingface")  # noqa: E731
            yield f"{operation}/vocabulary/{family}", _on_vocabulary(operation, make)
    for family, make in subjects.ADDED.items():
        for format in ("huggingface", "tiktoken", "gpt2"):
            yield f"load/{format}/{family}", partial(_load, make, format)
        for operation in ON_VOCABULARY:
            yield f"{operation}/vocabulary/{family}", _on_vocabulary(operation, make)
    for name, write in JSON_FILES.items():
        yield f"load/json/{name}", partial(_file, "t.json", write, format="huggingface")
        yield f"recognize/json/{name}", partial(_file, "t.json", write)
    for name, write in RANK_FILES.items():
        options = {"format": "tiktoken", "pattern": None, "special_tokens": {}}
        yield f"load/ranks/{name}", partial(_file, "r.tiktoken", write, **options)
    for recipe in RECIPES:
        for family in TEXTS:
            yield f"train-100/{recipe}/{family}", partial(_train, recipe, family, 100)
            yield f"train-n/{recipe}/{family}", partial(_train, recipe, family, None)
    for family in TEXTS:
        for name in ("gpt2", "o200k", None):
            yield f"count/{name}/{family}", partial(_count, family, name)
    for family in ("words", "prose", "random-letters", "growing-runs", "languages"):
        yield f"counts/load/{family}", partial(_load_counts, family)
        for operation in ON_COUNTS:
            yield f"counts/{operation}/{family}", partial(_on_counts, operation, family)
    yield "load/report/words", _load_report
    for name, write in RECORDS.items():
        for policy in ("fail", "skip", "replace"):
            yield f"jsonl-{policy}/-/{name}", partial(_corpus, "a.jsonl", write, policy)
    for suffix, pack in compressors().items():
        for name, content in ARCHIVES.items():
            make_bytes = lambda n, c=content, p=pack: c(n, p)  # noqa: E731
            yield (
                f"archive{suffix}/-/{name}",
                partial(_corpus, "a.txt" + suffix, make_bytes, "fail"),
            )
        yield (
            f"archive{suffix}/-/records",
            partial(
                _corpus, "a.jsonl" + suffix, lambda n, p=pack: p(RECORDS["many-lines"](n)), "skip"
            ),
        )
    yield (
        "separator/-/many",
        partial(_corpus, "a.txt", lambda n: b"a<|e|>" * (n // 6), "fail", separator="<|e|>"),
    )
    yield (
        "separator/-/starts",
        partial(_corpus, "a.txt", lambda n: b"<" * n, "fail", separator="<" * 50 + "x"),
    )
    yield "lines/-/many", partial(_corpus, "a.txt", lambda n: b"a\n" * (n // 2), "fail", lines=True)


@cache
def others() -> dict[str, Case]:
    """Every case that is not an operation on text."""
    return dict(_every())


def on_text(rng: Random) -> Iterator[str]:
    """Names of cases that encode or decode, without end."""
    operations, named, families = [*ON_TEXT, *ON_IDS], list(subjects.FIXED), list(TEXTS)
    while True:
        yield "/".join(map(rng.choice, (operations, named, families)))


def every_name() -> Iterator[str]:
    yield from others()
    for parts in product([*ON_TEXT, *ON_IDS], subjects.FIXED, TEXTS):
        yield "/".join(parts)


def find(name: str) -> Case:
    """The case of a name; KeyError if there is none."""
    if name in others():
        return others()[name]
    operation, subject, family = name.split("/")
    if subject not in subjects.FIXED or family not in TEXTS:
        raise KeyError(name)
    make = _on_ids if operation in ON_IDS else _on_text
    return partial(make, operation, subject, family)
