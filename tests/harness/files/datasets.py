"""Token datasets of every format: a manifest and its shards."""

from __future__ import annotations

import hashlib
import json
import tempfile
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import byteweld
from byteweld.cli._dataset import Contents
from byteweld.dataset.formats import FORMATS
from tests.harness.files import mutate
from tests.harness.files.bases import Files, read_folder
from tests.harness.files.kind import write
from tests.harness.files.use import attempt
from tests.helpers.byte_datasets import BYTES, EOT, make_dataset, with_eot

MANIFEST = "manifest.json"
_TEXTS = ("ab cab", "", "x", "Ünï", "abab" * 80)
_COUNTS = (0, 1, 2, 3, 255, 256, 2**16, 2**31 - 1, 2**31, 2**32, 2**53, 2**61, 2**63 - 1, 2**63)


def dataset_bases() -> list[Files]:
    """A dataset of each format, and a packed one.

    Not Parquet: pyarrow ends the process on some damaged footers. `verify` does not open those.
    """
    found = []
    documents = with_eot(*_TEXTS)
    for format in FORMATS.values():
        if format.name == "parquet":
            continue
        with tempfile.TemporaryDirectory() as made:
            shards = [documents[:2], documents[2:]]
            make_dataset(Path(made), shards, [with_eot("val")], format=format.name)
            found.append(read_folder(Path(made)))
        if format.has_rows:
            with tempfile.TemporaryDirectory() as made:
                options = {"eot": "append", "pack": 3}
                rows = [[[1, EOT, 2], [3, 4, EOT]]]
                make_dataset(Path(made), rows, format=format.name, options=options)
                found.append(read_folder(Path(made)))
    return found


def edit_manifest(rng: Random, value: Any) -> Any:
    """Change a count, a format, a dtype, a name, or the files of a shard."""
    shard = rng.choice(value["shards"])
    file = rng.choice(shard["files"])
    edit = rng.randrange(7)
    if edit == 0:
        key = rng.choice(("documents", "tokens", "number"))
        shard[key] = rng.choice((*_COUNTS, shard[key] + 1, shard[key] - 1))
    elif edit == 1:
        value["format"] = rng.choice([*FORMATS, "other"])
    elif edit == 2:
        value["dtype"] = rng.choice(("uint8", "uint16", "int32", "uint32", "int64", "uint64", "f4"))
    elif edit == 3:
        file["name"] = rng.choice(("../x", "/etc/passwd", "", MANIFEST, "train", "a" * 300, "\0"))
    elif edit == 4:
        rng.shuffle(shard["files"])
    elif edit == 5:
        shard["continues"] = not shard["continues"]
    else:
        value["options"]["pack"] = rng.choice((None, 0, 1, 3, 2**62))
    return value


def change_shard(rng: Random, files: Files, other: Files) -> Files:
    """Change the bytes of a file that is not the manifest."""
    name = rng.choice(sorted(files.keys() - {MANIFEST}))
    if rng.random() < 0.5 and len(files[name]) >= 4:
        return files | {name: mutate.change_u32(rng, files[name])}
    return files | {name: mutate.change_bytes(rng, files[name])}


def sign_manifest(rng: Random, files: Files) -> Files:
    """Mostly give the manifest the sizes and hashes that its files have, and its own checksum."""
    if MANIFEST not in files or rng.random() < 0.1:
        return files
    try:
        content = json.loads(files[MANIFEST])
        for entry in [f for shard in content["shards"] for f in shard["files"]] + content["files"]:
            if entry["name"] in files and rng.random() < 0.95:
                data = files[entry["name"]]
                entry |= {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        del content["sha256"]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return files
    lines = json.dumps(content, indent=1).removesuffix("\n}").encode() + b",\n"
    digest = hashlib.sha256(lines).hexdigest()
    return files | {MANIFEST: lines + f' "sha256": "{digest}"\n}}\n'.encode()}


def run_dataset(files: Files, folder: Path, number: int) -> bool:
    """Verify a dataset, show it, and read what can be read."""
    write(files, folder)
    attempt(lambda: byteweld.verify(folder, tokenizer=BYTES, sample=5))
    shown = attempt(lambda: Contents(str(folder), BYTES))
    if isinstance(shown, Contents):
        attempt(lambda: (shown.lines(), shown.to_dict(), shown._repr_html_()))
    accepted = False
    for split in ("train", "validation"):
        ds = byteweld.open_dataset(folder, split=split)  # type: ignore[arg-type]
        accepted = True
        attempt(lambda ds=ds: [ids.sum() for ids in islice(ds, 20)])
        if len(ds):
            attempt(lambda ds=ds: ds[-1])
            attempt(lambda ds=ds: ds[len(ds) // 2])
        attempt(lambda ds=ds: ds.lengths)
        middle = ds.num_tokens // 2
        for window in ((0, 3), (middle, middle + 5), (max(0, ds.num_tokens - 4), ds.num_tokens)):
            if 0 <= window[0] <= window[1] <= ds.num_tokens:
                attempt(lambda ds=ds, window=window: ds.tokens(*window).sum())
        if "validation" not in ds.manifest.splits:
            break
    return accepted
