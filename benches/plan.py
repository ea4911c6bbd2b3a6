"""Definitions: what is measured. Names each combination of axes and prepares its input."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inputs import SEPARATOR, Corpus, Inputs

NOT_MEASURES = frozenset({"corpora", "vocabs", "patterns", "answers", "targets", "quick"})
# Keys of a definition that may be lists; each combination is a separate definition.
AXES = (
    *("corpus", "megabytes", "vocab", "vocab_size", "tie_rule"),
    *("pattern", "shape", "fresh", "threads"),
)
TRAINING_PATTERN = "gpt2"  # the only one that every trainer supports; not part of a name
NO_PATTERN = "none"


@dataclass(frozen=True)
class Definition:
    """One thing to measure, with its prepared input."""

    measure: str
    subject: str  # the name without the threads; the right answer depends on this
    labels: tuple[str, ...]  # the names in the definitions file, which targets use
    threads: int
    engines: tuple[str, ...]
    truth: str
    at_most: Mapping[str, int]
    context: frozenset[str]
    clock: str
    repeat: int | None  # the default, unless the command line sets it
    about: str
    corpus: Corpus
    job: dict[str, Any]

    @property
    def passes(self) -> list[str]:
        """What a worker times, in order; for most measures it is one call."""
        return self.job["passes"] or [""]

    @property
    def name(self) -> str:
        return _with_threads(self.subject, self.threads)

    @property
    def description(self) -> str:
        """What is measured, and how."""
        parts = [self.about, f"Seconds are {self.clock} time."]
        parts += [f"At most {runs(most)} of {name}." for name, most in self.at_most.items()]
        if self.repeat:
            parts.append(f"Medians of {runs(self.repeat)}.")
        if self.context:
            parts.append(f"For context only, not compared: {', '.join(sorted(self.context))}.")
        return " ".join(parts)


def _with_threads(subject: str, threads: int) -> str:
    return f"{subject}/{threads}-thread{'s' if threads > 1 else ''}"


def with_pass(name: str, which: str) -> str:
    return f"{name}/{which}" if which else name


def runs(number: int) -> str:
    return f"{number} run{'s' if number > 1 else ''}"


def expand(
    definitions: Mapping[str, Any], measures: Sequence[str], *, quick: bool
) -> Iterator[dict[str, Any]]:
    """Yield each combination of a measure's axes as a definition with single values.

    `label` is the name as written; `has` is the size of the corpus, if that is known.
    """
    for measure in measures:
        for table in definitions[measure]:
            choices = [_as_list(table.get(axis)) for axis in AXES]
            for values in itertools.product(*choices):
                chosen = dict(zip(AXES, values, strict=True))
                spec = definitions["corpora"].get(chosen["corpus"], {})
                whole = {**table, **chosen, "measure": measure}
                has = min(chosen["megabytes"], spec.get("megabytes", chosen["megabytes"]))
                subject = _subject(whole, chosen["corpus"], has, chosen["vocab"])
                label = _with_threads(subject, chosen["threads"])
                if quick and not _is_quick(whole, definitions.get("quick", {})):
                    continue
                if quick:
                    whole = _limited(whole, definitions.get("quick", {}))
                yield {**whole, "label": label, "has": min(has, whole["megabytes"])}


def _is_quick(table: Mapping[str, Any], quick: Mapping[str, Any]) -> bool:
    """Whether a definition has only values listed under `[quick]`."""
    keys = (key for key in ("measure", *AXES) if isinstance(quick.get(key), list))
    return all((table[key] or "") in quick[key] for key in keys)


def _limited(table: Mapping[str, Any], quick: Mapping[str, Any]) -> dict[str, Any]:
    """Limit a definition to the sizes and engines of `[quick]`."""
    numbers = {
        key: min(table.get(key) or most, most)
        for key, most in quick.items()
        if isinstance(most, int | float) and (table.get(key) or key == "repeat")
    }
    engines = [name for name in table["engines"] if name in quick.get("engines", [name])]
    return {**table, **numbers, "engines": engines}


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _subject(table: Mapping[str, Any], corpus: str, megabytes: float, vocab: str | None) -> str:
    """A definition's name without its threads."""
    size = f"{megabytes:.0f}" if megabytes >= 100 else f"{megabytes:.3g}"
    parts = [table["measure"], f"{corpus}-{size}MB"]
    if vocab is not None:
        parts.append(vocab)
    parts += [str(table[axis]) for axis in ("vocab_size", "tie_rule") if table[axis]]
    if table["pattern"] not in (None, TRAINING_PATTERN):
        parts.append(table["pattern"])
    if table["shape"]:
        parts.append(table["shape"])
    if table["fresh"]:
        parts.append("fresh")
    return "/".join(parts)


def expected_name(table: Mapping[str, Any], inputs: Inputs) -> str:
    """The name that a definition will have, without preparing anything."""
    size = _size(table)
    corpus = inputs.corpus_name(table["corpus"], size)
    vocab = None if table["vocab"] is None else inputs.vocab_name(table["vocab"])
    return _with_threads(_subject(table, corpus, table["has"], vocab), table["threads"])


def _size(table: Mapping[str, Any]) -> int:
    return int(table["megabytes"] * 1_000_000)


def prepare(
    table: Mapping[str, Any],
    inputs: Inputs,
    *,
    patterns: Mapping[str, str],
    labels: Sequence[str],
    cache: Path,
) -> Definition:
    """Prepare a definition's corpus and vocabulary, and name it after what it actually uses."""
    size = _size(table)
    corpus = inputs.corpus(table["corpus"], size, warm_up=table["shape"] is not None)
    job = {
        "measure": table["measure"],
        "threads": table["threads"],
        "corpus": str(corpus.path),
        "warm_up": str(corpus.warm_up),
        "separator": SEPARATOR,
        "shape": table["shape"],
        "vocab_size": table["vocab_size"],
        "tie_rule": table["tie_rule"],
        "passes": table.get("passes"),
        "fresh": bool(table["fresh"]),
        "vocab": table["vocab"],
        "own_pattern": table["pattern"] is not None,
        "cache": str(cache.resolve()),
    }
    vocab_name = None
    if table["vocab"] is not None:
        vocab = inputs.vocab(table["vocab"])
        vocab_name = vocab.name
        job |= {
            "rank_file": str(vocab.rank_file),
            "tokenizer_json": str(vocab.tokenizer_json),
            "special_tokens": vocab.special_tokens,
            "pattern": vocab.pattern,
            "pattern_name": vocab.pattern_name,
        }
    if vocab_name is None or table["pattern"]:
        pattern_name = table["pattern"] or TRAINING_PATTERN
        job |= {"pattern": _find_pattern(pattern_name, patterns), "pattern_name": pattern_name}
    # A corpus cut at a newline is slightly shorter than requested; that does not change its name.
    megabytes = table["megabytes"] if corpus.text_bytes > 0.95 * size else corpus.text_bytes / 1e6
    return Definition(
        measure=table["measure"],
        subject=_subject(table, corpus.name, megabytes, vocab_name),
        labels=tuple(labels),
        threads=table["threads"],
        engines=tuple(table["engines"]),
        truth=table["truth"],
        at_most=table.get("at_most", {}),
        context=frozenset(table.get("context", ())),
        clock=table["clock"],
        repeat=table.get("repeat"),
        about=table["about"].strip(),
        corpus=corpus,
        job=job,
    )


def _find_pattern(name: str, patterns: Mapping[str, str]) -> str | None:
    """Find a pattern in the definitions or in byteweld; None for no pattern."""
    if name == NO_PATTERN:
        return None
    if name in patterns:
        return patterns[name]
    import byteweld

    if name not in byteweld.PATTERNS:
        known = ", ".join([NO_PATTERN, *patterns, *byteweld.PATTERNS])
        raise ValueError(f"unknown pattern {name!r}; expected one of {known}")
    return byteweld.PATTERNS[name]


def stored_answer(definitions: Mapping[str, Any], definition: Definition) -> str | None:
    """The digest of the right answer, if the definitions have it for this exact corpus."""
    answer = definitions.get("answers", {}).get(definition.subject)
    if answer and definition.corpus.sha256.startswith(answer["corpus"]):
        return str(answer["digest"])
    return None
