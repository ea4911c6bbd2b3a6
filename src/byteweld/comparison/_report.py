"""What is shown of a comparison: who needs the fewest tokens, and where; then the ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from byteweld._amounts import amount, speed
from byteweld.comparison.corpora import Comparison, DifferingSpan
from byteweld.evaluation._report import WORD_HINT
from byteweld.render import decimal, visible, visible_name
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
    lanes, total = range(len(found.names)), found.total
    figures: list[tuple[Words, Words]] = []
    if found.winner is not None:
        less, more, *_ = sorted(total.tokens)
        share = fewer(less, more).removesuffix(" fewer")
        figures.append((share, [Key(found.winner), "fewer tokens"]))
    figures += [
        (total.bytes_per_token[lane], [Key(lane), "bytes per token"]) for lane in _in_order(found)
    ]
    rows: list[list[Words]] = [
        [
            Key(lane),
            visible_name(found.names[lane]),
            f"sha {found.fingerprints[lane][:8]}",
            f"vocabulary {len(found.tokens[lane]):,}",
            amount(total.tokens[lane], "token"),
            f"{decimal(total.bytes_per_token[lane])} bytes/token",
            speed(total.bytes, found.seconds[lane]) or "",
        ]
        for lane in lanes
    ]
    heads = ("", "tokenizer", "fingerprint", "vocabulary", "tokens", "rate", "speed")
    return Report(
        answer(found),
        OnPage(Figures(figures)),
        Table(heads, rows, left=range(7), name=0, has_heads=False, shown=len(lanes)),
        Text([*_wins(found), *_specials(found)]),
        _scripts(found),
        _files(found),
        *([] if found.is_identical else _ids(found)),
        kind="answer yes" if found.is_identical else "answer",
    )


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
        counts = enumerate(found.special_tokens)
        shown: Words = [[", " * bool(lane), Key(lane), f" {count:,}"] for lane, count in counts]
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
    lanes = len(found.names)
    heads = _heads(lanes, "bytes", "tokens ?", "bytes/token ?", "? vs A", "differing", "file")
    last = total if len(rows) > 1 else None
    charted = range(1 + lanes, 1 + 2 * lanes)
    table = Table(heads, rows, "file", charted=charted, in_text=_MAX_FILES, total=last)
    return Section("by file", _legend(found), table)


def _scripts(found: Comparison) -> Section:
    rows: list[list[Words]] = []
    for name in found.scripts[0]:
        rates = [by_script[name] for by_script in found.scripts]
        pieces = [rate.bytes_per_piece for rate in rates]
        changes = _changes([rate.pieces for rate in rates])
        rows.append([rates[0].words, *pieces, *(rate.fertility for rate in rates), *changes, name])
    lanes = len(found.names)
    heads = _heads(lanes, "words", "bytes/token ?", "tokens/word ?", "? vs A", "script")
    table = Table(heads, rows, "script", charted=range(1, 1 + lanes))
    return Section("words by script", _legend(found), table, hint=WORD_HINT)


def _heads(lanes: int, *names: str) -> list[str]:
    """Return heads of columns: those with a ? for each tokenizer, but not to compare A with A."""
    keys = [text_of(Key(lane)) for lane in range(lanes)]
    return [
        name.replace("?", key)
        for name in names
        for key in (keys[name.startswith("?") :] if "?" in name else ("",))
    ]


def _changes(tokens: Sequence[int]) -> list[str]:
    """Return by how much the token counts after the first differ from it."""
    first, *others = tokens
    return [f"{100 * (other - first) / first:+.1f}%" if first else "-" for other in others]


def _legend(found: Comparison) -> OnPage:
    names: Words = [[Key(lane), f"{name}  "] for lane, name in enumerate(found.names)]
    return OnPage(Text([names], "hint"))


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


def _difference(found: Comparison, difference: DifferingSpan) -> Iterator[Words]:
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
