"""Render explanations as HTML, for notebooks and reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from byteweld.explanation import (
    ExampleRow,
    Explanation,
    PretokenExplanation,
    PretokenRow,
    Step,
    TrainingExplanation,
    TrainingStep,
    Tree,
)
from byteweld.markup import Child, Html, element, folded, joined, more, section, table, tint, trees
from byteweld.markup.charts import Bar, bars
from byteweld.render import tile, visible, width

_MAX_STEPS = 100  # per pre-token, or per training
_MAX_PARTS = 60  # per step
_MAX_TOKENS = 1000  # per text
_TREE_HINT = (
    "In a merge tree, the bytes are at the bottom and the tokens at the top; the number above a "
    "token is the rank of its merge, and lower ranks merge first."
)
_MAX_NAMED = 40  # tokens in the description of a drawing
_MAX_TILES = 50_000  # per page; a tile takes about a hundred bytes


def _tiles(ids: Sequence[int], tokens: Mapping[int, bytes], chosen: int | None = None) -> Child:
    """Return a row of tokens, the chosen pair emphasized; only a window of a long list."""
    first = 0 if chosen is None else max(0, min(chosen - _MAX_PARTS // 2, len(ids) - _MAX_PARTS))
    last = min(len(ids), first + _MAX_PARTS)
    pair = () if chosen is None else (chosen, chosen + 1)
    made = [
        tile(ids[index], tokens[ids[index]], kind="chosen" if index in pair else "")
        for index in range(first, last)
    ]
    return ["… " if first else "", made, " …" if last < len(ids) else ""]


def _numbers(ids: Sequence[int]) -> str:
    return " ".join(map(str, ids))


def tree(drawn: Tree) -> Html:
    """Return merge trees as a drawing; the same as text, collapsed."""
    if len(drawn.nodes) == 1:
        return _as_text(drawn)
    tokens = drawn.tokens
    nodes = []
    for node in drawn.nodes:
        label = visible(tokens[node.id])
        rank = "" if node.rank is None else f", rank {node.rank}"
        kind = f"{tint(node.id)}{' leaf' if node.left is None else ''}"
        title = f"{label}: id {node.id}{rank}"
        nodes.append(trees.Node(label, width(label), title, kind, node.left, node.right, node.rank))
    roots = [visible(tokens[drawn.nodes[root].id]) for root in drawn.roots]
    shown = " ".join(roots[:_MAX_NAMED]) + (" …" if len(roots) > _MAX_NAMED else "")
    what = f"merge tree of {shown}" if len(roots) == 1 else f"merge trees of the tokens {shown}"
    return joined(
        trees.tree(nodes, drawn.roots, f"{what}; the number above a token is its rank"),
        folded("the same as text", _as_text(drawn)),
    )


def _as_text(drawn: Tree) -> Html:
    return element(
        "div",
        [
            [
                line.before,
                tile(line.node.id, drawn.tokens[line.node.id]),
                element("span", f"  {line.node.id}{line.rank}", class_="rank"),
                "\n",
            ]
            for line in drawn.drawn()
        ],
        class_="tree",
        tabindex="0",
    )


# ---------------------------------------------------------------------------- encoding


def explanation(explained: Explanation) -> Html:
    """Return how a text becomes ids."""
    tokens = explained.tokens
    specials = {part.ids[0] for part in explained.pretokens if part.is_special}
    ids = explained.ids
    shown = [tile(i, tokens[i], is_special=i in specials) for i in ids[:_MAX_TOKENS]]
    parts = _that_fit(explained.pretokens)
    return joined(
        element("p", shown, class_="tokens"),
        more(len(ids) - len(shown), "token"),
        element("p", ["ids ", element("code", _numbers(ids[:_MAX_TOKENS]))], class_="hint"),
        element("p", _TREE_HINT, class_="hint") if explained.pretokens else None,
        [_pretoken(number, part, tokens) for number, part in enumerate(parts, 1)],
        more(len(explained.pretokens) - len(parts), "pre-token"),
    )


def _that_fit(pretokens: Sequence[PretokenExplanation]) -> list[PretokenExplanation]:
    """Return as many of the first pre-tokens as fit on a page, at least one."""
    found: list[PretokenExplanation] = []
    tiles = 0
    for part in pretokens:
        tiles += min(len(part.steps), _MAX_STEPS) * (min(len(part.pretoken), _MAX_PARTS) + 8)
        tiles += 8 * len(part.pretoken)  # in a drawing, a token takes about four times as much
        if found and tiles > _MAX_TILES:
            break
        found.append(part)
    return found


def _pretoken(number: int, part: PretokenExplanation, tokens: Mapping[int, bytes]) -> Html:
    name = visible(part.pretoken[:80])
    if part.is_special:
        return section(
            f"Special token {number}: {name}",
            hint=f"byte {part.start}; id {part.ids[0]}, never merged",
        )
    shown = part.pretoken[:64].hex(" ") + (" …" if len(part.pretoken) > 64 else "")
    found = None
    if part.looked_up is not None:
        found = f"found whole, before any merge: token {part.looked_up}; merging alone:"
    merging = None
    if part.looked_up is not None and part.merged_ids != part.ids:
        merging = element("p", f"merging alone would give {_numbers(part.merged_ids)}")
    return section(
        f"Pre-token {number}: {name}",
        tree(part.tree),
        element("h3", "Step by step"),
        None if found is None else element("p", found),
        _steps(part.steps, tokens),
        merging,
        _greedy(part, tokens),
        hint=f"byte {part.start}; bytes {shown}",
    )


def _steps(steps: Sequence[Step], tokens: Mapping[int, bytes]) -> Html:
    rows: list[list[Child]] = []
    for number, step in enumerate(steps[:_MAX_STEPS], 1):
        if step.chosen is None:
            rows.append(["end", _tiles(step.parts, tokens), "no pair can merge"])
            continue
        others = [row for row in step.rows if row != step.chosen][:4]
        rest = step.total_pairs - 1 - len(others)
        waiting = [
            [tile(row.left, tokens[row.left]), tile(row.right, tokens[row.right]), f" {row.rank}  "]
            for row in others
        ]
        rest_words = f"and {rest:,} more" if rest else ""
        after: Child = ["; waiting: ", waiting, rest_words] if others else None
        rows.append(
            [
                str(number),
                _tiles(step.parts, tokens, step.chosen.at),
                [element("b", f"rank {step.chosen.rank} → {step.chosen.new}"), after],
            ]
        )
    made = table(["step", "parts", "the pair of lowest rank merges"], rows, numbers=[0])
    return joined(made, more(len(steps) - _MAX_STEPS, "step"))


def _greedy(part: PretokenExplanation, tokens: Mapping[int, bytes]) -> Html:
    if part.greedy_differs_at is None:
        return element("p", "greedy longest match would give the same", class_="hint")
    return element(
        "p",
        f"greedy longest match differs from byte {part.greedy_differs_at}: ",
        _tiles(part.greedy_ids, tokens),
        element("span", f"  ids {_numbers(part.greedy_ids)}", class_="rank"),
    )


# ---------------------------------------------------------------------------- training


def training(explained: TrainingExplanation) -> Html:
    """Return how merges are learned."""
    tokens = explained.vocab.tokens
    log = table(
        ["rank", "count", "pair", "becomes", "id"],
        [
            [
                rank,
                f"{merge.pair_count:,}",
                [tile(merge.left, tokens[merge.left]), tile(merge.right, tokens[merge.right])],
                tile(merge.new, tokens[merge.new]),
                merge.new,
            ]
            for rank, merge in enumerate(explained.merges)
        ],
        numbers=[0, 1, 4],
    )
    words = f"recipe {explained.recipe.name}; ties: {explained.recipe.tie_break}"
    return joined(
        element("p", words, class_="hint"),
        section(
            "Merges",
            log,
            hint=f"stopped after {len(explained.steps):,}: {explained.stop_words}",
        ),
        section("Corpus", _corpus(explained.corpus, explained.total_pretokens, tokens)),
        [
            _training_step(number, step, explained)
            for number, step in enumerate(explained.steps[:_MAX_STEPS], 1)
        ],
        more(len(explained.steps) - _MAX_STEPS, "step"),
    )


def _training_step(number: int, step: TrainingStep, explained: TrainingExplanation) -> Html:
    tokens = explained.vocab.tokens
    best = step.rows[0].count
    rows = [
        Bar(
            [tile(row.left, tokens[row.left]), tile(row.right, tokens[row.right])],
            [row.count],
            [f"{row.count:,}{_mark(index, row.count == best)}"],
        )
        for index, row in enumerate(step.rows)
    ]
    return section(
        f"Step {number}",
        bars(("pair", "count"), rows),
        more(step.total_pairs - len(step.rows), "pair"),
        element("p", f"why: {step.why}") if step.total_tied else None,
        None if step.is_in_corpus else _example(step.example, tokens),
        folded(
            "the corpus after this merge", _corpus(step.corpus, explained.total_pretokens, tokens)
        ),
    )


def _example(example: ExampleRow, tokens: Mapping[int, bytes]) -> Html:
    start, end = ("" if example.is_start else "… "), ("" if example.is_end else " …")
    before, after = _tiles(example.before, tokens), _tiles(example.after, tokens)
    count = f"for example, {example.count:,} × "
    return element("p", [count, start, before, end, " → ", start, after, end])


def _mark(index: int, has_best_count: bool) -> str:
    if index == 0:
        return " ← merged"
    return " tie" if has_best_count else ""


def _corpus(rows: Sequence[PretokenRow], total: int, tokens: Mapping[int, bytes]) -> Html:
    made = table(
        ["count", "pre-token"],
        [
            [
                f"{row.count:,}",
                [_tiles(row.parts, tokens), " …" if row.total_parts > len(row.parts) else ""],
            ]
            for row in rows
        ],
        numbers=[0],
    )
    return joined(made, more(total - len(rows), "pre-token"))
