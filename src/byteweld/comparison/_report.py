"""What is shown of a comparison: who needs the fewest tokens, and where; then the ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from byteweld._speed import speed
from byteweld.comparison.corpora import Comparison, Difference
from byteweld.evaluation._report import WORD_HINT
from byteweld.render import amount, decimal, visible, visible_name
from byteweld.report import (
    Code,
    Figures,
    Folded,
    Key,
    Listing,
    OnPage,
    Report,
    Section,
    Share,
    Table,
    Text,
    Token,
    Words,
    text_of,
)

_MAX_FILES = 20
_SHOWN_DIFFERENCES = 3  # on a page; the others are collapsed


def report(found: Comparison) -> Report:
    """Return the whole comparison."""
    return Report(
        answer(found),
        OnPage(Figures(list(_figures(found)))),
        Table(
            ("", "tokenizer", "fingerprint", "vocabulary", "tokens", "rate", "speed"),
            [_tokenizer_row(found, lane) for lane in range(len(found.names))],
            left=range(7),
            name=0,
            has_heads=False,
            shown=len(found.names),
        ),
        Text([*_wins(found), *_specials(found)]),
        _scripts(found),
        _files(found),
        *([] if found.is_identical else _ids(found)),
        kind="answer yes" if found.is_identical else "answer",
    )


def _figures(found: Comparison) -> Iterator[tuple[Words, Words]]:
    """Yield the figures of the total, those of the tokenizer with the fewest tokens first."""
    if found.winner is not None:
        less, more, *_ = sorted(found.total.tokens)
        yield fewer(less, more).removesuffix(" fewer"), [Key(found.winner), "fewer tokens"]
    for lane in _in_order(found):
        yield found.total.bytes_per_token[lane], [Key(lane), "bytes per token"]


def _tokenizer_row(found: Comparison, lane: int) -> list[Words]:
    """Return the size of a vocabulary, and its tokens, bytes per token and speed on the corpus."""
    total = found.total
    return [
        Key(lane),
        visible_name(found.names[lane]),
        f"sha {found.fingerprints[lane][:8]}",
        f"vocabulary {len(found.tokens[lane]):,}",
        amount(total.tokens[lane], "token"),
        f"{decimal(total.bytes_per_token[lane])} bytes/token",
        speed(total.bytes, found.seconds[lane]) or "",
    ]


# ---------------------------------------------------------------------------- the answer


def answer(found: Comparison) -> str:
    """Say in one line which tokenizer needs the fewest tokens, or that all is equal."""
    tokens = found.total.tokens
    rates = [decimal(rate) for rate in found.total.bytes_per_token]
    best = [lane for lane, own in enumerate(tokens) if own == min(tokens)]
    others = [lane for lane in _in_order(found) if lane not in best]
    if not others:
        what = _verdict(found)
        if not found.is_identical:
            all_of = "both" if len(tokens) == 2 else "all"
            what = f"{all_of} need {amount(tokens[0], 'token')}"
        return f"{what}: {rates[0]} bytes per token" if tokens[0] else what
    names = [visible_name(name) for name in found.names]
    if len(set(names)) < len(names):
        names = [text_of(Key(lane)) for lane in range(len(names))]
    shares = [f"{fewer(tokens[best[0]], tokens[lane])} than {names[lane]}" for lane in others]
    shares[0] = shares[0].replace(" fewer", " fewer tokens", 1)
    return (
        f"{' and '.join(names[lane] for lane in best)} need{'s' * (len(best) == 1)} "
        f"{' and '.join(shares)}: {rates[best[0]]} against "
        f"{' and '.join(rates[lane] for lane in others)} bytes per token"
    )


def _in_order(found: Comparison) -> list[int]:
    """Return the tokenizers by number of tokens, fewest first."""
    return sorted(range(len(found.names)), key=found.total.tokens.__getitem__)


def fewer(less: int, more: int) -> str:
    """Return by how much one number of tokens is below another.

    >>> fewer(90, 100), fewer(9_999_999, 10_000_000)
    ('10.0% fewer', 'under 0.1% fewer')
    """
    share = 100 * (more - less) / more
    return f"{share:.1f}% fewer" if share >= 0.05 else "under 0.1% fewer"


def _wins(found: Comparison) -> Iterator[Words]:
    """Say in how many files and scripts each tokenizer wins, if there are several."""
    files = [file.tokens for file in found.files]
    scripts = [tuple(rates[name].pieces for rates in found.scripts) for name in found.scripts[0]]
    if found.winner is None or len(files) + len(scripts) < 3:
        return
    which = "fewer" if len(found.names) == 2 else "the fewest"
    for lane in _in_order(found):
        parts = []
        for noun, rows in (("file", files), ("script", scripts)):
            won = sum(row[lane] == min(row) and row.count(row[lane]) == 1 for row in rows)
            if won and len(rows) > 1:
                parts.append(f"{won:,} of {amount(len(rows), noun)}")
        if parts:
            yield [Key(lane), f" needs {which} tokens in {' and '.join(parts)}"]


def _specials(found: Comparison) -> Iterator[Words]:
    """Say how many special tokens the text has, if any; they count as text if told so."""
    if any(found.special_tokens):
        shown: list[Words] = []
        for lane, count in enumerate(found.special_tokens):
            shown += [", " * bool(lane), Key(lane), f" {count:,}"]
        yield ["special tokens in the text, each one id: ", shown]


def _verdict(found: Comparison) -> str:
    """Say in one line whether all ids are identical."""
    total = found.total
    documents, size = amount(total.documents, "document"), amount(total.bytes, "byte")
    if found.is_identical:
        return f"identical ids on {documents}, {amount(total.tokens[0], 'token')}, {size}"
    return f"different ids in {total.differing_documents:,} of {documents}, {size}"


def summary(found: Comparison) -> str:
    """Return the answer and the verdict in one line."""
    return answer(found) if found.is_identical else f"{answer(found)}; {_verdict(found)}"


# ---------------------------------------------------------------------------- tables


def _files(found: Comparison) -> Section:
    *rows, total = (
        [
            file.bytes,
            *file.tokens,
            *file.bytes_per_token,
            *_changes(file.tokens),
            f"{file.differing_documents:,} of {file.documents:,}",
            Code(visible_name(file.name)),
        ]
        for file in (*found.files, found.total)
    )
    heads = ["bytes", *_heads(found, "tokens"), *_heads(found, "bytes/token")]
    heads += [*_heads(found, "vs"), "differing", "file"]
    last = total if len(rows) > 1 else None
    charted = range(1 + len(found.names), 1 + 2 * len(found.names))
    table = Table(heads, rows, "file", charted=charted, in_text=_MAX_FILES, total=last)
    return Section("by file", _legend(found), table)


def _scripts(found: Comparison) -> Section:
    scripts = [(name, [rates[name] for rates in found.scripts]) for name in found.scripts[0]]
    rows: list[list[Words]] = [
        [
            rates[0].words,
            *(rate.bytes_per_piece for rate in rates),
            *(rate.fertility for rate in rates),
            *_changes([rate.pieces for rate in rates]),
            name,
        ]
        for name, rates in scripts
    ]
    heads = ["words", *_heads(found, "bytes/token"), *_heads(found, "tokens/word")]
    heads += [*_heads(found, "vs"), "script"]
    table = Table(heads, rows, "script", charted=range(1, 1 + len(found.names)))
    return Section("words by script", _legend(found), table, hint=WORD_HINT)


def _heads(found: Comparison, what: str) -> list[str]:
    keys = [text_of(Key(lane)) for lane in range(len(found.names))]
    return [f"{key} vs A" for key in keys[1:]] if what == "vs" else [f"{what} {k}" for k in keys]


def _changes(tokens: Sequence[int]) -> list[str]:
    """Return by how much the token counts after the first differ from it."""
    first, *others = tokens
    return [f"{100 * (other - first) / first:+.1f}%" if first else "-" for other in others]


def _legend(found: Comparison) -> OnPage:
    names: Words = [[Key(lane), f"{name}  "] for lane, name in enumerate(found.names)]
    return OnPage(Text([names], "hint"))


# ---------------------------------------------------------------------------- ids


def _ids(found: Comparison) -> Iterator[Section]:
    spans, size = found.spans, found.total.bytes
    share = text_of(Share(spans.cut_bytes / size if size else None))
    ids = f"; {amount(spans.ids, 'equal token')} with different ids" if spans.ids else ""
    cut = f"{spans.cut:,} of {spans.total:,} spans are cut differently"
    yield Section(
        _verdict(found), Text([f"{cut}, {amount(spans.cut_bytes, 'byte')} ({share}){ids}"])
    )
    if found.differences:
        is_cut = found.differences[0].kind == "cut"
        total = spans.cut if is_cut else spans.ids
        what = "spans cut differently" if is_cut else "tokens with different ids"
        parts = [Listing(list(_difference(found, one))) for one in found.differences]
        rest = parts[_SHOWN_DIFFERENCES:]
        yield Section(
            f"the first {len(found.differences):,} of {total:,} {what}",
            *parts[:_SHOWN_DIFFERENCES],
            Folded(f"{amount(len(rest), 'more difference')}", *rest) if rest else None,
        )


def _difference(found: Comparison, difference: Difference) -> Iterator[Words]:
    """Yield the place of a difference, the span in its context, and the tokens of each lane."""
    rest = "" if difference.is_whole else "…"
    name = visible_name(difference.source)
    yield f"{name}, document {difference.document:,}, byte {difference.start:,}"
    span = Code(visible(b"".join(difference.lanes[0].texts)), "mark")
    before, after = visible(difference.before), visible(difference.after)
    yield ["  ", before, "[", span, rest, "]", after]
    for lane, shown in enumerate(difference.lanes):
        parts: list[Words] = []
        for at, i in enumerate(shown.ids):
            parts += [" | " * bool(at), Token(i, found.tokens[lane][i], 400), f" {i}"]
        yield ["  ", Key(lane), "  ", parts, f" | {rest}" if rest else ""]
