"""`byteweld tokenize`: encodes a corpus into a dataset for training."""

from __future__ import annotations

import dataclasses
import shlex
import time
from collections.abc import Iterator
from typing import Annotated, Any

import byteweld
from byteweld.cli import _corpus, _errors, _output
from byteweld.cli import _options as options
from byteweld.cli._command import Fields
from byteweld.cli._output import amount, size
from byteweld.cli._runner import RankOptions, RunnerOptions, say_rank
from byteweld.dataset.estimate import Estimate, estimate
from byteweld.dataset.make import Made, Progress, encode_share
from byteweld.dataset.make import make as make_dataset
from byteweld.dataset.options import Options, Plan
from byteweld.jobs import Runner
from byteweld.sources import Sources

EXAMPLES = """
byteweld tokenize books/ --tokenizer tokenizer.json --out data
byteweld tokenize 'shards/*.jsonl.zst' -t tokenizer.json --out data --validation 0.001 --shuffle
byteweld tokenize web.parquet -t gpt2.json --out data --format megatron --prefix web
byteweld tokenize books/ -t tokenizer.json --out data --format parquet --pack 2048
byteweld tokenize books/ -t tokenizer.json --out data --dry-run
byteweld tokenize s3://bucket/crawl -t tokenizer.json --out s3://bucket/data --runner ray
byteweld tokenize crawl/ -t tokenizer.json --out data --rank $SLURM_ARRAY_TASK_ID --world-size 64
"""

# Of the stages of a run; in tasks, some count files: of a slice, a bucket or a shard.
_UNITS: dict[str, _output.Unit] = {"encoding": "bytes", "grouping": "files", "writing": "files"}

WORDS = {
    "dataset_formats": "; ".join(
        f"{f.name}: {f.summary}" for f in byteweld.DATASET_FORMATS.values()
    )
}
_FIELDS = Fields(
    Options,
    "Dataset",
    tuple(field.name for field in dataclasses.fields(Options) if field.name != "format"),
)


def run(
    source: list[str],
    *,
    out: str,
    tokenizer: str = options.DEFAULT_TOKENIZER,
    format: Annotated[str, tuple(byteweld.DATASET_FORMATS)] = "flat",
    layout: Annotated[dict[str, Any], _FIELDS],
    reading: options.Reading,
    dry_run: bool = False,
    threads: options.Positive | None = None,
    runner: RunnerOptions,
    ranks: RankOptions,
    force: bool = False,
    json: bool = False,
    lacking: options.Lacking,
) -> None:
    """Encode a corpus into a dataset: the files that training frameworks read.

    If it is interrupted, even by SIGKILL, the same command continues where it left off, and the
    result has the same bytes. manifest.json lists the sources, the options, the tokenizer's
    fingerprint and the SHA-256 of every file; `byteweld verify` checks them.

    Args:
        dry_run: Write nothing; say what would be read and written, with estimated size and time.
        force: Start over if DIR holds a dataset.

    Dataset:
        out (DIR): The folder of the dataset: new, empty, or that of an interrupted run, which
            resumes.
        format: The format of the dataset: {dataset_formats}.
        special_text (WHAT): {special_text} The manifest says how many there were. Default: text.
    """
    runner.check(source, threads)
    rank = ranks.open(runner, source, threads)
    tok = options.load_tokenizer(tokenizer, **lacking)
    plan = Options(format=format, **layout).complete(tok)
    sources = _corpus.open_all(source, None, reading, without=out)
    if dry_run:
        found = estimate(sources, tok, plan, num_threads=threads)
        if json:
            _output.report({"out": out, "format": format, **found._asdict()})
        else:
            _output.lines(_estimate_lines(found, plan, out))
        return
    if rank is not None:
        if force:
            raise _errors.UsageError(
                "--force would remove what other ranks have done; remove the folder before they "
                "start"
            )
        with TokenizeBars(sources) as bars:
            encode_share(rank, sources, tok, out, plan, progress=bars.on_progress)
        say_rank(rank, out)
        return
    with runner.open() as running:
        made, seconds = make(sources, tok, out, plan, threads=threads, force=force, runner=running)
    if json:
        _output.report(_summary(made, out, seconds))
    else:
        show(made, out, seconds)


def make(
    sources: Sources,
    tok: byteweld.Tokenizer,
    out: str,
    plan: Plan,
    *,
    threads: int | None,
    force: bool,
    runner: Runner | None = None,
) -> tuple[Made, float]:
    """Make the dataset with a progress bar; returns what was made and the seconds it took."""
    started = time.perf_counter()
    with TokenizeBars(sources) as bars:
        made = make_dataset(
            sources,
            tok,
            out,
            plan,
            runner=runner,
            overwrite=force,
            num_threads=threads,
            progress=bars.on_progress,
        )
    return made, time.perf_counter() - started


def show(made: Made, out: str, seconds: float) -> None:
    """Say what was made."""
    if made.was_complete:
        _output.say(f"{out} is complete already; nothing to do (--force starts over)")
    _output.lines(_lines(made.manifest, out, None if made.was_complete else seconds))


class TokenizeBars(_corpus.Bars):
    """A progress bar for each stage."""

    _latest: Progress | None = None

    def on_progress(self, event: Progress) -> None:
        """Show how far the run is; say at once if it resumes, or why it starts over."""
        if event.note:
            _output.say(event.note)
        self._latest = event
        unit: _output.Unit = _UNITS.get(event.stage, "documents")
        self.show(event.stage, event.done, event.total, unit, self._detail)

    def _detail(self) -> str:
        event = self._latest
        if event is None or event.stage != "encoding":
            return ""
        return f"{amount(event.documents, 'document')}, {event.tokens:,} tokens"


def _lines(manifest: Any, out: str, seconds: float | None) -> Iterator[str]:
    tokens = manifest.tokens + manifest.dropped_tokens
    rate = f", {manifest.text_bytes / tokens:.3f} bytes per token" if tokens else ""
    documents, skipped = manifest.documents, manifest.skipped_documents
    of_text = f"{amount(documents, 'document')}, {size(manifest.text_bytes)} of text"
    yield f"{of_text} → {amount(tokens, 'token')}{rate}"
    if len(manifest.splits) > 1 or manifest.options["pack"]:
        what = "row" if manifest.options["pack"] else "document"
        for name, split in manifest.splits.items():
            yield f"{name}: {amount(split['documents'], what)}, {amount(split['tokens'], 'token')}"
    if manifest.dropped_tokens:
        yield f"dropped at the end: {amount(manifest.dropped_tokens, 'token')}"
    if skipped:
        listed = len(manifest.skipped)
        which = "" if listed == skipped else f"the first {listed:,} "
        yield f"skipped {amount(skipped, 'document')}, {which}listed in manifest.json"
    if manifest.special_text:
        how = {"text": "as text", "special": "as ids"}.get(manifest.options["special_text"], "")
        found = ", ".join(f"{text} ×{count:,}" for text, count in manifest.special_text.items())
        yield _output.shortened(f"special tokens in the text, {how}: {found}", 200)
        if _may_be_separated(manifest):
            separator = shlex.quote(manifest.tokenizer["eot"]["text"])
            yield f"  if it separates documents, run again with --force --separator {separator}"
    written = [file.size for shard in manifest.shards for file in shard.files]
    files = amount(len(written) + len(manifest.files), "file")
    took = "" if seconds is None else f" ({_output.seconds(seconds)})"
    yield f"{out}: {files}, {size(sum(written))}, format {manifest.format}, {manifest.dtype}{took}"


def _may_be_separated(manifest: Any) -> bool:
    """Whether the end-of-text token seems to separate documents within files."""
    reading, eot = manifest.options["reading"], manifest.tokenizer["eot"]
    if eot is None or manifest.options["special_text"] != "text":
        return False
    if reading["separator"] is not None or reading["json_lines"]:
        return False
    return bool(manifest.special_text.get(eot["text"], 0) >= max(1, manifest.documents))


def _summary(made: Made, out: str, seconds: float) -> dict[str, Any]:
    manifest = made.manifest
    names = ("documents", "tokens", "text_bytes", "splits", "skipped_documents", "special_text")
    return {
        "out": out,
        "format": manifest.format,
        "dtype": manifest.dtype,
        "fingerprint": manifest.tokenizer["fingerprint"],
        **{name: getattr(manifest, name) for name in (*names, "dropped_tokens")},
        "files": [file.name for shard in manifest.shards for file in shard.files],
        "was_complete": made.was_complete,
        "resumed_documents": made.resumed_documents,
        "seconds": round(seconds, 3),
    }


def _estimate_lines(found: Estimate, plan: Plan, out: str) -> Iterator[str]:
    about = "" if found.is_exact else "about "
    files, documents = amount(found.files, "file"), amount(found.documents, "document")
    yield f"read: {files}, {size(found.source_bytes)}, {about}{documents}"
    written = f"{about}{amount(found.tokens, 'token')}, {size(found.dataset_bytes)}"
    yield f"write: {out}, format {plan.format.name}, {plan.options.dtype}, {written}"
    yield f"time: about {_output.seconds(found.seconds)}"
    if plan.eot is not None:
        where = {"append": "after", "prepend": "before"}[plan.options.eot or ""]
        yield f"end of text: {plan.eot.text} (id {plan.eot.id}) {where} each document"
    if not found.is_exact:
        yield f"estimated from {size(found.sampled_bytes)} of text"
