"""`byteweld inspect`: shows a tokenizer, a dataset, or a corpus's bytes; measures a tokenizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import byteweld
from byteweld.cli import _bytes, _errors, _overview
from byteweld.cli import _options as options
from byteweld.cli._documents import CorpusDocuments
from byteweld.cli._options import SpecialText
from byteweld.cli._page import Shown
from byteweld.dataset._manifest import dataset_folder, is_dataset
from byteweld.render import token_names, visible
from byteweld.report import Displayable, OnPage, Report, Section

if TYPE_CHECKING:
    from byteweld.evaluation.corpora import Evaluation

EXAMPLES = """
byteweld inspect tokenizer.json
byteweld inspect tokenizer.json --merges 20
byteweld inspect tokenizer.json --tree ' the'
byteweld inspect cl100k.tiktoken --pattern cl100k --no-special --json
byteweld inspect tokenizer.json --corpus books/ --corpus code/ --ext .txt,.py
byteweld inspect tokenizer.json --corpus books/ --special-text text --html report.html
byteweld inspect --bytes drawing.svg
byteweld inspect --bytes drawings/ --ext .svg
byteweld inspect data/ --tokenizer tokenizer.json
"""


def run(
    tokenizer: str | None = None,
    *,
    merges: str | None = None,
    tree: str | None = None,
    bytes_of: str | None = None,
    corpus: list[str] | None = None,
    of_dataset: str | None = None,
    special_text: SpecialText | None = None,
    shown: Shown,
    threads: options.Positive | None = None,
    loading: options.Loading,
    reading: options.Reading,
) -> None:
    """Show a tokenizer: its size, pattern, special tokens, longest and unreachable tokens.

    A token is unreachable if encoding its own bytes gives other tokens.

    With --corpus, measures it on a corpus instead: bytes per token, tokens per word and whole
    words, by file and script; rare and unused tokens; Rényi efficiency; one sentence in many
    languages; digits and indentation; and whether every document survives a round trip.

    For a dataset, shows what it was made from and how, a histogram of document lengths, and the
    first documents.

    Args:
        tokenizer: A file, a folder, or the name of a vocabulary. Or a dataset: the folder that
            `byteweld tokenize` made, or its manifest.json. Default: tokenizer.json.
        merges ([N]): Print the merges in order, or only the first N.
        tree (TOKEN): Draw the merge tree of a token, given by its text or id.
        bytes_of (--bytes SOURCE): Show which byte values a file, folder or glob uses (- for
            standard input), and whether `train --ascii-only` would accept it. Takes no TOKENIZER.
        corpus (SOURCE): Measure the tokenizer on these files, folders or globs, or - for standard
            input. May be repeated.
        of_dataset (-t --tokenizer PATH): The tokenizer that made a dataset, to decode its first
            documents. Without TOKENIZER, the tokenizer to show.
        special_text (WHAT): {special_text} Default: special.
    """
    if sum(asked is not None for asked in (merges, tree, bytes_of, corpus)) > 1:
        raise _errors.UsageError("inspect takes one of --merges, --tree, --bytes and --corpus")
    if tokenizer is None and bytes_of is None:
        tokenizer, of_dataset = of_dataset or "tokenizer.json", None
    if bytes_of is not None and (tokenizer is not None or loading):
        raise _errors.UsageError("inspect --bytes takes no TOKENIZER, and no options of one")
    if corpus is None and (special_text or threads):
        raise _errors.UsageError("--special-text and --threads need --corpus")
    if corpus is None and bytes_of is None and reading:
        raise _errors.UsageError("the reading options need --corpus or --bytes")
    shown.check()
    if tokenizer is not None and is_dataset(dataset_folder(tokenizer)):
        if merges is not None or tree is not None or corpus is not None:
            raise _errors.UsageError("inspect takes no --merges, --tree or --corpus for a dataset")
        from byteweld.cli import _dataset  # imports numpy, which is slow

        tok = None if of_dataset is None else options.load_tokenizer(of_dataset, **loading)
        shown.show(tokenizer, _dataset.Contents(tokenizer, tok))
        return
    if of_dataset is not None:
        raise _errors.UsageError(
            "--tokenizer needs a dataset, to decode its documents; to inspect a tokenizer, "
            "pass it as TOKENIZER"
        )
    if bytes_of is not None:
        shown.show(f"Bytes of {bytes_of}", _bytes.HeatMap(bytes_of, reading))
        return
    assert tokenizer is not None  # checked above
    tok = options.load_tokenizer(tokenizer, **loading)
    if merges is not None:
        count = _merge_count(tok, merges)
        shown.show(f"Merges of {tokenizer}", _overview.Merges(tok.vocab, count))
        return
    if tree is not None:
        _show_tree(shown, tok, tree)
        return
    by_name = "an encoding by name" if options.is_name(tokenizer) else None
    kind = loading.get("format") or by_name or byteweld.recognize(options.file_of(tokenizer))
    overview = _overview.Overview(tok, tokenizer, kind)
    if corpus is None:
        shown.show(tokenizer, overview)
        return
    from byteweld.evaluation.corpora import evaluate_files  # as above

    files = CorpusDocuments(corpus, reading)
    arguments: Any = options.special_arguments(special_text or "special")
    with files.progress("measuring") as advance:
        found = evaluate_files(tok, files, num_threads=threads, progress=advance, **arguments)
    files.say_skipped()
    both = EvaluatedTokenizer(found, overview)
    shown.show(tokenizer, both, path=tokenizer, fingerprint=tok.vocab.fingerprint)


@dataclass(repr=False)
class EvaluatedTokenizer(Displayable):
    """An evaluation, with the overview of its tokenizer on a page."""

    evaluation: Evaluation
    overview: _overview.Overview

    def report(self) -> Report:
        """Return the evaluation, then the overview."""
        report = self.evaluation.report()
        overview = OnPage(Section("the tokenizer", *self.overview.report(probes=False).parts))
        return Report(report.headline, *report.parts, overview, kind=report.kind)

    def to_dict(self) -> dict[str, Any]:
        """Return the evaluation as JSON-serializable values."""
        return self.evaluation.to_dict()


def _merge_count(tok: byteweld.Tokenizer, asked: str) -> int:
    if tok.vocab.ranking == "ranks":
        raise _errors.UsageError("this tokenizer ranks tokens by id and has no merge list")
    if not asked:
        return len(tok.vocab.merge_ids)
    if not (asked.isascii() and asked.isdigit() and len(asked) <= 10):
        raise _errors.UsageError(
            f"--merges is {asked!r}; expected a whole number, or no value for all merges"
        )
    return int(asked)


def _show_tree(shown: Shown, tok: byteweld.Tokenizer, asked: str) -> None:
    token_id = _find_token(tok, asked)
    try:
        drawn = byteweld.merge_tree(tok.vocab, token_id)
    except ValueError as error:  # too long; the hint names an argument of the API
        raise _errors.UsageError(str(error).partition(";")[0]) from None
    shown.show(f"Token {token_id}", drawn, tokens=token_names(drawn.tokens))


def _find_token(tok: byteweld.Tokenizer, asked: str) -> int:
    """Find a token by its text, by its text as shown, or by its id."""
    token = asked.encode("utf-8", "surrogateescape")
    number = int(asked) if asked.isascii() and asked.isdigit() and len(asked) <= 10 else None
    found = tok.vocab.ids.get(token, tok.vocab.special_tokens.get(asked))
    if found is None:
        found = next((i for i, t in tok.vocab.tokens.items() if visible(t) == asked), number)
    if found is not None and found in tok.vocab.tokens:
        return found
    raise _errors.UsageError(
        f"{asked!r} is neither a token nor an id of this tokenizer; "
        f"it encodes to {' '.join(map(str, tok.encode_ordinary(asked))) or 'no ids'}"
    )
