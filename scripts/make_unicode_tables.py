"""Writes the Unicode 16 table of the scanners: crates/byteweld-core/src/pretoken/unicode_runs.rs.

Every code point gets a cell: its general category, whether it is White_Space, whether its script
is Han, whether it folds to an ASCII letter. Requires the release of `regex` with Unicode 16, since
ids depend on the character classes. `--check` only compares.
"""

import string
import sys
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

import regex

REGEX_VERSION = "2025.9.18"  # Unicode 16.0; later releases have newer classes
OUTPUT = Path(__file__).parent.parent / "crates/byteweld-core/src/pretoken/unicode_runs.rs"
CODE_POINTS = 0x110000
CATEGORIES = (
    "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co Cn"
).split()
PER_LINE = 8
HEAD = """\
//! Unicode 16.0 as runs of code points of one cell; `unicode.rs` says what for.
//!
//! Made by scripts/make_unicode_tables.py; do not edit.
"""


def cells() -> list[str]:
    """Return the name of the cell of every code point."""
    every = "".join(map(chr, range(CODE_POINTS)))
    names = [""] * CODE_POINTS
    for category in CATEGORIES:
        for match in regex.finditer(rf"\p{{{category}}}", every):
            if names[match.start()]:
                raise SystemExit(f"U+{match.start():04X} is in two categories")
            names[match.start()] = category
    if not all(names):
        raise SystemExit(f"U+{names.index(''):04X} is in no category")
    for property_name in ("White_Space", "Han"):
        for match in regex.finditer(rf"\p{{{property_name}}}", every):
            names[match.start()] += " " + property_name
    for code_point in range(0x80, CODE_POINTS):
        # The long s and the Kelvin sign: case-insensitive patterns match them as s and k.
        if every[code_point].casefold() in set(string.ascii_lowercase):
            names[code_point] += " folds"
    return names


def rust_source(names: list[str]) -> str:
    """Return the content of the generated file."""
    numbers = {name: number for number, name in enumerate(sorted(set(names)))}
    runs = []
    start = 0
    for name, group in groupby(names):
        runs.append(f"0x{start << 8 | numbers[name]:08X},")
        start += len(list(group))
    lines = [" ".join(runs[i : i + PER_LINE]) for i in range(0, len(runs), PER_LINE)]
    return "\n".join(
        [
            HEAD,
            "/// The cells: general category, then what else tells its characters from others.",
            f"pub(super) static CELL_NAMES: [&str; {len(numbers)}] = [",
            *(f'    "{name}",' for name in numbers),
            "];",
            "",
            "/// Where each run starts (upper bits) and its cell (the lowest eight), ascending.",
            "#[rustfmt::skip]",
            f"pub(super) static RUNS: [u32; {len(runs)}] = [",
            *(f"    {line}" for line in lines),
            "];",
            "",
        ]
    )


def main() -> int:
    """Write the file, or compare it."""
    if version("regex") != REGEX_VERSION:
        raise SystemExit(f"found regex {version('regex')}; expected {REGEX_VERSION}")
    source = rust_source(cells())
    if sys.argv[1:] == ["--check"]:
        return int(OUTPUT.read_text(encoding="utf-8") != source)
    if sys.argv[1:]:
        raise SystemExit(f"found arguments {sys.argv[1:]!r}; expected none, or --check")
    OUTPUT.write_text(source, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
