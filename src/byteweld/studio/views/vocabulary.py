"""The Vocabulary view: search, sort and filter tokens; and the page of one token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import byteweld
from byteweld.evaluate import lengths
from byteweld.studio.request import Asked, Refused
from byteweld.studio.session import Entry, Opened, Session

_MAX_ROWS = 500
_MAX_QUERY_BYTES = 200
_MAX_SHOWN = 40  # merges and tokens of a kind on a token's page
_MAX_TREE_BYTES = 200
_MAX_TOKEN_BYTES = 1024  # of a token's bytes in a row
_MARKS = str.maketrans({"·": " ", "⏎": "\n", "⇥": "\t"})
_SORTS: dict[str, Callable[[Entry], Any]] = {
    "id": lambda entry: entry.id,
    "length": lambda entry: (len(entry.token), entry.id),
    "text": lambda entry: (entry.token, entry.id),
    "rank": lambda entry: (entry.rank is None, entry.rank, entry.id),
}
_ONLY = ("all", "special", "unreachable", "learned", "bytes")


# ---------------------------------------------------------------------------- search


def answer(session: Session, asked: Asked) -> dict[str, Any]:
    """A page of the tokens that fit, how many fit, and how their lengths and scripts spread."""
    opened = session.tokenizer(asked)
    fits = _query(asked.choice("by", "text", ("text", "bytes", "id", "regex")), asked)
    script = asked.text("script", "", 40)
    shortest = asked.number("min_bytes", 1, 0, 2**31)
    longest = asked.number("max_bytes", 2**31, 0, 2**31)
    only = _only(opened, asked.choice("only", "all", _ONLY))
    before = [
        entry
        for entry in opened.entries
        if shortest <= len(entry.token) <= longest and only(entry) and fits(entry.token, entry.id)
    ]
    found = [entry for entry in before if not script or entry.script == script]
    sort = asked.choice("sort", "id", list(_SORTS))
    if sort != "id":
        found.sort(key=_SORTS[sort])
    if asked.flag("descending"):
        found.reverse()
    first = asked.number("first", 0, 0, 2**31)
    rows = found[first : first + asked.number("rows", 100, 0, _MAX_ROWS)]
    by_script = Counter(entry.script for entry in before)
    return {
        "total": len(found),
        "all": len(opened.entries),
        "first": first,
        "rows": [_row(opened, entry) for entry in rows],
        "lengths": lengths(entry.token for entry in found),
        "scripts": by_script.most_common(),
        "unreachable": len(opened.unreachable),
        "specials": len(opened.tok.vocab.special_tokens),
    }


def _row(opened: Opened, entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "bytes": entry.token[:_MAX_TOKEN_BYTES].hex(),
        "length": len(entry.token),
        "rank": entry.rank,
        "script": entry.script,
        "special": entry.is_special,
        "unreachable": opened.unreachable.get(entry.id),
    }


def _only(opened: Opened, only: str) -> Callable[[Entry], bool]:
    if only == "special":
        return lambda entry: entry.is_special
    if only == "unreachable":
        return lambda entry: entry.id in opened.unreachable
    if only == "learned":
        return lambda entry: entry.rank is not None
    if only == "bytes":
        return lambda entry: len(entry.token) == 1 and not entry.is_special
    return lambda entry: True


def _query(by: str, asked: Asked) -> Callable[[bytes, int], bool]:
    query = asked.text("query", "", _MAX_QUERY_BYTES)
    if not query:
        return lambda token, token_id: True
    if by == "text":
        wanted = query.translate(_MARKS).encode()
        return lambda token, token_id: wanted in token
    if by == "bytes":
        part = _hex(query)
        return lambda token, token_id: part in token
    if by == "id":
        ids = _ids(query)
        return lambda token, token_id: token_id in ids
    return _regex(query)


def _hex(query: str) -> bytes:
    try:
        return bytes.fromhex(query.replace("0x", " ").replace(",", " "))
    except ValueError:
        raise Refused(400, f"{query!r} is not bytes; expected hex digits, as in e2 82 ac") from None


def _ids(query: str) -> range:
    first, dash, last = query.replace(" ", "").partition("-")
    parts = (first, last) if dash else (first, first)
    if not all(part.isascii() and part.isdigit() and len(part) <= 10 for part in parts):
        raise Refused(400, f"{query!r} is no id; expected a number, or two as in 256-300")
    return range(int(parts[0]), int(parts[1]) + 1)


def _regex(query: str) -> Callable[[bytes, int], bool]:
    """Search with the engine that cuts text: it runs in linear time, or stops at its limit."""
    bytes_only = {byte: bytes([byte]) for byte in range(256)}
    split = byteweld.Split(query, "removed")
    try:
        matcher = byteweld.Tokenizer(byteweld.Vocabulary(bytes_only, steps=[split]))
    except (byteweld.PatternError, byteweld.VocabularyError) as error:
        raise Refused(400, str(error)) from None
    return lambda token, token_id: sum(map(len, matcher.pretokenize(token))) < len(token)


# ---------------------------------------------------------------------------- one token


def token_page(session: Session, asked: Asked) -> dict[str, Any]:
    """What a token is, what it is made of, and what is made of it."""
    opened = session.tokenizer(asked)
    vocab = opened.tok.vocab
    token_id = asked.number("id", None, 0, 2**32)
    token = vocab.tokens.get(token_id)
    if token is None:
        raise Refused(404, f"id {token_id} is not in this vocabulary of {len(vocab):,} tokens")
    entry = next(entry for entry in opened.entries if entry.id == token_id)
    uses = opened.uses.get(token_id)
    inside = [e.id for e in opened.entries if token in e.token and e.id != token_id]
    near = range(token_id - 3, token_id + 4)
    shown = {token_id, *inside[:_MAX_SHOWN], *(i for i in near if i in vocab.tokens)}
    answer: dict[str, Any] = _row(opened, entry) | {
        "name": opened.name,
        "makes": [],
        "as_left": [],
        "as_right": [],
        "total_left": 0,
        "total_right": 0,
        "inside": inside[:_MAX_SHOWN],
        "total_inside": len(inside),
        "near": sorted(i for i in near if i in vocab.tokens),
        "alone": _encoded_alone(opened, token, token_id),
        "tree": None,
    }
    if uses is not None:
        answer |= {
            "makes": _merges(opened, uses.makes[:_MAX_SHOWN], shown),
            "as_left": _merges(opened, uses.as_left[:_MAX_SHOWN], shown),
            "as_right": _merges(opened, uses.as_right[:_MAX_SHOWN], shown),
            "total_left": len(uses.as_left),
            "total_right": len(uses.as_right),
        }
    if len(token) <= _MAX_TREE_BYTES:
        tree = byteweld.merge_tree(vocab, token_id)
        answer["tree"] = tree.to_dict()
        shown |= set(tree.tokens)
    shown |= set(answer["alone"])
    answer["tokens"] = {str(i): vocab.tokens[i][:_MAX_TOKEN_BYTES].hex() for i in sorted(shown)}
    return answer


def _encoded_alone(opened: Opened, token: bytes, token_id: int) -> list[int]:
    """What the token's own bytes become: itself, unless it is unreachable."""
    if token_id not in opened.unreachable:
        return [token_id]
    return opened.tok.encode_ordinary(token)[:_MAX_SHOWN]


def _merges(opened: Opened, ranks: Iterable[int], shown: set[int]) -> list[list[int | None]]:
    """Merges as [rank, left, right, new, count]; the count where the training is known."""
    rows: list[list[int | None]] = []
    for rank in ranks:
        left, right, new = opened.tok.vocab.merge_ids[rank]
        shown |= {left, right, new}
        rows.append([rank, left, right, new, opened.merge_count(rank)])
    return rows
