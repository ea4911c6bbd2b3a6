"""The view "How it works": from text to ids as ck does it, on the visitor's own files."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import Any

import byteweld
from byteweld.explanation import (
    Iteration,
    TrieMatch,
    TrieNode,
    make_trie,
    match_by_hash,
    match_by_trie,
    merge_by_rank,
    shards,
    train_in_buffers,
)
from byteweld.studio.corpus import check_alphabet, lines
from byteweld.studio.examples import FILES
from byteweld.studio.request import Refused, Request
from byteweld.studio.session import Session

_MAX_BYTES = 20_000
_MAX_MERGES = 200
_MAX_WORKERS = 8
# Bytes times merges, all of which the trainer visits: about a second.
_MAX_WORK = 1_000_000
_SHOWN_FILES = 8
_SHOWN_PARTS = 48  # of each file
_LOCAL_ROWS = 4
_GLOBAL_ROWS = 8
_MAX_TEXT_BYTES = 120
_MAX_NODES = 90  # of the trie that is drawn; the walk is always complete
_MAX_WORDS = 8

Pair = tuple[int, int]


def answer(session: Session, fields: Request) -> dict[str, Any]:
    """Return ck's training run, iteration by iteration, with what each worker does."""
    files, recipe, merges = _corpus(fields)
    workers = fields.number("workers", 3, 1, _MAX_WORKERS)
    size = sum(len(file) for _, file in files)
    if size * merges > _MAX_WORK:
        raise Refused(
            413,
            f"{merges} merges of {size:,} bytes are too many to show step by step; use fewer "
            f"bytes, or {max(1, _MAX_WORK // size)} merges",
        )
    iterations: list[dict[str, Any]] = []
    trained = train_in_buffers(
        [file for _, file in files],
        recipe.minimum_size + merges,
        ascii_only=recipe.alphabet == "ascii",
        min_frequency=recipe.min_frequency,
        workers=workers,
        watch=lambda iteration: iterations.append(_shown(iteration)),
    )
    tok = byteweld.Tokenizer(trained.vocab)
    first = files[0][1] if files else b""
    base = {bytes([byte]): trained.vocab.ids[bytes([byte])] for _, file in files for byte in file}
    seen = {*base.values(), *(learned.new for learned in trained.merges)}
    start = [[base[bytes([byte])] for byte in file] for _, file in files]
    return {
        "files": [[name, len(file)] for name, file in files],
        "first": first[:_SHOWN_PARTS].hex(),
        "first_ids": tok.encode_ordinary(first)[:_SHOWN_PARTS],
        "bytes": size,
        "shards": [[shard.start, shard.stop] for shard in shards(len(files), workers)],
        "start": _shown_sequences(start),
        "iterations": iterations,
        "tokens": {str(i): trained.vocab.tokens[i].hex() for i in sorted(seen)},
        "special_tokens": dict(trained.vocab.special_tokens),
        "letters": len(recipe.letters),
        "size": len(trained.vocab),
        "recipe": recipe.name,
        "stopped": trained.stopped,
        "min_frequency": recipe.min_frequency,
    }


def _corpus(fields: Request) -> tuple[list[tuple[str, bytes]], byteweld.Recipe, int]:
    """Return the files with their names, the recipe, and how many merges to learn."""
    name = fields.choice("recipe", FILES[0].recipe, ("ck", "ck-ascii"))
    least = fields.number("min_frequency", byteweld.RECIPES[name].min_frequency, 1, 1000)
    recipe = byteweld.RECIPES[name].replace(min_frequency=least)
    merges = fields.number("merges", FILES[0].merges, 1, _MAX_MERGES)
    # As ck does: sorted by name, and empty files are left out.
    given = sorted((name, text) for name, text in fields.texts("files").items() if text)
    if not given:
        given = lines(fields.text("corpus", FILES[0].text, _MAX_BYTES))
    check_alphabet(given, recipe)
    files = [(name, text.encode()) for name, text in given]
    size = sum(len(file) for _, file in files)
    if size > _MAX_BYTES:
        raise Refused(
            413,
            f"the files have {size:,} bytes; at most {_MAX_BYTES:,} are shown step by step, so "
            "choose fewer or smaller ones",
        )
    return files, recipe, merges


def _shown(iteration: Iteration) -> dict[str, Any]:
    """Reduce an iteration to what is drawn."""
    learned = iteration.merge
    winner = (learned.left, learned.right)
    return {
        "merge": learned._asdict(),
        "local": [
            {
                "rows": _top(counts, _LOCAL_ROWS),
                "pairs": len(counts),
                "winner": counts.get(winner, 0),
            }
            for counts in iteration.local_counts
        ],
        "rows": _top(iteration.pair_counts, _GLOBAL_ROWS),
        "pairs": len(iteration.pair_counts),
        "tied": [list(pair) for pair in iteration.tied[:1]],
        "total_tied": len(iteration.tied),
        "after": _shown_sequences(iteration.after),
    }


def _top(counts: Mapping[Pair, int], rows: int) -> list[list[int]]:
    """Return [left, right, count] for the highest counts, smallest ids first."""
    best = heapq.nsmallest(rows, counts.items(), key=lambda item: (-item[1], item[0]))
    return [[*pair, count] for pair, count in best]


def _shown_sequences(sequences: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Return the start of the first files, the length of each, and that of all files."""
    shown = sequences[:_SHOWN_FILES]
    return {
        "parts": [list(ids[:_SHOWN_PARTS]) for ids in shown],
        "lengths": [len(ids) for ids in shown],
        "total": sum(map(len, sequences)),
    }


def match(session: Session, fields: Request) -> dict[str, Any]:
    """Encode a text by hash table, by trie and by BPE, with the vocabulary of the files."""
    words: list[bytes] = []
    if fields.choice("vocabulary", "learned", ("learned", "abc")) == "abc":
        recipe = byteweld.RECIPES["plain"]
        tok = _abc()
        text = "abc"
    else:
        files, recipe, merges = _corpus(fields)
        tok = byteweld.train(
            iter([file for _, file in files]),
            vocab_size=recipe.minimum_size + merges,
            recipe=recipe,
        )
        words = _differing_words(tok, [file for _, file in files])
        text = fields.text("text", "", _MAX_TEXT_BYTES)
        if not text:
            text = (words[0] if words else _start_of(files)).decode("utf-8", "replace")
    check_alphabet([("the text", text)], recipe)
    return {"text": text, "words": [word.hex() for word in words]} | _matched(tok, text.encode())


def _abc() -> byteweld.Tokenizer:
    """The smallest vocabulary with a difference: (b, c) merges before (a, b)."""
    tokens = {byte: bytes([byte]) for byte in range(256)} | {256: b"bc", 257: b"ab"}
    return byteweld.Tokenizer.from_merges(tokens, [(b"b", b"c"), (b"a", b"b")])


def _start_of(files: Sequence[tuple[str, bytes]]) -> bytes:
    return files[0][1][:24].decode("utf-8", "ignore").encode() if files else b""


def _differing_words(tok: byteweld.Tokenizer, files: Sequence[bytes]) -> list[bytes]:
    """Return the first pre-tokens of the files that longest match would split differently."""
    trie = make_trie(tok.vocab.ordinary())
    found = []
    for word in dict.fromkeys(word for file in files for word in tok.pretokenize(file)):
        if len(word) > _MAX_TEXT_BYTES or word.decode("utf-8", "replace").encode() != word:
            continue
        if match_by_trie(trie, word).ids != merge_by_rank(tok.vocab, word).ids:
            found.append(word)
            if len(found) == _MAX_WORDS:
                break
    return found


def _matched(tok: byteweld.Tokenizer, text: bytes) -> dict[str, Any]:
    """Return the ids and the work of all three, and the walk through the trie."""
    vocab = tok.vocab
    trie = make_trie(vocab.ordinary())
    pretokens = tok.pretokenize(text)
    by_hash = [match_by_hash(vocab, pretoken) for pretoken in pretokens]
    by_trie = [match_by_trie(trie, pretoken) for pretoken in pretokens]
    by_rank = [merge_by_rank(vocab, pretoken) for pretoken in pretokens]
    greedy = [i for found in by_trie for i in found.ids]
    ids = [i for found in by_rank for i in found.ids]
    nodes, steps, hidden = _drawn_trie(trie, pretokens, by_trie)
    shown = {*greedy, *ids, *(node[2] for node in nodes if node[2] is not None)}
    return {
        "hash": {
            "ids": [i for found in by_hash for i in found.ids],
            "probes": sum(found.probes for found in by_hash),
            "hashed_bytes": sum(found.hashed_bytes for found in by_hash),
        },
        "trie": {"ids": greedy, "steps": steps, "nodes": nodes, "hidden": hidden},
        "bpe": {
            "ids": ids,
            "merges": sum(found.merges for found in by_rank),
            "lookups": sum(found.lookups for found in by_rank),
        },
        "pretokens": [pretoken.hex() for pretoken in pretokens],
        "differs": [
            n
            for n, (longest, ranked) in enumerate(zip(by_trie, by_rank, strict=True))
            if longest.ids != ranked.ids
        ],
        "longest": max(map(len, vocab.ids)),
        "tokens": {str(i): vocab.tokens[i].hex() for i in sorted(shown)},
    }


def _drawn_trie(
    trie: Sequence[TrieNode], pretokens: Sequence[bytes], walks: Sequence[TrieMatch]
) -> tuple[list[list[int | None]], list[list[int | None]], int]:
    """Return the nodes to draw as [parent, byte, token], the steps of the walk, the rest's number.

    Drawn are all nodes that the walk reaches, then what else begins with the bytes of the text. A
    step is [offset in the text, node, token taken].
    """
    reached = [0, *(s.node for walk in walks for s in walk.steps if s.node is not None)]
    drawn = dict.fromkeys(reached)
    first = set(b"".join(pretokens))
    more = [node for byte, node in trie[0].children.items() if byte in first]
    for node in more:  # grows: breadth first
        if len(drawn) >= _MAX_NODES:
            break
        drawn[node] = None
        more.extend(trie[node].children.values())
    number = {node: n for n, node in enumerate(sorted(drawn))}  # a parent has the lower number
    nodes = [
        [
            None if (up := trie[node].parent) is None else number[up],
            trie[node].byte,
            trie[node].token,
        ]
        for node in number
    ]
    steps: list[list[int | None]] = []
    offset = 0
    for pretoken, walk in zip(pretokens, walks, strict=True):
        steps += [
            [offset + s.at, None if s.node is None else number[s.node], s.token] for s in walk.steps
        ]
        offset += len(pretoken)
    return nodes, steps, len(trie) - len(nodes)
