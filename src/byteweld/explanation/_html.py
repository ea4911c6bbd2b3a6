"""Explanations as HTML: every step of encoding or training, for notebooks and reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from byteweld.explanation import (
    Explanation,
    PretokenExplanation,
    PretokenRow,
    Step,
    TrainingExplanation,
    TrainingStep,
    Tree,
)
from byteweld.markup import Child, Html, element, folded, joined, section, table
from byteweld.markup.charts import Bar, bars
from byteweld.render import tile, visible

_MAX_STEPS = 100  # of one pre-token, or of a training
_MAX_PARTS = 60  # of one step
_MAX_TOKENS = 1000  # of the text
_MAX_TILES = 50_000  # in all; a tile is some hundred bytes of page


def _tiles(ids: Sequence[int], tokens: Mapping[int, bytes], chosen: int | None = None) -> Child:
    """Tokens side by side, the chosen pair with a heavier edge; of a long list, a window."""
    first = 0 if chosen is None else max(0, min(chosen - _MAX_PARTS // 2, len(ids) - _MAX_PARTS))
    last = min(len(ids), first + _MAX_PARTS)
    pair = () if chosen is None else (chosen, chosen + 1)
    made = [
        tile(ids[place], tokens[ids[place]], kind="chosen" if place in pair else "")
        for place in range(first, last)
    ]
    return ["… " if first else "", made, " …" if last < len(ids) else ""]


def _numbers(ids: Sequence[int]) -> str:
    return " ".join(map(str, ids))


def _left_out(count: int, what: str) -> Html | None:
    return element("p", f"… and {count:,} {what} more", class_="hint") if count > 0 else None


def tree(drawn: Tree) -> Html:
    """Merge trees, drawn with lines."""
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
    )


# ---------------------------------------------------------------------------- encoding


def explanation(explained: Explanation) -> Html:
    """How a text becomes ids."""
    tokens = explained.tokens
    specials = {part.ids[0] for part in explained.pretokens if part.is_special}
    ids = explained.ids
    shown = [tile(i, tokens[i], is_special=i in specials) for i in ids[:_MAX_TOKENS]]
    parts = _that_fit(explained.pretokens)
    return joined(
        element("p", shown, class_="tokens"),
        _left_out(len(ids) - len(shown), "tokens"),
        element("p", ["ids ", element("code", _numbers(ids[:_MAX_TOKENS]))], class_="hint"),
        [_pretoken(number, part, tokens) for number, part in enumerate(parts, 1)],
        _left_out(len(explained.pretokens) - len(parts), "pre-tokens"),
    )


def _that_fit(pretokens: Sequence[PretokenExplanation]) -> list[PretokenExplanation]:
    """The first pre-tokens, as many as a page has room for; at least one."""
    found: list[PretokenExplanation] = []
    room = _MAX_TILES
    for part in pretokens:
        room -= min(len(part.steps), _MAX_STEPS) * (min(len(part.pretoken), _MAX_PARTS) + 8)
        room -= 2 * len(part.pretoken)
        if found and room < 0:
            break
        found.append(part)
    return found


def _pretoken(number: int, part: PretokenExplanation, tokens: Mapping[int, bytes]) -> Html:
    name = visible(part.pretoken[:80])
    if part.is_special:
        return section(
            f"special token {number}: {name}",
            hint=f"byte {part.start}; id {part.ids[0]}, never merged",
        )
    shown = part.pretoken[:64].hex(" ") + (" …" if len(part.pretoken) > 64 else "")
    found = None
    if part.looked_up is not None:
        found = f"found whole, before any merge: token {part.looked_up}; merging does this:"
    merging = None
    if part.looked_up is not None and part.merged_ids != part.ids:
        merging = element("p", f"merging alone would give {_numbers(part.merged_ids)}")
    return section(
        f"pre-token {number}: {name}",
        None if found is None else element("p", found),
        _steps(part.steps, tokens),
        element("h3", "merge tree"),
        tree(part.tree),
        merging,
        _greedy(part, tokens),
        hint=f"byte {part.start}; bytes {shown}",
    )


def _steps(steps: Sequence[Step], tokens: Mapping[int, bytes]) -> Html:
    rows: list[list[Child]] = []
    for number, step in enumerate(steps[:_MAX_STEPS], 1):
        if step.chosen is None:
            rows.append(["end", _tiles(step.parts, tokens), "no pair merges"])
            continue
        others = [row for row in step.rows if row != step.chosen][:4]
        rest = step.total_pairs - 1 - len(others)
        waiting = [
            [tile(row.left, tokens[row.left]), tile(row.right, tokens[row.right]), f" {row.rank}  "]
            for row in others
        ]
        more = f"and {rest} more" if rest else ""
        after: Child = ["; waiting: ", waiting, more] if others else None
        rows.append(
            [
                str(number),
                _tiles(step.parts, tokens, step.chosen.at),
                [element("b", f"rank {step.chosen.rank} → {step.chosen.new}"), after],
            ]
        )
    made = table(["step", "parts", "the pair of lowest rank merges"], rows, numbers=[0])
    return joined(made, _left_out(len(steps) - _MAX_STEPS, "steps"))


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
    """How merges are learned."""
    tokens = explained.vocab.tokens
    log = table(
        ["rank", "count", "pair", "becomes", "id"],
        [
            [
                rank,
                merge.pair_count,
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
            "merges",
            log,
            hint=f"stopped after {len(explained.steps)}: {explained.stop_words}",
        ),
        section("corpus", _corpus(explained.corpus, explained.total_pretokens, tokens)),
        [
            _training_step(number, step, explained)
            for number, step in enumerate(explained.steps[:_MAX_STEPS], 1)
        ],
        _left_out(len(explained.steps) - _MAX_STEPS, "steps"),
    )


def _training_step(number: int, step: TrainingStep, explained: TrainingExplanation) -> Html:
    tokens = explained.vocab.tokens
    best = step.rows[0].count
    rows = [
        Bar(
            [tile(row.left, tokens[row.left]), tile(row.right, tokens[row.right])],
            [row.count],
            [f"{row.count:,}{_mark(place, row.count == best)}"],
        )
        for place, row in enumerate(step.rows)
    ]
    return section(
        f"step {number}",
        bars(("pair", "count"), rows),
        _left_out(step.total_pairs - len(step.rows), "pairs"),
        element("p", f"why: {step.why}") if step.total_tied else None,
        folded("the corpus after it", _corpus(step.corpus, explained.total_pretokens, tokens)),
    )


def _mark(place: int, has_best_count: bool) -> str:
    if place == 0:
        return " ← merged"
    return " tie" if has_best_count else ""


def _corpus(rows: Sequence[PretokenRow], total: int, tokens: Mapping[int, bytes]) -> Html:
    made = table(
        ["times", "pre-token"],
        [
            [
                row.count,
                [_tiles(row.parts, tokens), " …" if row.total_parts > len(row.parts) else ""],
            ]
            for row in rows
        ],
        numbers=[0],
    )
    return joined(made, _left_out(total - len(rows), "pre-tokens"))
