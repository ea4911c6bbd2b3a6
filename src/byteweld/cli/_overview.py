"""The overview of a tokenizer, as text, JSON or an HTML report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import byteweld
from byteweld.cli import _options as options
from byteweld.cli import _output
from byteweld.evaluation import (
    Reason,
    lengths,
    pattern_engine,
    scripts,
    training_curve,
    unreachable,
)
from byteweld.markup.charts import curve
from byteweld.render import visible
from byteweld.report import (
    Custom,
    Displayable,
    Facts,
    Figures,
    Folded,
    InText,
    OnPage,
    Part,
    Report,
    Section,
    Table,
    Text,
    Token,
    Words,
)
from byteweld.training import report_path

_SHOWN = 5  # tokens of each kind, in text
_SHOWN_IN_REPORT = 200
_MAX_PAGE_MERGES = 10_000
_LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16, 32)  # the longest of each group, in bytes
_NONE_UNREACHABLE = "none: every token's bytes encode to that token"
_ENGINES = {
    "whole": "no pattern: each document is one pre-token",
    "scanner": "run by a scanner",
    "automaton": "run by an automaton",
    "backtracking": "run by a backtracking engine",
}

# What the JSON overview has of a training.
_TRAINING = (
    *("vocab_size", "merges_learned", "merges_planned", "stop", "files", "file_bytes"),
    *("total_bytes", "total_pretokens", "distinct_pretokens", "bytes_per_token", "version"),
)
# Each reason as a key of the JSON overview, and in words.
_REASONS: dict[Reason, tuple[str, str]] = {
    "cut": (
        "cut_by_pattern",
        "split by the pattern, as happens if training used no pattern (recipe ck)",
    ),
    "never merged": ("never_merged", "never produced: other merges come first"),
    "changed": ("changed_before", "changed before splitting, by the normalizer or a prefix space"),
    "part": (
        "part_of_character",
        "with part of a character: produced only inside longer pre-tokens",
    ),
}


class Overview(Displayable):
    """A tokenizer and the facts that its overview shows."""

    def __init__(self, tok: byteweld.Tokenizer, path: str, kind: str) -> None:
        self.tok = tok
        self.path = path
        self.kind = kind
        self.byte_map = _byte_map(tok, path, kind)
        self.unreachable = unreachable(tok)

    def report(self, *, probes: bool = True) -> Report:
        """Return what is shown: the facts, the longest and the unreachable tokens, and more."""
        tok, vocab = self.tok, self.tok.vocab
        tokens = [token for _, token in vocab.ordinary()]
        longest = max(map(len, tokens), default=0)
        figures: list[tuple[Words, Words]] = [
            (len(vocab), "tokens"),
            (len(vocab.special_tokens), "of them special"),
            (longest, "bytes in the longest token"),
            (len(self.unreachable), "unreachable tokens"),
        ]
        rows: list[list[Words]] = [
            [str(i), Token(i, text.encode(), kind="special")]
            for text, i in vocab.special_tokens.items()
        ]
        special = Table(("id", "token"), rows, "token", on_page=_SHOWN_IN_REPORT, shown=_SHOWN)
        merges = Merges(vocab, 100).report().parts if vocab.merge_ids else []

        def counts(what: str, counted: Sequence[tuple[str, int]], noun: str) -> Table:
            return Table((what, "tokens"), counted, noun, left=[0], name=0, charted=[1])

        return Report(
            self.path,
            OnPage(Figures(figures)),
            Facts(_facts(self)),
            Custom(
                lambda: OnPage(_training_section(tok), *(_probes(tok) if probes else ())).html()
            ),
            Custom(
                lambda: OnPage(
                    Section("lengths", counts("bytes", length_groups(lengths(tokens)), "length")),
                    Section(
                        "scripts", counts("script of the first letter", scripts(tokens), "script")
                    ),
                    kind="columns",
                ).html()
            ),
            _longest_section(tok),
            _unreachable_section(self),
            OnPage(
                Section("special tokens", special) if vocab.special_tokens else None,
                Section("first merges", *merges, is_folded=True) if merges else None,
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the overview as JSON-serializable values."""
        tok, vocab = self.tok, self.tok.vocab
        pattern = options.pattern_words(vocab.pattern)
        return {
            "path": self.path,
            "name": tok.name,
            "format": self.kind,
            "byte_map": self.byte_map,
            "tokens": len(vocab),
            "max_id": tok.max_token_value,
            "merges": len(vocab.merge_ids),
            "ranking": vocab.ranking,
            "ignore_merges": vocab.ignore_merges,
            "alphabet": vocab.alphabet,
            "pattern": vocab.pattern,
            "pattern_name": pattern if pattern in byteweld.PATTERNS else None,
            "pattern_engine": pattern_engine(tok),
            "steps": [s if isinstance(s, str) else s._asdict() for s in vocab.steps],
            "normalizer": [s if isinstance(s, str) else s._asdict() for s in vocab.normalizer],
            "special_tokens": dict(vocab.special_tokens),
            "ambiguous_ids": sorted(vocab.ambiguous_ids),
            "added_tokens": [added._asdict() for added in vocab.added_tokens if not added.is_plain],
            "template": [list(ids) for ids in vocab.template],
            "roles": dict(vocab.roles),
            "fingerprint": vocab.fingerprint,
            "training": tok.training
            and {
                "recipe": tok.training.recipe.name,
                **{name: getattr(tok.training, name) for name in _TRAINING},
            },
            "longest": [
                {"id": i, "bytes": vocab.tokens[i].hex(), "text": visible(vocab.tokens[i])}
                for i in _longest(tok)
            ],
            "unreachable": {
                _REASONS[reason][0]: ids for reason, ids in _by_reason(self.unreachable).items()
            },
        }


def _byte_map(tok: byteweld.Tokenizer, path: str, kind: str) -> str | None:
    """The byte map of a ck export; None for other formats."""
    if kind != "ck" or tok.vocab.alphabet == "ascii":
        return None
    from byteweld.formats.ck_binary import load_with_map

    return load_with_map(Path(path))[1]


def _facts(seen: Overview) -> list[tuple[str, Words]]:
    """The facts about a tokenizer, by name."""
    tok = seen.tok
    vocab = tok.vocab
    sizes = [len(token) for _, token in vocab.ordinary()]
    others = [added for added in vocab.added_tokens if not added.is_plain]
    specials = (f"{visible(t.encode())} {i}" for t, i in vocab.special_tokens.items())
    whole = "; pre-tokens that are tokens are not merged" if vocab.ignore_merges else ""
    merges = f"{len(vocab.merge_ids):,}{whole}"
    if vocab.ranking == "ranks":
        merges = "none; tokens are ranked by id"
    shared = sorted(vocab.ambiguous_ids)
    ids = _list(f"{i} ({visible(vocab.tokens[i])})" for i in shared)
    what = "special id" if len(shared) == 1 else "special ids"
    warning = f"ordinary text may become the {what} {ids}, except in encode_spans"
    facts = [
        ("name", tok.name),
        ("format", seen.kind),
        ("byte map", seen.byte_map),
        (
            "tokens",
            f"{len(vocab):,}: {sizes.count(1):,} bytes, {sum(n > 1 for n in sizes):,} longer, "
            f"{len(vocab.special_tokens):,} special",
        ),
        ("merges", merges),
        ("alphabet", vocab.alphabet),
        ("normalizer", _list(map(_step, vocab.normalizer)) if vocab.normalizer else None),
        ("pattern", _pattern(tok)),
        *(("" if index else "steps", _step(step)) for index, step in enumerate(vocab.steps)),
        ("special", _list(specials)),
        ("warning", warning if shared else None),
        ("added", _list(map(_added, others)) if others else None),
        ("roles", _list(f"{role} {token_id}" for role, token_id in vocab.roles.items())),
        ("template", _template(vocab) if vocab.template != ((), ()) else None),
        ("fingerprint", vocab.fingerprint),
        ("training", _training_words(tok, seen.path)),
    ]
    return [(name, value) for name, value in facts if value is not None]


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


def _pattern(tok: byteweld.Tokenizer) -> str:
    engine = _ENGINES[pattern_engine(tok)]
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


def _unreachable_section(seen: Overview) -> Section:
    tok, tokens = seen.tok, seen.tok.vocab.tokens
    parts: list[Part] = []
    for reason, ids in _by_reason(seen.unreachable).items():
        rows: list[list[Words]] = []
        for token_id in ids[:_SHOWN_IN_REPORT]:
            instead = tok.encode_ordinary(tokens[token_id])
            becomes: list[Words] = [
                [" " * bool(at), Token(i, tokens[i])] for at, i in enumerate(instead[:8])
            ]
            more = " …" if len(instead) > 8 else ""
            token = Token(token_id, tokens[token_id], 40)
            rows.append([str(token_id), token, "becomes", [becomes, more]])
        if ids:
            title = f"{len(ids):,} {_REASONS[reason][1]}"
            table = Table(
                ("id", "token", "", "becomes"),
                rows,
                "token",
                left=(1, 2, 3),
                name=1,
                has_heads=False,
                in_text=_SHOWN,
                shown=_SHOWN_IN_REPORT,
                size=len(ids),
            )
            parts += [InText(Text([title])), Folded(title, table)]
    return Section("unreachable tokens", *parts or [Text([_NONE_UNREACHABLE])])


# ---------------------------------------------------------------------------- on a page


def _probes(tok: byteweld.Tokenizer) -> Iterator[Section]:
    from byteweld.evaluation._report import digits, languages  # imports numpy, which is slow
    from byteweld.evaluation.probes import probe

    found = probe(tok)
    yield languages(found)
    yield from digits(found)


def length_groups(counted: list[tuple[int, int]]) -> list[tuple[str, int]]:
    """Group the number of tokens by length: ranges that grow, without empty ones at the end."""
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


def _training_section(tok: byteweld.Tokenizer) -> Section | None:
    training = tok.training
    points = [] if training is None else training_curve(training)
    if training is None or len(points) < 2:
        return None
    drawn = curve(
        [(point.merges, point.bytes_per_token) for point in points],
        "bytes per token of the training corpus against merges learned",
        ("merges", "bytes per token"),
    )
    return Section(
        "training", Custom(lambda: drawn), hint=f"recipe {training.recipe.name}; {training}"
    )


def _longest_section(tok: byteweld.Tokenizer) -> Section:
    tokens = tok.vocab.tokens
    rows: list[list[Words]] = [
        [str(i), _output.amount(len(tokens[i]), "byte"), Token(i, tokens[i], 60, "short")]
        for i in _longest(tok, 40)
    ]
    table = Table(
        ("id", "bytes", "token"), rows, has_heads=False, in_text=_SHOWN, shown=_SHOWN, size=0
    )
    return Section("longest tokens", table)


class Merges(Displayable):
    """The first merges of a vocabulary."""

    def __init__(self, vocab: byteweld.Vocabulary, count: int) -> None:
        self._tokens = vocab.tokens
        self._merges = vocab.merge_ids[:count]

    def report(self) -> Report:
        """Return the merges, one per line; a page has as many as it can hold."""
        rows: list[list[Words]] = []
        for rank, merge in enumerate(self._merges):
            left, right, new = (Token(i, self._tokens[i]) for i in merge)
            rows.append([str(rank), str(merge.new), [left, " + ", right, " -> ", new]])
        heads, most = ("rank", "id", "merge"), _MAX_PAGE_MERGES
        table = Table(heads, rows, "merge", name=0, has_heads=False, on_page=most, shown=most)
        return Report("", table)

    def to_dict(self) -> list[dict[str, Any]]:
        """Return the merges as JSON-serializable values."""
        return [
            {"rank": rank, **merge._asdict(), "bytes": self._tokens[merge.new].hex()}
            for rank, merge in enumerate(self._merges)
        ]
