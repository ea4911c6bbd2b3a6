"""Why these tokens: the reference at work, step by step, as values, JSON, text and HTML.

`explain` shows how a text is encoded, `explain_training` how merges are learned, `merge_tree` how a
token is built. Pre-tokens come from the caller's tokenizer. Nothing is printed here.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, Protocol

from byteweld.recipes import Recipe, TieBreak, find_recipe
from byteweld.reference.encode import EncodeStep, encode_greedy, encode_steps, utf8
from byteweld.reference.pretokenize import split_specials
from byteweld.reference.train import (
    Ids,
    LearnedMerge,
    Pair,
    StopReason,
    TrainStep,
    count_pretokens,
    in_tie_order,
    train,
)
from byteweld.render import columns, namer, visible
from byteweld.vocab import Vocabulary

if TYPE_CHECKING:
    from byteweld.markup import Html  # only HTML needs it

# The reference looks at every pair at every step, so the work grows with the square of this.
MAX_PRETOKEN_BYTES = 1024

MAX_ROWS = 12  # rows of a table
MAX_PARTS = 40  # parts of a pre-token on one line
_MAX_INDENT = 24  # levels of a tree that are drawn; deeper ones say their depth
_BAR = 20  # the longest bar


Specials = Literal["all"] | Set[str] | Sequence[str]
_Show = Callable[[int], str]  # how a token is named in a line


class _Tokenizer(Protocol):
    """What is needed of a tokenizer."""

    @property
    def vocab(self) -> Vocabulary: ...

    def pretokenize(self, text: str | bytes) -> list[bytes]: ...

    def encode(
        self, text: str | bytes, *, allowed_special: Specials, disallowed_special: Specials
    ) -> list[int]: ...


# ---------------------------------------------------------------------------- trees


@dataclass(frozen=True)
class TreeNode:
    """A token in a merge tree. `left` and `right` are places in the tree's list; None in a leaf."""

    id: int
    left: int | None = None
    right: int | None = None
    rank: int | None = None


@dataclass(frozen=True)
class DrawnNode:
    """A line of a drawn tree: the branches before a node, and the node."""

    before: str
    node: TreeNode

    @property
    def rank(self) -> str:
        """The node's rank in words."""
        return "" if self.node.rank is None else f"  rank {self.node.rank}"


@dataclass(frozen=True)
class Tree:
    """Merge trees side by side, one per token, as one flat list: a tree may be deeper than a stack.

    Children come before their parents; `roots` are the places of the final tokens, in order.
    """

    nodes: tuple[TreeNode, ...]
    roots: tuple[int, ...]
    tokens: Mapping[int, bytes]

    def lines(self, *, color: bool = False) -> list[str]:
        """Draw the trees, one node a line."""
        show = namer(self.tokens, color)
        return [
            f"{drawn.before}{show(drawn.node.id)}  {drawn.node.id}{drawn.rank}"
            for drawn in self.drawn()
        ]

    def drawn(self) -> list[DrawnNode]:
        """The nodes in the order in which they are drawn, each with what stands before it."""
        result = []
        for root in self.roots:
            # (place, what stands before it, what stands before its children, depth)
            stack = [(root, "", "", 0)]
            while stack:
                place, before, indent, depth = stack.pop()
                node = self.nodes[place]
                result.append(DrawnNode(before, node))
                if node.left is None or node.right is None:
                    continue
                if depth >= _MAX_INDENT:
                    mark = f"{'    ' * _MAX_INDENT}[{depth + 1}] "
                    stack.append((node.right, mark, indent, depth + 1))
                    stack.append((node.left, mark, indent, depth + 1))
                else:
                    stack.append((node.right, indent + "└── ", indent + "    ", depth + 1))
                    stack.append((node.left, indent + "├── ", indent + "│   ", depth + 1))
        return result

    def to_html(self) -> Html:
        """Draw the trees as a part of a page."""
        from byteweld.explaining._html import tree

        return tree(self)

    def _repr_html_(self) -> str:
        from byteweld.markup import fragment

        return fragment(self.to_html())

    def to_dict(self) -> dict[str, Any]:
        """Return the trees as JSON-able lists: [id, left, right, rank] per node, and the roots."""
        nodes = [[node.id, node.left, node.right, node.rank] for node in self.nodes]
        return {"nodes": nodes, "roots": list(self.roots)}


def _tree(steps: Iterable[EncodeStep], tokens: Mapping[int, bytes]) -> Tree:
    nodes: list[TreeNode] = []
    places: list[int] = []  # the node of each part
    for step in steps:
        if not places:
            nodes = [TreeNode(token_id) for token_id in step.parts]
            places = list(range(len(nodes)))
        if step.chosen is not None:
            at, rank, new = step.chosen
            nodes.append(TreeNode(new, places[at], places[at + 1], rank))
            places[at : at + 2] = [len(nodes) - 1]
    used = {node.id: tokens[node.id] for node in nodes}
    return Tree(tuple(nodes), tuple(places), used)


def merge_tree(
    vocab: Vocabulary, token_id: int, *, max_pretoken_bytes: int = MAX_PRETOKEN_BYTES
) -> Tree:
    """Return how the merges build one token. Several roots: no merges reach it from its bytes.

    >>> vocab = Vocabulary({b: bytes([b]) for b in range(256)} | {256: b"ab"}, [(97, 98, 256)])
    >>> print(*merge_tree(vocab, 256).lines(), sep="\\n")
    ab  256  rank 0
    ├── a  97
    └── b  98
    """
    if token_id not in vocab.tokens:
        raise KeyError(f"id {token_id!r} is not in the vocabulary of {len(vocab)} tokens")
    token = vocab.tokens[token_id]
    if token not in vocab.ids:  # a special token is one piece
        return Tree((TreeNode(token_id),), (0,), {token_id: token})
    _check_length(token, max_pretoken_bytes)
    return _tree(encode_steps(vocab, token, whole_first=False), vocab.tokens)


# ---------------------------------------------------------------------------- encoding


@dataclass(frozen=True)
class PairRow:
    """A pair that may merge: the place of its left part, both ids, its rank, the id it becomes."""

    at: int
    left: int
    right: int
    rank: int
    new: int


@dataclass(frozen=True)
class Step:
    """One step: the parts before it, the pairs that may merge (lowest rank first), the chosen."""

    parts: Ids
    rows: tuple[PairRow, ...]
    total_pairs: int
    chosen: PairRow | None


@dataclass(frozen=True)
class PretokenExplanation:
    """How one pre-token becomes ids.

    `looked_up` is the id of a pre-token that was found whole, before any merge; the steps then show
    what merging alone gives, which is `merged_ids`. `greedy_ids` is what longest match would give;
    it first differs at byte `greedy_differs_at` of the pre-token, or nowhere (None). A special
    token has no steps.
    """

    pretoken: bytes
    start: int
    ids: tuple[int, ...]
    looked_up: int | None
    steps: tuple[Step, ...]
    tree: Tree
    greedy_ids: tuple[int, ...]
    greedy_differs_at: int | None
    is_special: bool = False

    @property
    def merged_ids(self) -> tuple[int, ...]:
        """The ids that merging gives, whole look-up or not."""
        return self.steps[-1].parts if self.steps else self.ids


@dataclass(frozen=True)
class Explanation:
    """How a text becomes ids. `str()` is for people, `to_dict()` for programs."""

    pretokens: tuple[PretokenExplanation, ...]
    tokens: Mapping[int, bytes]  # of every id below

    @property
    def ids(self) -> list[int]:
        """The ids of the whole text."""
        return [token_id for pretoken in self.pretokens for token_id in pretoken.ids]

    def lines(self, *, color: bool = False) -> list[str]:
        """Return the explanation as lines of text; `color` is for a terminal."""
        show = namer(self.tokens, color)
        result = []
        for number, pretoken in enumerate(self.pretokens, 1):
            result += [*_pretoken_lines(number, pretoken, show, color), ""]
        return [*result, f"ids: {_join(self.ids)}".rstrip()]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_html(self) -> Html:
        """Return the explanation as a part of a page."""
        from byteweld.explaining._html import explanation

        return explanation(self)

    def _repr_html_(self) -> str:
        from byteweld.markup import fragment

        return fragment(self.to_html())

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able values: tokens once, by id; everything else by id."""
        return {
            "ids": self.ids,
            "tokens": _tokens_to_dict(self.tokens),
            "pretokens": [_pretoken_to_dict(pretoken) for pretoken in self.pretokens],
        }


def explain(
    tok: _Tokenizer,
    text: str | bytes,
    *,
    allowed_special: Specials = frozenset(),
    disallowed_special: Specials = "all",
    max_pretoken_bytes: int = MAX_PRETOKEN_BYTES,
) -> Explanation:
    """Show how `tok` encodes a text; special tokens are refused or allowed as in `encode`.

    Raises ValueError for a pre-token of more than `max_pretoken_bytes`: showing every step of n
    bytes takes n² time, and nobody reads it.
    """
    vocab = tok.vocab
    # Refuses what encode refuses.
    tok.encode(text, allowed_special=allowed_special, disallowed_special=disallowed_special)
    every = vocab.special_tokens
    allowed = [s for s in every if allowed_special == "all" or s in allowed_special]
    explained = []
    start = 0
    for piece in split_specials(utf8(text), allowed):
        if isinstance(piece, str):
            explained.append(_explain_special(piece.encode(), every[piece], start))
            start += len(piece.encode())
            continue
        for pretoken in tok.pretokenize(piece):
            _check_length(pretoken, max_pretoken_bytes)
            explained.append(_explain_pretoken(vocab, pretoken, start))
            start += len(pretoken)
    used: set[int] = set()
    for part in explained:
        used.update(part.ids, part.greedy_ids, part.tree.tokens)
        used.update(row.new for step in part.steps for row in step.rows)
    return Explanation(tuple(explained), {i: vocab.tokens[i] for i in sorted(used)})


def _explain_special(token: bytes, token_id: int, start: int) -> PretokenExplanation:
    return PretokenExplanation(
        pretoken=token,
        start=start,
        ids=(token_id,),
        looked_up=None,
        steps=(),
        tree=Tree((TreeNode(token_id),), (0,), {token_id: token}),
        greedy_ids=(token_id,),
        greedy_differs_at=None,
        is_special=True,
    )


def _check_length(pretoken: bytes, limit: int) -> None:
    if len(pretoken) > limit:
        raise ValueError(
            f"pre-token {pretoken[:20]!r}... has {len(pretoken)} bytes, too many to show step by "
            f"step (at most {limit}); take a shorter one, or raise max_pretoken_bytes"
        )


def _explain_pretoken(vocab: Vocabulary, pretoken: bytes, start: int) -> PretokenExplanation:
    whole = next(encode_steps(vocab, pretoken, offset=start))
    was_found = len(pretoken) > 1 and whole.parts == (vocab.ids.get(pretoken),)
    shown: list[Step] = []
    tree = _tree(_keep(encode_steps(vocab, pretoken, whole_first=False), shown), vocab.tokens)
    ids = whole.parts if was_found else shown[-1].parts
    greedy = tuple(encode_greedy(vocab, pretoken))
    return PretokenExplanation(
        pretoken=pretoken,
        start=start,
        ids=ids,
        looked_up=whole.parts[0] if was_found else None,
        steps=tuple(shown),
        tree=tree,
        greedy_ids=greedy,
        greedy_differs_at=_first_difference(vocab, pretoken, ids, greedy),
    )


def _keep(steps: Iterable[EncodeStep], shown: list[Step]) -> Iterator[EncodeStep]:
    """Pass steps on one by one; only what is shown of them stays in memory."""
    for step in steps:
        shown.append(_shown_step(step))
        yield step


def _shown_step(step: EncodeStep) -> Step:
    """Keep the rows of lowest rank. (All rows of all steps would be n² of them.)"""
    lowest = heapq.nsmallest(MAX_ROWS, step.candidates, key=lambda c: (c.rank, c.at))
    rows = tuple(
        PairRow(c.at, step.parts[c.at], step.parts[c.at + 1], c.rank, c.new) for c in lowest
    )
    chosen = rows[0] if step.chosen is not None else None
    return Step(step.parts, rows, len(step.candidates), chosen)


def _first_difference(
    vocab: Vocabulary, pretoken: bytes, ids: Sequence[int], other: Sequence[int]
) -> int | None:
    """Return the byte at which two encodings of a pre-token begin to differ."""
    offset = 0
    for ours, theirs in zip(ids, other, strict=False):
        if ours != theirs:
            return offset
        if ours == vocab.roles.get("unk"):  # it stands for one character, whatever its own bytes
            character = pretoken[offset : offset + 4].decode("utf-8", "surrogateescape")[0]
            offset += len(character.encode("utf-8", "surrogateescape"))
        else:
            offset += len(vocab.tokens[ours])
    return None


def _pretoken_lines(
    number: int, pretoken: PretokenExplanation, show: _Show, color: bool
) -> Iterator[str]:
    if pretoken.is_special:
        yield f"special token {number}: {visible(pretoken.pretoken)}  (byte {pretoken.start})"
        yield f"  ids: {_join(pretoken.ids)}"
        return
    yield f"pre-token {number}: {visible(pretoken.pretoken)}  (byte {pretoken.start})"
    yield f"  bytes: {_join(f'{byte:02x}' for byte in pretoken.pretoken)}"
    if pretoken.looked_up is not None:
        yield f"  found whole, before any merge: token {pretoken.looked_up}; merging does this:"
    for n, step in enumerate(pretoken.steps, 1):
        if step.chosen is None:
            yield f"  end: {_parts(step.parts, show)}  (no pair merges)"
            continue
        at = step.chosen.at
        yield f"  step {n}: {_parts(step.parts, show, at)}"
        rows = [
            [f"rank {row.rank}", f"{show(row.left)} {show(row.right)}", f"-> {row.new}"]
            for row in step.rows
        ]
        for line in _columns(rows, marks=["<- merged"]):
            yield f"    {line}"
        yield from _more(step.total_pairs - len(step.rows), "pair", indent=4)
    yield "  tree:"
    yield from (f"    {line}" for line in pretoken.tree.lines(color=color))
    yield f"  ids: {_join(pretoken.ids)}"
    if pretoken.looked_up is not None and pretoken.merged_ids != pretoken.ids:
        yield f"  merging alone would give {_join(pretoken.merged_ids)}"
    if pretoken.greedy_differs_at is None:
        yield "  longest match: the same"
    else:
        parts = _parts(pretoken.greedy_ids, show)
        yield (
            f"  longest match differs from byte {pretoken.greedy_differs_at}: {parts}  "
            f"ids {_join(pretoken.greedy_ids)}"
        )


def _pretoken_to_dict(pretoken: PretokenExplanation) -> dict[str, Any]:
    return {
        "bytes": pretoken.pretoken.hex(),
        "text": visible(pretoken.pretoken),
        "start": pretoken.start,
        "is_special": pretoken.is_special,
        "ids": list(pretoken.ids),
        "looked_up": pretoken.looked_up,
        "merged_ids": list(pretoken.merged_ids),
        "steps": [
            {
                "parts": list(step.parts),
                "pairs": [asdict(row) for row in step.rows],
                "total_pairs": step.total_pairs,
                "chosen": None if step.chosen is None else step.chosen.at,
            }
            for step in pretoken.steps
        ],
        "tree": pretoken.tree.to_dict(),
        "greedy_ids": list(pretoken.greedy_ids),
        "greedy_differs_at": pretoken.greedy_differs_at,
    }


# ---------------------------------------------------------------------------- training

_RULES: dict[TieBreak, str] = {
    "smallest-ids": "the smallest left id wins, then the smallest right id",
    "greatest-bytes": "the greatest pair of byte strings wins, left before right",
    "smallest-bytes": "the smallest pair of byte strings wins, left before right",
}

_STOPS: dict[StopReason, str] = {
    "size": "the vocabulary has the asked size",
    "no pairs": "no pair is left that may merge",
    "min frequency": "the best count is below min_frequency",
}


@dataclass(frozen=True)
class CountRow:
    """A pair and its count."""

    left: int
    right: int
    count: int


@dataclass(frozen=True)
class PretokenRow:
    """A pre-token of the corpus, its first parts, how many parts it has, and its count."""

    parts: Ids
    total_parts: int
    count: int


@dataclass(frozen=True)
class TrainingStep:
    """One merge: the pair table before it, the winner, whom it tied with, why it won, the corpus.

    `rows` has the highest counts, ties in tie order, so the winner is first. `tied` are the losers
    of a tie for the first place (the first of them), `total_tied` how many they are.
    """

    rows: tuple[CountRow, ...]
    total_pairs: int
    merge: LearnedMerge
    tied: tuple[CountRow, ...]
    total_tied: int
    why: str
    corpus: tuple[PretokenRow, ...]


@dataclass(frozen=True)
class TrainingExplanation:
    """How merges are learned. `str()` is for people, `to_dict()` for programs."""

    recipe: Recipe
    vocab: Vocabulary
    corpus: tuple[PretokenRow, ...]  # before the first merge
    total_pretokens: int  # always the same: two pre-tokens differ in bytes and never become one
    steps: tuple[TrainingStep, ...]
    stopped: StopReason

    @property
    def merges(self) -> tuple[LearnedMerge, ...]:
        """The merge log: every merge with its count."""
        return tuple(step.merge for step in self.steps)

    def lines(self, *, color: bool = False) -> list[str]:
        """Return the explanation as lines of text; `color` is for a terminal."""
        show = namer(self.vocab.tokens, color)
        result = ["corpus:", *_corpus_lines(self.corpus, self.total_pretokens, show), ""]
        for number, step in enumerate(self.steps, 1):
            result += [*_training_step_lines(number, step, show, self.total_pretokens), ""]
        result += [f"stopped after {len(self.steps)} merges: {self.stop_words}", ""]
        return [*result, *_merge_log_lines(self.merges, show), *_vocabulary_lines(self, show)]

    @property
    def stop_words(self) -> str:
        """Why the training stopped."""
        return _STOPS[self.stopped]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_html(self) -> Html:
        """Return the explanation as a part of a page."""
        from byteweld.explaining._html import training

        return training(self)

    def _repr_html_(self) -> str:
        from byteweld.markup import fragment

        return fragment(self.to_html())

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able values: tokens once, by id; everything else by id."""
        return {
            "recipe": self.recipe.name,
            "tie_break": self.recipe.tie_break,
            "tokens": _tokens_to_dict(self.vocab.tokens),
            "special_tokens": dict(self.vocab.special_tokens),
            "corpus": [asdict(row) for row in self.corpus],
            "total_pretokens": self.total_pretokens,
            "steps": [
                {
                    "pairs": [asdict(row) for row in step.rows],
                    "total_pairs": step.total_pairs,
                    "merge": step.merge._asdict(),
                    "tied": [asdict(row) for row in step.tied],
                    "total_tied": step.total_tied,
                    "why": step.why,
                    "corpus": [asdict(row) for row in step.corpus],
                }
                for step in self.steps
            ],
            "merges": [merge._asdict() for merge in self.merges],
            "stopped": self.stopped,
        }


def explain_training(
    documents: Iterable[str | bytes] | Mapping[bytes, int],
    vocab_size: int,
    recipe: str | Recipe = "plain",
) -> TrainingExplanation:
    """Train with the reference and show every step: for corpora of a page, not of a library.

    Args:
        documents: the texts, or counts of pre-tokens.
        vocab_size: as in `train`.
        recipe: a preset's name or a Recipe.
    """
    recipe = find_recipe(recipe)
    if isinstance(documents, str | bytes):
        raise TypeError("documents is one text; expected several, such as a list with one in it")
    counts = (
        documents
        if isinstance(documents, Mapping)
        else count_pretokens((utf8(document) for document in documents), recipe)
    )
    steps: list[TrainingStep] = []
    result = train(counts, vocab_size, recipe, lambda step: steps.append(_watch(step, recipe)))
    byte_ids = result.vocab.ids
    before = {
        tuple(byte_ids[bytes([byte])] for byte in pretoken): count
        for pretoken, count in counts.items()
        if count
    }
    return TrainingExplanation(
        recipe=recipe,
        vocab=result.vocab,
        corpus=_top_pretokens(before),
        total_pretokens=len(before),
        steps=tuple(steps),
        stopped=result.stopped,
    )


def _watch(step: TrainStep, recipe: Recipe) -> TrainingStep:
    """Keep what is shown of a step: the counts and the corpus change with the next one."""
    counts, merge = step.pair_counts, step.merge
    winner = (merge.left, merge.right)
    tied = [pair for pair, count in counts.items() if count == merge.pair_count and pair != winner]
    losers = in_tie_order(tied, step.tokens, recipe.tie_break)
    return TrainingStep(
        rows=tuple(CountRow(*pair, counts[pair]) for pair in _top_pairs(step, recipe.tie_break)),
        total_pairs=len(counts),
        merge=merge,
        tied=tuple(CountRow(*pair, counts[pair]) for pair in losers[:MAX_ROWS]),
        total_tied=len(losers),
        why=_why(winner, losers, step.tokens, recipe.tie_break),
        corpus=_top_pretokens(step.corpus),
    )


def _top_pairs(step: TrainStep, tie_break: TieBreak) -> list[Pair]:
    by_count: dict[int, list[Pair]] = {}
    for pair, count in step.pair_counts.items():
        by_count.setdefault(count, []).append(pair)
    ordered = (
        pair
        for count in sorted(by_count, reverse=True)
        for pair in in_tie_order(by_count[count], step.tokens, tie_break)
    )
    return list(islice(ordered, MAX_ROWS))


def _top_pretokens(corpus: Mapping[Ids, int]) -> tuple[PretokenRow, ...]:
    most = sorted(corpus.items(), key=lambda item: -item[1])[:MAX_ROWS]  # stable: first seen first
    return tuple(PretokenRow(ids[:MAX_PARTS], len(ids), count) for ids, count in most)


def _why(
    winner: Pair, losers: Sequence[Pair], tokens: Mapping[int, bytes], tie_break: TieBreak
) -> str:
    """Say in words why the winner won, against the next in tie order."""
    if not losers:
        return "it has the highest count"
    next_one = losers[0]
    side = 0 if winner[0] != next_one[0] else 1
    which = ("left", "right")[side]
    if tie_break == "smallest-ids":
        against = f"{which} id {winner[side]} is smaller than {next_one[side]}"
    else:
        word = "greater" if tie_break == "greatest-bytes" else "smaller"
        ours, theirs = tokens[winner[side]], tokens[next_one[side]]
        against = f"{which} {ours!r} is {word} than {theirs!r}"
    return f"{tie_break}: {_RULES[tie_break]}; {against}"


def _training_step_lines(
    number: int, step: TrainingStep, show: _Show, total_pretokens: int
) -> Iterator[str]:
    merge = step.merge
    yield f"step {number}:"
    best = step.rows[0].count
    rows = [
        [
            f"{show(row.left)} {show(row.right)}",
            f"{row.left} {row.right}",
            str(row.count),
            "#" * max(1, _BAR * row.count // best),
        ]
        for row in step.rows
    ]
    marks = ["<- merged"] + ["tie" if row.count == best else "" for row in step.rows[1:]]
    yield from (f"  {line}" for line in _columns(rows, marks))
    yield from _more(step.total_pairs - len(step.rows), "pair", indent=2)
    left, right = show(merge.left), show(merge.right)
    yield f"  merge ({left}, {right}) -> {merge.new} {show(merge.new)}"
    if step.total_tied:
        others = ", ".join(f"({show(row.left)}, {show(row.right)})" for row in step.tied)
        more = step.total_tied - len(step.tied)
        others += f" and {more} more" if more else ""
        yield f"  tie at {merge.pair_count} with {others}"
        yield f"  why: {step.why}"
    yield "  corpus:"
    yield from (f"  {line}" for line in _corpus_lines(step.corpus, total_pretokens, show))


def _corpus_lines(rows: Sequence[PretokenRow], total: int, show: _Show) -> Iterator[str]:
    width = max((len(str(row.count)) for row in rows), default=0)
    for row in rows:
        rest = row.total_parts - len(row.parts)
        more = f" ... {rest} more" if rest else ""
        parts = " ".join(map(show, row.parts))
        yield f"  {row.count:>{width}} x {parts}{more}"
    yield from _more(total - len(rows), "pre-token", indent=2)


def _merge_log_lines(merges: Sequence[LearnedMerge], show: _Show) -> Iterator[str]:
    yield "merges:"
    rows = [
        [
            f"rank {rank}",
            f"count {merge.pair_count}",
            f"({show(merge.left)}, {show(merge.right)})",
            f"-> {merge.new} {show(merge.new)}",
        ]
        for rank, merge in enumerate(merges)
    ]
    yield from (f"  {line}" for line in _columns(rows, []))
    yield ""


def _vocabulary_lines(training: TrainingExplanation, show: _Show) -> Iterator[str]:
    vocab = training.vocab
    learned = {merge.new for merge in training.merges}
    specials = set(vocab.special_tokens.values())
    yield f"vocabulary: {len(vocab)} tokens"
    base = [i for i in vocab.tokens if i not in learned and i not in specials]
    yield f"  ids {base[0]} to {base[-1]}: the {len(base)} single bytes"
    for text, token_id in vocab.special_tokens.items():
        also = ", learned too" if token_id in learned else ""
        yield f"  id {token_id}: {visible(text.encode())}  special{also}"
    for token_id in sorted(learned - specials):
        yield f"  id {token_id}: {show(token_id)}"


# ---------------------------------------------------------------------------- text


def _parts(parts: Sequence[int], show: _Show, chosen: int | None = None) -> str:
    """Show parts with spaces between, the chosen pair in brackets; of a long list, a window."""
    first = 0 if chosen is None else max(0, min(chosen - MAX_PARTS // 2, len(parts) - MAX_PARTS))
    last = min(len(parts), first + MAX_PARTS)
    shown = ["..."] if first else []
    for place in range(first, last):
        text = show(parts[place])
        if place == chosen:
            text = f"[{text}"
        elif chosen is not None and place == chosen + 1:
            text = f"{text}]"
        shown.append(text)
    return " ".join([*shown, "..."] if last < len(parts) else shown)


def _columns(rows: Sequence[Sequence[str]], marks: Sequence[str]) -> Iterator[str]:
    """Set rows in columns; a row may have a mark after its last."""
    every = [*marks, *[""] * len(rows)]
    return columns([[*row, mark] for row, mark in zip(rows, every, strict=False)])


def _more(count: int, what: str, indent: int) -> Iterator[str]:
    if count > 0:
        yield f"{' ' * indent}... and {count} more {what}{'s' if count > 1 else ''}"


def _join(values: Iterable[object]) -> str:
    return " ".join(map(str, values))


def _tokens_to_dict(tokens: Mapping[int, bytes]) -> dict[str, dict[str, str]]:
    return {
        str(token_id): {"bytes": token.hex(), "text": visible(token)}
        for token_id, token in tokens.items()
    }
