"""Who may import whom: the module tables in ARCHITECTURE.md, checked against the source.

The last column of a table lists what a module may use, separated by commas; the first word of an
entry counts. A clause `; in `a` and `b`: x` allows `x` to the files `a` and `b` of a package only.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "ARCHITECTURE.md"
PYTHON = "src/byteweld/"
CORE = "crates/byteweld-core/src/"
HEADER = ["module", "what it is", "may use"]
FOR_TESTS = "testing"  # a module of the core crate that only its tests use

# Module -> file of it (or "*") -> what that may use.
Table = dict[str, dict[str, set[str]]]


def read_tables(page: str) -> dict[str, Table]:
    """Each module table of a page by the folder that the line before it names."""
    tables: dict[str, Table] = {}
    folder = ""
    rows: Table | None = None
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.lstrip().startswith("|"):
            rows = None
            named = re.search(r"in `([\w/-]+/)`:", line)
            folder = named[1] if named else folder
        elif [cell.lower() for cell in cells] == HEADER:
            rows = tables[folder] = {}
        elif rows is not None and "`" in cells[0]:
            for module in re.findall(r"`([\w/]+)`", cells[0]):
                rows[module.rstrip("/")] = read_uses(cells[-1])
    return tables


def read_uses(cell: str) -> dict[str, set[str]]:
    uses: defaultdict[str, set[str]] = defaultdict(set)
    for clause in cell.replace("the public names", "__init__").split(";"):
        where, _, names = clause.rpartition(":")
        found = {words[0] for name in names.split(",") if (words := re.findall(r"\w+", name))}
        for file in re.findall(r"`([\w.]+)`", where) or ["*"]:
            uses[file.removesuffix(".py")] |= found
    return uses


TABLES = read_tables(PAGE.read_text("utf-8"))


def module_of(file: Path, folder: Path) -> str:
    return file.relative_to(folder).parts[0].partition(".")[0]


def allowed(table: Table, file: Path, folder: Path) -> set[str]:
    uses = table[module_of(file, folder)]
    return uses.get("*", set()) | uses.get(file.stem, set())


def imports(file: Path, known: set[str]) -> set[str]:
    """The modules of byteweld that a Python file imports anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file.relative_to(ROOT)} has a relative import; write it out"
            names = [node.module or ""]
            if node.module == "byteweld":
                names = [
                    f"byteweld.{a.name}" if a.name in known else "byteweld" for a in node.names
                ]
        for name in names:
            package, _, module = name.partition(".")
            if package == "byteweld":
                found.add(module.partition(".")[0] or "__init__")
    return found


def uses(file: Path, known: set[str]) -> set[str]:
    """The modules of its crate that a Rust file names."""
    text = file.read_text("utf-8")
    found = {module for module in known if re.search(rf"\bcrate::{module}\b", text)}
    return found - {FOR_TESTS} if is_test(file) else found


def is_test(file: Path) -> bool:
    return "tests" in file.parts[-3:] or file.stem.endswith("tests") or file.stem == FOR_TESTS


@cache
def dependencies() -> list[tuple[str, Path, set[str]]]:
    """Every source file of the two tables, with the other modules of its folder that it uses."""
    found: list[tuple[str, Path, set[str]]] = []
    for folder, suffix, read in ((PYTHON, "*.py", imports), (CORE, "*.rs", uses)):
        files = sorted((ROOT / folder).rglob(suffix))
        known = {module_of(file, ROOT / folder) for file in files} | {"_native"}
        for file in files:
            if file.name not in ("lib.rs", f"{FOR_TESTS}.rs"):
                found.append((folder, file, read(file, known) - {module_of(file, ROOT / folder)}))
    return found


def users_of(module: str) -> dict[str, str]:
    """The Python files that import a module, and the module that each belongs to."""
    return {
        file.relative_to(ROOT / PYTHON).as_posix(): module_of(file, ROOT / PYTHON)
        for folder, file, used in dependencies()
        if folder == PYTHON and module in used
    }


@pytest.mark.parametrize("folder", [PYTHON, CORE])
def test_the_tables_list_every_module(folder: str) -> None:
    suffix = "*.py" if folder == PYTHON else "*.rs"
    found = {module_of(file, ROOT / folder) for file in (ROOT / folder).rglob(suffix)}
    found -= {"lib", FOR_TESTS}
    listed = set(TABLES[folder])
    assert found - listed == set(), f"modules that the table of {folder} in ARCHITECTURE.md lacks"
    assert listed - found == set(), f"rows of ARCHITECTURE.md without a module in {folder}"
    named = {name for row in TABLES[folder].values() for names in row.values() for name in names}
    assert named - found - {"_native"} == set(), f"ARCHITECTURE.md allows unknown modules: {folder}"


def test_modules_import_only_what_the_tables_allow() -> None:
    wrong = []
    for folder, file, used in dependencies():
        module = module_of(file, ROOT / folder)
        if module in TABLES[folder]:
            wrong += [
                f"{file.relative_to(ROOT)} imports {other}, "
                f"which the table in ARCHITECTURE.md does not allow for `{module}`"
                for other in sorted(used - allowed(TABLES[folder], file, ROOT / folder))
            ]
    assert not wrong, "\n".join(wrong)


def test_the_table_names_every_file_that_uses_the_engine() -> None:
    users = users_of("_native")
    for module, row in TABLES[PYTHON].items():
        files = {name for name, owner in users.items() if owner == module}
        if (ROOT / PYTHON / module).is_dir():
            assert "_native" not in row.get("*", ()), (
                f"name the files of {module}/ that use _native"
            )
            listed = {f"{module}/{file}.py" for file, names in row.items() if "_native" in names}
        else:
            listed = {f"{module}.py"} if "_native" in row["*"] else set()
        assert files == listed, f"ARCHITECTURE.md is wrong about the users of _native in {module}"


def test_only_its_verb_starts_the_studio() -> None:
    assert users_of("studio") == {"cli/studio.py": "cli"}


def test_the_reference_and_the_engine_are_independent() -> None:
    both = {"_native", "reference"}
    assert not [file for folder, file, used in dependencies() if used >= both]
    assert "reference" not in users_of("_native").values()


def test_the_core_crate_knows_neither_python_nor_files() -> None:
    assert "pyo3" not in (ROOT / "crates/byteweld-core/Cargo.toml").read_text()
    for file in filter(lambda file: file.stem != FOR_TESTS, (ROOT / CORE).rglob("*.rs")):
        text = file.read_text("utf-8")
        for forbidden in ("std::fs", "std::env", "println!", "pyo3"):
            assert forbidden not in text, f"{file.relative_to(ROOT)} uses {forbidden}"


def rust_files(folder: str) -> dict[tuple[str, ...], Path]:
    """The files of a module of the core crate, by their module paths."""
    found = {}
    for file in filter(lambda file: not is_test(file), (ROOT / CORE / folder).rglob("*.rs")):
        path = file.relative_to(ROOT / CORE).with_suffix("").parts
        found[path[:-1] if path[-1] == "mod" else path] = file
    return found


def used_paths(tree: str, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths that a `use` declaration names, without its braces."""
    start, brace, inner = tree.partition("{")
    path = prefix + tuple(part for part in start.strip().split("::") if part)
    if not brace:
        yield path
        return
    depth, begin, inner = 0, 0, inner.rpartition("}")[0] + ","
    for at, letter in enumerate(inner):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            if inner[begin:at].strip():
                yield from used_paths(inner[begin:at], path)
            begin = at + 1


def used_files(module: tuple[str, ...], files: Mapping[tuple[str, ...], Path]) -> set[Path]:
    """The other files that a file uses, except those of the modules that it is in."""
    text = re.sub(r"//.*", "", files[module].read_text("utf-8"))
    found = set()
    for tree in re.findall(r"\buse ([^;]+);", text):
        for path in used_paths(tree):
            above = sum(part == "super" for part in path)
            start = () if path[0] == "crate" else module[: len(module) - above]
            rest = path[1:] if path[0] in ("crate", "self") else path[above:]
            known = [start + rest[:end] for end in range(len(rest) + 1)]
            user = max((name for name in known if name in files), key=len, default=module)
            if user != module[: len(user)]:
                found.add(files[user])
    return found


@pytest.mark.parametrize("folder", ["encode", "pretoken"])
def test_files_of_the_encoder_have_no_cycles(folder: str) -> None:
    files = rust_files(folder)
    left = {files[module]: used_files(module, files) for module in files}
    assert any(left.values())
    while free := {file for file, used in left.items() if not used & left.keys()}:
        left = {file: used for file, used in left.items() if file not in free}
    names = sorted(str(file.relative_to(ROOT / CORE)) for file in left)
    assert not names, f"a cycle among these files, or they use one: {names}"


def test_the_core_crate_starts_threads_in_one_module() -> None:
    files = [file for file in (ROOT / CORE).rglob("*.rs") if not file.name.endswith("tests.rs")]
    starters = {file.name for file in files if "spawn" in file.read_text("utf-8")}
    assert starters == {"threads.rs"}
