"""`count` and `train` on a Ray cluster of several nodes: the bytes of one process."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import byteweld
from byteweld.errors import TaskError
from tests.helpers.programs import run_byteweld
from tests.helpers.ray_clusters import (
    FaultyRunner,
    RayCluster,
    assert_gone,
    command,
    descendants,
    ray_cluster,
)
from tests.helpers.tokenized import digests, make_documents, write_jsonl

SLICE = 4000


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with ray_cluster() as started:
        yield started


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that are divided, whole documents, compressed ones, tables, empty ones."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path_factory.mktemp("place") / "corpus"
    folder.mkdir()
    write_jsonl(folder / "a '1'.jsonl", make_documents(300, 1))
    (folder / "b.txt").write_text("naïve don't 12345 " * 2000 + "x" * 9000, encoding="utf-8")
    (folder / "c.jsonl.gz").write_bytes(gzip.compress((folder / "a '1'.jsonl").read_bytes()))
    write_jsonl(folder / "50%#d.jsonl", make_documents(5, 2))
    pq.write_table(
        pa.table({"text": make_documents(90, 3)}), folder / "e.parquet", row_group_size=9
    )
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.txt")).write_text("low lower", encoding="utf-8")
    (folder / "f.txt").touch()
    return folder


@pytest.fixture(scope="module")
def expected(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("expected") / "counts"
    byteweld.count(corpus).save(folder)
    return digests(folder)


def count_args(corpus: Path, out: str, *more: str) -> list[str]:
    return ["count", str(corpus), "--out", out, "--runner", "ray", "--slice", "4kB", *more]


def test_counts_are_those_of_one_process(
    cluster: RayCluster, corpus: Path, tmp_path: Path, expected: dict[str, str]
) -> None:
    with cluster.runner(slice_bytes=SLICE) as runner:
        byteweld.count(corpus, runner=runner).save(tmp_path / "api")
    assert digests(tmp_path / "api") == expected
    # A relative path, and a work folder that has other files.
    (tmp_path / "work").mkdir()
    (tmp_path / "work/mine").touch()
    (tmp_path / "corpus").symlink_to(corpus)
    line = count_args(Path("corpus"), "cli", "--address", cluster.address, "--work", "work")
    code, _, said = run_byteweld(tmp_path, *line)
    assert code == 0, said
    assert digests(tmp_path / "cli") == expected
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["mine"]
    code, _, said = run_byteweld(tmp_path, *line)
    assert (code, said) == (
        2,
        "byteweld: cli exists; pass --force to replace it\n",
    )
    code, _, said = run_byteweld(tmp_path, *line, "--force")
    assert (code, digests(tmp_path / "cli")) == (0, expected), said
    assert not list(tmp_path.glob("*.unfinished"))


def test_training_is_that_of_one_process(cluster: RayCluster, corpus: Path, tmp_path: Path) -> None:
    line = ["train", str(corpus), "--vocab-size", "400", "--special", "<|endoftext|>"]
    code, _, said = run_byteweld(tmp_path, *line, "--out", "here.json")
    assert code == 0, said
    ray = ["--runner", "ray", "--address", cluster.address, "--slice", "4kB"]
    code, _, said = run_byteweld(tmp_path, *line, "--out", "there.json", *ray)
    assert code == 0, said
    assert (tmp_path / "here.json").read_bytes() == (tmp_path / "there.json").read_bytes()
    reports = []
    for name in ("here", "there"):
        report = json.loads((tmp_path / f"{name}.training.json").read_text("utf-8"))
        reports.append(_timeless(report))
    assert reports[0] == reports[1]


def _timeless(report: Any) -> Any:
    if isinstance(report, dict):
        return {name: _timeless(value) for name, value in report.items() if "seconds" not in name}
    return [_timeless(value) for value in report] if isinstance(report, list) else report


# ---------------------------------------------------------------------- faults


@pytest.mark.parametrize("fault", ["before", "after", "twice"])
def test_workers_die_and_tasks_run_twice(
    cluster: RayCluster, corpus: Path, tmp_path: Path, expected: dict[str, str], fault: str
) -> None:
    # A limit on the slices: each death takes a second or so.
    runner = FaultyRunner(cluster, fault, tmp_path / "faults", slice_bytes=30_000)
    with runner:
        byteweld.count(corpus, runner=runner).save(tmp_path / "out")
    assert runner.happened >= 5
    assert digests(tmp_path / "out") == expected


def test_a_node_dies_and_another_comes(
    cluster: RayCluster, corpus: Path, tmp_path: Path, expected: dict[str, str]
) -> None:
    before = cluster.raylets
    runner = FaultyRunner(cluster, "node", tmp_path / "faults", slice_bytes=3000)
    with runner:
        byteweld.count(corpus, runner=runner, progress=runner.add_node).save(tmp_path / "out")
    assert runner.happened == 1
    assert len(cluster.raylets) == len(before) + 1
    assert digests(tmp_path / "out") == expected


def test_a_worker_that_dies_each_time_is_an_error(
    cluster: RayCluster, corpus: Path, tmp_path: Path
) -> None:
    runner = FaultyRunner(cluster, "always", tmp_path / "faults", slice_bytes=10**6)
    with (
        runner,
        pytest.raises(TaskError, match=r"slice 0 \(.*\): its worker died, again and again"),
    ):
        byteweld.count(corpus, runner=runner)


class Touches(NamedTuple):
    """Leaves a file for each item; the first one fails."""

    folder: Path

    def __call__(self, item: int) -> int:
        if item == 0:
            raise ValueError("the first")
        time.sleep(0.1)
        (self.folder / str(item)).touch()
        return item


def test_after_a_failure_no_task_begins(cluster: RayCluster, tmp_path: Path) -> None:
    with cluster.runner() as runner:
        for number in range(5):  # the connection stays, and can be used again
            folder = tmp_path / str(number)
            folder.mkdir()
            with pytest.raises(TaskError, match="0: the first"):
                list(runner.map_unordered(Touches(folder), range(100)))
        assert sorted(runner.map_unordered(str.upper, "ab")) == ["A", "B"]
        for folder in tmp_path.iterdir():
            assert len(list(folder.iterdir())) < 50


# ---------------------------------------------------------------------- drivers


def start(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "byteweld", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )


def wait_for_slices(process: subprocess.Popen[str], work: Path, number: int) -> int:
    """Wait until this many slices are done; return how many are."""
    deadline = time.monotonic() + 240  # only a hang takes so long
    while process.poll() is None and time.monotonic() < deadline:
        done = len(list(work.glob("slices/*.json")))
        if done >= number:
            return done
        time.sleep(0.005)
    return 10**9


def test_ctrl_c_leaves_a_cluster_that_others_use(
    cluster: RayCluster, corpus: Path, tmp_path: Path, expected: dict[str, str]
) -> None:
    line = count_args(corpus, "out", "--address", cluster.address)
    process = start(tmp_path, *line)
    assert wait_for_slices(process, tmp_path / "out.unfinished", 3) < 10**9
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert (process.returncode, said.splitlines()[-1]) == (130, "interrupted")  # after progress
    code, _, said = run_byteweld(tmp_path, *line)
    assert (code, digests(tmp_path / "out")) == (0, expected), said


# Without the token of the tests' cluster: its own has another one.
ALONE = {"RAY_AUTH_MODE": "", "RAY_AUTH_TOKEN": ""}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "SIGKILL"])
def test_a_cluster_of_its_own_ends_with_the_driver(
    cluster: RayCluster, corpus: Path, tmp_path: Path, expected: dict[str, str], number: int
) -> None:
    line = count_args(corpus, "out")
    process = start(tmp_path, *line, **ALONE)
    done = wait_for_slices(process, tmp_path / "out.unfinished", 3)
    assert done < 10**9, process.communicate()
    ours = descendants(process.pid)
    assert len(ours) >= 4  # Ray's server, node, and workers
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert process.returncode == (130 if number == signal.SIGINT else -9), said
    if number == signal.SIGINT:
        assert said == "byteweld: interrupted\n" or said.endswith("interrupted\n")
    if number == signal.SIGKILL:
        # Two of Ray's helpers look for its server for a minute or so; they run no tasks.
        agents = [pid for pid in ours if b"Agent" in command(pid)]
        assert_gone(agents, 0, kill=True)
    assert_gone(ours, 20)
    assert len(list((tmp_path / "out.unfinished/slices").glob("*.json"))) >= done
    code, _, said = run_byteweld(tmp_path, *line, **ALONE)
    assert (code, digests(tmp_path / "out")) == (0, expected), said
    assert not (tmp_path / "out.unfinished").exists()


# ---------------------------------------------------------------------- tokens


@pytest.mark.parametrize(
    "token", [{"RAY_AUTH_TOKEN": "f" * 64}, {"RAY_AUTH_MODE": "disabled"}], ids=["wrong", "none"]
)
def test_a_client_without_the_token_is_refused(
    cluster: RayCluster, corpus: Path, tmp_path: Path, token: dict[str, str]
) -> None:
    line = count_args(corpus, "out", "--address", cluster.address)
    code, _, said = run_byteweld(tmp_path, *line, **token)
    assert code == 2
    last = said.splitlines()[-1]
    assert last.startswith(f"byteweld: no connection to Ray at '{cluster.address}': ")
    assert "RAY_AUTH_TOKEN are those of the cluster" in last
    assert not list(tmp_path.iterdir())


def test_an_address_where_nothing_listens_fails_at_once(tmp_path: Path, corpus: Path) -> None:
    code, _, said = run_byteweld(tmp_path, *count_args(corpus, "out", "--address", "127.0.0.1:9"))
    assert code == 2
    assert "no connection to Ray at '127.0.0.1:9': nothing listens there" in said


LISTENING = """
import subprocess, sys
from byteweld.jobs.ray import RayRunner

with RayRunner():
    import ray

    address = ray.get_runtime_context().gcs_address
    code = "import ray, sys; ray.init(sys.argv[1], logging_level='ERROR')"
    refused = subprocess.run(
        [sys.executable, "-c", code, address],
        env={**__import__("os").environ, "RAY_AUTH_MODE": "disabled", "RAY_AUTH_TOKEN": ""},
        capture_output=True, text=True, timeout=60,
    )
    print(address, refused.returncode != 0, "InvalidAuthToken" in refused.stderr)
"""


def test_a_cluster_of_its_own_is_private(cluster: RayCluster) -> None:
    # Ray's own client replaces 127.0.0.1, unless told not to.
    done = subprocess.run(
        [sys.executable, "-c", LISTENING],
        env=os.environ | ALONE | {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"},
        capture_output=True,
        text=True,
        timeout=90,
    )
    address, *facts = done.stdout.split()
    assert address.startswith("127.0.0.1:"), done.stderr
    assert facts == ["True", "True"], done.stderr
