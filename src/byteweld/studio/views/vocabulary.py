"""The Vocabulary view: search, sort and filter tokens; the details of one token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import byteweld
from byteweld.evaluation import Reason, lengths, script_of, why_unreachable
from byteweld.studio.request import Refused, Request
from byteweld.studio.session import Opened, Session, TokenEntry

_MAX_ROWS = 500
_MAX_QUERY_BYTES = 200
_MAX_SHOWN = 40  # merges and tokens of each kind in a token's details
_MAX_TREE_BYTES = 200
_MAX_TOKEN_BYTES = 1024  # per row; longer tokens are truncated
_MARKS = str.maketrans({"·": " ", "⏎": "\n", "⇥": "\t"})
_SORTS: dict[str, Callable[[TokenEntry], Any]] = {
    "id": lambda entry: entry.id,
    "length": lambda entry: (len(entry.token), entry.id),
    "text": lambda entry: (entry.token, entry.id),
    "rank": lambda entry: (entry.rank is None, entry.rank, entry.id),
}
_ONLY: dict[str, Callable[[TokenEntry, Reason | None], bool]] = {
    "all": lambda entry, reason: True,
    "special": lambda entry, reason: entry.is_special,
    "unreachable": lambda entry, reason: reason not in (None, "part"),
    "partial": lambda entry, reason: reason == "part",
    "learned": lambda entry, reason: entry.rank is not None,
    "bytes": lambda entry, reason: len(entry.token) == 1 and not entry.is_special,
}


def answer(session: Session, fields: Request) -> dict[str, Any]:
    """Return a page of the matching tokens, their number, and their lengths and scripts."""
    opened = session.tokenizer(fields)
    matches = _query(fields.choice("by", "text", ("text", "bytes", "id", "rank", "regex")), fields)
    script = fields.text("script", "", 40)
    shortest = fields.number("min_bytes", 1, 0, 2**31)
    longest = fields.number("max_bytes", 2**31, 0, 2**31)
    only = _ONLY[fields.choice("only", "all", list(_ONLY))]
    unreachable = opened.unreachable
    before = [
        entry
        for entry in opened.entries
        if shortest <= len(entry.token) <= longest
        and only(entry, unreachable.get(entry.id))
        and matches(entry)
    ]
    found = [entry for entry in before if not script or entry.script == script]
    sort = fields.choice("sort", "id", list(_SORTS))
    if sort != "id":
        found.sort(key=_SORTS[sort])
    if fields.flag("descending"):
        found.reverse()
    first = fields.number("first", 0, 0, 2**31)
    rows = found[first : first + fields.number("rows", 100, 0, _MAX_ROWS)]
    by_script = Counter(entry.script for entry in before)
    partial = sum(reason == "part" for reason in unreachable.values())
    return {
        "total": len(found),
        "all": len(opened.entries),
        "first": first,
        "rows": [_row(entry, unreachable.get(entry.id)) for entry in rows],
        "lengths": lengths(entry.token for entry in found),
        "scripts": by_script.most_common(),
        "unreachable": len(unreachable) - partial,
        "partial": partial,
        "specials": len(opened.tok.vocab.special_tokens),
    }


def _row(entry: TokenEntry, reason: Reason | None) -> dict[str, Any]:
    return {
        "id": entry.id,
        "bytes": entry.token[:_MAX_TOKEN_BYTES].hex(),
        "length": len(entry.token),
        "rank": entry.rank,
        "script": entry.script,
        "special": entry.is_special,
        "unreachable": reason,
    }


def _query(by: str, fields: Request) -> Callable[[TokenEntry], bool]:
    query = fields.text("query", "", _MAX_QUERY_BYTES)
    if not query:
        return lambda entry: True
    if by == "regex":
        return _regex(query)
    if by in ("text", "bytes"):
        part = query.translate(_MARKS).encode() if by == "text" else _hex(query)
        return lambda entry: part in entry.token
    numbers = _range(query)
    return lambda entry: (entry.id if by == "id" else entry.rank) in numbers


def _hex(query: str) -> bytes:
    try:
        return bytes.fromhex(query.replace("0x", " ").replace(",", " "))
    except ValueError:
        raise Refused(400, f"{query!r} is not hex; expected bytes such as e2 82 ac") from None


def _range(query: str) -> range:
    first, dash, last = query.replace(" ", "").partition("-")
    parts = (first, last) if dash else (first, first)
    if not all(part.isascii() and part.isdigit() and len(part) <= 10 for part in parts):
        raise Refused(400, f"{query!r} is not a number; expected one, or a range such as 256-300")
    return range(int(parts[0]), int(parts[1]) + 1)


def _regex(query: str) -> Callable[[TokenEntry], bool]:
    """Match with the engine's regex, which runs in linear time or stops at its limit."""
    bytes_only = {byte: bytes([byte]) for byte in range(256)}
    split = byteweld.Split(query, "removed")
    try:
        matcher = byteweld.Tokenizer(byteweld.Vocabulary(bytes_only, steps=[split]))
    except (byteweld.PatternError, byteweld.VocabularyError) as error:
        raise Refused(400, str(error)) from None
    return lambda entry: sum(map(len, matcher.pretokenize(entry.token))) < len(entry.token)


def token_page(session: Session, fields: Request) -> dict[str, Any]:
    """Return what a token is, how it is built, and what is built from it.

    Scans the vocabulary once instead of building the entries that searching needs.
    """
    opened = session.tokenizer(fields)
    vocab = opened.tok.vocab
    token_id = fields.number("id", None, 0, 2**32)
    token = vocab.tokens.get(token_id)
    if token is None:
        raise Refused(404, f"id {token_id} is not in this vocabulary of {len(vocab):,} tokens")
    is_special = token_id in vocab.special_tokens.values()
    alone = [token_id] if is_special else opened.tok.encode_ordinary(token)
    reason = None if alone == [token_id] else why_unreachable(opened.tok, token)
    entry = TokenEntry(token_id, token, opened.ranks.get(token_id), script_of(token), is_special)
    inside = [i for i, other in vocab.tokens.items() if token in other and i != token_id]
    near = [i for i in range(token_id - 3, token_id + 4) if i in vocab.tokens]
    shown = {token_id, *alone[:_MAX_SHOWN], *inside[:_MAX_SHOWN], *near}
    answer = _row(entry, reason) | _merges_of(opened, token_id, shown)
    answer |= {
        "alone": alone[:_MAX_SHOWN],
        "inside": inside[:_MAX_SHOWN],
        "total_inside": len(inside),
        "near": near,
        "tree": None,
    }
    if len(token) <= _MAX_TREE_BYTES:
        tree = byteweld.merge_tree(vocab, token_id)
        answer["tree"] = tree.to_dict()
        shown |= set(tree.tokens)
    answer["tokens"] = {str(i): vocab.tokens[i][:_MAX_TOKEN_BYTES].hex() for i in sorted(shown)}
    return answer


def _merges_of(opened: Opened, token_id: int, shown: set[int]) -> dict[str, Any]:
    """Return the merges that involve a token, as [rank, left, right, new, count]."""
    found: dict[str, list[list[int | None]]] = {"as_left": [], "as_right": [], "makes": []}
    total: Counter[str] = Counter()
    for rank, merge in enumerate(opened.tok.vocab.merge_ids):
        if token_id not in merge:
            continue
        for name, part in zip(found, merge, strict=True):
            if part != token_id:
                continue
            total[name] += 1
            if total[name] <= _MAX_SHOWN:
                found[name].append([rank, *merge, opened.merge_count(rank)])
                shown |= set(merge)
    return {**found, "total_left": total["as_left"], "total_right": total["as_right"]}
