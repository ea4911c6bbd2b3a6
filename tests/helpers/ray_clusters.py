"""A Ray cluster of several nodes on the loopback interface, and tasks that kill what runs them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import byteweld
from byteweld.jobs.ray import RayRunner, _refresh_authentication

TOKEN = "0123456789abcdef" * 4
_NODE = {"num_cpus": 1, "object_store_memory": 80 << 20, "node_ip_address": "127.0.0.1"}

# A dead node is noticed within seconds.
_SOONER = {"health_check_period_ms": 1000, "health_check_failure_threshold": 5}


class RayCluster:
    """Three nodes with one processor each, in processes of this machine."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self._cluster = Cluster(
            initialize_head=True,
            head_node_args={**_NODE, "include_dashboard": False, "_system_config": _SOONER},
        )
        self.address: str = self._cluster.address
        self.add_node()
        self.add_node()

    def add_node(self) -> Any:
        return self._cluster.add_node(**_NODE)

    def runner(self, **options: Any) -> RayRunner:
        return RayRunner(self.address, **options)

    @property
    def raylets(self) -> list[int]:
        """The process ids of the nodes, the head first."""
        nodes = [self._cluster.head_node, *self._cluster.worker_nodes]
        found = [node.all_processes.get("raylet") for node in nodes]
        return [processes[0].process.pid for processes in found if processes]

    def end(self) -> None:
        """End all processes; what does not end is killed."""
        ours = descendants(os.getpid())
        with contextlib.suppress(Exception):
            self._cluster.shutdown()
        assert_gone(ours, 5, kill=True)


@contextlib.contextmanager
def ray_cluster(**environment: str) -> Iterator[RayCluster]:
    """Start a cluster that asks for a token; its workers see this package and the tests."""
    pytest.importorskip("ray", reason="no ray; run `make test-cluster`")
    folders = [Path(byteweld.__file__).parents[1], Path(__file__).parents[2]]
    before = set(descendants(os.getpid()))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "PYTHONPATH": os.pathsep.join(map(str, folders)),
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": TOKEN,
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_NUM_REDIS_GET_RETRIES": "2",  # for clients that are refused
            **environment,
        }.items():
            patch.setenv(name, value)
        patch.delenv("RAY_ADDRESS", raising=False)
        _refresh_authentication()
        cluster = RayCluster()
        try:
            yield cluster
        finally:
            cluster.end()
    _refresh_authentication()
    assert set(descendants(os.getpid())) <= before


# ---------------------------------------------------------------------- processes


def parents() -> dict[int, int]:
    """Return the parent of each process that is there, zombies aside."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                stat = (entry / "stat").read_text("utf-8", "replace")
                state, parent = stat.rsplit(")", 1)[1].split()[:2]
                if state not in "ZX":
                    found[int(entry.name)] = int(parent)
    return found


def command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def descendants(pid: int) -> list[int]:
    """Return the ids of all processes that a process has started, and those of their own."""
    known = parents()
    found = [pid]
    for one in found:
        found += [child for child, parent in known.items() if parent == one]
    return found[1:]


def assert_gone(pids: Iterable[int], seconds: float, *, kill: bool = False) -> None:
    """Wait until processes have ended; then kill those that have not, or fail."""
    left = set(pids)
    deadline = time.monotonic() + seconds
    while (left := left & parents().keys()) and time.monotonic() < deadline:
        time.sleep(0.05)
    named = {pid: command(pid).strip(b"\0")[:80] for pid in left}
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert kill or not left, named


# ---------------------------------------------------------------------- faults


class Faulty(NamedTuple):
    """Runs a task; a fault happens once to each item, or every time."""

    function: Callable[[Any], Any]
    fault: str
    folder: Path  # what has happened
    heads: tuple[int, ...] = ()

    def __call__(self, item: Any) -> Any:
        name = hashlib.sha256(os.fsencode(f"{type(item).__name__} {item}")).hexdigest()
        if self.fault == "always":
            _die()
        if int(name[0], 16) % 2 and self.fault != "node":
            return self.function(item)
        if self.fault == "node":
            name = "node"  # one dies, whatever runs at the same time
            if os.getppid() in self.heads:
                self._wait_for_fault()
            if os.getppid() in self.heads or any(self.folder.iterdir()):
                time.sleep(0.02)
                return self.function(item)
        try:
            (self.folder / name).touch(exist_ok=False)
        except FileExistsError:
            return self.function(item)
        if self.fault == "before":
            _die()
        if self.fault == "node":
            os.kill(os.getppid(), signal.SIGKILL)
            _die()
        result = self.function(item)
        if self.fault == "after":  # its files are there, and it runs once more
            _die()
        assert self.function(item) == result
        return result

    def _wait_for_fault(self) -> None:
        """Keep the head busy, so that other nodes get tasks however slowly they start."""
        deadline = time.monotonic() + 240  # only a hang takes so long
        while not any(self.folder.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.02)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class FaultyRunner(RayRunner):
    """Ray, with faults: "before" and "after" kill the worker, "node" its node, once per item."""

    def __init__(self, cluster: RayCluster, fault: str, folder: Path, **options: Any) -> None:
        super().__init__(cluster.address, **options)
        self._cluster = cluster
        self._fault = fault
        self._folder = folder
        self._has_added = False
        folder.mkdir()

    def _run(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        heads = tuple(self._cluster.raylets[:1])
        return super()._run(Faulty(function, self._fault, self._folder, heads), items)

    def add_node(self, *_: object) -> None:
        """As `progress`: add a node after one has died."""
        if self.happened and not self._has_added:
            self._has_added = True
            self._cluster.add_node()

    @property
    def happened(self) -> int:
        return len(list(self._folder.iterdir()))
