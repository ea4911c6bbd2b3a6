"""Rank files: ids are ranks, nothing is guessed, errors name the line, tiktoken agrees on ids."""

from __future__ import annotations

import base64
import gzip
import json
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byteweld import formats, patterns, reference
from byteweld.errors import FormatError, PatternError, UnsupportedError
from byteweld.formats import tiktoken_ranks as ranks
from byteweld.vocab import Merge, Vocabulary
from tests.helpers.strategies import examples

load = partial(formats.load, format="tiktoken")
save = partial(formats.save, format="tiktoken")

BYTES = [bytes([byte]) for byte in range(256)]
TEXTS = ["", " ", "abab ab\n", "the then there", "aaaaaaaaaaa", "été 日本語 🦊", "x<|eot|>ab"]


def recover_slowly(tokens: list[tuple[int, bytes]]) -> list[tuple[int, int, int]] | None:
    """Do what the engine's `recover_merges` does, in the simplest way."""
    ids = {token: token_id for token_id, token in tokens}
    merges = []
    for token_id, token in tokens:
        if len(token) == 1:
            continue
        parts = [token[n : n + 1] for n in range(len(token))]
        while len(parts) > 2:
            joined = [ids.get(a + b, token_id) for a, b in pairwise(parts)]
            best = min(range(len(joined)), key=joined.__getitem__)
            if joined[best] >= token_id:
                return None
            parts[best : best + 2] = [parts[best] + parts[best + 1]]
        if not all(len(part) == 1 or ids.get(part, token_id) < token_id for part in parts):
            return None
        merges.append((ids[parts[0]], ids[parts[1]], token_id))
    return merges


def lines(tokens: list[bytes], first: int = 0) -> bytes:
    return b"".join(
        base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens, first)
    )


def write(folder: Path, data: bytes) -> Path:
    path = folder / "ranks.tiktoken"
    path.write_bytes(data)
    return path


def peer_of(path: Path, pattern: str | None, special_tokens: dict[str, int]) -> Any:
    tiktoken = pytest.importorskip("tiktoken")
    pairs = map(bytes.split, path.read_bytes().splitlines())
    table = {base64.b64decode(token): int(rank) for token, rank in pairs}
    return tiktoken.Encoding(
        "peer", pat_str=pattern or "(?s).+", mergeable_ranks=table, special_tokens=special_tokens
    )


def same_ids(vocab: Vocabulary, peer: Any, text: str) -> None:
    ours = reference.encode(vocab, text, allowed_special="all")
    assert peer.encode(text, allowed_special="all") == ours, repr(text)


# ---------------------------------------------------------------------- reading


def test_a_file_whose_ranks_are_a_merge_list_gives_the_merge_list(tmp_path: Path) -> None:
    path = write(tmp_path, lines([*BYTES, b"ab", b" ab", b"abab"]))
    vocab = load(path, pattern="gpt2", special_tokens={"<|eot|>": 300})
    assert vocab.ranking == "merges"
    assert vocab.merge_ids == (Merge(97, 98, 256), Merge(32, 256, 257), Merge(256, 256, 258))
    assert vocab.pattern == patterns.GPT2
    assert vocab.special_tokens == {"<|eot|>": 300}
    for text in TEXTS:
        same_ids(vocab, peer_of(path, patterns.GPT2, {"<|eot|>": 300}), text)


def test_a_file_whose_ranks_are_not_a_merge_list_is_ranked_by_id(tmp_path: Path) -> None:
    path = write(tmp_path, lines([*BYTES, b"abc", b"ab", b"xyzxyz"]))
    vocab = load(path, pattern=None, special_tokens={})
    assert (vocab.ranking, vocab.merge_ids) == ("ranks", ())
    for text in ["abc", "ab", "xyzxyz", "xyzxyzxyz", "ababcab"]:
        same_ids(vocab, peer_of(path, None, {}), text)


@examples(60)
@given(
    tokens=st.lists(
        st.binary(min_size=2, max_size=5).map(lambda b: bytes(97 + c % 3 for c in b)),
        unique=True,
        max_size=20,
    ),
    texts=st.lists(st.text("abc ", max_size=40), min_size=3, max_size=6),
    in_order=st.booleans(),
)
def test_any_rank_file_has_the_ids_of_tiktoken(
    tmp_path: Path, tokens: list[bytes], texts: list[str], in_order: bool
) -> None:
    tokens = sorted(tokens, key=len) if in_order else tokens
    path = write(tmp_path, lines([*BYTES, *tokens]))
    vocab = load(path, pattern="o200k", special_tokens={})
    peer = peer_of(path, patterns.O200K, {})
    for text in [*texts, *(token.decode() for token in tokens)]:
        same_ids(vocab, peer, text)
    save(vocab, path, overwrite=True)
    assert path.read_bytes() == lines([*BYTES, *tokens])
    assert load(path) == vocab


@examples(100)
@given(
    tokens=st.lists(st.text("ab", min_size=2, max_size=6), unique=True, max_size=12),
    in_order=st.booleans(),
)
def test_the_engine_recovers_merges_as_the_plain_function_does(
    tokens: list[str], in_order: bool
) -> None:
    from byteweld import _native

    tokens = sorted(tokens, key=len) if in_order else tokens
    table = list(enumerate([*BYTES, *(token.encode() for token in tokens)]))
    theirs = _native.recover_merges(table)
    ours = recover_slowly(table)
    assert (theirs and list(map(tuple, theirs))) == ours


def test_ranks_may_have_gaps_and_start_anywhere(tmp_path: Path) -> None:
    path = write(tmp_path, lines(BYTES, 5) + b"YWI= 300\n" + b"YWJi 900")
    vocab = load(path, pattern=None, special_tokens={"<s>": 0})
    assert vocab.tokens[300] == b"ab"
    assert vocab.merge_ids == (Merge(102, 103, 300), Merge(300, 103, 900))


def test_without_pattern_and_special_tokens_the_error_says_how_to_give_them(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, lines(BYTES))
    with pytest.raises(FormatError, match=r"pass pattern= .* and special_tokens="):
        load(path)
    with pytest.raises(FormatError, match="pass special_tokens="):
        load(path, pattern=None)
    with pytest.raises(FormatError, match="pass pattern="):
        load(path, special_tokens={})
    with pytest.raises(PatternError, match="did you mean 'gpt2'"):
        load(path, pattern="gpt_2", special_tokens={})


def test_options_of_wrong_types_are_type_errors(tmp_path: Path) -> None:
    path = write(tmp_path, lines(BYTES))
    wrong: list[dict[str, Any]] = [
        {"pattern": 3, "special_tokens": {}},
        {"pattern": None, "special_tokens": ["<s>"]},
        {"pattern": None, "special_tokens": {"<s>": "256"}},
        {"pattern": None, "special_tokens": {}, "roles": ["bos"]},
    ]
    for options in wrong:
        with pytest.raises(TypeError, match="expected"):
            load(path, **options)


def test_a_special_token_with_the_id_of_another_token_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, lines(BYTES))
    with pytest.raises(FormatError, match=r"'<s>' has id 97, whose bytes are b'a'"):
        load(path, pattern=None, special_tokens={"<s>": 97})
    path = write(
        tmp_path, lines([*BYTES, b"abc"])
    )  # not a merge list, so special tokens cannot be learned
    with pytest.raises(UnsupportedError, match="'abc' is also the token of rank 256"):
        load(path, pattern=None, special_tokens={"abc": 256})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"hello", "expected base64, a space and a rank, found b'hello'"),
        (b"", "expected base64, a space and a rank, found b''"),
        (b"YWI=  257", "expected base64"),
        (b"YWI= 257 ", "expected base64"),
        (b"YWI= 257\r", "expected base64"),
        (b"YWI= 0257", "expected base64"),
        (b"YWI= -1", "expected base64"),
        (b"YWI 257", "expected base64"),
        (b"YW=I 257", "expected base64"),
        (b"YWJ= 257", "expected base64"),  # not how b"ab" is written
        ("YWI= ２".encode(), "expected base64"),
        (b"YWI= 9999999999", "above"),
        (b"YWI= 4294967295", "above"),
        (b"YWI= 255", "rank 255 follows rank 256"),
        (b"YWI= 256", "rank 256 follows rank 256"),
        (b"YQ== 257", r"ranks 97 and 257 are both b'a'"),
    ],
)
def test_an_error_names_its_line(tmp_path: Path, line: bytes, message: str) -> None:
    path = write(tmp_path, lines([*BYTES, b"zz"]) + line + b"\nMTI= 258\n")
    with pytest.raises(FormatError, match=message) as caught:
        load(path, pattern=None, special_tokens={})
    assert str(caught.value).startswith(f"{path}:258: ")


def test_an_empty_token_is_kept_and_no_text_becomes_it(tmp_path: Path) -> None:
    tiktoken_load = pytest.importorskip("tiktoken.load")
    for line in (b"= 257\n", b" 257\n"):
        path = write(tmp_path, lines([*BYTES, b"ab"]) + line)
        vocab = load(path, pattern=None, special_tokens={"<s>": 258})
        assert vocab.tokens[257] == b""
        assert vocab.ranking == "ranks"
        assert vocab.extras == ("empty token",)
        assert reference.encode(vocab, "abc") == [256, 99]
        again = tmp_path / "again.tiktoken"
        save(vocab, again, overwrite=True)
        assert load(again) == vocab
        assert tiktoken_load.load_tiktoken_bpe(str(again))[b""] == 257


def test_several_special_tokens_may_share_an_id(tmp_path: Path) -> None:
    path = write(tmp_path, lines(BYTES))
    for texts in (["<a>", "<b>"], ["<b>", "<a>"]):
        vocab = load(path, pattern=None, special_tokens=dict.fromkeys(texts, 300))
        assert vocab.tokens[300] == texts[0].encode()  # the first is what the id decodes to
        assert vocab.extras == ("shared ids",)
        again = tmp_path / "again.tiktoken"
        save(vocab, again, overwrite=True)
        assert load(again) == vocab
        assert reference.encode(vocab, "<b>x<a>", allowed_special="all") == [300, 120, 300]


def test_a_file_without_every_byte_is_refused(tmp_path: Path) -> None:
    for data in (b"", lines(BYTES[:-1]), lines([b"ab"])):
        with pytest.raises(FormatError, match="of 256 bytes"):
            load(write(tmp_path, data), pattern=None, special_tokens={})


def test_recognition_looks_at_the_first_lines() -> None:
    path = Path("any")
    assert ranks.recognize(path, lines(BYTES))
    assert ranks.recognize(path, lines(BYTES)[:70])
    assert ranks.recognize(path, b"IQ== 0")
    assert not ranks.recognize(path, b"")
    assert not ranks.recognize(path, b"\n")
    assert not ranks.recognize(path, b"IQ== 0\nhello\nIg== 1\n")
    assert not ranks.recognize(path, b"the 12\nof 11\n")  # a list of words and counts
    assert not ranks.recognize(path, b'{"a": 1}')


# ---------------------------------------------------------------------- writing


def sound() -> Vocabulary:
    tokens = dict(enumerate([*BYTES, b"ab", b"abb", b" abb"])) | {300: b"<s>", 301: b"<|eot|>"}
    merges = [(97, 98, 256), (256, 98, 257), (32, 257, 258)]
    return Vocabulary(
        tokens,
        merges,
        special_tokens={"<s>": 300, "<|eot|>": 301},
        pattern=patterns.CL100K,
        roles={"bos": 300},
    )


def test_what_is_saved_is_loaded_the_same_and_read_by_tiktoken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ranks.tiktoken"
    vocab = sound()
    save(vocab, path)
    assert load(path) == vocab
    assert (
        json.loads((tmp_path / "ranks.tiktoken.byteweld.json").read_text("utf-8"))["byteweld"] == 1
    )
    tiktoken_load = pytest.importorskip("tiktoken.load")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    table = tiktoken_load.load_tiktoken_bpe(str(path))
    assert table == {token: i for i, token in vocab.ordinary()}
    for text in TEXTS:
        same_ids(vocab, peer_of(path, patterns.CL100K, dict(vocab.special_tokens)), text)


def test_options_win_over_the_sidecar(tmp_path: Path) -> None:
    path = tmp_path / "ranks.tiktoken"
    save(sound(), path)
    vocab = load(path, pattern=None)
    assert vocab.pattern is None
    assert vocab.special_tokens == sound().special_tokens
    assert load(path, pattern=None, special_tokens={}).special_tokens == {}
    path.write_bytes(lines(BYTES))
    with pytest.raises(FormatError, match="belongs to a file"):
        load(path)
    assert len(load(path, pattern=None, special_tokens={})) == 256


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"byteweld": 2}, "only 1 can be read"),
        ({"byteweld": True}, "only 1 can be read"),
        ({"novel": 1}, "unknown key 'novel'"),
        ({"pattern": 7}, "pattern: expected a string, found 7"),
        ({"pattern": "gpt_2"}, "did you mean"),
        ({"special_tokens": ["<s>"]}, "special_tokens: expected an object"),
        ({"special_tokens": {"<s>": -1}}, "a whole number from 0"),
        ({"special_tokens": {"<s>": 97}}, "whose bytes are b'a'"),
        ({"roles": {"boss": 1}}, "expected only the keys bos"),
        ({"roles": {"bos": 9999}}, "not a token"),
        ({"alphabet": "latin"}, "found 'latin'"),
        ({"sha256": "0" * 64}, "belongs to"),
    ],
)
def test_a_bad_sidecar_is_a_format_error(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = tmp_path / "ranks.tiktoken"
    save(sound(), path)
    beside = tmp_path / "ranks.tiktoken.byteweld.json"
    value = json.loads(beside.read_text("utf-8"))
    beside.write_text(json.dumps(value | change), encoding="utf-8")
    with pytest.raises(FormatError, match=message):
        load(path)
    for key in value:
        beside.write_text(json.dumps({k: v for k, v in value.items() if k != key}), "utf-8")
        with pytest.raises(KeyError, match=key):
            load(path)


# ---------------------------------------------------------------------- real files


def unpack(shared: Path, name: str, folder: Path) -> Path:
    path = folder / name.rpartition("/")[2]
    path.write_bytes(gzip.decompress((shared / "vocabs" / f"{name}.gz").read_bytes()))
    return path


def test_gpt2_is_one_vocabulary_in_both_formats(tmp_path: Path, shared: Path) -> None:
    path = unpack(shared, "tiktoken/r50k_base.tiktoken", tmp_path)
    before = path.read_bytes()
    vocab = load(path, pattern="gpt2", special_tokens={"<|endoftext|>": 50256})
    other = formats.load(unpack(shared, "hf/gpt2.tokenizer.json", tmp_path), format="huggingface")
    assert vocab == other
    assert vocab.fingerprint == other.fingerprint
    save(other, path, overwrite=True)
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["p50k_base", "qwen"])
def test_real_files_have_the_ids_of_tiktoken(tmp_path: Path, shared: Path, name: str) -> None:
    path = unpack(shared, f"tiktoken/{name}.tiktoken", tmp_path)
    vocab = load(path, pattern="gpt2", special_tokens={"<|eot|>": 900_000})
    peer = peer_of(path, patterns.GPT2, {"<|eot|>": 900_000})
    for text in [*TEXTS, (shared / "nasty/text/html_soup.txt").read_text("utf-8")[:3000]]:
        same_ids(vocab, peer, text)
