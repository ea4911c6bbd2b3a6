"""`byteweld tokenize`: encodes a corpus into a dataset for training."""

from __future__ import annotations

import dataclasses
import shlex
import time
from typing import Annotated, Any

import byteweld
from byteweld.cli import _corpus, _errors, _output
from byteweld.cli import _options as options
from byteweld.cli._command import Fields
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
        special_text (WHAT): How to treat special tokens that occur in the text. fail: stop with an
            error. text: encode them as ordinary text. special: encode each as its id. The manifest
            says how many there were. Default: text.
    """
    runner.check(source, threads)
    rank = ranks.open(runner, source, threads)
    tok = lacking.load(tokenizer)
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
        with Bars(sources) as bars:
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
    with Bars(sources) as bars:
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


class Bars(_corpus.Bars):
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
        return f"{_output.amount(event.documents, 'document')}, {event.tokens:,} tokens"


def _lines(manifest: Any, out: str, seconds: float | None) -> list[str]:
    tokens = manifest.tokens + manifest.dropped_tokens
    files = sum(len(shard.files) for shard in manifest.shards) + len(manifest.files)
    size = sum(file.size for shard in manifest.shards for file in shard.files)
    rate = f", {manifest.text_bytes / tokens:.3f} bytes per token" if tokens else ""
    lines = [
        f"{_output.amount(manifest.documents, 'document')}, "
        f"{_output.size(manifest.text_bytes)} of text → {_output.amount(tokens, 'token')}"
        f"{rate}"
    ]
    if len(manifest.splits) > 1 or manifest.options["pack"]:
        what = "row" if manifest.options["pack"] else "document"
        lines += [
            f"{name}: {_output.amount(split['documents'], what)}, "
            f"{_output.amount(split['tokens'], 'token')}"
            for name, split in manifest.splits.items()
        ]
    if manifest.dropped_tokens:
        lines.append(f"dropped at the end: {_output.amount(manifest.dropped_tokens, 'token')}")
    if manifest.skipped_documents:
        listed = len(manifest.skipped)
        which = "" if listed == manifest.skipped_documents else f"the first {listed:,} "
        lines.append(
            f"skipped {_output.amount(manifest.skipped_documents, 'document')}, {which}listed in "
            "manifest.json"
        )
    if manifest.special_text:
        how = {"text": "as text", "special": "as ids"}.get(manifest.options["special_text"], "")
        found = ", ".join(f"{text} ×{count:,}" for text, count in manifest.special_text.items())
        lines.append(_output.shortened(f"special tokens in the text, {how}: {found}", 200))
        lines += _separator_hint(manifest)
    time_taken = "" if seconds is None else f" ({_output.seconds(seconds)})"
    lines.append(
        f"{out}: {_output.amount(files, 'file')}, {_output.size(size)}, format {manifest.format}, "
        f"{manifest.dtype}{time_taken}"
    )
    return lines


def _separator_hint(manifest: Any) -> list[str]:
    """Suggest --separator if the end-of-text token seems to separate documents within files."""
    reading, eot = manifest.options["reading"], manifest.tokenizer["eot"]
    if eot is None or manifest.options["special_text"] != "text":
        return []
    if reading["separator"] is not None or reading["json_lines"]:
        return []
    if manifest.special_text.get(eot["text"], 0) < max(1, manifest.documents):
        return []
    separator = shlex.quote(eot["text"])
    return [f"  if it separates documents, run again with --force --separator {separator}"]


def _summary(made: Made, out: str, seconds: float) -> dict[str, Any]:
    manifest = made.manifest
    return {
        "out": out,
        "format": manifest.format,
        "dtype": manifest.dtype,
        "fingerprint": manifest.tokenizer["fingerprint"],
        "documents": manifest.documents,
        "tokens": manifest.tokens,
        "text_bytes": manifest.text_bytes,
        "splits": manifest.splits,
        "skipped_documents": manifest.skipped_documents,
        "special_text": manifest.special_text,
        "dropped_tokens": manifest.dropped_tokens,
        "files": [file.name for shard in manifest.shards for file in shard.files],
        "was_complete": made.was_complete,
        "resumed_documents": made.resumed_documents,
        "seconds": round(seconds, 3),
    }


def _estimate_lines(found: Estimate, plan: Plan, out: str) -> list[str]:
    about = "" if found.is_exact else "about "
    lines = [
        f"read: {_output.amount(found.files, 'file')}, {_output.size(found.source_bytes)}, "
        f"{about}{_output.amount(found.documents, 'document')}",
        f"write: {out}, format {plan.format.name}, {plan.options.dtype}, "
        f"{about}{_output.amount(found.tokens, 'token')}, {_output.size(found.dataset_bytes)}",
        f"time: about {_output.seconds(found.seconds)}",
    ]
    if plan.eot is not None:
        where = {"append": "after", "prepend": "before"}[plan.options.eot or ""]
        lines.append(f"end of text: {plan.eot.text} (id {plan.eot.id}) {where} each document")
    if not found.is_exact:
        lines.append(f"estimated from {_output.size(found.sampled_bytes)} of text")
    return lines
