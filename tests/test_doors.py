"""The doors between rooms, as a test: which module may import which (see ARCHITECTURE.md)."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "byteweld"

# Room -> rooms it may import. A room is a module of the package or a folder of modules.
DOORS: dict[str, set[str]] = {
    "errors": set(),
    "_files": set(),
    "_byte_letters": set(),
    "_text": set(),
    "streams": {"_text"},
    "patterns": {"errors"},
    "vocab": {"errors", "patterns", "_native"},
    "recipes": {"errors", "patterns", "vocab", "_byte_letters"},
    "formats": {"errors", "vocab", "patterns", "_files", "_byte_letters", "_native"},
    "corpus": {"errors", "_native"},
    "_memory": {"errors", "_native"},
    "counts_files": {"errors", "_files", "_native"},
    "counts": {"errors", "corpus", "recipes", "_memory", "counts_files", "_native"},
    "training": {
        *("errors", "vocab", "recipes", "counts", "corpus", "formats"),
        *("_files", "_byte_letters", "_native"),
    },
    "tokenizer": {
        *("errors", "vocab", "patterns", "corpus", "training", "formats", "streams"),
        *("_text", "render", "markup", "_native"),
    },
    "encodings": {"errors", "vocab", "formats", "tokenizer"},
    # tiktoken's names for what the others do.
    "tiktoken": {"errors", "vocab", "encodings", "tokenizer", "training", "_text"},
    # The reference may see values and facts, never the engine.
    "reference": {"errors", "vocab", "patterns", "recipes", "_byte_letters"},
    # All HTML of reports and notebooks is made in one room, which knows no other.
    "markup": set(),
    "render": {"vocab", "markup"},
    # Two encoders on one corpus; and the real peers, who are one of the two.
    "proof": set(),
    "peers": {"errors", "vocab", "formats", "proof"},
    # Explaining is the reference at work, shown by render.
    "explanation": {"errors", "vocab", "recipes", "reference", "render", "markup"},
    # A tokenizer from a file, or from what a folder keeps of it.
    "loading": {"errors", "vocab", "formats", "tokenizer", "_files", "_native"},
    # Tokenizers and texts -> values, for the terminal, notebooks, reports and the page alike.
    "samples": set(),
    "evaluation": {
        *("errors", "vocab", "tokenizer", "training", "samples", "render", "markup"),
    },
    "comparison": {"tokenizer", "evaluation", "render", "markup"},
    "api": {
        *("corpus", "counts", "errors", "recipes", "_text"),
        *("tokenizer", "training", "comparison", "evaluation"),
    },
    "__init__": {
        *("api", "corpus", "counts", "encodings", "errors", "explanation"),
        *(
            "formats",
            "loading",
            "patterns",
            "recipes",
            "streams",
            "tokenizer",
            "training",
            "vocab",
            "_native",
        ),
    },
    "studio": {
        *("__init__", "errors", "vocab", "samples", "comparison", "evaluation", "_byte_letters"),
        "markup",  # for its colours
    },
    "cli": {
        *("__init__", "errors", "vocab", "formats", "render", "markup", "comparison", "evaluation"),
        *("proof", "peers", "corpus", "_files", "studio"),
    },
    "__main__": {"cli"},
}

# Files that may name more than their room does, or must not name what their room may.
ONLY_FILES_WITH_NATIVE_IN_FORMATS = {"_ranks.py", "_hf_quick.py"}


def room_of(file: Path) -> str:
    first = file.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py").removesuffix(".pyi")


def imported_rooms(file: Path) -> set[str]:
    """The rooms of byteweld that a file imports, wherever in it."""
    rooms = set()
    for node in ast.walk(ast.parse(file.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative imports hide the door"
            if node.module == "byteweld":
                known = {path.stem for path in PACKAGE.iterdir()} | {"_native"}
                names = [
                    f"byteweld.{a.name}" if a.name in known else "byteweld" for a in node.names
                ]
            else:
                names = [node.module or ""]
        for name in names:
            parts = name.split(".")
            if parts[0] == "byteweld":
                rooms.add(parts[1] if len(parts) > 1 else "__init__")
    return rooms


def test_every_import_goes_through_a_door() -> None:
    files = sorted(PACKAGE.rglob("*.py"))
    assert len(files) > 20
    for file in files:
        room = room_of(file)
        assert room in DOORS, f"{file}: room {room!r} is not in the table"
        allowed = DOORS[room] | {room}
        forbidden = imported_rooms(file) - allowed
        assert not forbidden, f"{file.relative_to(PACKAGE)} imports {sorted(forbidden)}"


def test_only_named_files_touch_the_engine() -> None:
    users = {
        file.relative_to(PACKAGE).as_posix()
        for file in PACKAGE.rglob("*.py")
        if "_native" in imported_rooms(file)
    }
    formats = {f"formats/{name}" for name in ONLY_FILES_WITH_NATIVE_IN_FORMATS}
    rooms = {
        "corpus/__init__.py",
        "counts.py",
        "counts_files.py",
        "_memory.py",
        "loading.py",
        "training/checkpoint.py",  # for the version
        "training/run.py",
        "tokenizer.py",
        "vocab.py",
    }
    assert users == {"__init__.py"} | rooms | formats  # __init__ only for the version


def test_only_its_verb_starts_the_studio() -> None:
    users = {
        file.relative_to(PACKAGE).as_posix()
        for file in PACKAGE.rglob("*.py")
        if "studio" in imported_rooms(file) and room_of(file) != "studio"
    }
    assert users == {"cli/studio.py"}


def test_the_core_crate_has_no_python_and_no_files_in_it() -> None:
    core = PACKAGE.parent.parent / "crates" / "byteweld-core"
    assert "pyo3" not in (core / "Cargo.toml").read_text()
    for file in (core / "src").rglob("*.rs"):
        text = file.read_text()
        for forbidden in ("std::fs", "std::env", "println!", "pyo3"):
            assert forbidden not in text, f"{file.name} uses {forbidden}"


def test_rooms_of_the_core_crate_know_only_the_rooms_before_them() -> None:
    doors = {
        "error": set(),
        "specials": {"error"},
        "decode": {"error"},
        "pretoken": {"error"},
        "rewrite": {"error", "pretoken", "specials"},
        "cut": {"pretoken", "specials"},
        "counts": {"cut", "error", "prefetch", "pretoken", "specials", "threads"},
        "huge": set(),
        "prefetch": set(),
        "threads": {"error"},
        "train": {"counts", "error", "prefetch", "threads"},
        "encode": {
            *(
                "cut",
                "decode",
                "error",
                "huge",
                "prefetch",
                "pretoken",
                "rewrite",
                "specials",
                "threads",
            ),
        },
        "table": {"encode", "rewrite"},
    }
    source = PACKAGE.parent.parent / "crates" / "byteweld-core" / "src"
    rooms = {path.stem for path in source.iterdir()} - {"lib"}
    assert rooms == set(doors)
    for file in source.rglob("*.rs"):
        room = file.relative_to(source).parts[0].removesuffix(".rs")
        if room == "lib":
            continue
        text = file.read_text()
        for other in rooms - doors[room] - {room}:
            assert f"crate::{other}" not in text, f"{file.relative_to(source)} uses {other}"


def test_threads_of_the_core_crate_are_started_in_one_room() -> None:
    source = PACKAGE.parent.parent / "crates" / "byteweld-core" / "src"
    files = [file for file in source.rglob("*.rs") if not file.name.endswith("tests.rs")]
    starters = {file.name for file in files if "spawn" in file.read_text()}
    assert starters == {"threads.rs"}
