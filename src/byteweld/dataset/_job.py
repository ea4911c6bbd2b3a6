"""A dataset to be made: what identifies the job, and the folder that it is made in."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.util
import itertools
import os
from collections.abc import Iterator
from typing import Any, Final

from byteweld._atomic import CLOEXEC, lock, naming
from byteweld._files import check_parent
from byteweld._folders import Folder, LocalFolder
from byteweld._saves import settle
from byteweld.corpus import Corpus
from byteweld.dataset._checks import is_plain_path
from byteweld.dataset._encoding import DOCUMENTS, source_names
from byteweld.dataset._manifest import MANIFEST, Manifest, load_manifest, parse_manifest
from byteweld.dataset.options import Plan
from byteweld.errors import FormatError
from byteweld.jobs._changes import Facts, changed_facts
from byteweld.jobs._work import JOB, read_record
from byteweld.sources import Sources
from byteweld.tokenizer import Tokenizer

WORK: Final = ".unfinished"
ANNOUNCED: Final = "announced"  # in the work folder: the names of files before they are published
# Options that may differ in a resumed run: nothing done so far depends on them.
_MAY_CHANGE: Final = {"on_error": "fail", "special_text": "fail"}


class Job:
    """What is to be made, from what, where and how."""

    def __init__(self, sources: Sources, tok: Tokenizer, out: Folder, plan: Plan) -> None:
        if sources.tables:
            raise TypeError("counts have no documents; pass paths, or documents=[...]")
        self.sources = sources
        self.tok = tok
        self.out = out
        self.plan = plan
        self.work = out.folder(WORK)

    @property
    def corpus(self) -> Corpus | None:
        """The files, or the table, of the sources."""
        return self.sources.corpus

    @functools.cached_property
    def total_bytes(self) -> int | None:
        """Size of all sources; None if it is not known."""
        if self.corpus is None or not self.corpus.files or self.sources.documents is not None:
            return None
        return self.corpus.total_bytes

    def check_packages(self) -> None:
        """Raise now if a package is missing that writing needs at the end of the first shard."""
        for module, extra in self.plan.format.requires:
            if importlib.util.find_spec(module) is None:
                raise ImportError(
                    f"format {self.plan.format.name!r} needs {module}; "
                    f"install it with: pip install 'byteweld[{extra}]'"
                )

    def facts(self) -> dict[str, Any]:
        """Return what identifies the job, as JSON values."""
        vocab, plan = self.tok.vocab, self.plan
        reading = None
        if self.corpus is not None:
            reading = dataclasses.asdict(self.corpus.reading)
            del reading["ext"]  # the sources it selects are listed
        return {
            "format": plan.format.name,
            "dtype": plan.options.dtype,
            "tokenizer": {
                "fingerprint": vocab.fingerprint,
                "n_vocab": self.tok.n_vocab,
                "eot": None if plan.eot is None else plan.eot._asdict(),
                "bos": None if plan.bos is None else plan.bos._asdict(),
            },
            "options": {**plan.to_dict(), "reading": reading},
            "sources": self._sources(),
            "total_bytes": self.total_bytes,
        }

    def _sources(self) -> list[Any]:
        """Return what identifies the sources while they are unchanged."""
        facts: list[Any] = [] if self.corpus is None else list(self.corpus.states())
        if not facts:  # a table in memory
            facts = [[name, None, None] for name in source_names(self.sources)]
        if self.sources.documents is not None:
            facts.append([DOCUMENTS, None, None])
        return facts

    # ---------------------------------------------------------------- the folder

    @contextlib.contextmanager
    def ready(self, *, overwrite: bool) -> Iterator[None]:
        """Make the folder ready; keep other runs out of it, where that is possible."""
        if not isinstance(self.out, LocalFolder):
            if overwrite:
                self._remove()
            yield
            return
        check_parent(self.out.path)
        self.check_folder()
        with naming(self.out.path):
            self.out.path.mkdir(parents=True, exist_ok=True)
        with locked(self.out):
            if overwrite:
                self._remove()
            yield

    def check_folder(self) -> None:
        """Raise if the folder holds anything but a dataset."""
        if not isinstance(self.out, LocalFolder) or not self.out.path.exists():
            return
        folder = self.out.path
        if not folder.is_dir():
            raise FileExistsError(f"{folder} exists and is not a folder; choose another name")
        if (folder / MANIFEST).exists():
            load_manifest(folder)
            return
        # A run that was killed may have left files of its first shard, but no manifest yet.
        if not self.work.exists(JOB) and any(entry.name != WORK for entry in folder.iterdir()):
            raise FileExistsError(
                f"{folder} holds other files; choose a folder that is new or empty"
            )

    def _remove(self) -> None:
        """Remove an earlier dataset: the files that it is known to have, and no others."""
        names = list(self._announced())
        manifest = self._manifest()
        if manifest is not None:
            shards = itertools.chain(*(shard.files for shard in manifest.shards))
            names += [entry.name for entry in (*shards, *manifest.files)]
        for name in names:
            self.out.remove(name)
        self.work.remove_all()
        self.out.remove(MANIFEST)

    def _announced(self) -> Iterator[str]:
        """Yield the names of files that a run has published, or was about to."""
        for record in sorted(self.work.folder(ANNOUNCED).names()):
            with contextlib.suppress(FormatError):
                names = read_record(self.work, f"{ANNOUNCED}/{record}", list[str])
                yield from filter(is_plain_path, names)

    def _manifest(self) -> Manifest | None:
        if not self.out.exists(MANIFEST):
            return None
        if isinstance(self.out, LocalFolder):
            return load_manifest(self.out.path)
        return parse_manifest(self.out.read(MANIFEST), f"{self.out}/{MANIFEST}")

    def complete_manifest(self) -> Manifest | None:
        """Return the manifest if all is done; raise if it is of another job."""
        manifest = self._manifest()
        if manifest is None or not manifest.is_complete:
            return None
        sources = [[source.name, source.size] for source in manifest.sources]
        unknown = {name for name, size in sources if size is None}
        facts = self.facts()
        now = [[name, None if name in unknown else size] for name, size, *_ in facts["sources"]]
        changed = changes({**vars(manifest), "sources": sources}, {**facts, "sources": now})
        if changed:
            raise FileExistsError(
                f"{self.out} holds a complete dataset of another job: {'; '.join(changed)}; "
                "choose another folder, or pass overwrite=True (--force) to replace it"
            )
        self.work.remove_all()  # if the last run was killed at its very end
        return manifest


@contextlib.contextmanager
def locked(out: LocalFolder) -> Iterator[None]:
    """Keep other runs out of the folder of a dataset."""
    with naming(out.path):
        descriptor = os.open(out.path, os.O_RDONLY | CLOEXEC)
    try:
        if lock(descriptor) is False:
            raise BlockingIOError(f"another process is writing the dataset {out}; wait for it")
        settle(out.path)  # a manifest that a killed run was writing
        yield
    finally:
        os.close(descriptor)


# ---------------------------------------------------------------------- what has changed


def changes(before: Facts, now: Facts) -> list[str]:
    """Say what differs between two jobs, in a few words each."""
    return changed_facts(_compared(before), _compared(now), may_change=_MAY_CHANGE)


def _compared(facts: Facts) -> Facts:
    tokenizer = facts.get("tokenizer") or {}
    return {
        "format": facts.get("format"),
        "dtype": facts.get("dtype"),
        "the tokenizer's fingerprint": str(tokenizer.get("fingerprint"))[:12],
        "options": facts.get("options") or {},
        "sources": facts.get("sources") or [],
    }
