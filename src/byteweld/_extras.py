"""Packages of the optional extras, imported on first use."""

from __future__ import annotations

import importlib
from typing import Any


def imported(module: str, user: str, extra: str) -> Any:
    """Import a module; if its package is missing, raise an error that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f"{user} needs {package}; install it with: pip install 'byteweld[{extra}]'"
        ) from error


def arrow() -> Any:
    """Return pyarrow, with its module for Parquet files."""
    user = "what reads or writes Parquet files (saved counts are some) or Arrow tables"
    imported("pyarrow.parquet", user, "arrow")
    return imported("pyarrow", user, "arrow")
