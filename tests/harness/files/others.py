"""Reports, compiled vocabularies, counts, checkpoints and corpora: changes and readers."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import struct
import zlib
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import byteweld
from byteweld import Tokenizer, counts_files, loading
from byteweld.counts import Counts
from byteweld.training.report import Training
from tests.harness import draw
from tests.harness.files import bases, mutate
from tests.harness.files.bases import Files
from tests.harness.files.kind import (
    THOROUGH_EVERY,
    change_bytes,
    load_and_use,
    lose_file,
    write,
)
from tests.harness.files.use import Disagreement, attempt, use
from tests.harness.files.vocabs import huggingface_bases, sidecar_bases

# ---------------------------------------------------------------------- reports


@cache
def reported() -> Tokenizer:
    return bases.trained("from-scratch", 290, special_tokens=("<|end|>",))


def report_bases() -> list[Files]:
    files = bases.saved(reported(), "huggingface", "t.json")
    return [{"t.training.json": files["t.training.json"]}]


def edit_report(rng: Random, value: Any) -> Any:
    key = rng.choice(list(value))
    if isinstance(value[key], list) and value[key]:
        value[key][rng.randrange(len(value[key]))] = rng.choice((0, 1, 2**64, 2**127))
    elif key == "recipe":
        name = rng.choice(list(value["recipe"]))
        value["recipe"][name] = rng.choice(
            (None, 0, "gpt2", [], ["a"], draw.any_pattern(rng), True)
        )
    elif type(value[key]) in (int, float):
        value[key] = rng.choice((0, 1, 2**63, 2**127, 1.5, 10**5, -1, None))
    return value


def run_report(files: Files, folder: Path, number: int) -> bool:
    write(files, folder)
    vocab = reported().vocab
    training = Training.load(folder / "t.training.json", vocab)
    _ = str(training), repr(training), training.bytes_per_token, training.total_tokens
    tok = Tokenizer(vocab, training=training)
    attempt(lambda: tok.cut(280).encode("the cat"))
    attempt(lambda: byteweld.train(documents=["the new cat"], start=tok, vocab_size=292))
    training.save(folder / "again.json", vocab, overwrite=True)
    if Training.load(folder / "again.json", vocab) != training:
        raise AssertionError("a report changes when it is saved")
    return True


# ---------------------------------------------------------------------- compiled caches


def cache_bases() -> list[Files]:
    """The two parts of a compiled vocabulary: its traits and its table."""
    found = []
    for files in (*huggingface_bases(), *sidecar_bases()):
        source = next(name for name in ("tokenizer.json", "r.tiktoken") if name in files)
        with bases.tempfile.TemporaryDirectory() as made:
            write(files, Path(made))
            vocab = byteweld.load(Path(made) / source).vocab
        if vocab._table is not None:
            head = vocab.traits() | {"makes_every_token": vocab._makes_every_token}
            stored = {"head.json": json.dumps(head).encode(), "table.bin": vocab._table.store()}
            found.append(stored)
    return found


@cache
def _cached_source() -> Files:
    (files, *_) = bases.of_format("tiktoken", "r.tiktoken")
    return files


class Forged:
    """Looks like a vocabulary to the code that stores one, which then signs what it is given."""

    def __init__(self, files: Files) -> None:
        self._head, self._stored = files["head.json"], files["table.bin"]
        self._makes_every_token: Any = True

    @property
    def _table(self) -> Forged:
        return self

    def store(self) -> bytes:
        return self._stored

    def traits(self) -> Any:
        head = mutate.load(self._head)
        if isinstance(head, dict) and "makes_every_token" in head:
            self._makes_every_token = head.pop("makes_every_token")
        return head if isinstance(head, dict) else {}


def run_cache(files: Files, folder: Path, number: int) -> bool:
    """Load a forged compiled vocabulary, signed as ours are."""
    source = folder / "source"
    if not source.is_dir():
        source.mkdir()
        write(_cached_source(), source)
    path, kept = source / "r.tiktoken", folder / "cache"
    if kept.is_dir():
        shutil.rmtree(kept)
    if not {"head.json", "table.bin"} <= files.keys():
        return False
    real_write, real_read = loading._write, loading._read
    accepted: list[bool] = []

    def forge(vocab: Any, *rest: Any) -> None:
        try:
            real_write(Forged(files), *rest)  # type: ignore[arg-type]
        except (ValueError, RecursionError, TypeError, AttributeError):
            pass  # not even JSON

    def note(*given: Any) -> Any:
        found = real_read(*given)
        accepted.append(found is not None)
        return found

    loading._write, loading._read = forge, note
    try:
        byteweld.load(path, cache=kept)
        tok = byteweld.load(path, cache=kept)
    finally:
        loading._write, loading._read = real_write, real_read
    if not accepted or not accepted[-1]:
        return False
    with contextlib.suppress(Disagreement):  # a forgery may lie, but must not crash
        use(tok, folder / "saved", number=number, thorough=number % THOROUGH_EVERY == 0)
    return True


def change_table(rng: Random, files: Files, other: Files) -> Files:
    """Change a length, a start, a byte or a merge, often so that the table stays readable."""
    data = files["table.bin"]
    if len(data) < 12:
        return change_bytes(rng, files, other)
    starts, size, merges = struct.unpack_from("<3I", data)
    first = 12 + 4 * starts
    number = rng.randrange(6)
    if number == 0:
        data = mutate.change_u32(rng, data, 0, 12)
    elif number == 1:
        data = mutate.change_u32(rng, data, 12, first)
    elif number < 4 and len(data) > first + size:
        data = mutate.change_u32(rng, data, first + size)
    elif number == 4 and size and first + size <= len(data):
        at = first + rng.randrange(size)
        data = data[:at] + rng.randbytes(1) + data[at + 1 :]
    else:  # drop the last merges
        drop = rng.randint(0, min(merges, 10))
        if len(data) >= 12 * drop + first:
            data = data[:8] + struct.pack("<I", merges - drop) + data[12 : len(data) - 12 * drop]
    return files | {"table.bin": data}


def edit_head(rng: Random, value: Any) -> Any:
    number = rng.randrange(7)
    if number == 0:
        value["pattern"] = rng.choice((None, draw.any_pattern(rng)))
    elif number == 1:
        value["normalizer"] = [
            rng.choice(("nfc", "lowercase", ["a", "b"], ["(", ""], ["a", "a" * 99]))
        ]
    elif number == 2:
        value["steps"], value["pattern"] = [["x", "isolated", False], "byte-letters"], None
    elif number == 3:
        value["added_tokens"].append(
            ["new", rng.choice((3, 300, 5000)), True, *[rng.random() < 0.5] * 4]
        )
    elif number == 4:
        value["makes_every_token"] = not value["makes_every_token"]
    elif number == 5:
        value["alphabet"] = rng.choice(("bytes", "ascii", "partial"))
    else:
        value["ranking"] = rng.choice(("merges", "ranks"))
    return value


# ---------------------------------------------------------------------- counts, checkpoints


def change_part(rng: Random, files: Files, other: Files) -> Files:
    """Write a part again with other rows or another schema."""
    import pyarrow
    import pyarrow.parquet

    name = rng.choice(sorted(name for name in files if name.endswith(".parquet")))
    try:
        table = pyarrow.parquet.read_table(pyarrow.BufferReader(files[name]))
        rows = [list(row.values()) for row in table.to_pylist()]
    except (pyarrow.ArrowException, OSError, ValueError, AttributeError):
        return change_bytes(rng, files, other)
    kinds = [pyarrow.binary(), pyarrow.uint64()]
    number = rng.randrange(6)
    if number == 0:
        rows.append(
            [rng.choice((b"ab", b"", b"\xff", b"zzz", b"a" * 3000)), rng.choice((0, 1, 2**64 - 1))]
        )
    elif number == 1:
        rng.shuffle(rows)
    elif number == 2:
        rows += rows[:1]
    elif number == 3 and rows:
        rows[rng.randrange(len(rows))][1] = rng.choice((0, 2**63, 2**64 - 1))
    elif number == 4:
        kinds[rng.randrange(2)] = rng.choice(
            (pyarrow.int64(), pyarrow.string(), pyarrow.large_binary())
        )
    elif number == 5 and rows:
        del rows[rng.randrange(len(rows))]
    if rng.random() < 0.7 and number < 4:
        rows.sort()
    try:
        columns = [
            pyarrow.array([row[at] for row in rows], kinds[at], from_pandas=False) for at in (0, 1)
        ]
    except (pyarrow.ArrowException, OverflowError, TypeError):
        return files
    schema = pyarrow.schema(
        [
            pyarrow.field("bytes", kinds[0], nullable=rng.random() < 0.03),
            pyarrow.field("count", kinds[1], nullable=False),
        ]
    )
    out = pyarrow.BufferOutputStream()
    options: dict[str, Any] = {"use_dictionary": rng.random() < 0.05, "write_page_checksum": True}
    with pyarrow.parquet.ParquetWriter(
        out, schema, compression="zstd", store_schema=False, **options
    ) as writer:
        if rows:
            writer.write_table(pyarrow.Table.from_arrays(columns, schema=schema))
    return files | {name: out.getvalue().to_pybytes()}


def fit_manifest(rng: Random, files: Files) -> Files:
    """Write the sums and digests of the parts into the manifest, mostly, for the other checks."""
    import pyarrow
    import pyarrow.parquet

    if rng.random() < 0.2:
        return files
    try:
        manifest = json.loads(files["counts.json"])
        for part in manifest["parts"]:
            data = files[part["file"]]
            part["sha256"] = hashlib.sha256(data).hexdigest()
            rows = pyarrow.parquet.read_table(pyarrow.BufferReader(data)).to_pylist()
            pairs = [tuple(row.values()) for row in rows]
            part["distinct"], part["distinct_bytes"] = len(pairs), sum(len(b) for b, _ in pairs)
            part["total"] = sum(n for _, n in pairs)
            part["total_bytes"] = sum(len(b) * n for b, n in pairs)
        for key in counts_files._SUMS:
            manifest[key] = sum(part[key] for part in manifest["parts"])
        manifest["sha256"] = counts_files._digest(manifest)
    except (pyarrow.ArrowException, OSError, ValueError, LookupError, TypeError, AttributeError):
        return files
    return files | {"counts.json": json.dumps(manifest).encode()}


def run_counts(files: Files, folder: Path, number: int) -> bool:
    write(files, folder)
    counts = Counts.load(folder)
    if counts.total > 2**40:  # sums that a small file only claims
        return True
    _ = counts.most_common(3), len(counts), counts.pattern, repr(counts), counts.total_bytes
    attempt(lambda: counts + counts)
    attempt(lambda: counts.prune(2))
    if number % 4 == 0:
        attempt(
            lambda: byteweld.train(
                counts, vocab_size=270, recipe="from-scratch", num_threads=1, pattern=counts.pattern
            )
        )
        saved = folder.with_name("counts-saved")
        counts.save(saved, overwrite=True)
        if Counts.load(saved) != counts:
            raise AssertionError("counts change when they are saved")
    return True


def change_log(rng: Random, files: Files, other: Files) -> Files:
    """Change a record of the log and its checksum, or the order of records."""
    log = files.get("merges.log", b"")
    records = [log[at : at + 28] for at in range(16, len(log) - 31, 32)]
    if not records:
        return change_bytes(rng, files, other)
    at = rng.randrange(len(records))
    number = rng.randrange(7)
    if number < 3:
        stop = rng.choice((12, 12, 28))
        records[at] = mutate.change_u32(rng, records[at], 0, stop)
    elif number == 3:
        records.insert(rng.randint(0, len(records)), records[at])
    elif number == 4:
        del records[at]
    elif number == 5:
        del records[at:]
    else:
        end = struct.pack(
            "<IIIQQ", *[2**32 - 1] * 3, rng.choice((0, 1, 2, 3, 2**64 - 1)), rng.randrange(500)
        )
        records.insert(rng.randint(at, len(records)), end)
    signed = [
        record + struct.pack("<I", zlib.crc32(record, index))
        for index, record in enumerate(records)
    ]
    return files | {"merges.log": log[:16] + b"".join(signed)}


def change_counts_of_checkpoint(rng: Random, files: Files, other: Files) -> Files:
    return change_part(rng, files, other) if rng.random() < 0.5 else lose_file(rng, files, other)


def run_checkpoint(files: Files, folder: Path, number: int) -> bool:
    """Resume from a changed checkpoint."""
    write(files, folder)
    tok = byteweld.train(
        bases.corpus_counts(), checkpoint=folder, num_threads=1, **bases.CHECKPOINT_OPTIONS
    )
    tok.encode("the cat sat, lower")
    return True


# ---------------------------------------------------------------------- corpora

_LINES = "\n".join(
    json.dumps({"id": number, "text": text, "meta": {"a": [1, 2.5, None]}})
    for number, text in enumerate(("the cat sat", "naïve 漢字 👍", "", 'a\nb\\"\u2028', "x" * 300))
)


def corpus_bases(suffixes: Sequence[str]) -> list[Files]:
    compress = bases.compressors()
    texts = {"a.txt": bases.documents()[0][:800], "a.jsonl": _LINES, "b.txt": "", "c.jsonl": "\n\n"}
    return [
        {name + suffix: compress[suffix](text.encode())}
        for suffix in suffixes
        for name, text in texts.items()
        if text
    ]


def change_record(rng: Random, files: Files, other: Files) -> Files:
    """Change a value in one of the JSON lines."""
    ((name, data),) = files.items()
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    lines[at] = mutate.dump(mutate.change_json(rng, json.loads(lines[at])))
    return {name: b"\n".join(lines)}


def change_frame(rng: Random, files: Files, other: Files) -> Files:
    """Change the header or the end of a compressed frame, or join two frames."""
    ((name, data),) = files.items()
    number = rng.randrange(5)
    edge = min(24, len(data))
    if number == 0 and edge:
        at = rng.randrange(edge)
        data = (
            data[:at] + bytes([rng.choice((0, 1, 255, 127, rng.randrange(256)))]) + data[at + 1 :]
        )
    elif number == 1 and edge:
        at = len(data) - 1 - rng.randrange(edge)
        data = data[:at] + rng.randbytes(1) + data[at + 1 :]
    elif number == 2:
        data = data + data
    elif number == 3:
        data = data + next(iter(other.values()))
    else:
        inner = dict(bases.compressors())
        data = inner[rng.choice(sorted(inner))](data)
    return {name: data}


def repack(rng: Random, files: Files, other: Files) -> Files:
    """Compress changed text: the frame is valid and its content is not."""
    ((name, _data),) = files.items()
    suffix = next((end for end in (".gz", ".xz", ".zst", ".bz2") if name.endswith(end)), "")
    plain = _LINES.encode() if ".jsonl" in name else bases.documents()[1][:800].encode()
    changed = mutate.change_bytes(rng, plain)
    if rng.random() < 0.2:
        changed = b"a" * 10**6 + changed  # compresses well
    return {name: bases.compressors()[suffix](changed)}


def run_corpus(files: Files, folder: Path, number: int) -> bool:
    write(files, folder)
    ((name, _),) = files.items()
    path = folder / name
    policy = ("fail", "fail", "skip", "replace")[number % 4]
    options: dict[str, Any] = {"on_error": policy, "lines": number % 5 == 0}
    if number % 7 == 0:
        options["field"] = "id"
    counts = byteweld.count(
        path, recipe="from-scratch", pattern="[a-z ]+", num_threads=1, **options
    )
    _ = counts.total
    if number % THOROUGH_EVERY == 0:
        plain = bases.tokenizers()[0]
        ids, ends = plain.encode_files(path, disallowed_special=(), num_threads=1, **options)
        if int(ends[-1]) != len(ids) or any(a > b for a, b in pairwise(ends.tolist())):
            raise AssertionError("offsets do not fit the ids")
    return True


def table_bases() -> list[Files]:
    """Parquet files of several row groups, and Arrow files and streams."""
    import pyarrow as pa
    import pyarrow.parquet

    texts = [f"text {number}" * (number % 4) for number in range(60)]
    table = pa.table({"id": range(60), "text": texts})
    found: list[Files] = []
    for options in ({"compression": "none", "use_dictionary": False}, {"compression": "zstd"}):
        for columns in (["text"], ["id", "text"]):
            out = pa.BufferOutputStream()
            pyarrow.parquet.write_table(table.select(columns), out, row_group_size=20, **options)
            found.append({"a.parquet": out.getvalue().to_pybytes()})
    for make in (pa.ipc.new_stream, pa.ipc.new_file):
        out = pa.BufferOutputStream()
        with make(out, table.schema) as writer:
            writer.write_table(table, 20)
        found.append({"a.arrow": out.getvalue().to_pybytes()})
    return found


def change_footer(rng: Random, files: Files, other: Files) -> Files:
    """Change bytes in the last quarter, where Parquet and Arrow files keep their metadata."""
    ((name, data),) = files.items()
    start = len(data) * 3 // 4
    return {name: data[:start] + mutate.change_bytes(rng, data[start:-8]) + data[-8:]}


def run_table(files: Files, folder: Path, number: int) -> bool:
    try:
        return run_corpus(files, folder, number)
    except MemoryError as error:
        if "or the file is damaged" in str(error):  # pyarrow allocates what the file claims
            return False
        raise


def packed_bases() -> list[Files]:
    """Compressed vocabulary files."""
    (plain, *_) = bases.of_format("tiktoken", "r.tiktoken")
    compress = bases.compressors()
    return [
        {"r.tiktoken" + suffix: compress[suffix](plain["r.tiktoken"])}
        for suffix in (".gz", ".xz", ".zst", ".bz2")
    ]


def repack_ranks(rng: Random, files: Files, other: Files) -> Files:
    ((name, _),) = files.items()
    plain = _cached_source()["r.tiktoken"]
    data = mutate.change_lines(rng, plain, [b"YWI= 300"])
    return {name: bases.compressors()[Path(name).suffix](data)}


def run_packed(files: Files, folder: Path, number: int) -> bool:
    ((name, _),) = files.items()
    options = {"pattern": None, "special_tokens": {"<|end|>": 298}}
    return load_and_use(files, folder, number, target=name, format="tiktoken", options=options)
