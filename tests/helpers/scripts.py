"""Load a program of scripts/ as a module."""

from __future__ import annotations

import importlib.util
from types import ModuleType

from tests.helpers.pages import ROOT


def load_script(name: str) -> ModuleType:
    """Return scripts/NAME.py as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
