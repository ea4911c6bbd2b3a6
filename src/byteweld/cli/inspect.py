"""`byteweld inspect`: what a tokenizer is, its merges, the tree of a token; the bytes of a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

import byteweld
from byteweld.cli import _bytes, _errors, _output
from byteweld.cli import _options as options
from byteweld.formats.ck_binary import load_with_map
from byteweld.render import visible

EXAMPLES = """
byteweld inspect tokenizer.json
byteweld inspect tokenizer.json --merges 20
byteweld inspect tokenizer.json --tree ' the'
byteweld inspect cl100k.tiktoken --pattern cl100k --no-special --json
byteweld inspect --bytes drawing.svg
"""

_SHOWN = 5  # tokens of a kind that people see
_ALL = "all"
_ENGINES = {
    "whole": "no pattern: a text is one pre-token",
    "scanner": "run by a scanner",
    "automaton": "run by an automaton",
    "backtracking": "run by a backtracking engine",
}

TokenizerArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="TOKENIZER", help="A file or folder of any format, or the name of an encoding."
    ),
]
Merges = Annotated[
    str | None,
    typer.Option(
        "--merges", metavar="[N]", help="Print the merges in order, or the first N: left + right."
    ),
]
TreeOf = Annotated[
    str | None,
    typer.Option(
        "--tree", metavar="TOKEN", help="Draw how merges build a token: its text, or its id."
    ),
]
Bytes = Annotated[
    str | None,
    typer.Option(
        "--bytes",
        metavar="FILE",
        help="Show which byte values a file uses, and what --ascii-only would save. "
        "Needs no tokenizer.",
    ),
]


class _Unreachable(NamedTuple):
    """Tokens that encoding their own bytes does not give, by the reason."""

    cut: list[int]
    partial: list[int]
    merged_otherwise: list[int]
    changed: list[int]

    @classmethod
    def of(cls, tok: byteweld.Tokenizer) -> _Unreachable:
        found = cls([], [], [], [])
        for token_id in tok.unreachable_tokens():
            token = tok.vocab.tokens[token_id]
            pieces = tok.pretokenize(token)
            if b"".join(pieces) != token:
                found.changed.append(token_id)
            elif len(pieces) == 1:
                found.merged_otherwise.append(token_id)
            elif _is_utf8(token):
                found.cut.append(token_id)
            else:
                found.partial.append(token_id)
        return found


class _Seen(NamedTuple):
    """What the overview tells besides the tokenizer itself."""

    path: str
    kind: str
    byte_map: str | None
    unreachable: _Unreachable


def prepare(arguments: list[str]) -> list[str]:
    """Let --merges stand without a number."""
    result = []
    for place, argument in enumerate(arguments):
        following = arguments[place + 1 : place + 2]
        if argument == "--merges" and not (following and following[0].isdigit()):
            argument = f"--merges={_ALL}"
        result.append(argument)
    return result


def run(
    tokenizer: TokenizerArgument = None,
    merges: Merges = None,
    tree: TreeOf = None,
    bytes_of: Bytes = None,
    json: options.Json = False,
    format: options.Format = None,
    pattern: options.LoadPattern = None,
    special: options.LoadSpecial = None,
    no_special: options.NoSpecial = False,
) -> None:
    """Show what a tokenizer is: its size, pattern, special tokens, longest and unreachable tokens.

    A token is unreachable when encoding its own bytes gives other tokens.
    """
    if sum(asked is not None for asked in (merges, tree, bytes_of)) > 1:
        raise _errors.UsageError("inspect takes one of --merges, --tree and --bytes")
    if bytes_of is not None:
        found = _bytes.ByteCounts(bytes_of)
        _show(found.to_dict() if json else found.lines())
        return
    if tokenizer is None:
        raise _errors.UsageError("inspect needs a TOKENIZER, or --bytes FILE")
    tok = options.load_tokenizer(
        tokenizer, format=format, pattern=pattern, special=special, no_special=no_special
    )
    if merges is not None:
        count = _merge_count(tok, merges)
        _show(_merges_to_list(tok, count) if json else _merge_lines(tok, count))
    elif tree is not None:
        drawn = _tree(tok, tree)
        tokens = {str(i): {"bytes": t.hex(), "text": visible(t)} for i, t in drawn.tokens.items()}
        _show(drawn.to_dict() | {"tokens": tokens} if json else iter(drawn.lines()))
    else:
        by_name = "an encoding by name" if options.is_name(tokenizer) else None
        kind = format or by_name or byteweld.recognise(tokenizer)
        seen = _Seen(tokenizer, kind, _byte_map(tok, tokenizer, kind), _Unreachable.of(tok))
        _show(_to_dict(tok, seen) if json else _overview(tok, seen))


def _show(content: Iterator[str] | dict[str, Any] | list[Any]) -> None:
    if isinstance(content, dict | list):
        _output.report(content)
    else:
        _output.lines(content)


# ---------------------------------------------------------------------------- overview


def _byte_map(tok: byteweld.Tokenizer, path: str, kind: str) -> str | None:
    """By which letters a ck export shows bytes; None where there are none such."""
    if kind != "ck" or tok.vocab.alphabet == "ascii":
        return None
    return load_with_map(Path(path))[1]


def _overview(tok: byteweld.Tokenizer, seen: _Seen) -> Iterator[str]:
    vocab = tok.vocab
    singles = sum(len(token) == 1 for _, token in vocab.ordinary())
    others = [added for added in vocab.added_tokens if not added.is_plain]
    yield _output.styled(seen.path, "bold")
    for name, value in [
        ("name", tok.name),
        ("format", seen.kind),
        *([("byte map", seen.byte_map)] if seen.byte_map is not None else []),
        (
            "tokens",
            f"{len(vocab)}: {singles} bytes, {_longer(tok)} longer, {_specials(tok)} special",
        ),
        ("merges", _merge_words(vocab)),
        ("alphabet", vocab.alphabet),
        *([("normalizer", _list(map(_step, vocab.normalizer)))] if vocab.normalizer else []),
        ("pattern", _pattern(tok)),
        *((("" if place else "steps"), _step(step)) for place, step in enumerate(vocab.steps)),
        ("special", _list(f"{visible(t.encode())} {i}" for t, i in vocab.special_tokens.items())),
        *([("added", _list(map(_added, others)))] if others else []),
        ("roles", _list(f"{role} {token_id}" for role, token_id in vocab.roles.items())),
        *([("template", _template(vocab))] if vocab.template != ((), ()) else []),
        ("fingerprint", vocab.fingerprint),
        *([("training", words)] if (words := _training_words(tok, seen.path)) else []),
    ]:
        yield f"  {name:<12} {value}"
    yield ""
    yield _output.styled("longest tokens", "bold")
    for token_id in _longest(tok):
        token = vocab.tokens[token_id]
        size = _output.amount(len(token), "byte")
        yield f"  {token_id:>8}  {size:>9}  {_output.shortened(visible(token[:200]))}"
    yield ""
    yield from _unreachable_lines(tok, seen.unreachable)


def _training_words(tok: byteweld.Tokenizer, path: str) -> str | None:
    """What the report beside the file says; None where there is none."""
    report = byteweld.report_path(path)
    if not report.is_file():
        return None
    training = tok.training
    if training is None:
        return f"{report} is not the report of this vocabulary, and is passed over"
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


def _specials(tok: byteweld.Tokenizer) -> int:
    return len(tok.vocab.special_tokens)


def _merge_words(vocab: byteweld.Vocabulary) -> str:
    if vocab.ranking == "ranks":
        return "no list; ranked by id"
    first = "; a pre-token that is a token is not merged" if vocab.ignore_merges else ""
    return f"{len(vocab.merge_ids)}{first}"


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
        return f"replace {step.pattern} by {step.content!r}"
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
    more = f", and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return ", ".join(every[:_SHOWN]) + more if every else "none"


def _longest(tok: byteweld.Tokenizer) -> list[int]:
    by_length = sorted(tok.vocab.ordinary(), key=lambda item: (-len(item[1]), item[0]))
    return [token_id for token_id, token in by_length[:_SHOWN] if len(token) > 1]


def _is_utf8(token: bytes) -> bool:
    try:
        token.decode()
    except UnicodeDecodeError:
        return False
    return True


def _unreachable_lines(tok: byteweld.Tokenizer, found: _Unreachable) -> Iterator[str]:
    yield _output.styled("unreachable tokens", "bold")
    if not any(found):
        yield "  none: every token's bytes encode to that token"
    for ids, reason in (
        (found.cut, "cut by the pattern, as when there is none in training (recipe ck)"),
        (found.merged_otherwise, "never merged: other merges go first"),
        (found.changed, "changed before they are cut, by the normalizer or a prefix space"),
        (found.partial, "with a part of a character: reached only inside longer pre-tokens"),
    ):
        if ids:
            yield f"  {len(ids)} {reason}"
        for token_id in ids[:_SHOWN]:
            token = tok.vocab.tokens[token_id]
            instead = tok.encode_ordinary(token)
            parts = " ".join(visible(tok.vocab.tokens[part]) for part in instead[:8])
            more = " …" if len(instead) > 8 else ""
            shown = _output.shortened(visible(token), 40)
            yield f"  {token_id:>8}  {shown}  becomes  {parts}{more}"


def _to_dict(tok: byteweld.Tokenizer, seen: _Seen) -> dict[str, Any]:
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
            "cut_by_pattern": seen.unreachable.cut,
            "part_of_character": seen.unreachable.partial,
            "never_merged": seen.unreachable.merged_otherwise,
            "changed_before": seen.unreachable.changed,
        },
    }


def _pattern_name(pattern: str) -> str | None:
    words = options.pattern_words(pattern)
    return words if words in byteweld.PATTERNS else None


# ---------------------------------------------------------------------------- merges


def _merge_count(tok: byteweld.Tokenizer, asked: str) -> int:
    if tok.vocab.ranking == "ranks":
        raise _errors.UsageError("this tokenizer is ranked by id and has no merge list")
    if asked == _ALL:
        return len(tok.vocab.merge_ids)
    if not (asked.isascii() and asked.isdigit() and len(asked) <= 10):
        raise _errors.UsageError(f"--merges is {asked!r}; expected a whole number, or nothing")
    return int(asked)


def _merge_lines(tok: byteweld.Tokenizer, count: int) -> Iterator[str]:
    tokens, merges = tok.vocab.tokens, tok.vocab.merge_ids[:count]
    rank_width = len(str(max(0, len(merges) - 1)))
    id_width = len(str(tok.max_token_value))
    for rank, (left, right, new) in enumerate(merges):
        parts = f"{visible(tokens[left])} + {visible(tokens[right])} -> {visible(tokens[new])}"
        yield f"{rank:>{rank_width}}  {new:>{id_width}}  {parts}"


def _merges_to_list(tok: byteweld.Tokenizer, count: int) -> list[dict[str, Any]]:
    tokens = tok.vocab.tokens
    return [
        {"rank": rank, "left": left, "right": right, "new": new, "bytes": tokens[new].hex()}
        for rank, (left, right, new) in enumerate(tok.vocab.merge_ids[:count])
    ]


# ---------------------------------------------------------------------------- tree


def _tree(tok: byteweld.Tokenizer, asked: str) -> Any:
    token_id = _find_token(tok, asked)
    try:
        return byteweld.merge_tree(tok.vocab, token_id)
    except ValueError as error:  # too long; there is no argument here that allows it
        raise _errors.UsageError(str(error).partition(";")[0]) from None


def _find_token(tok: byteweld.Tokenizer, asked: str) -> int:
    """A token by its text, by the text as it is shown, or by its id."""
    token = asked.encode("utf-8", "surrogateescape")
    for found in (tok.vocab.ids.get(token), tok.vocab.special_tokens.get(asked)):
        if found is not None:
            return found
    for token_id, token in tok.vocab.tokens.items():
        if visible(token) == asked:
            return token_id
    if asked.isascii() and asked.isdigit() and len(asked) <= 10 and int(asked) in tok.vocab.tokens:
        return int(asked)
    raise _errors.UsageError(
        f"{asked!r} is no token of this tokenizer and no id; "
        f"as text it is {' '.join(map(str, tok.encode_ordinary(asked))) or 'empty'}"
    )
