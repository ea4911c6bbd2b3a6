"""A dataset to be made: recognizes an earlier run of the same job, and refuses any other."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import itertools
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from byteweld._atomic import CLOEXEC, lock, naming
from byteweld._files import check_parent, read_regular
from byteweld._folders import Folder, LocalFolder
from byteweld._saves import settle, write_atomic
from byteweld.corpus import Corpus
from byteweld.dataset._checks import is_plain_path
from byteweld.dataset._encoding import DOCUMENTS, source_names
from byteweld.dataset._manifest import MANIFEST, FileEntry, Manifest, ShardEntry, load_manifest
from byteweld.dataset._writer import published_last
from byteweld.dataset.options import Plan
from byteweld.errors import FormatError
from byteweld.sources import Sources
from byteweld.tokenizer import Tokenizer

WORK: Final = ".unfinished"
STATE: Final = "state.json"  # of a run, in the work folder: its checkpoint
SHARDS: Final = "shards.jsonl"
TASKS: Final = "tasks.json"  # in the work folder of a dataset that is made in tasks
FACTS: Final = "job.json"
_MAX_STATE_BYTES: Final = 1 << 30
# Options that may differ when a run goes on: nothing done so far depends on them.
_MAY_CHANGE: Final = {("reading", "on_error"): "fail", ("", "special_text"): "fail"}
_MAX_LISTED: Final = 5


class Job:
    """What is to be made, from what, where and how."""

    def __init__(self, sources: Sources, tok: Tokenizer, folder: Path, plan: Plan) -> None:
        if sources.tables:
            raise TypeError("counts have no documents; pass paths, or documents=[...]")
        self.sources = sources
        self.tok = tok
        self.folder = folder
        self.plan = plan
        self.work = folder / WORK

    @property
    def corpus(self) -> Corpus | None:
        return self.sources.corpus

    @functools.cached_property
    def total_bytes(self) -> int | None:
        """Size of all sources; None if it is not known."""
        if self.corpus is None or not self.corpus.files or self.sources.documents is not None:
            return None
        return self.corpus.total_bytes

    def check_packages(self) -> None:
        """Raise now if a package is missing that writing needs at the end of the first shard."""
        import importlib.util

        for module, extra in self.plan.format.requires:
            if importlib.util.find_spec(module) is None:
                raise ImportError(
                    f"format {self.plan.format.name!r} needs {module}; "
                    f"install it with: pip install 'byteweld[{extra}]'"
                )

    def tokenizer_facts(self) -> dict[str, Any]:
        vocab = self.tok.vocab
        return {
            "fingerprint": vocab.fingerprint,
            "n_vocab": self.tok.n_vocab,
            "eot": None if self.plan.eot is None else self.plan.eot._asdict(),
            "bos": None if self.plan.bos is None else self.plan.bos._asdict(),
        }

    def option_facts(self) -> dict[str, Any]:
        reading = None
        if self.corpus is not None:
            reading = dataclasses.asdict(self.corpus.reading)
            del reading["ext"]  # the sources it selects are listed
        return {**self.plan.to_dict(), "reading": reading}

    def source_facts(self) -> list[Any]:
        """Return what identifies the sources while they are unchanged."""
        facts: list[Any] = [] if self.corpus is None else list(self.corpus.states())
        if not facts:  # a table in memory
            facts = [[name, None, None] for name in source_names(self.sources)]
        if self.sources.documents is not None:
            facts.append([DOCUMENTS, None, None])
        return facts

    def facts(self) -> dict[str, Any]:
        return {
            "format": self.plan.format.name,
            "dtype": self.plan.options.dtype,
            "tokenizer": self.tokenizer_facts(),
            "options": self.option_facts(),
            "sources": self.source_facts(),
        }

    def manifest(self) -> Manifest:
        """Return the manifest of an empty dataset."""
        return Manifest(
            format=self.plan.format.name,
            dtype=self.plan.options.dtype or "",
            tokenizer=self.tokenizer_facts(),
            options=self.option_facts(),
        )

    @contextlib.contextmanager
    def locked(self, *, overwrite: bool) -> Iterator[None]:
        """Make the folder ready, and keep other runs out of it."""
        check_parent(self.folder)
        self.check_folder()
        with naming(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        with locked(self.folder):
            if overwrite:
                self._remove()
            yield

    def check_folder(self) -> None:
        """Raise if the folder holds anything but a dataset."""
        if not self.folder.exists():
            return
        if not self.folder.is_dir():
            raise FileExistsError(f"{self.folder} exists and is not a folder; choose another name")
        if (self.folder / MANIFEST).exists():
            load_manifest(self.folder)
            return
        # A run that was killed may have left files of its first shard, but no manifest yet.
        is_begun = (self.work / FACTS).exists() or (self.work / TASKS).exists()
        if not is_begun and any(entry.name != WORK for entry in self.folder.iterdir()):
            raise FileExistsError(
                f"{self.folder} holds other files; choose a folder that is new or empty"
            )

    def _remove(self) -> None:
        """Remove an earlier dataset: the files that it is known to have, and no others."""
        # Those that a killed run was moving when it was killed are not in the manifest.
        names = published_last(self.work)
        names += filter(is_plain_path, published_by_tasks(LocalFolder(self.work)))
        with contextlib.suppress(OSError, FormatError):
            listed = [file.name for shard in published_shards(self.work) for file in shard.files]
            names += filter(is_plain_path, listed)
        if (self.folder / MANIFEST).exists():
            manifest = load_manifest(self.folder)
            shards = itertools.chain(*(shard.files for shard in manifest.shards))
            names += [entry.name for entry in (*shards, *manifest.files)]
        for name in names:
            with naming(self.folder / name):
                (self.folder / name).unlink(missing_ok=True)
            if "/" in name:
                with contextlib.suppress(OSError):
                    (self.folder / name).parent.rmdir()
        shutil.rmtree(self.work, ignore_errors=True)
        (self.folder / MANIFEST).unlink(missing_ok=True)

    def complete_manifest(self) -> Manifest | None:
        """Return the manifest if all is done; raise if it is of another job."""
        if not (self.folder / MANIFEST).exists():
            return None
        manifest = load_manifest(self.folder)
        if not manifest.is_complete:
            return None
        self.check_same(manifest)
        shutil.rmtree(self.work, ignore_errors=True)  # if the last run was killed at its very end
        return manifest

    def check_same(self, manifest: Manifest) -> None:
        """Raise unless a complete dataset is that of this job."""
        changed = changes(
            {
                "format": manifest.format,
                "dtype": manifest.dtype,
                "tokenizer": manifest.tokenizer,
                "options": manifest.options,
                "sources": [[source.name, source.size] for source in manifest.sources],
            },
            {**self.facts(), "sources": self._known_sizes(manifest)},
        )
        if changed:
            raise FileExistsError(
                f"{self.folder} holds a complete dataset of another job: {'; '.join(changed)}; "
                "choose another folder, or pass overwrite=True (--force) to replace it"
            )

    def _known_sizes(self, manifest: Manifest) -> list[Any]:
        """Return the sources with their sizes, except where the manifest has none."""
        unknown = {source.name for source in manifest.sources if source.size is None}
        facts = [fact[:2] for fact in self.source_facts()]
        return [[name, None if name in unknown else size] for name, size in facts]

    def same_as_before(self) -> bool:
        """Whether the work folder is of this job; raise if it is of another one."""
        path = self.work / FACTS
        if (self.work / TASKS).exists():
            raise FileExistsError(
                f"{self.folder} holds an unfinished dataset of tasks; run the same job on the same "
                "runner (--runner), or in ranks, to finish it, or pass overwrite=True (--force) to "
                "start over"
            )
        facts = json.loads(json.dumps(self.facts()))
        if not path.exists():
            self._begin(facts)
            return False
        before = read_json(path)
        changed = changes(before, facts)
        if changed and not self._has_documents():
            self._remove()
            self._begin(facts)
            return False
        if changed:
            raise FileExistsError(
                f"{self.folder} holds an unfinished dataset, and this is not the same job: "
                f"{'; '.join(changed)}; run the same job again to finish it, or pass "
                "overwrite=True (--force) to start over"
            )
        if before != facts:  # in what may change once, from now on not again
            write_json(path, facts)
        return True

    def _begin(self, facts: dict[str, Any]) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
        with naming(self.work):
            self.work.mkdir()
        write_json(self.work / FACTS, facts)

    def _has_documents(self) -> bool:
        """Whether an earlier run has got so far that starting over loses anything."""
        if (self.folder / MANIFEST).exists() or published_shards(self.work):
            return True
        state = read_json(self.work / STATE) if (self.work / STATE).exists() else {}
        return bool(state.get("documents") or state.get("skipped"))


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other runs out of the folder of a dataset."""
    with naming(folder):
        descriptor = os.open(folder, os.O_RDONLY | CLOEXEC)
    try:
        if lock(descriptor) is False:
            raise BlockingIOError(f"another process is writing the dataset {folder}; wait for it")
        settle(folder)  # a manifest that a killed run was writing
        yield
    finally:
        os.close(descriptor)


def published_by_tasks(work: Folder) -> list[str]:
    """Return the names of the files that tasks have published so far."""
    shards = work.folder("shards")
    names: list[str] = []
    for file in sorted(shards.names()):
        with contextlib.suppress(ValueError, TypeError, KeyError):
            entry = json.loads(shards.read(file))["result"]
            names += [str(part["name"]) for part in entry["files"]]
    return names


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON, atomically, with the SHA-256 of its line in another line."""
    line = json.dumps(value).encode() + b"\n"
    digest = hashlib.sha256(line).hexdigest().encode()
    write_atomic(path, line + digest + b"\n", overwrite=True)


def published_shards(work: Path) -> list[ShardEntry]:
    """Return the shards that a run has published so far; not all are in the manifest yet."""
    path = work / SHARDS
    found = []
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    for line in lines:  # the last one has no end if the run was killed while it was written
        try:
            entry = json.loads(line)
            files = tuple(FileEntry(**file) for file in entry.pop("files"))
            found.append(ShardEntry(**entry, files=files))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise FormatError(
                f"damaged ({error}); start over with overwrite=True (--force)", path=path
            ) from None
    return found


def read_json(path: Path) -> Any:
    """Read what `write_json` wrote."""
    line, _, digest = read_regular(path, _MAX_STATE_BYTES).partition(b"\n")
    if digest != hashlib.sha256(line + b"\n").hexdigest().encode() + b"\n":
        raise FormatError(
            "damaged: its SHA-256 is not that in its last line; start over with overwrite=True "
            "(--force)",
            path=path,
        )
    return json.loads(line)


def changes(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Say what differs between two jobs, in a few words each."""
    found = []
    for name in ("format", "dtype"):
        if before.get(name) != now[name]:
            found.append(f"{name} was {before.get(name)!r}, now {now[name]!r}")
    old, new = before.get("tokenizer", {}), now["tokenizer"]
    if old.get("fingerprint") != new["fingerprint"]:
        found.append(
            f"the tokenizer had fingerprint {str(old.get('fingerprint'))[:12]}, "
            f"now {new['fingerprint'][:12]}"
        )
    found += _option_changes(before.get("options") or {}, now["options"])
    found += _source_changes(before.get("sources") or [], now["sources"])
    return found


def _option_changes(before: dict[str, Any], now: dict[str, Any], within: str = "") -> list[str]:
    found = []
    for name in {**before, **now}:
        old, new = before.get(name), now.get(name)
        if old == new or (old is not None and _MAY_CHANGE.get((within, name)) == old):
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            found += _option_changes(old, new, name)
        else:
            found.append(f"{name} was {old!r}, now {new!r}")
    return found


def _source_changes(before: list[Any], now: list[Any]) -> list[str]:
    old = {fact[0]: fact[1:] for fact in before}
    new = {fact[0]: fact[1:] for fact in now}
    found = []
    for name, facts in new.items():
        if name not in old:
            found.append(f"source {name} is new")
        elif old[name] != facts:
            size, now_size = old[name][0], facts[0]
            how = f"had {_bytes(size)}, now {_bytes(now_size)}"
            if size == now_size:
                how = "was modified"
            found.append(f"source {name} {how}")
    found += [f"source {name} is gone" for name in old if name not in new]
    if not found and [fact[0] for fact in before] != [fact[0] for fact in now]:
        found.append("the sources are in another order")
    elif not found and before != now:  # names that are not UTF-8 look alike
        found.append("one of several sources with the same name was modified")
    return found[:_MAX_LISTED] + (
        [f"{len(found) - _MAX_LISTED} more"] if len(found) > _MAX_LISTED else []
    )


def _bytes(size: int | None) -> str:
    return "an unknown number of bytes, as from a pipe" if size is None else f"{size} bytes"
