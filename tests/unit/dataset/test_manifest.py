"""The manifest: the same bytes every time, and no file that is not one is taken for one."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import random
from pathlib import Path
from typing import Any

import pytest

from byteweld.dataset._manifest import (
    MANIFEST,
    FileEntry,
    Manifest,
    ShardEntry,
    SkipEntry,
    SourceEntry,
    is_dataset,
    load_manifest,
    parse_manifest,
)
from byteweld.errors import FormatError
from tests.harness.files import mutate
from tests.helpers.growth import least_growth

WHERE = Path("set/manifest.json")


def shard(split: str, number: int, **changes: Any) -> ShardEntry:
    name = f"{split}_{number}.bin"
    entry = ShardEntry(
        split=split,  # type: ignore[arg-type]
        number=number,
        documents=2,
        tokens=7,
        files=(FileEntry(name=name, size=14, sha256="0" * 64),),
    )
    return dataclasses.replace(entry, **changes)


MADE = Manifest(
    format="flat",
    dtype="uint16",
    tokenizer={"fingerprint": "ab" * 32, "n_vocab": 300, "eot": {"text": "<|end|>", "id": 299}},
    options={"eot": "append", "pack": None, "validation": 0.5, "reading": {"field": "text"}},
    is_complete=True,
    documents=5,
    tokens=21,
    text_bytes=99,
    splits={"train": {"documents": 3, "tokens": 14}, "validation": {"documents": 2, "tokens": 7}},
    special_text={"<|end|>": 3},
    skipped_documents=1,
    skipped=(SkipEntry(source="a.jsonl", reason="not JSON", line=3),),
    shards=(shard("train", 0, continues=True), shard("train", 1), shard("validation", 0)),
    files=(FileEntry(name="sub/index.json", size=3, sha256="1" * 64),),
    sources=(
        SourceEntry(name="a.jsonl", size=120, xxh3_128="2" * 32, documents=5),
        SourceEntry(name="bad \udcff name", size=None, xxh3_128=None, documents=0),
    ),
)


def signed(content: dict[str, Any]) -> bytes:
    """A manifest with other content, and the checksum that belongs to it."""
    lines = json.dumps({k: v for k, v in content.items() if k != "sha256"}, indent=1)
    body = lines.removesuffix("\n}").encode() + b",\n"
    return body + f' "sha256": "{hashlib.sha256(body).hexdigest()}"\n}}\n'.encode()


def parsed() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(MADE.to_json())
    return content


def test_a_manifest_is_read_as_it_was_written(tmp_path):
    MADE.save(tmp_path)
    assert load_manifest(tmp_path) == MADE
    assert (tmp_path / MANIFEST).read_bytes() == MADE.to_json() == load_manifest(tmp_path).to_json()
    assert is_dataset(tmp_path)


def test_the_layout_is_one_entry_per_line():
    small = Manifest(
        format="flat",
        dtype="uint16",
        tokenizer={"fingerprint": "ab" * 32, "n_vocab": 2},
        options={"pack": None},
        shards=(shard("train", 0),),
    )
    expected = f"""{{
 "version": "byteweld dataset 1",
 "format": "flat",
 "dtype": "uint16",
 "tokenizer": {{"fingerprint": "{"ab" * 32}", "n_vocab": 2}},
 "options": {{"pack": null}},
 "is_complete": false,
 "documents": 0,
 "tokens": 0,
 "text_bytes": 0,
 "splits": {{}},
 "special_text": {{}},
 "skipped_documents": 0,
 "skipped": [],
 "dropped_tokens": 0,
 "shards": [
  {{"split": "train", "number": 0, "documents": 2, "tokens": 7, \
"files": [{{"name": "train_0.bin", "size": 14, "sha256": "{"0" * 64}"}}], "continues": false}}
 ],
 "files": [],
 "sources": [],
"""
    written = small.to_json().decode()
    assert written.startswith(expected)
    digest = hashlib.sha256(expected.encode()).hexdigest()
    assert written == f'{expected} "sha256": "{digest}"\n}}\n'


def test_truncated_at_every_byte_it_is_a_format_error():
    data = MADE.to_json()
    for end in range(len(data)):
        with pytest.raises(FormatError, match=r"^set/manifest.json: "):
            parse_manifest(data[:end], WHERE)


def test_one_flipped_bit_anywhere_is_noticed():
    data = MADE.to_json()
    for at in range(len(data)):
        for bit in (0, 3, 5):
            changed = bytearray(data)
            changed[at] ^= 1 << bit
            with pytest.raises(FormatError):
                parse_manifest(bytes(changed), WHERE)


def test_mutated_and_signed_again_it_is_accepted_or_a_format_error():
    rng = random.Random(17)
    accepted = 0
    for _ in range(3000):
        content = mutate.change_json(rng, parsed())
        if not isinstance(content, dict):
            continue
        try:
            found = parse_manifest(signed(content), WHERE)
        except FormatError:
            continue
        accepted += 1
        assert parse_manifest(found.to_json(), WHERE) == found
    assert accepted > 30  # or the mutations test nothing but the first check


REFUSED: list[tuple[str, Any, str]] = [
    ("documents", -1, "documents: expected a whole number from 0 to 2^63 - 1, found -1"),
    ("tokens", 2**63, "tokens: expected a whole number from 0 to 2^63 - 1, found 9223372036854775"),
    ("tokens", 1.0, "tokens: expected a whole number from 0 to 2^63 - 1, found 1.0"),
    ("tokens", True, "tokens: expected a whole number from 0 to 2^63 - 1, found True"),
    ("is_complete", 1, "is_complete: expected true or false, found 1"),
    ("format", ["flat"], "format: expected a string, found ['flat']"),
    ("dtype", "float32", "dtype: expected 'uint8' or 'uint16' or "),
    ("shards", {}, "shards: expected a list, found {}"),
    ("shards.1.tokens", None, "shards[1].tokens: expected a whole number"),
    ("shards.1.split", "test", "shards[1].split: expected 'train' or 'validation', found 'test'"),
    ("shards.1.number", 3, "shards[1]: expected number 1, found 3"),
    ("shards.2.split", "train", "shards[2]: expected number 2, found 0"),
    ("shards.0.split", "validation", "shards[1]: a shard of train after one of validation"),
    ("shards.1.continues", True, "shards[1]: its last document continues in a shard that does not"),
    ("shards.2.continues", True, "shards[2]: its last document continues in a shard that does not"),
    ("shards.0.documents", 0, "shards[0]: it has no document that could continue"),
    ("shards.0.files", [], "shards[0]: expected at least one file"),
    ("shards.0.files.0.size", -5, "shards[0].files[0].size: expected a whole number"),
    (
        "shards.0.files.0.sha256",
        "00",
        "the file 'train_0.bin': sha256: expected 64 hexadecimal digits, found '00'",
    ),
    ("shards.0.files.0.name", "validation_0.bin", "the file 'validation_0.bin' is listed twice"),
    ("files.0.name", "train_1.bin", "the file 'train_1.bin' is listed twice"),
    *(
        ("files.0.name", name, "is not a plain path inside the folder")
        for name in (
            *("", "/etc/passwd", "../up", "a/../../b", "a/..", ".", "a//b", "a/", "./a"),
            *("nul\0", "a\\b"),
        )
    ),
    ("files.0.name", "\ud800", "files[0].name: expected a string that UTF-8 can encode, found"),
    ("sources.0.name", "\ud800", "sources[0].name: expected a string that UTF-8 can encode"),
    ("special_text", {"\udfff": 1}, "special_text: expected a string that UTF-8 can encode"),
    ("options.x", ["\udfff"], "options.'x': expected a string that UTF-8 can encode"),
    ("options.x", {"\udfff": 1}, "options.'x': expected a string that UTF-8 can encode"),
    ("shards.2.documents", 2**63 - 1, "shards: expected at most 2^63 - 1 documents in all, found"),
    ("sources.0.size", "120", "sources[0].size: expected a whole number"),
    ("sources.0.name", 5, "sources[0].name: expected a string, found 5"),
    ("skipped.0.line", -3, "skipped[0].line: expected a whole number"),
    ("splits", {"test": {"documents": 0, "tokens": 0}}, "splits: expected 'train' or 'validation'"),
    ("splits.train", {"documents": 1}, "splits.train: the key 'tokens' is missing"),
    ("splits.train", 3, "splits.'train': expected an object, found 3"),
    ("special_text", {"<|end|>": "3"}, "special_text.'<|end|>': expected a whole number"),
    ("tokenizer", {}, "tokenizer: the key 'fingerprint' is missing"),
    ("tokenizer.fingerprint", "ab", "tokenizer.fingerprint: expected 64 hexadecimal digits"),
    ("tokenizer.n_vocab", 0, "tokenizer.n_vocab: expected 1 to 2^32, found 0"),
    ("tokenizer.n_vocab", 2**40, "tokenizer.n_vocab: expected 1 to 2^32, found 1099511627776"),
    ("tokenizer.eot.id", 300, "tokenizer.eot.id: expected an id below 300, found 300"),
    ("tokenizer.eot", 299, "tokenizer.eot: expected an object, found 299"),
    ("options.pack", 0, "options.pack: expected at least 1, found 0"),
    ("options.pack", "8", "options.pack: expected a whole number"),
    ("options", [[]], "options: expected an object, found [[]]"),
    ("options.x", [[[[[[[[[]]]]]]]]], "options.'x': values are nested deeper than 8 levels"),
    (
        "version",
        "byteweld dataset 2",
        "expected version 'byteweld dataset 1', found 'byteweld data",
    ),
    ("other", 1, "unknown key 'other'"),
]


@pytest.mark.parametrize(("place", "value", "message"), REFUSED)
def test_what_is_wrong_is_named(place, value, message):
    content = parsed()
    *path, last = [int(part) if part.isdigit() else part for part in place.split(".")]
    inner: Any = content
    for part in path:
        inner = inner[part]
    inner[last] = value
    with pytest.raises(FormatError) as caught:
        parse_manifest(signed(content), WHERE)
    assert message in str(caught.value)
    assert str(caught.value).startswith("set/manifest.json: not the manifest of a dataset: ")


@pytest.mark.parametrize("key", [field.name for field in dataclasses.fields(Manifest)])
def test_every_key_is_required(key):
    content = parsed()
    del content[key]
    with pytest.raises(FormatError, match=f"the key '{key}' is missing"):
        parse_manifest(signed(content), WHERE)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "byte 0: not the manifest of a dataset: expected JSON"),
        (b"[]", "expected an object, found []"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'{"version": NaN}', "expected JSON, found 'NaN'"),
        (b'{"version": ' + b"9" * 10_000 + b"}", "Exceeds the limit"),
        (b'{"version": "\xff"}', "byte 13: not the manifest of a dataset: expected UTF-8"),
        (MADE.to_json() + b" ", "its SHA-256 is "),
        (json.dumps(parsed()).encode(), "the file was damaged or edited"),
    ],
)
def test_hostile_json_is_a_format_error(data, message):
    with pytest.raises(FormatError) as caught:
        parse_manifest(data, WHERE)
    assert message in str(caught.value)


def test_a_folder_without_a_manifest_says_so(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"this folder has no manifest\.json; expected"):
        load_manifest(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        load_manifest(tmp_path / "nowhere")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        load_manifest(tmp_path / "file")
    for path in (tmp_path, tmp_path / "nowhere", tmp_path / "file", "nul\0"):
        assert not is_dataset(path)
    (tmp_path / MANIFEST).write_bytes(b'{"version": "another tool"}')
    assert not is_dataset(tmp_path)


def test_a_run_that_was_interrupted_early_is_a_dataset_that_says_how_to_go_on(tmp_path):
    (tmp_path / ".unfinished").mkdir()
    assert is_dataset(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no complete shard yet; run the same `byteweld"):
        load_manifest(tmp_path)


def test_many_sources_are_read_in_linear_time():
    source = SourceEntry(name="a/b.txt", size=5, xxh3_128="2" * 32, documents=1)
    data = {
        count: dataclasses.replace(MADE, sources=(source,) * count).to_json()
        for count in (5000, 40_000)
    }
    assert least_growth(lambda count: parse_manifest(data[count], WHERE), *data, limit=24) < 24
