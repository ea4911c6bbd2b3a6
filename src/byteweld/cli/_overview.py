"""The overview of a tokenizer, as text, JSON or an HTML report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import byteweld
from byteweld.cli import _options as options
from byteweld.cli import _output
from byteweld.evaluation import Reason, lengths, scripts, training_curve, unreachable
from byteweld.markup import (
    Child,
    Html,
    element,
    figures,
    folded,
    joined,
    section,
    shortened,
    table,
)
from byteweld.markup import facts as fact_list
from byteweld.markup.charts import Bar, bars, curve, highest_of
from byteweld.render import namer, painted, tile, visible
from byteweld.training import report_path

_SHOWN = 5  # tokens of each kind, in text
_SHOWN_IN_REPORT = 200
_SHOWN_SCRIPTS = 8
_MAX_PAGE_MERGES = 10_000
_LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16, 32)  # the longest of each group, in bytes
_MAX_TOKEN_BYTES = 200  # of a token in the report
_NONE_UNREACHABLE = "none: every token's bytes encode to that token"
_ENGINES = {
    "whole": "no pattern: each document is one pre-token",
    "scanner": "run by a scanner",
    "automaton": "run by an automaton",
    "backtracking": "run by a backtracking engine",
}


class _Words(NamedTuple):
    """A reason, as a key of the JSON overview and in words."""

    key: str
    words: str


_REASONS: dict[Reason, _Words] = {
    "cut": _Words(
        "cut_by_pattern", "split by the pattern, as happens if training used no pattern (recipe ck)"
    ),
    "never merged": _Words("never_merged", "never produced: other merges come first"),
    "changed": _Words(
        "changed_before", "changed before splitting, by the normalizer or a prefix space"
    ),
    "part": _Words(
        "part_of_character", "with part of a character: produced only inside longer pre-tokens"
    ),
}


class Seen(NamedTuple):
    """A tokenizer and the facts that its overview shows."""

    tok: byteweld.Tokenizer
    path: str
    kind: str
    byte_map: str | None
    unreachable: Mapping[int, Reason]


def look(tok: byteweld.Tokenizer, path: str, kind: str) -> Seen:
    """Collect the facts that the overview shows."""
    return Seen(tok, path, kind, _byte_map(tok, path, kind), unreachable(tok))


def _byte_map(tok: byteweld.Tokenizer, path: str, kind: str) -> str | None:
    """The byte map of a ck export; None for other formats."""
    if kind != "ck" or tok.vocab.alphabet == "ascii":
        return None
    from byteweld.formats.ck_binary import load_with_map

    return load_with_map(Path(path))[1]


def lines(seen: Seen) -> Iterator[str]:
    """The overview as text."""
    tok, color = seen.tok, _output.has_color()
    yield _output.styled(seen.path, "bold")
    for name, value in _facts(seen):
        yield f"  {name:<12} {value}"
    yield ""
    yield _output.styled("longest tokens", "bold")
    for token_id in _longest(tok):
        token = tok.vocab.tokens[token_id]
        size = _output.amount(len(token), "byte")
        shown = _output.shortened(visible(token[:200]))
        yield f"  {token_id:>8}  {size:>9}  {painted(token_id, shown, color)}"
    yield ""
    yield from _unreachable_lines(seen)


def _facts(seen: Seen) -> list[tuple[str, str]]:
    """The facts about a tokenizer, by name."""
    tok = seen.tok
    vocab = tok.vocab
    singles = sum(len(token) == 1 for _, token in vocab.ordinary())
    others = [added for added in vocab.added_tokens if not added.is_plain]
    return [
        ("name", tok.name),
        ("format", seen.kind),
        *([("byte map", seen.byte_map)] if seen.byte_map is not None else []),
        (
            "tokens",
            f"{len(vocab):,}: {singles:,} bytes, {_longer(tok):,} longer, "
            f"{len(vocab.special_tokens):,} special",
        ),
        ("merges", _merge_words(vocab)),
        ("alphabet", vocab.alphabet),
        *([("normalizer", _list(map(_step, vocab.normalizer)))] if vocab.normalizer else []),
        ("pattern", _pattern(tok)),
        *((("" if index else "steps"), _step(step)) for index, step in enumerate(vocab.steps)),
        ("special", _list(f"{visible(t.encode())} {i}" for t, i in vocab.special_tokens.items())),
        *([("warning", _ambiguous_words(vocab))] if vocab.ambiguous_ids else []),
        *([("added", _list(map(_added, others)))] if others else []),
        ("roles", _list(f"{role} {token_id}" for role, token_id in vocab.roles.items())),
        *([("template", _template(vocab))] if vocab.template != ((), ()) else []),
        ("fingerprint", vocab.fingerprint),
        *([("training", words)] if (words := _training_words(tok, seen.path)) else []),
    ]


def _ambiguous_words(vocab: byteweld.Vocabulary) -> str:
    shared = sorted(vocab.ambiguous_ids)
    ids = _list(f"{i} ({visible(vocab.tokens[i])})" for i in shared)
    what = "special id" if len(shared) == 1 else "special ids"
    return f"ordinary text may become the {what} {ids}, except in encode_spans"


def _training_words(tok: byteweld.Tokenizer, path: str) -> str | None:
    """A summary of the training report beside the file; None if there is none."""
    report = report_path(path)
    if not report.is_file():
        return None
    training = tok.training
    if training is None:
        return f"{report} belongs to another vocabulary and is ignored"
    files = "" if training.files is None else f" of {_output.amount(training.files, 'file')}"
    return (
        f"recipe {training.recipe.name}, {_output.size(training.total_bytes)}{files}; {training}"
        f" ({report})"
    )


def _training_to_dict(training: byteweld.Training) -> dict[str, Any]:
    names = ("vocab_size", "merges_learned", "merges_planned", "stop", "files", "file_bytes")
    others = ("total_bytes", "total_pretokens", "distinct_pretokens", "bytes_per_token", "version")
    return {
        "recipe": training.recipe.name,
        **{name: getattr(training, name) for name in (*names, *others)},
    }


def _longer(tok: byteweld.Tokenizer) -> int:
    return sum(len(token) > 1 for _, token in tok.vocab.ordinary())


def _merge_words(vocab: byteweld.Vocabulary) -> str:
    if vocab.ranking == "ranks":
        return "none; tokens are ranked by id"
    first = "; pre-tokens that are tokens are not merged" if vocab.ignore_merges else ""
    return f"{len(vocab.merge_ids):,}{first}"


def _pattern(tok: byteweld.Tokenizer) -> str:
    engine = _ENGINES[tok.pattern_engine]
    if tok.vocab.steps:
        return f"a chain of {_output.amount(len(tok.vocab.steps), 'step')} ({engine})"
    if tok.vocab.pattern is None:
        return f"none ({engine.removeprefix('no pattern: ')})"
    return f"{options.pattern_words(tok.vocab.pattern)} ({engine})"


def _step(step: str | byteweld.Split | byteweld.Replace) -> str:
    if isinstance(step, str):
        return step
    if isinstance(step, byteweld.Replace):
        return f"replace {step.pattern} with {step.content!r}"
    others = " other than" if step.invert else ""
    return f"{step.behavior}:{others} {options.pattern_words(step.pattern)}"


def _added(added: byteweld.AddedToken) -> str:
    flags = [
        name for name in ("single_word", "lstrip", "rstrip", "normalized") if getattr(added, name)
    ]
    kind = ["special"] if added.special else []
    return f"{visible(added.text.encode())} {added.id} ({' '.join(kind + flags) or 'not special'})"


def _template(vocab: byteweld.Vocabulary) -> str:
    before, after = (" ".join(visible(vocab.tokens[i]) for i in ids) for ids in vocab.template)
    return f"{before} TEXT {after}".strip()


def _list(items: Iterator[str]) -> str:
    every = list(items)
    more = f", and {len(every) - _SHOWN:,} more" if len(every) > _SHOWN else ""
    return ", ".join(every[:_SHOWN]) + more if every else "none"


def _longest(tok: byteweld.Tokenizer, limit: int = _SHOWN) -> list[int]:
    by_length = sorted(tok.vocab.ordinary(), key=lambda item: (-len(item[1]), item[0]))
    return [token_id for token_id, token in by_length[:limit] if len(token) > 1]


def _by_reason(found: Mapping[int, Reason]) -> dict[Reason, list[int]]:
    """Unreachable tokens by reason, in display order."""
    by_reason: dict[Reason, list[int]] = {reason: [] for reason in _REASONS}
    for token_id, reason in found.items():
        by_reason[reason].append(token_id)
    return by_reason


def _unreachable_lines(seen: Seen) -> Iterator[str]:
    tok, color = seen.tok, _output.has_color()
    name = namer(tok.vocab.tokens, color)
    yield _output.styled("unreachable tokens", "bold")
    if not seen.unreachable:
        yield f"  {_NONE_UNREACHABLE}"
    for reason, ids in _by_reason(seen.unreachable).items():
        if ids:
            yield f"  {len(ids):,} {_REASONS[reason].words}"
        for token_id in ids[:_SHOWN]:
            instead, more = _instead(tok, token_id)
            shown = _output.shortened(visible(tok.vocab.tokens[token_id]), 40)
            parts = " ".join(map(name, instead))
            yield f"  {token_id:>8}  {painted(token_id, shown, color)}  becomes  {parts}{more}"


def _instead(tok: byteweld.Tokenizer, token_id: int) -> tuple[list[int], str]:
    """The first tokens that an unreachable token encodes to, and an ellipsis if there are more."""
    ids = tok.encode_ordinary(tok.vocab.tokens[token_id])
    return ids[:8], " …" if len(ids) > 8 else ""


def to_dict(seen: Seen) -> dict[str, Any]:
    """The overview as JSON."""
    tok = seen.tok
    vocab = tok.vocab
    return {
        "path": seen.path,
        "name": tok.name,
        "format": seen.kind,
        "byte_map": seen.byte_map,
        "tokens": len(vocab),
        "max_id": tok.max_token_value,
        "merges": len(vocab.merge_ids),
        "ranking": vocab.ranking,
        "ignore_merges": vocab.ignore_merges,
        "alphabet": vocab.alphabet,
        "pattern": vocab.pattern,
        "pattern_name": None if vocab.pattern is None else _pattern_name(vocab.pattern),
        "pattern_engine": tok.pattern_engine,
        "steps": [s if isinstance(s, str) else s._asdict() for s in vocab.steps],
        "normalizer": [s if isinstance(s, str) else s._asdict() for s in vocab.normalizer],
        "special_tokens": dict(vocab.special_tokens),
        "ambiguous_ids": sorted(vocab.ambiguous_ids),
        "added_tokens": [added._asdict() for added in vocab.added_tokens if not added.is_plain],
        "template": [list(ids) for ids in vocab.template],
        "roles": dict(vocab.roles),
        "fingerprint": vocab.fingerprint,
        "training": None if tok.training is None else _training_to_dict(tok.training),
        "longest": [
            {"id": i, "bytes": vocab.tokens[i].hex(), "text": visible(vocab.tokens[i])}
            for i in _longest(tok)
        ],
        "unreachable": {
            _REASONS[reason].key: ids for reason, ids in _by_reason(seen.unreachable).items()
        },
    }


def _pattern_name(pattern: str) -> str | None:
    words = options.pattern_words(pattern)
    return words if words in byteweld.PATTERNS else None


# ---------------------------------------------------------------------------- the report


def page(seen: Seen, evaluation: Child = None) -> Html:
    """The HTML report, with the evaluation on a corpus if there is one."""
    tok = seen.tok
    vocab = tok.vocab
    probes = None
    if evaluation is None:
        from byteweld.evaluation._html import digits, languages  # imports numpy, which is slow
        from byteweld.evaluation.probes import probe

        found = probe(tok)
        probes = [languages(found), digits(found)]
    tokens = [token for _, token in vocab.ordinary()]
    about: Child = [_figures(seen), fact_list(_facts(seen))]
    return joined(
        about if evaluation is None else [evaluation, section("The tokenizer", about)],
        _training_section(tok),
        probes,
        element("div", _length_section(tokens), _script_section(tokens), class_="columns"),
        _longest_section(tok),
        _unreachable_section(seen),
        _special_section(vocab),
        _merge_section(vocab),
    )


def _figures(seen: Seen) -> Html:
    """The figures that matter most."""
    vocab = seen.tok.vocab
    longest = max((len(token) for _, token in vocab.ordinary()), default=0)
    shown: list[tuple[str, Child]] = [
        (f"{len(vocab):,}", "tokens"),
        (f"{len(vocab.special_tokens):,}", "of them special"),
        (f"{longest:,}", "bytes in the longest token"),
        (f"{len(seen.unreachable):,}", "unreachable tokens"),
    ]
    return figures(shown)


def _length_section(tokens: list[bytes]) -> Html:
    rows = [Bar(name, [count], [f"{count:,}"]) for name, count in length_groups(lengths(tokens))]
    return section("Lengths", bars(("bytes", "tokens"), rows))


def length_groups(counted: list[tuple[int, int]]) -> list[tuple[str, int]]:
    """Group the number of tokens by length: ranges that grow, without empty ones at the end.

    >>> length_groups([(1, 256), (5, 30), (6, 10)])
    [('1', 256), ('2', 0), ('3', 0), ('4', 0), ('5-6', 40)]
    """
    groups = []
    low = 1
    for high in (*_LENGTHS, None):
        count = sum(n for size, n in counted if low <= size and (high is None or size <= high))
        name = f"{low} and more" if high is None else str(low) if low == high else f"{low}-{high}"
        groups.append((name, count))
        low = low if high is None else high + 1
    while groups and not groups[-1][1]:
        groups.pop()
    return groups


def _script_section(tokens: list[bytes]) -> Html:
    rows = [Bar(name, [count], [f"{count:,}"]) for name, count in scripts(tokens)]
    heads = ("script of the first letter", "tokens")
    most = highest_of(rows)
    made = shortened(rows, _SHOWN_SCRIPTS, "script", lambda some: bars(heads, some, most))
    return section("Scripts", made)


def _training_section(tok: byteweld.Tokenizer) -> Html | None:
    training = tok.training
    points = [] if training is None else training_curve(training)
    if training is None or len(points) < 2:
        return None
    drawn = curve(
        [(point.merges, point.bytes_per_token) for point in points],
        "bytes per token of the training corpus against merges learned",
        ("merges", "bytes per token"),
    )
    return section("Training", drawn, hint=f"recipe {training.recipe.name}; {training}")


def _token(vocab: byteweld.Vocabulary, token_id: int) -> Html:
    return tile(token_id, vocab.tokens[token_id][:_MAX_TOKEN_BYTES])


def _longest_section(tok: byteweld.Tokenizer) -> Html:
    vocab = tok.vocab

    def rows(ids: Sequence[int]) -> Html:
        made: list[list[Child]] = [
            [tile(i, vocab.tokens[i][:_MAX_TOKEN_BYTES], kind="short"), i, len(vocab.tokens[i])]
            for i in ids
        ]
        return table(["token", "id", "bytes"], made, numbers=[1, 2])

    return section("Longest tokens", shortened(_longest(tok, 40), _SHOWN, "token", rows))


def _unreachable_section(seen: Seen) -> Html:
    vocab = seen.tok.vocab
    parts: list[Child] = []
    for reason, ids in _by_reason(seen.unreachable).items():
        if not ids:
            continue
        rows: list[list[Child]] = []
        for token_id in ids[:_SHOWN_IN_REPORT]:
            instead, more = _instead(seen.tok, token_id)
            becomes: list[Child] = [[_token(vocab, part), " "] for part in instead]
            rows.append([_token(vocab, token_id), token_id, [*becomes, more]])
        parts.append(
            folded(
                f"{len(ids):,} {_REASONS[reason].words}",
                table(["token", "id", "becomes"], rows, numbers=[1]),
                _more(len(ids) - _SHOWN_IN_REPORT),
            )
        )
    return section("Unreachable tokens", parts or element("p", _NONE_UNREACHABLE))


def _special_section(vocab: byteweld.Vocabulary) -> Html | None:
    specials = list(vocab.special_tokens.items())
    if not specials:
        return None

    def rows(some: Sequence[tuple[str, int]]) -> Html:
        made: list[list[Child]] = [
            [tile(token_id, text.encode()[:_MAX_TOKEN_BYTES], is_special=True), token_id]
            for text, token_id in some
        ]
        return table(["token", "id"], made, numbers=[1])

    return section(
        "Special tokens",
        shortened(specials[:_SHOWN_IN_REPORT], _SHOWN, "token", rows),
        _more(len(specials) - _SHOWN_IN_REPORT),
    )


def _merge_section(vocab: byteweld.Vocabulary) -> Html | None:
    if not vocab.merge_ids:
        return None
    return section("First merges", folded("rank by rank", merge_table(vocab, 100)))


def merge_table(vocab: byteweld.Vocabulary, count: int) -> Html:
    """The first merges, as many as a page can hold."""
    shown = min(count, _MAX_PAGE_MERGES)
    rows: list[list[Child]] = [
        [rank, [_token(vocab, left), " ", _token(vocab, right)], _token(vocab, new), new]
        for rank, (left, right, new) in enumerate(vocab.merge_ids[:shown])
    ]
    left_out = min(count, len(vocab.merge_ids)) - shown
    made = table(["rank", "pair", "becomes", "id"], rows, numbers=[0, 3])
    return joined(made, _more(left_out))


def _more(count: int) -> Html | None:
    return element("p", f"… and {count:,} more", class_="hint") if count > 0 else None
