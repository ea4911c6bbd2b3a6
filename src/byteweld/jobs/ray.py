"""Runs tasks on Ray: on a cluster, or on one that is started here and ended again.

Only core tasks are used. Items, results and the function pass through Ray; everything large is in
files. Ray runs tasks again whose worker or node was lost.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import secrets
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from byteweld._extras import imported
from byteweld.jobs import Failure, Runner

_TOKEN: Final = secrets.token_hex(32)  # one per process: Ray reads it once
# Ray asks for at least 75 MB; hardly anything goes through its store.
_STORE_BYTES: Final = 128 << 20
_RETRIES: Final = 3
_MIN_WAITING: Final = 256  # tasks that Ray knows, so that it can plan, and clusters can grow
_WAIT_SECONDS: Final = 0.5
_RESOURCES_SECONDS: Final = 5.0
_CONNECT_SECONDS: Final = 10.0


class RayRunner(Runner):
    """Runs tasks on a Ray cluster.

    Args:
        address: of the cluster, as in `ray.init`: "auto", "host:6379", "ray://host:10001". Default:
            that of RAY_ADDRESS; without one, a cluster is started on this machine, with token
            authentication, and ended after the work. If Ray is initialized already, that is used.
        cpus_per_task: the processors of a task, which has as many threads.
        **options: those of `Runner`.

    Examples:
        >>> from byteweld.jobs.ray import RayRunner
        >>> runner = RayRunner("ray://head:10001", work="s3://bucket/work")  # doctest: +SKIP
        >>> byteweld.count("s3://bucket/corpus/*.jsonl.zst", runner=runner)  # doctest: +SKIP
    """

    name = "ray"

    def __init__(
        self, address: str | None = None, *, cpus_per_task: int = 1, **options: Any
    ) -> None:
        super().__init__(**options)
        if type(cpus_per_task) is not int or cpus_per_task < 1:
            raise ValueError(
                f"cpus_per_task is {cpus_per_task!r}; expected a whole number, at least 1"
            )
        self._address = address
        self.threads_per_task = cpus_per_task
        self._ray: Any = None
        self._is_ours = False  # the connection, or the whole cluster
        self._environment: dict[str, str | None] = {}

    def _start(self) -> None:
        address = self._address or os.environ.get("RAY_ADDRESS") or None
        is_new = address is None or address == "local"
        known = sys.modules.get("ray")
        is_initialized = known is not None and known.is_initialized()
        if is_new and not is_initialized:
            self._set_environment()  # first, since Ray reads it when it is imported
        try:
            self._ray = ray = imported("ray", "runner 'ray'", "ray")
            if not is_initialized:
                self._connect(None if is_new else address)
                self._is_ours = True
            if is_new and self._is_ours and not _asks_for_tokens(ray):
                raise ConnectionError(
                    f"Ray {ray.__version__} has no token authentication, so whoever reaches its "
                    "ports could run code here; install ray>=2.52, or pass the address of a cluster"
                )
        except BaseException:
            self._end()
            raise

    def _connect(self, address: str | None) -> None:
        """Connect to a cluster, or start one."""
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if address is None:
            _refresh_authentication()
            options |= {
                "include_dashboard": False,
                "object_store_memory": _STORE_BYTES,
                "_node_ip_address": "127.0.0.1",
            }
        try:
            is_here = address is None or _is_on_loopback(address)
            with _on_loopback() if is_here else contextlib.nullcontext():
                self._ray.init(address=address or "local", **options)
        except (ConnectionError, RuntimeError, ValueError, self._ray.exceptions.RayError) as error:
            where, hint = "Ray cannot be started here", ""
            if address is not None:
                where = f"no connection to Ray at {address!r}"
                hint = (
                    "; check the address, and that RAY_AUTH_MODE and RAY_AUTH_TOKEN are those of "
                    "the cluster"
                )
            raise ConnectionError(f"{where}: {_first_line(error)}{hint}") from error

    def _end(self) -> None:
        if self._is_ours:
            self._ray.shutdown()
            self._is_ours = False
        for name, value in self._environment.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self._environment = {}

    def _set_environment(self) -> None:
        """Have Ray's processes ask for a token, and send nothing to anybody."""
        wanted = {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": os.environ.get("RAY_AUTH_TOKEN") or _TOKEN,
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        self._environment = {name: os.environ.get(name) for name in wanted}
        os.environ.update(wanted)

    @property
    def is_one_machine(self) -> bool:
        nodes = [node for node in self._ray.nodes() if node["Alive"]]
        return {node["NodeManagerHostname"] for node in nodes} <= {socket.gethostname()}

    # ---------------------------------------------------------------- tasks

    def _run(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        ray = self._ray
        cpus = self.threads_per_task
        task = ray.remote(num_cpus=cpus, max_retries=_RETRIES)(_call)
        # Once for all tasks, and unpickled once by each worker.
        shared, key = ray.put(function), secrets.token_hex(8)
        folder = _current_folder()
        waiting: dict[Any, Any] = {}
        upcoming = iter(items)
        limit, checked = _MIN_WAITING, 0.0
        is_over = False
        try:
            while True:
                if time.monotonic() - checked > _RESOURCES_SECONDS:
                    total = ray.cluster_resources().get("CPU", 0)
                    limit, checked = max(_MIN_WAITING, 2 * int(total // cpus)), time.monotonic()
                    self._check_room(total)
                while not is_over and len(waiting) < limit:
                    try:
                        item = next(upcoming)
                    except StopIteration:
                        is_over = True
                        break
                    # In a list, so that Ray does not fetch it for every task.
                    waiting[task.remote([shared], key, item, folder)] = item
                if not waiting:
                    return
                yield from self._ended(waiting)
        finally:
            if waiting:
                _stop(key)

    def _ended(self, waiting: dict[Any, Any]) -> Iterator[Any]:
        """Yield the results of tasks that have ended, after waiting a little for the first."""
        ray = self._ray
        every = list(waiting)
        ended, rest = ray.wait(every, num_returns=1, timeout=_WAIT_SECONDS, fetch_local=False)
        if ended and rest:
            more, _ = ray.wait(rest, num_returns=len(rest), timeout=0, fetch_local=False)
            ended += more
        for reference in ended:
            item = waiting.pop(reference)
            try:
                result = ray.get(reference)
            except ray.exceptions.RayError as error:
                result = Failure(item, RuntimeError(_reason(error)))
            if isinstance(result, _Raised):
                result = Failure(item, result.error)
            yield result

    def _check_room(self, total: float) -> None:
        """Raise if no node can run a task; Ray would wait for one forever."""
        nodes = [node["Resources"].get("CPU", 0) for node in self._ray.nodes() if node["Alive"]]
        if total and max(nodes, default=0) < (self.threads_per_task or 1):
            raise ValueError(
                f"cpus_per_task is {self.threads_per_task}, but no node of the cluster has more "
                f"than {max(nodes):g} processors"
            )


class _Raised:
    """What a task raised, as a value: Ray would wrap it, and log it."""

    def __init__(self, error: Exception) -> None:
        try:
            pickle.loads(pickle.dumps(error))
            self.error = error
        except Exception:
            self.error = RuntimeError(f"{type(error).__name__}: {error}")


_functions: dict[str, Callable[[Any], Any]] = {}


def _current_folder() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109
    except OSError:  # it was removed
        return None


def _call(shared: list[Any], key: str, item: Any, folder: str | None) -> Any:
    """Run a task in a worker, in the folder of the caller: paths may be relative to it."""
    if _is_stopped(key):
        return _Raised(RuntimeError("it is not needed any more"))
    function = _functions.get(key)
    if function is None:
        import ray

        _functions.clear()
        function = _functions[key] = ray.get(shared[0])
    try:
        is_here = folder is not None and os.path.isdir(folder)  # noqa: PTH112
        with contextlib.chdir(folder) if folder and is_here else contextlib.nullcontext():
            return function(item)
    except Exception as error:
        return _Raised(error)


def _stop(key: str) -> None:
    """Have the tasks that have not begun yet do nothing.

    `ray.cancel` is not safe: if a task ends in the same moment, Ray 2.60 aborts this process. Those
    that run now end when the connection does, or with what they do.
    """
    with contextlib.suppress(ImportError):
        from ray.experimental.internal_kv import _internal_kv_put

        _internal_kv_put(f"byteweld-stopped-{key}", b"1")


def _is_stopped(key: str) -> bool:
    try:
        from ray.experimental.internal_kv import _internal_kv_exists
    except ImportError:
        return False
    return bool(_internal_kv_exists(f"byteweld-stopped-{key}"))


def _reason(error: Exception) -> str:
    """Say in a few words why Ray could not run a task."""
    kind = type(error).__name__
    known = {
        "WorkerCrashedError": "its worker died, again and again",
        "LocalRayletDiedError": "its node died, again and again",
        "NodeDiedError": "its node died, again and again",
        "OutOfMemoryError": "its node ran out of memory, again and again; take smaller slices",
        "TaskCancelledError": "it was canceled",
    }
    if "No module named 'byteweld'" in str(error):
        return "byteweld is not installed on its node; every node needs the same version"
    cause = getattr(error, "cause", None)  # what a task raised outside of its function
    if isinstance(cause, BaseException):
        return f"{type(cause).__name__}: {_first_line(cause)}"
    return known.get(kind) or f"{kind}: {_first_line(error)}"


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


@contextlib.contextmanager
def _on_loopback() -> Iterator[None]:
    """Have Ray listen on the loopback interface alone, and connect to it.

    Else it replaces 127.0.0.1 with the address of the machine, and listens on all interfaces.
    """
    from ray._private import ray_constants

    before = getattr(ray_constants, "ENABLE_RAY_CLUSTER", None)
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


def _is_on_loopback(address: str) -> bool:
    """Whether a cluster is reached through the loopback interface alone.

    Raises ConnectionError if nothing listens there; Ray would try for minutes.
    """
    try:
        if "://" in address:
            reached = [address.partition("://")[2]]
        else:
            reached = [_resolved(address)]
            with _on_loopback():
                reached.append(_resolved(address))
    except ImportError:  # another version of Ray, which has to find out itself
        return False
    for number, found in enumerate(reached):
        try:
            host, _, port = found.rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
        except (OSError, ValueError) as error:
            failure = error
        else:
            return number > 0
    raise ConnectionError(f"nothing listens there ({failure})")


def _resolved(address: str) -> str:
    """Return what Ray makes of an address."""
    from ray._private.services import canonicalize_bootstrap_address

    return str(canonicalize_bootstrap_address(address))


def _asks_for_tokens(ray: Any) -> bool:
    """Whether Ray's token authentication is on in this process."""
    try:
        from ray._private.authentication.authentication_utils import is_token_auth_enabled
    except ImportError:
        return False
    return bool(is_token_auth_enabled())


def _refresh_authentication() -> None:
    """Have Ray read the environment again, if it was imported before."""
    with contextlib.suppress(ImportError, AttributeError):
        from ray._raylet import AuthenticationTokenLoader, Config

        Config.initialize("")
        AuthenticationTokenLoader.instance().reset_cache()
