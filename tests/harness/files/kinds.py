"""Every kind of file: its bases, how it is changed, and how it is read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.harness.files import bases, mutate
from tests.harness.files.bases import Files
from tests.harness.files.datasets import (
    MANIFEST,
    change_shard,
    dataset_bases,
    edit_manifest,
    run_dataset,
    sign_manifest,
)
from tests.harness.files.kind import (
    Change,
    Kind,
    change_bytes,
    json_changes,
    load_and_use,
    lose_file,
    on_json,
    swap_file,
)
from tests.harness.files.others import (
    cache_bases,
    change_counts_of_checkpoint,
    change_frame,
    change_log,
    change_part,
    change_record,
    change_table,
    corpus_bases,
    edit_head,
    edit_report,
    fit_manifest,
    packed_bases,
    repack,
    repack_ranks,
    report_bases,
    run_cache,
    run_checkpoint,
    run_corpus,
    run_counts,
    run_packed,
    run_report,
)
from tests.harness.files.vocabs import (
    change_bpe1,
    change_ck,
    change_merges_txt,
    change_ranks,
    config_bases,
    edit_bpetite,
    edit_config,
    edit_model,
    edit_pipeline,
    edit_sidecar,
    edit_tekken,
    edit_vocab_json,
    grow_ck,
    huggingface_bases,
    other_tokens,
    run_config,
    run_sidecar,
    sidecar_bases,
    sign_sidecar,
)

# ---------------------------------------------------------------------- the table


def _loaded(target: str, format: str) -> Callable[[Files, Path, int], bool]:
    return partial(load_and_use, target=target, format=format)


_BYTES_AND_FILES: list[tuple[float, Change]] = [
    (2.0, change_bytes),
    (0.2, lose_file),
    (0.5, swap_file),
]

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "bpe1",
            partial(bases.of_format, "bpe1", "v.bpe1"),
            [(2.0, change_bytes), (5.0, change_bpe1)],
            _loaded("v.bpe1", "bpe1"),
        ),
        Kind(
            "ck",
            partial(bases.of_format, "ck", "ck"),
            [
                *_BYTES_AND_FILES,
                (2.0, change_ck),
                (4.0, grow_ck),
                (1.0, on_json("ck/tokenizer_meta.json", mutate.change_json)),
            ],
            _loaded("ck", "ck"),
        ),
        Kind(
            "bpetite",
            partial(bases.of_format, "bpetite", "b.json"),
            json_changes("b.json", edit_bpetite, edit_bpetite),
            _loaded("b.json", "bpetite"),
        ),
        Kind(
            "huggingface",
            huggingface_bases,
            json_changes("tokenizer.json", edit_pipeline, edit_pipeline, edit_model),
            _loaded("tokenizer.json", "huggingface"),
        ),
        Kind(
            "tekken",
            lambda: [*bases.of_format("tekken", "tekken.json"), *bases.real_tekken()],
            json_changes("tekken.json", edit_tekken),
            _loaded("tekken.json", "tekken"),
        ),
        Kind(
            "gpt2",
            partial(bases.of_format, "gpt2", "gpt2"),
            [
                *_BYTES_AND_FILES,
                (4.0, change_merges_txt),
                (1.0, on_json("gpt2/vocab.json", mutate.change_json)),
                (2.0, on_json("gpt2/vocab.json", edit_vocab_json)),
                (2.0, on_json("gpt2/byteweld.json", edit_sidecar)),
            ],
            _loaded("gpt2", "gpt2"),
            sign_sidecar(("gpt2/vocab.json", "gpt2/merges.txt"), "gpt2/byteweld.json"),
        ),
        Kind(
            "tiktoken",
            sidecar_bases,
            [*_BYTES_AND_FILES, (4.0, change_ranks), (5.0, other_tokens)],
            run_sidecar,
            sign_sidecar(("r.tiktoken",), "r.tiktoken.byteweld.json"),
        ),
        Kind(
            "sidecar",
            sidecar_bases,
            json_changes("r.tiktoken.byteweld.json", edit_sidecar),
            run_sidecar,
            sign_sidecar(("r.tiktoken",), "r.tiktoken.byteweld.json"),
        ),
        Kind(
            "config",
            config_bases,
            json_changes("tokenizer_config.json", edit_config),
            run_config,
        ),
        Kind("report", report_bases, json_changes("t.training.json", edit_report), run_report),
        Kind(
            "cache",
            cache_bases,
            [
                (1.0, change_bytes),
                (3.0, change_table),
                (1.0, swap_file),
                (2.0, on_json("head.json", edit_head)),
                (1.0, on_json("head.json", mutate.change_json)),
            ],
            run_cache,
        ),
        Kind(
            "counts",
            bases.counts,
            [
                (1.0, change_bytes),
                (4.0, change_part),
                (1.0, on_json("counts.json", mutate.change_json)),
                (0.2, lose_file),
                (0.3, swap_file),
            ],
            run_counts,
            fit_manifest,
        ),
        Kind(
            "checkpoint",
            bases.checkpoints,
            [
                (6.0, change_log),
                (1.0, change_bytes),
                (1.0, on_json("checkpoint.json", mutate.change_json)),
                (0.5, change_counts_of_checkpoint),
            ],
            run_checkpoint,
        ),
        Kind(
            "dataset",
            dataset_bases,
            [
                (4.0, change_shard),
                (0.3, lose_file),
                (0.5, swap_file),
                (2.0, on_json(MANIFEST, edit_manifest)),
                (1.0, on_json(MANIFEST, mutate.change_json)),
                (0.3, change_bytes),
            ],
            run_dataset,
            sign_manifest,
        ),
        Kind(
            "archive",
            partial(corpus_bases, (".gz", ".xz", ".zst", ".bz2")),
            [(2.0, change_bytes), (3.0, change_frame), (2.0, repack)],
            run_corpus,
        ),
        Kind(
            "jsonl",
            partial(corpus_bases, ("",)),
            [(2.0, change_bytes), (6.0, change_record)],
            run_corpus,
        ),
        Kind(
            "packed",
            packed_bases,
            [(2.0, change_bytes), (2.0, change_frame), (3.0, repack_ranks)],
            run_packed,
        ),
    )
}


def fingerprint(files: Files) -> str:
    """A short name for a case."""
    made = hashlib.sha256()
    for name, data in sorted(files.items()):
        made.update(name.encode() + b"\0" + data)
    return made.hexdigest()[:12]
