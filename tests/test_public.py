"""What the package promises: public names, a light import, examples that run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import byteweld

ROOT = Path(__file__).parent.parent
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(byteweld.__path__, "byteweld.")
    if not module.name.endswith(("_native", "__main__"))
)


def test_all_is_sorted_and_true() -> None:
    names = byteweld.__all__
    key = lambda name: (not name.isupper(), not name[0].isupper(), name)  # noqa: E731
    assert names == sorted(names, key=key)
    assert all(hasattr(byteweld, name) for name in names)
    public = {n for n, value in vars(byteweld).items() if not n.startswith("_")}
    modules = {name.split(".")[1] for name in MODULES}
    assert public - modules == set(names) - modules


def test_import_is_light_and_starts_nothing() -> None:
    code = (
        "import sys, threading, byteweld\n"
        "heavy = {'numpy', 'typer', 'rich', 'regex', 'pyarrow'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert threading.active_count() == 1\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_hold(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} has no docstring"
    assert doctest.testmod(module).failed == 0


def test_every_relative_link_in_the_documents_leads_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.relative_to(ROOT)} links to {link}"


def test_a_deprecated_name_warns_and_still_works() -> None:
    with pytest.warns(DeprecationWarning, match=r"use byteweld\.recognize"):
        assert byteweld.recognise is byteweld.recognize
