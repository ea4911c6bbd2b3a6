"""What is shown of explanations: merge trees, the steps of encoding, the steps of training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from byteweld._amounts import amount
from byteweld.markup import Child, tint, trees
from byteweld.render import visible, width
from byteweld.report import (
    Code,
    Custom,
    Folded,
    InText,
    Listing,
    OnPage,
    Report,
    Section,
    Table,
    Text,
    Token,
    Words,
    text_of,
)

if TYPE_CHECKING:
    from byteweld.explanation._encoding import Explanation, PretokenExplanation, Step
    from byteweld.explanation._training import (
        CountRow,
        PretokenRow,
        TrainingExplanation,
        TrainingStep,
    )
    from byteweld.explanation._tree import Tree
    from byteweld.training.plan import LearnedMerge

MAX_ROWS = 12  # rows of a table
MAX_PARTS = 40  # parts of a pre-token on a line
_MAX_INDENT = 24  # levels drawn with branches; deeper nodes give their depth as a number
_MAX_STEPS = 100  # on a page, per pre-token or per training
_MAX_TOKENS = 1000  # on a page, per text
_MAX_NAMED = 40  # tokens in the description of a drawing
_MAX_TILES = 50_000  # per page; a tile takes about a hundred bytes
_TREE_HINT = (
    "In a merge tree, the bytes are at the bottom and the tokens at the top; the number above a "
    "token is the rank of its merge, and lower ranks merge first."
)

Tokens = Mapping[int, bytes]


def _parts(
    ids: Sequence[int], tokens: Tokens, chosen: int | None = None, most: int = MAX_PARTS
) -> Words:
    """Join parts with spaces, the chosen pair in brackets; show only a window of a long list."""
    first = 0 if chosen is None else max(0, min(chosen - most // 2, len(ids) - most))
    last = min(len(ids), first + most)
    shown: list[Words] = ["..."] if first else []
    for at in range(first, last):
        in_pair = chosen is not None and at - chosen in (0, 1)
        token = Token(ids[at], tokens[ids[at]], kind="chosen" if in_pair else "")
        shown.append(["[" * (at == chosen), token, "]" * (at - 1 == chosen)] if in_pair else token)
    shown += ["..."] if last < len(ids) else []
    return [[" " * bool(at), part] for at, part in enumerate(shown)]


def _numbers(ids: Sequence[int]) -> str:
    return " ".join(map(str, ids))


# ---------------------------------------------------------------------------- trees


def tree_part(drawn: Tree) -> Custom:
    """Return merge trees: lines on a terminal, a drawing on a page, with the lines collapsed."""
    lines = Listing(list(_branches(drawn)))

    def page() -> Child:
        if len(drawn.nodes) == 1:
            return lines.html()
        return [_drawing(drawn), Folded("the same as text", lines).html()]

    return Custom(page, lines.lines)


def _branches(tree: Tree) -> Iterator[Words]:
    """Yield the nodes in drawing order, each with the branches left of it."""
    for root in tree.roots:
        # (index, branches left of it, indentation of its children, depth)
        stack = [(root, "", "", 0)]
        while stack:
            index, before, indent, depth = stack.pop()
            node = tree.nodes[index]
            rank = "" if node.rank is None else f"  rank {node.rank}"
            yield [before, Token(node.id, tree.tokens[node.id]), f"  {node.id}{rank}"]
            if node.left is None or node.right is None:
                continue
            marks = [(indent + "└── ", indent + "    "), (indent + "├── ", indent + "│   ")]
            if depth >= _MAX_INDENT:
                marks = [(f"{'    ' * _MAX_INDENT}[{depth + 1}] ", indent)] * 2
            for child, (mark, inner) in zip((node.right, node.left), marks, strict=True):
                stack.append((child, mark, inner, depth + 1))


def _drawing(drawn: Tree) -> Child:
    nodes = []
    for node in drawn.nodes:
        label = visible(drawn.tokens[node.id])
        rank = "" if node.rank is None else f", rank {node.rank}"
        kind = f"{tint(node.id)}{' leaf' if node.left is None else ''}"
        title = f"{label}: id {node.id}{rank}"
        nodes.append(trees.Node(label, width(label), title, kind, node.left, node.right, node.rank))
    roots = [visible(drawn.tokens[drawn.nodes[root].id]) for root in drawn.roots]
    shown = " ".join(roots[:_MAX_NAMED]) + (" …" if len(roots) > _MAX_NAMED else "")
    what = f"merge tree of {shown}" if len(roots) == 1 else f"merge trees of the tokens {shown}"
    return trees.tree(nodes, drawn.roots, f"{what}; the number above a token is its rank")


# ---------------------------------------------------------------------------- encoding


def explanation(found: Explanation) -> Report:
    """Return how a text becomes ids."""
    tokens, ids = found.tokens, found.ids[:_MAX_TOKENS]
    specials = {part.ids[0] for part in found.pretokens if part.is_special}
    tiles = [Token(i, tokens[i], kind="special" if i in specials else "") for i in ids]
    fitting = _that_fit(found.pretokens)
    return Report(
        "",
        OnPage(Text([tiles], "tokens")),
        _more_on_page(len(found.ids) - len(ids), "token"),
        OnPage(
            Text(
                [["ids ", Code(_numbers(ids))], *([_TREE_HINT] if found.pretokens else [])], "hint"
            )
        ),
        *(
            _pretoken(number, part, tokens, is_on_page=number <= fitting)
            for number, part in enumerate(found.pretokens, 1)
        ),
        _more_on_page(len(found.pretokens) - fitting, "pre-token"),
        InText(Text([f"ids: {_numbers(found.ids)}".rstrip()])),
    )


def _more_on_page(count: int, noun: str) -> OnPage | None:
    return OnPage(Text([f"… and {amount(count, f'more {noun}')}"], "hint")) if count > 0 else None


def _that_fit(pretokens: Sequence[PretokenExplanation]) -> int:
    """Return how many of the first pre-tokens fit on a page, at least one."""
    tiles = 0
    for at, part in enumerate(pretokens):
        tiles += min(len(part.steps), _MAX_STEPS) * (min(len(part.pretoken), MAX_PARTS) + 8)
        tiles += 8 * len(part.pretoken)  # in a drawing, a token takes about four times as much
        if at and tiles > _MAX_TILES:
            return at
    return len(pretokens)


def _pretoken(
    number: int, part: PretokenExplanation, tokens: Tokens, *, is_on_page: bool
) -> Section:
    kind = "special token" if part.is_special else "pre-token"
    title = f"{kind} {number}: {visible(part.pretoken)}  (byte {part.start})"
    ids = [f"ids: {_numbers(part.ids)}"]
    if part.is_special:
        return Section(title, Text(ids), is_on_page=is_on_page)
    whole = f"found whole, before any merge: token {part.looked_up}; merging alone:"
    is_found = part.looked_up is not None
    if is_found and part.merged_ids != part.ids:
        ids.append(f"merging alone would give {_numbers(part.merged_ids)}")
    greedy: Words = "longest match: the same"
    if part.greedy_differs_at is not None:
        parts = _parts(part.greedy_ids, tokens)
        differs = f"longest match differs from byte {part.greedy_differs_at}: "
        greedy = [differs, parts, f"  ids {_numbers(part.greedy_ids)}"]
    tree = tree_part(part.tree)
    return Section(
        title,
        Text([f"bytes: {part.pretoken.hex(' ')}"], "hint"),
        OnPage(tree),
        Text([whole]) if is_found else None,
        Custom(lambda: _steps_table(part.steps, tokens), lambda color: _steps(part, tokens, color)),
        InText(Section("tree:", tree)),
        Text([*ids, greedy]),
        is_on_page=is_on_page,
    )


def _steps(part: PretokenExplanation, tokens: Tokens, color: bool) -> Iterator[str]:
    """Yield every step with the pairs that can merge."""
    for number, step in enumerate(part.steps, 1):
        if step.chosen is None:
            yield f"end: {text_of(_parts(step.parts, tokens), color)}  (no pair can merge)"
            continue
        yield f"step {number}: {text_of(_parts(step.parts, tokens, step.chosen.at), color)}"
        rows = [
            (
                f"rank {row.rank}",
                [Token(row.left, tokens[row.left]), " ", Token(row.right, tokens[row.right])],
                f"-> {row.new}",
                "" if at else "<- merged",
            )
            for at, row in enumerate(step.rows)
        ]
        heads = ("rank", "pair", "becomes", "")
        table = Table(heads, rows, "pair", range(4), has_heads=False, size=step.total_pairs)
        yield from (f"  {line}" for line in table.lines(color))


def _steps_table(steps: Sequence[Step], tokens: Tokens) -> Child:
    """Return every step as a row, with some of the pairs that wait."""
    rows: list[list[Words]] = []
    for number, step in enumerate(steps, 1):
        if step.chosen is None:
            rows.append(["end", _parts(step.parts, tokens), "no pair can merge"])
            continue
        others = [row for row in step.rows if row != step.chosen][:4]
        rest = step.total_pairs - 1 - len(others)
        after: list[Words] = [f"rank {step.chosen.rank} → {step.chosen.new}"]
        for at, row in enumerate(others):
            pair = [Token(row.left, tokens[row.left]), Token(row.right, tokens[row.right])]
            after += ["" if at else "; waiting: ", pair, f" {row.rank}  "]
        if others and rest:
            after.append(f"and {rest:,} more")
        rows.append([str(number), _parts(step.parts, tokens, step.chosen.at), after])
    heads = ("step", "parts", "the pair of lowest rank merges")
    table = Table(heads, rows, "step", (1, 2), name=0, on_page=_MAX_STEPS, shown=_MAX_STEPS)
    return table.html()


# ---------------------------------------------------------------------------- training


def training(found: TrainingExplanation) -> Report:
    """Return how merges are learned."""
    tokens = found.vocab.tokens
    words = f"recipe {found.recipe.name}; ties: {found.recipe.tie_break}"
    stopped = f"stopped after {amount(len(found.steps), 'merge')}: {found.stop_words}"
    return Report(
        "",
        OnPage(Text([words], "hint"), _merges(found.merges, tokens, hint=stopped)),
        Section("corpus:", _corpus(found.corpus, found.total_pretokens, tokens)),
        *(
            _training_step(number, step, found, is_on_page=number <= _MAX_STEPS)
            for number, step in enumerate(found.steps, 1)
        ),
        _more_on_page(len(found.steps) - _MAX_STEPS, "step"),
        InText(Text([stopped])),
        _merges(found.merges, tokens, is_on_page=False),
        _vocabulary(found),
    )


def _training_step(
    number: int, step: TrainingStep, found: TrainingExplanation, *, is_on_page: bool
) -> Section:
    tokens, merge = found.vocab.tokens, step.merge

    def pair(row: CountRow | LearnedMerge, between: str) -> Words:
        return [Token(row.left, tokens[row.left]), between, Token(row.right, tokens[row.right])]

    best = step.rows[0].count
    rows = [
        (
            *(pair(row, " "), f"{row.left} {row.right}", row.count),
            ("tie" if row.count == best else "") if at else "<- merged",
        )
        for at, row in enumerate(step.rows)
    ]
    table = Table(
        ("pair", "ids", "count", ""),
        rows,
        "pair",
        left=[0, 1, 3],
        name=0,
        charted=[2],
        bar="#" * 20,
        has_heads=False,
        shown=MAX_ROWS,
        size=step.total_pairs,
    )
    new = Token(merge.new, tokens[merge.new])
    words: list[Words] = [["merge (", pair(merge, ", "), f") -> {merge.new} ", new]]
    if step.total_tied:
        tied: list[Words] = [f"tie at {merge.pair_count:,} with "]
        for at, row in enumerate(step.tied):
            tied += [", (" if at else "(", pair(row, ", "), ")"]
        more = step.total_tied - len(step.tied)
        words += [[*tied, f" and {more:,} more" if more else ""], f"why: {step.why}"]
    example: list[Words] = []
    if not step.is_in_corpus:
        place = step.example
        start, end = ("" if place.is_start else "... "), ("" if place.is_end else " ...")
        for name, ids in (("before:", place.before), ("after:", place.after)):
            shown = _parts(ids, tokens, most=len(ids))
            example.append([f"{name:<8}{place.count:,} x {start}", shown, end])
    return Section(
        f"step {number}:",
        table,
        Text(words),
        Listing(example),
        Section("corpus:", _corpus(step.corpus, found.total_pretokens, tokens), is_folded=True),
        is_on_page=is_on_page,
    )


def _corpus(rows: Sequence[PretokenRow], total: int, tokens: Tokens) -> Listing:
    digits = max((len(f"{row.count:,}") for row in rows), default=0)
    lines: list[Words] = []
    for row in rows:
        rest = row.total_parts - len(row.parts)
        parts = _parts(row.parts, tokens)
        lines.append([f"{row.count:>{digits},} x ", parts, f" ... {rest:,} more" if rest else ""])
    if total > len(rows):
        lines.append(f"... and {amount(total - len(rows), 'more pre-token')}")
    return Listing(lines)


def _merges(
    merges: Sequence[LearnedMerge], tokens: Tokens, *, hint: str = "", is_on_page: bool = True
) -> Section:
    rows: list[list[Words]] = []
    for rank, merge in enumerate(merges):
        left, right, new = (Token(i, tokens[i]) for i in merge[:3])
        pair: Words = ["(", left, ", ", right, ")"]
        becomes: Words = [f"-> {merge.new} ", new]
        rows.append([f"rank {rank}", f"count {merge.pair_count:,}", pair, becomes])
    heads, size = ("rank", "count", "pair", "becomes"), len(rows)
    table = Table(heads, rows, "merge", range(4), 0, has_heads=False, on_page=size, shown=size)
    return Section("merges:", table, hint=hint or None, is_on_page=is_on_page)


def _vocabulary(found: TrainingExplanation) -> Section:
    vocab = found.vocab
    learned = {merge.new for merge in found.merges}
    specials = set(vocab.special_tokens.values())
    base = [i for i in vocab.tokens if i not in learned and i not in specials]
    lines: list[Words] = [f"ids {base[0]} to {base[-1]}: the {len(base)} single bytes"]
    for text, token_id in vocab.special_tokens.items():
        also = ", learned too" if token_id in learned else ""
        lines.append(f"id {token_id}: {visible(text.encode())}  special{also}")
    for i in sorted(learned - specials):
        lines.append([f"id {i}: ", Token(i, vocab.tokens[i])])
    return Section(f"vocabulary: {len(vocab)} tokens", Listing(lines), is_on_page=False)
