"""What the package promises: public names, a light import, examples that run."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import byteweld
from byteweld._cached import cached_property

ROOT = Path(__file__).parent.parent
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(byteweld.__path__, "byteweld.")
    if not module.name.endswith(("_native", "__main__"))
)


def test_dunder_all_is_sorted_and_complete() -> None:
    names = byteweld.__all__
    key = lambda name: (not name.isupper(), not name[0].isupper(), name)  # noqa: E731
    assert names == sorted(names, key=key)
    assert all(hasattr(byteweld, name) for name in names)
    public = {n for n, value in vars(byteweld).items() if not n.startswith("_")}
    modules = {name.split(".")[1] for name in MODULES}
    assert public - modules == set(names) - modules


def test_import_is_light_and_starts_nothing() -> None:
    """Not even `typing` or `re`, each of which takes longer to import than the engine."""
    code = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "import byteweld\n"
        "print(*sorted(set(sys.modules) - before - {'__future__'}))\n"
        "import threading\n"
        "assert threading.active_count() == 1\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "byteweld byteweld._native byteweld.errors\n"


def test_modules_with_public_names_need_no_import() -> None:
    code = "import byteweld; byteweld.formats.save, byteweld.vocab.Merge"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="module 'byteweld' has no attribute 'nothing'"):
        byteweld.nothing  # noqa: B018


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_hold(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} has no docstring"
    assert doctest.testmod(module, extraglobs={"byteweld": byteweld}).failed == 0


def test_every_relative_link_in_the_documents_leads_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.relative_to(ROOT)} links to {link}"


@pytest.mark.parametrize("name", byteweld.__all__)
def test_every_public_name_and_its_members_have_a_docstring(name: str) -> None:
    value = getattr(byteweld, name)
    if inspect.isclass(value):
        own = vars(value).get("__doc__") or ""
        assert own and not own.startswith(f"{name}("), f"{name} has no docstring of its own"
        for member, found in inspect.getmembers(value, is_documented):
            if not member.startswith("_"):
                assert inspect.getdoc(found), f"{name}.{member} has no docstring"
    elif inspect.isroutine(value):
        assert inspect.getdoc(value), f"{name} has no docstring"


def is_documented(member: object) -> bool:
    return inspect.isroutine(member) or isinstance(member, property | cached_property)


# ---------------------------------------------------------------------- examples in docstrings

# Public names outside of `byteweld.__all__` that have examples, too.
OTHERS = {
    "byteweld.corpus": ("find_chunk_boundaries", "open_corpus"),
    "byteweld.jobs": ("Runner", "LocalRunner", "RankRunner", "open_runner"),
    "byteweld.jobs.ray": ("RayRunner",),
    "byteweld.reference": importlib.import_module("byteweld.reference").__all__,
    "byteweld.tiktoken": importlib.import_module("byteweld.tiktoken").__all__,
}
# Examples that doctest skips, and why. Those that need rank files run where the files are.
RANK_FILE = "needs a rank file that byteweld may not ship"
NETWORK = "connects to the network"
SKIPPED = {
    "byteweld.FetchError": NETWORK,
    "byteweld.encoding_for_model": RANK_FILE,
    "byteweld.fetch": NETWORK,
    "byteweld.get_encoding": RANK_FILE,
    "byteweld.tiktoken.encoding_for_model": RANK_FILE,
    "byteweld.tiktoken.get_encoding": RANK_FILE,
    "byteweld.jobs.ray.RayRunner": "needs a Ray cluster and an object store",
}


def documented() -> Iterator[tuple[str, Any]]:
    """Yield every name that must have an example, and what it is.

    Besides classes and functions, these are the methods of public classes and the properties of
    Tokenizer.
    """
    for module, names in {"byteweld": byteweld.__all__, **OTHERS}.items():
        for name in names:
            value = getattr(importlib.import_module(module), name)
            if not (inspect.isclass(value) or inspect.isroutine(value)):
                continue  # a table, which has no docstring at run time
            yield f"{module}.{name}", value
            if inspect.isclass(value) and module == "byteweld":
                for member, found in inspect.getmembers(value, is_our_method):
                    if not member.startswith("_"):
                        yield f"{module}.{name}.{member}", found
    for member, found in inspect.getmembers(byteweld.Tokenizer, lambda m: isinstance(m, property)):
        yield f"byteweld.Tokenizer.{member}", found


def is_our_method(member: object) -> bool:
    """Whether it is a method, and not one of object, tuple or Exception."""
    module = getattr(member, "__module__", None) or ""
    is_cached = isinstance(member, cached_property)  # which inspect takes for a method
    return inspect.isroutine(member) and not is_cached and module.startswith("byteweld")


DOCUMENTED = dict(documented())


def examples_of(value: Any) -> list[doctest.Example]:
    """Return the examples in the docstring of a value, without its imports."""
    if value is None:
        return []
    own = vars(value).get("__doc__") if inspect.isclass(value) else inspect.getdoc(value)
    found = doctest.DocTestParser().get_examples(own or "")
    return [example for example in found if not example.source.startswith(("import ", "from "))]


def test_the_list_of_documented_names_has_all_kinds_of_them() -> None:
    for name in ("train", "Counts.merge", "FormatError", "Tokenizer.encode", "Tokenizer.vocab"):
        assert f"byteweld.{name}" in DOCUMENTED


@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_public_name_has_a_sentence_and_an_example(name: str) -> None:
    """A method may be in the example of its class instead."""
    doc = inspect.getdoc(DOCUMENTED[name]) or ""
    assert doc.partition("\n\n")[0].endswith("."), f"{name}: {doc[:80]!r} is not a sentence"
    examples = examples_of(DOCUMENTED[name])
    if not examples:
        kind, _, member = name.rpartition(".")
        shown = [example.source for example in examples_of(DOCUMENTED.get(kind))]
        assert re.search(rf"\b{member}\b", "".join(shown)), f"{name} has no example"
        return
    # In "Examples:", mkdocstrings shows code; elsewhere, `>>>` becomes nested quotes.
    assert "Examples:\n" in doc.partition(">>>")[0], f"{name}: its example is not in Examples:"
    is_run = [not example.options.get(doctest.SKIP) for example in examples]
    assert all(is_run) or name in SKIPPED, f"{name} has an example that is not run"
    assert not any(is_run) or name not in SKIPPED, f"{name} is in SKIPPED, but its example runs"


@pytest.mark.parametrize("name", [name for name, why in SKIPPED.items() if why == RANK_FILE])
def test_examples_with_rank_files_hold(
    name: str, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("byteweld.encodings._loaded", {})
    monkeypatch.setattr("byteweld.tiktoken._registered", {})
    monkeypatch.setenv("BYTEWELD_PATH", str(shared / "vocabs" / "tiktoken"))
    doc = (inspect.getdoc(DOCUMENTED[name]) or "").replace("# doctest: +SKIP", "")
    test = doctest.DocTestParser().get_doctest(doc, {"byteweld": byteweld}, name, None, None)
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_a_cached_property_has_no_example_since_doctest_does_not_see_it(name: str) -> None:
    module = importlib.import_module(name)
    for kind in filter(inspect.isclass, vars(module).values()):
        for member, found in inspect.getmembers(kind, lambda m: isinstance(m, cached_property)):
            assert ">>>" not in (found.__doc__ or ""), f"{kind.__name__}.{member}: not run"
