"""Prints a dependency group of pyproject.toml, one requirement per line."""

import sys
import tomllib
from pathlib import Path

groups = tomllib.loads(Path("pyproject.toml").read_text())["dependency-groups"]
sys.stdout.write("\n".join(groups[sys.argv[1]]) + "\n")
