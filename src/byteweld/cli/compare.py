"""`byteweld compare`: the bytes per token and the ids of tokenizers on a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import byteweld
from byteweld.cli import DONE, FAILED, NO, _errors, _output
from byteweld.cli import _options as options
from byteweld.cli._documents import CorpusDocuments, say_resumed
from byteweld.cli._page import Shown
from byteweld.cli._runner import RunnerOptions
from byteweld.comparison._report import summary
from byteweld.comparison.corpora import MAX_DIFFERENCES, compare_files
from byteweld.jobs.comparing import compare_corpus

EXAMPLES = """
byteweld compare mine.json theirs.json books/
byteweld compare cl100k_base o200k_base mine.json src/ --ext .py,.rs --no-fail
byteweld compare mine.json theirs.json chats.jsonl --special-text text --html report.html
byteweld compare mine.json r50k.tiktoken books/ --pattern gpt2 --no-special --json
byteweld compare mine.json theirs.json s3://crawl/ --runner ray --address auto
"""


def _existing(path: str) -> str:
    """The path of a tokenizer's file; raises what loading raises if there is none."""
    file = options.file_of(path)
    if not Path(file).exists():
        options.load_tokenizer(path)
    return file


def _is_tokenizer(path: str) -> bool:
    return options.is_name(path) or byteweld.formats.recognized(options.file_of(path)) is not None


def _load(paths: list[str], lacking: options.Lacking) -> list[byteweld.Tokenizer]:
    """Load tokenizers; options that none of them needs are an error."""
    needs = [
        not options.is_name(path)
        and bool(byteweld.FORMATS[byteweld.recognize(_existing(path))].needs)
        for path in paths
    ]
    if lacking and not any(needs):
        every = "both" if len(paths) == 2 else "all"
        raise _errors.UsageError(
            f"{every} files have their own pattern and special tokens; "
            "leave --pattern, --special and --no-special out"
        )
    return [
        options.load_tokenizer(path, **lacking) if is_needed else options.load_tokenizer(path)
        for path, is_needed in zip(paths, needs, strict=True)
    ]


def run(
    first: str,
    second: str,
    source: list[str],
    *,
    differences: options.Natural = MAX_DIFFERENCES,
    no_fail: bool = False,
    special_text: options.SpecialText = "special",
    threads: options.Positive | None = None,
    shown: Shown,
    lacking: options.Lacking,
    reading: options.Reading,
    runner: RunnerOptions,
) -> int:
    """Encode a corpus with several tokenizers and compare the results.

    Reports which tokenizer needs the fewest tokens, and by how much: bytes per token in total, by
    script and by file. Then whether all ids are identical, how many spans are split differently,
    and the first of them in context (or, if all splits agree, the first tokens with different ids).
    The exit code is 1 if ids differ.

    With --runner ray, slices of the corpus are compared in tasks; the result is the same. With
    --work, what tasks have found is kept until the end, so that the same command resumes.

    Args:
        first (A): A tokenizer: a file, a folder, or the name of a vocabulary (see `byteweld list`).
        second (B): Another tokenizer. More of them may follow.
        differences: Show at most N differences.
        no_fail: Exit with code 0 even if ids differ; errors still exit with 2.
    """
    runner.check(source, threads)
    shown.check()
    paths = [first, second]
    while len(source) > 1 and _is_tokenizer(source[0]):
        paths.append(source.pop(0))
    tokenizers = _load(paths, lacking)
    files = CorpusDocuments(source, reading)
    how: dict[str, Any] = {
        "names": paths,
        "max_differences": differences,
        **options.special_arguments(special_text),
    }
    with (
        runner.open(threads, keeps=True) as tasks,
        files.progress("comparing", is_stored=tasks is not None) as advance,
    ):
        if tasks is None:
            found = compare_files(tokenizers, files, num_threads=threads, progress=advance, **how)
            skipped = files.skipped
        else:
            found, skipped = compare_corpus(
                tasks, tokenizers, files.corpus, progress=advance, resumed=say_resumed, **how
            )
    files.say_skipped(skipped)
    if not found.total.documents:
        _output.say("byteweld: the corpus contains no documents, so nothing was compared")
        return FAILED
    with _output.until_closed():
        shown.show(" and ".join(paths), found, summary=summary(found))
    return DONE if found.is_identical or no_fail else NO
