"""Every kind of file: its bases, how it is changed, and how it is read."""

from __future__ import annotations

import hashlib
from functools import partial

from tests.harness.files import bases, datasets, kind, mutate, others, vocabs
from tests.harness.files.bases import Files
from tests.harness.files.kind import Kind, json_changes, load_and_use, on_json

MANIFEST = datasets.MANIFEST
BYTES = (2.0, kind.change_bytes)
BYTES_AND_FILES = [BYTES, (0.2, kind.lose_file), (0.5, kind.swap_file)]
SIDECAR = "r.tiktoken.byteweld.json"


def _saved(name: str, path: str, changes: list[kind.Weighted], *finish: kind.Finish) -> Kind:
    """A kind of file that a format saves."""
    read = partial(load_and_use, target=path, format=name)
    return Kind(name, partial(bases.of_format, name, path), changes, read, *finish)


_ALL = (
    _saved("bpe1", "v.bpe1", [BYTES, (5.0, vocabs.change_bpe1)]),
    _saved(
        *("ck", "ck"),
        [
            *BYTES_AND_FILES,
            (2.0, vocabs.change_ck),
            (4.0, vocabs.grow_ck),
            (1.0, on_json("ck/tokenizer_meta.json", mutate.change_json)),
        ],
    ),
    _saved("bpetite", "b.json", json_changes("b.json", vocabs.edit_bpetite, vocabs.edit_bpetite)),
    Kind(
        *("huggingface", vocabs.huggingface_bases),
        json_changes(
            "tokenizer.json", vocabs.edit_pipeline, vocabs.edit_pipeline, vocabs.edit_model
        ),
        partial(load_and_use, target="tokenizer.json", format="huggingface"),
    ),
    Kind(
        "tekken",
        lambda: [*bases.of_format("tekken", "tekken.json"), *bases.real_tekken()],
        json_changes("tekken.json", vocabs.edit_tekken),
        partial(load_and_use, target="tekken.json", format="tekken"),
    ),
    _saved(
        *("gpt2", "gpt2"),
        [
            *BYTES_AND_FILES,
            (4.0, vocabs.change_merges_txt),
            (1.0, on_json("gpt2/vocab.json", mutate.change_json)),
            (2.0, on_json("gpt2/vocab.json", vocabs.edit_vocab_json)),
            (2.0, on_json("gpt2/byteweld.json", vocabs.edit_sidecar)),
        ],
        vocabs.sign_sidecar(("gpt2/vocab.json", "gpt2/merges.txt"), "gpt2/byteweld.json"),
    ),
    *(
        Kind(
            *(name, vocabs.sidecar_bases, changes, vocabs.run_sidecar),
            vocabs.sign_sidecar(("r.tiktoken",), SIDECAR),
        )
        for name, changes in (
            (
                "tiktoken",
                [*BYTES_AND_FILES, (4.0, vocabs.change_ranks), (5.0, vocabs.other_tokens)],
            ),
            ("sidecar", json_changes(SIDECAR, vocabs.edit_sidecar)),
        )
    ),
    Kind(
        *("config", vocabs.config_bases),
        json_changes("tokenizer_config.json", vocabs.edit_config),
        vocabs.run_config,
    ),
    Kind(
        *("report", others.report_bases),
        json_changes("t.training.json", others.edit_report),
        others.run_report,
    ),
    Kind(
        *("cache", others.cache_bases),
        [
            (1.0, kind.change_bytes),
            (3.0, others.change_table),
            (1.0, kind.swap_file),
            (2.0, on_json("head.json", others.edit_head)),
            (1.0, on_json("head.json", mutate.change_json)),
        ],
        others.run_cache,
    ),
    Kind(
        *("counts", bases.counts),
        [
            (1.0, kind.change_bytes),
            (4.0, others.change_part),
            (1.0, on_json("counts.json", mutate.change_json)),
            (0.2, kind.lose_file),
            (0.3, kind.swap_file),
        ],
        *(others.run_counts, others.fit_manifest),
    ),
    Kind(
        *("checkpoint", bases.checkpoints),
        [
            (6.0, others.change_log),
            (1.0, kind.change_bytes),
            (1.0, on_json("checkpoint.json", mutate.change_json)),
            (0.5, others.change_counts_of_checkpoint),
        ],
        others.run_checkpoint,
    ),
    Kind(
        *("dataset", datasets.dataset_bases),
        [
            (4.0, datasets.change_shard),
            (0.3, kind.lose_file),
            (0.5, kind.swap_file),
            (2.0, on_json(MANIFEST, datasets.edit_manifest)),
            (1.0, on_json(MANIFEST, mutate.change_json)),
            (0.3, kind.change_bytes),
        ],
        *(datasets.run_dataset, datasets.sign_manifest),
    ),
    Kind(
        *("archive", partial(others.corpus_bases, (".gz", ".xz", ".zst", ".bz2"))),
        [BYTES, (3.0, others.change_frame), (2.0, others.repack)],
        others.run_corpus,
    ),
    Kind(
        *("jsonl", partial(others.corpus_bases, ("",))),
        [BYTES, (6.0, others.change_record)],
        others.run_corpus,
    ),
    Kind(
        *("table", others.table_bases, [(1.0, kind.change_bytes), (4.0, others.change_footer)]),
        others.run_table,
    ),
    Kind(
        *("packed", others.packed_bases),
        [BYTES, (2.0, others.change_frame), (3.0, others.repack_ranks)],
        others.run_packed,
    ),
)
KINDS: dict[str, Kind] = {one.name: one for one in _ALL}


def fingerprint(files: Files) -> str:
    """A short name for a case."""
    made = hashlib.sha256()
    for name, data in sorted(files.items()):
        made.update(name.encode() + b"\0" + data)
    return made.hexdigest()[:12]
