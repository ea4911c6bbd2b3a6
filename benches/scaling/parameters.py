"""The parameters of `estimate` and `simulate`: scale.toml, with changes from the command line."""

from __future__ import annotations

import difflib
import json
import math
import tomllib
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def read(path: Path, changes: Sequence[str] = ()) -> SimpleNamespace:
    """Read the parameters; a change is NAME=VALUE, and VALUE a number, a boolean or a list.

    >>> read(Path("benches/scale.toml"), ["workers=10"]).workers
    10
    """
    tables = tomllib.loads(path.read_text())
    values: dict[str, Any] = {
        key: value for table in tables.values() for key, value in table.items()
    }
    for change in changes:
        name, _, text = change.partition("=")
        if name not in values:
            near = difflib.get_close_matches(name, values, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"there is no parameter {name!r}{hint}")
        try:
            value = math.inf if text == "inf" else json.loads(text)
        except ValueError as error:
            raise ValueError(f"{change!r}: expected a number, true, false or a list") from error
        if isinstance(values[name], list) != isinstance(value, list):
            raise ValueError(f"{change!r}: expected a value like {values[name]!r}")
        values[name] = value
    return SimpleNamespace(**values)
