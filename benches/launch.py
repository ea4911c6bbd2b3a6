"""Finds where engines are installed, and runs one measurement in a separate process."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from plan import Definition
from recording import Verdict, commit_of
from worker import load_engine

WORKER = Path(__file__).resolve().parent / "worker.py"
PARENT = "parent"  # the variant that runs where another commit is installed


@dataclass(frozen=True)
class Engine:
    """A file in engines/, or a variant of it."""

    name: str
    file: Path
    variant: str | None
    python: str  # the interpreter of the environment where it is installed
    remedy: str  # how to install it
    version: str | None  # None if it is not installed
    measures: frozenset[str]
    vocabs: frozenset[str] | None = None  # None for any


@dataclass(frozen=True)
class Outcome:
    """The result of a worker, or why there is none."""

    result: dict[str, Any] | None
    verdict: Verdict
    message: str = ""


def find_engine(
    name: str, folders: Sequence[Path], peers: Path | None = None, parent: Path | None = None
) -> Engine:
    """Read an engine's file without importing its library.

    `peers` is a virtual environment; an engine installed there runs there. `parent` is the one
    where the variant `parent` of an engine runs.
    """
    stem, _, variant = name.partition(":")
    for folder in folders:
        file = folder / f"{stem}.py"
        if file.is_file():
            break
    else:
        where = ", ".join(str(folder) for folder in folders)
        raise ValueError(f"no engine {stem!r}: expected a file {stem}.py in {where}")
    module = load_engine(file)
    measures = frozenset(key for key, value in vars(module).items() if callable(value))
    if variant == PARENT:
        version, python = _parent_installation(module, parent)
        remedy = "pass --parent VENV"
    else:
        version, python = _installation(module, peers)
        remedy = _remedy(module)
    vocabs = frozenset(module.VOCABS) if hasattr(module, "VOCABS") else None
    return Engine(name, file, variant or None, python, remedy, version, measures, vocabs)


def _installation(module: ModuleType, peers: Path | None) -> tuple[str | None, str]:
    """The version of an engine's library, or its own (None if missing), and the interpreter."""
    if hasattr(module, "NEEDS"):
        return (str(module.VERSION) if shutil.which(module.NEEDS) else None), sys.executable
    version = None if peers is None else _version_in(peers, module)
    if peers is not None and version is not None:
        return version, _python_of(peers)
    try:
        return importlib.metadata.version(module.DISTRIBUTION), sys.executable
    except importlib.metadata.PackageNotFoundError:
        return None, sys.executable


def _parent_installation(module: ModuleType, parent: Path | None) -> tuple[str | None, str]:
    """The version of the parent with its commit, if its environment is in a clone."""
    if parent is None:
        return None, sys.executable
    version = _version_in(parent, module)
    return version and f"{version} at {commit_of(parent.parent)}", _python_of(parent)


def _version_in(environment: Path, module: ModuleType) -> str | None:
    folders = [str(folder) for folder in environment.glob("lib/python*/site-packages")]
    found = importlib.metadata.distributions(name=module.DISTRIBUTION, path=folders)
    return next((distribution.version for distribution in found), None)


def _python_of(environment: Path) -> str:
    return str(environment / "bin" / "python")


def _remedy(module: ModuleType) -> str:
    if hasattr(module, "NEEDS"):
        return f"requires {module.NEEDS}"
    return f"pip install {module.DISTRIBUTION}"


def start(engine: Engine, definition: Definition, timeout: float) -> Outcome:
    """Measure once, in a separate process."""
    job = definition.job | {"variant": engine.variant}
    threads = str(definition.threads)
    environment = os.environ | {
        "RAYON_NUM_THREADS": threads,
        "OMP_NUM_THREADS": threads,
        # Nobody uses numpy's BLAS, but its threads keep a CPU busy for a while after the import.
        "OPENBLAS_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "true" if definition.threads > 1 else "false",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "",  # otherwise a clone would be compiled on every import
    }
    command = [engine.python, "-P", str(WORKER), str(engine.file), json.dumps(job)]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return Outcome(None, "timeout", f"stopped after {timeout:.0f} s")
    if done.returncode != 0:
        messages = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return Outcome(
            None, "error", messages[-1] if messages else f"exit status {done.returncode}"
        )
    return Outcome(json.loads(done.stdout), "yes")
