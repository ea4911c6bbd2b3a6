"""`tokenize` on a Ray cluster of several nodes and an object store: the bytes of one process."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import byteweld
from byteweld.errors import TaskError
from tests.helpers.programs import run_byteweld
from tests.helpers.ray_clusters import FaultyRunner, RayCluster, ray_cluster
from tests.helpers.tokenized import EOT, digests, make_documents, make_tokenizer, write_jsonl

BUCKET = "s3://bucket"
KEYS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@pytest.fixture(scope="module")
def store() -> Iterator[dict[str, str]]:
    """An object store on this machine; yields the environment that leads to it."""
    pytest.importorskip("s3fs", reason="no s3fs; run `make test-cluster`")
    server = pytest.importorskip("moto.server", reason="no moto; run `make test-cluster`")
    started = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    started.start()
    host, port = started.get_host_and_port()
    yield {**KEYS, "AWS_ENDPOINT_URL": f"http://{host}:{port}"}
    started.stop()


@pytest.fixture(scope="module")
def cluster(store: dict[str, str]) -> Iterator[RayCluster]:
    with ray_cluster(**store) as started:
        yield started


@pytest.fixture(scope="module")
def tok() -> byteweld.Tokenizer:
    return make_tokenizer()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that are divided, compressed ones, tables; broken records, and odd names."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path_factory.mktemp("place") / "corpus"
    folder.mkdir()
    lines = write_jsonl(folder / "a.jsonl", make_documents(300, 1)).read_text("utf-8").splitlines()
    lines[30] = lines[200] = "{broken"
    (folder / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (folder / "b 'c'.jsonl.gz").write_bytes(gzip.compress((folder / "a.jsonl").read_bytes()))
    (folder / "c.txt").write_text(("one document " * 30 + EOT) * 20, encoding="utf-8")
    write_jsonl(folder / "50%#.jsonl", make_documents(9, 2))
    pq.write_table(
        pa.table({"text": make_documents(90, 3)}), folder / "e.parquet", row_group_size=9
    )
    return folder


@pytest.fixture(scope="module")
def remote(cluster: RayCluster, corpus: Path) -> str:
    """The same files in the object store."""
    system = s3()
    system.mkdir("bucket")
    for file in corpus.iterdir():
        system.put_file(str(file), f"bucket/corpus/{file.name}")
    return f"{BUCKET}/corpus"


def s3() -> Any:
    import s3fs

    system = s3fs.S3FileSystem(skip_instance_cache=True)
    return system


def download(name: str, to: Path) -> dict[str, str]:
    """Return the digests of all objects below a name."""
    system = s3()
    for path in system.find(f"bucket/{name}"):
        target = to / path.removeprefix(f"bucket/{name}/")
        target.parent.mkdir(parents=True, exist_ok=True)
        system.get_file(path, str(target))
    return digests(to)


OPTIONS: list[dict[str, Any]] = [
    {"shard_tokens": 2000},
    {"validation": 0.2, "shuffle": True, "seed": 3},
    {"format": "megatron", "separator": EOT},
    {"format": "parquet", "pack": 128, "shard_tokens": 3000},
    {"format": "litdata", "shard_tokens": 4000, "validation": 0.3},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_files_are_those_of_one_process(
    cluster: RayCluster, corpus: Path, tmp_path: Path, tok: byteweld.Tokenizer, options: Any
) -> None:
    same = {"on_error": "skip", **options}
    byteweld.tokenize(corpus, tok, out=tmp_path / "here", **same)
    with cluster.runner(slice_bytes=4000) as runner:
        byteweld.tokenize(corpus, tok, out=tmp_path / "there", runner=runner, **same)
    assert digests(tmp_path / "there") == digests(tmp_path / "here")
    assert not (tmp_path / "there/.unfinished").exists()


def test_the_command_makes_the_same_files(
    cluster: RayCluster, corpus: Path, tmp_path: Path, tok: byteweld.Tokenizer
) -> None:
    tok.save(tmp_path / "tokenizer.json")
    shutil.copytree(corpus, tmp_path / "corpus")
    line = ["tokenize", "corpus", "--on-error", "skip", "--shard-tokens", "3000", "--out"]
    code, said, _ = run_byteweld(tmp_path, *line, "here")
    assert code == 0
    ray = ["--runner", "ray", "--address", cluster.address, "--slice", "4kB"]
    code, there, err = run_byteweld(tmp_path, *line, "there", *ray)
    assert (code, there.splitlines()[0]) == (0, said.splitlines()[0]), err
    assert digests(tmp_path / "there") == digests(tmp_path / "here")
    code, _, err = run_byteweld(tmp_path, *line, "there", *ray)
    assert (code, "there is complete already" in err) == (0, True), err
    assert run_byteweld(tmp_path, "verify", "there")[0] == 0


@pytest.mark.parametrize("fault", ["before", "after", "twice", "node"])
def test_faults_do_not_change_the_files(
    cluster: RayCluster, corpus: Path, tmp_path: Path, tok: byteweld.Tokenizer, fault: str
) -> None:
    same: dict[str, Any] = {"on_error": "skip", "validation": 0.2, "shuffle": True}
    byteweld.tokenize(corpus, tok, out=tmp_path / "here", **same)
    slice_bytes = 4000 if fault in ("node", "twice") else 30_000  # each death takes a second
    runner = FaultyRunner(cluster, fault, tmp_path / "faults", slice_bytes=slice_bytes)
    if fault == "node":
        same["progress"] = runner.add_node
    with runner:
        byteweld.tokenize(corpus, tok, out=tmp_path / "there", runner=runner, **same)
    assert runner.happened
    assert digests(tmp_path / "there") == digests(tmp_path / "here")


def test_a_driver_is_killed_again_and_again(
    cluster: RayCluster, corpus: Path, tmp_path: Path, tok: byteweld.Tokenizer
) -> None:
    tok.save(tmp_path / "tokenizer.json")
    line = ["tokenize", str(corpus), "--on-error", "skip", "--shard-tokens", "900", "--shuffle"]
    assert run_byteweld(tmp_path, *line, "--out", "here")[0] == 0
    line += ["--out", "there", "--runner", "ray", "--address", cluster.address, "--slice", "2kB"]
    work = tmp_path / "there/.unfinished"
    for number, stage in enumerate(("slices", "slices", "groups", "shards-train")):
        process = subprocess.Popen(
            [sys.executable, "-m", "byteweld", *line], cwd=tmp_path, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 240  # only a hang takes so long
        while process.poll() is None and time.monotonic() < deadline:
            if len(list(work.glob(f"{stage}/*.json"))) >= 3 + 15 * number * (stage == "slices"):
                break
            time.sleep(0.003)
        process.kill()
        assert process.wait() == -9
    code, _, said = run_byteweld(tmp_path, *line)
    assert (code, "resuming after" in said) == (0, True), said
    assert digests(tmp_path / "there") == digests(tmp_path / "here")


def test_a_broken_record_is_named(
    cluster: RayCluster, corpus: Path, tmp_path: Path, tok: byteweld.Tokenizer
) -> None:
    with cluster.runner(slice_bytes=4000, max_failures=5) as runner:
        with pytest.raises(TaskError) as raised:
            byteweld.tokenize(corpus, tok, out=tmp_path / "out", runner=runner)
    assert len(raised.value.failures) == 3  # two in the divided file, one in the compressed one
    assert "a.jsonl:31: " in str(raised.value)
    assert "a.jsonl:201: " in str(raised.value)
    # Broken records may be skipped from now on: nothing done so far has any.
    with cluster.runner(slice_bytes=4000) as runner:
        byteweld.tokenize(corpus, tok, out=tmp_path / "out", runner=runner, on_error="skip")
    byteweld.tokenize(corpus, tok, out=tmp_path / "here", on_error="skip")
    assert digests(tmp_path / "out") == digests(tmp_path / "here")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_named(
    cluster: RayCluster, corpus: Path, tmp_path: Path, tok: byteweld.Tokenizer
) -> None:
    (tmp_path / "out").mkdir(mode=0o500)
    with cluster.runner() as runner, pytest.raises(PermissionError, match="out"):
        byteweld.tokenize(corpus, tok, out=tmp_path / "out", runner=runner, on_error="skip")


# ---------------------------------------------------------------------- an object store


@pytest.mark.parametrize(
    "options",
    [
        {"shard_tokens": 2000},
        *({"format": f, "shard_tokens": 3000} for f in ("litdata", "hf", "mds")),
    ],
    ids=str,
)
def test_an_object_store_holds_corpus_and_dataset(
    cluster: RayCluster, remote: str, tmp_path: Path, tok: byteweld.Tokenizer, options: Any
) -> None:
    same = {"on_error": "skip", "validation": 0.2, **options}
    byteweld.tokenize(remote, tok, out=tmp_path / "here", **same)
    expected = digests(tmp_path / "here")
    name = f"data-{options.get('format')}"
    with cluster.runner(slice_bytes=8000) as runner:
        byteweld.tokenize(remote, tok, out=f"{BUCKET}/{name}", runner=runner, **same)
        assert download(name, tmp_path / "there") == expected
        # Complete; then replaced by another one, of which nothing of the first is left.
        byteweld.tokenize(remote, tok, out=f"{BUCKET}/{name}", runner=runner, **same)
        with pytest.raises(FileExistsError, match="another job: seed was 0, now 1"):
            byteweld.tokenize(remote, tok, out=f"{BUCKET}/{name}", runner=runner, seed=1, **same)
        one = {**same, "shard_tokens": None, "seed": 1}
        byteweld.tokenize(remote, tok, out=f"{BUCKET}/{name}", runner=runner, overwrite=True, **one)
    byteweld.tokenize(remote, tok, out=tmp_path / "one", **one)
    assert download(name, tmp_path / "replaced") == digests(tmp_path / "one")


def test_work_in_an_object_store_goes_on(
    cluster: RayCluster, remote: str, tmp_path: Path, tok: byteweld.Tokenizer
) -> None:
    tok.save(tmp_path / "tokenizer.json")
    line = ["tokenize", remote, "--on-error", "skip", "--shuffle"]
    assert run_byteweld(tmp_path, *line, "--out", "here")[0] == 0
    line += ["--out", f"{BUCKET}/killed", "--runner", "ray", "--address", cluster.address]
    line += ["--slice", "4kB"]
    process = subprocess.Popen(
        [sys.executable, "-m", "byteweld", *line], cwd=tmp_path, stderr=subprocess.DEVNULL
    )
    system = s3()
    deadline = time.monotonic() + 240  # only a hang takes so long
    while process.poll() is None and time.monotonic() < deadline:
        system.invalidate_cache()
        if len(system.glob("bucket/killed/.unfinished/slices/*.json")) > 5:
            break
        time.sleep(0.02)
    process.kill()
    assert process.wait() == -9
    code, _, said = run_byteweld(tmp_path, *line)
    assert (code, "resuming after" in said) == (0, True), said
    assert download("killed", tmp_path / "there") == digests(tmp_path / "here")


def test_ranks_meet_in_an_object_store(
    cluster: RayCluster, remote: str, tmp_path: Path, tok: byteweld.Tokenizer
) -> None:
    tok.save(tmp_path / "tokenizer.json")
    line = ["tokenize", remote, "--on-error", "skip", "--shard-tokens", "3000"]
    assert run_byteweld(tmp_path, *line, "--out", "here")[0] == 0
    line += ["--out", f"{BUCKET}/ranks", "--world-size", "2", "--slice", "8kB", "--rank"]
    assert run_byteweld(tmp_path, *line, "1")[0] == 0
    code, _, said = run_byteweld(tmp_path, "merge", f"{BUCKET}/ranks")
    assert (code, "slices are not encoded yet" in said) == (2, True), said
    assert run_byteweld(tmp_path, *line, "0")[0] == 0
    code, _, said = run_byteweld(tmp_path, "merge", f"{BUCKET}/ranks")
    assert code == 0, said
    assert download("ranks", tmp_path / "there") == digests(tmp_path / "here")


def test_counts_with_work_in_an_object_store(
    cluster: RayCluster, remote: str, tmp_path: Path
) -> None:
    byteweld.count(remote, on_error="skip").save(tmp_path / "here")
    line = ["count", remote, "--on-error", "skip", "--out", "there", "--runner", "ray"]
    line += ["--address", cluster.address, "--slice", "8kB", "--work", f"{BUCKET}/work"]
    code, _, said = run_byteweld(tmp_path, *line)
    assert code == 0, said
    assert digests(tmp_path / "there") == digests(tmp_path / "here")
    assert s3().find("bucket/work") == []
    with cluster.runner(slice_bytes=8000, work=f"{BUCKET}/work") as runner:
        byteweld.count(remote, on_error="skip", runner=runner).save(tmp_path / "api")
    assert digests(tmp_path / "api") == digests(tmp_path / "here")


def test_an_object_that_changes_is_noticed(
    cluster: RayCluster, tmp_path: Path, tok: byteweld.Tokenizer
) -> None:
    from byteweld.corpus import open_corpus

    system = s3()
    system.makedirs("bucket", exist_ok=True)
    text = write_jsonl(tmp_path / "a.jsonl", make_documents(100, 1)).read_bytes()
    system.pipe_file("bucket/changes/a.jsonl", text)
    corpus = open_corpus(f"{BUCKET}/changes/a.jsonl")
    system.pipe_file("bucket/changes/a.jsonl", text.replace(b"the", b"The"))
    with cluster.runner(slice_bytes=4000) as runner:
        with pytest.raises(byteweld.errors.CorpusError, match="changed"):
            byteweld.tokenize(corpus, tok, out=tmp_path / "out", runner=runner)
        with pytest.raises(byteweld.errors.CorpusError, match="changed"):
            byteweld.count(corpus, runner=runner)
