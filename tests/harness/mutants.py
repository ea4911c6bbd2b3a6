"""Break the readers of the seeds' formats and the reference, and see that a test notices.

Every `if`, comparison, `and`, `or` and `not` of a file is changed, one at a time, in the memory of
a child process, and the tests of the file are run there. A change that no test notices is a
survivor: it needs a better test, or a row with the reason in docs/about/seeds-mutants.md.

    python -m tests.harness.mutants bpetite bpe1     # default: all
    python -m tests.harness.mutants --list ck_binary
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import pytest

from tests.harness.run import in_child

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "about" / "seeds-mutants.md"
CPU_SECONDS = 60  # a change may make a loop endless; that counts as noticed

_FLIPPED = {
    "==": "!=",
    "!=": "==",
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "is": "is not",
    "is not": "is",
    "in": "not in",
    "not in": "in",
}


class Target(NamedTuple):
    """A file to break, and the tests that must notice."""

    source: str
    tests: tuple[str, ...]
    functions: tuple[str, ...] = ()  # only these; all if empty


def _format(name: str, seed: str, *more: str) -> Target:
    tests = (
        f"tests/unit/formats/test_{name}.py",
        *("tests/unit/formats/test_damaged_files.py", "tests/unit/formats/test_round_trips.py"),
        *(f"tests/seeds/test_{seed}.py", *more),
    )
    return Target(f"src/byteweld/formats/{name}.py", tests)


TARGETS = {
    "bpetite": _format("bpetite", "bpetite"),
    "bpe1": _format("bpe1", "bpe1"),
    "ck_binary": _format("ck_binary", "ck", "tests/unit/test_ck_runtime.py"),
    "vocab_merges": _format("vocab_merges", "theory"),
    "reference": Target(
        "src/byteweld/reference/train.py",
        (
            *("tests/seeds/test_printed_code.py", "tests/seeds/test_examples.py"),
            "tests/unit/test_reference.py",
        ),
        functions=("count_pairs", "in_tie_order", "pick", "merge", "train"),
    ),
}


class Mutant(NamedTuple):
    """One change of a source text."""

    function: str
    line: int
    before: str  # the code that is changed, and what it becomes, on one line each
    after: str
    source: str  # the whole text, changed

    def key(self, target: str) -> tuple[str, str, str]:
        """What identifies it on the page, whatever its line."""
        return target, self.function, f"{self.before} → {self.after}"


def mutants(source: str, functions: Sequence[str] = ()) -> list[Mutant]:
    """Return every change of a source text, in order of line."""
    lines = source.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    made: dict[str, Mutant] = {}
    for function, node in _nodes(ast.parse(source), ""):
        if functions and function not in functions:
            continue
        for start, end, text in _changes(node, source):
            data = source.encode()
            first = starts[start[0] - 1] + start[1]
            last = starts[end[0] - 1] + end[1]
            before = " ".join(data[first:last].decode().split())
            changed = (data[:first] + text.encode() + data[last:]).decode()
            after = " ".join(text.split())
            made.setdefault(changed, Mutant(function, start[0], before, after, changed))
    return sorted(made.values(), key=lambda mutant: mutant.line)


def _nodes(node: ast.AST, function: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield every node with the name of its function."""
    for child in ast.iter_child_nodes(node):
        name = child.name if isinstance(child, ast.FunctionDef) else function
        yield name, child
        yield from _nodes(child, name)


_Place = tuple[int, int]


def _changes(node: ast.AST, source: str) -> Iterator[tuple[_Place, _Place, str]]:
    """Yield the changes of one node: start, end, and the new text."""

    def text(part: ast.expr) -> str:
        return ast.get_source_segment(source, part) or ""

    def whole(part: ast.expr, new: str) -> tuple[_Place, _Place, str]:
        assert part.end_lineno is not None
        assert part.end_col_offset is not None
        return (part.lineno, part.col_offset), (part.end_lineno, part.end_col_offset), new

    if isinstance(node, ast.If | ast.IfExp | ast.While):
        yield whole(node.test, "False")
        if not isinstance(node, ast.While):
            yield whole(node.test, "True")
    elif isinstance(node, ast.comprehension):
        for test in node.ifs:
            yield whole(test, "True")
    elif isinstance(node, ast.Compare):
        parts = [node.left, *node.comparators]
        for number in range(len(node.ops)):
            words = [text(parts[0])]
            for other, (kind, part) in enumerate(zip(node.ops, parts[1:], strict=True)):
                words += [_FLIPPED[_symbol(kind)] if other == number else _symbol(kind)]
                words.append(text(part))
            yield whole(node, " ".join(words))
    elif isinstance(node, ast.BoolOp):
        word, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        values = [f"({text(value)})" for value in node.values]
        yield whole(node, f" {other} ".join(values))
        for dropped in range(len(values)):
            kept = values[:dropped] + values[dropped + 1 :]
            yield whole(node, f" {word} ".join(kept))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield whole(node, f"({text(node.operand)})")


def _symbol(operator: ast.cmpop) -> str:
    return ast.unparse(ast.Compare(ast.Name("a"), [operator], [ast.Name("b")]))[2:-2]


# ---------------------------------------------------------------------- running


def patch(module: ModuleType, source: str) -> None:
    """Give the functions of a module the code that they have in another source of it.

    The function objects stay, so whoever imported them runs the new code.
    """
    other = ModuleType(module.__name__)
    other.__dict__.update(__file__=module.__file__, __package__=module.__package__)
    sys.modules[module.__name__] = other  # classes look their module up
    try:
        exec(compile(source, str(module.__file__), "exec"), other.__dict__)
    finally:
        sys.modules[module.__name__] = module
    _patch_all(vars(module), vars(other), module.__name__)


def _patch_all(ours: Mapping[str, Any], theirs: Mapping[str, Any], module: str) -> None:
    for name, value in ours.items():
        new = theirs.get(name)
        if isinstance(value, type) and value.__module__ == module:
            _patch_all(vars(value), vars(new), module)
        for attribute in ("fget", "__func__"):
            value, new = getattr(value, attribute, value), getattr(new, attribute, new)
        if isinstance(value, FunctionType) and value.__module__ == module:
            assert isinstance(new, FunctionType)
            value.__code__ = new.__code__


class Judge:
    """A pytest plugin: runs the collected tests once per change, each time in a child process."""

    def __init__(self, module: str, changes: Sequence[Mutant]) -> None:
        self._module = module
        self._changes = changes
        self.survivors: list[Mutant] = []
        self.killers: Counter[str] = Counter()  # the test that noticed -> how often
        self.passes = False  # without a change
        self.num_tests = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Replace pytest's loop over the tests."""
        module = importlib.import_module(self._module)
        self.num_tests = len(session.items)
        unchanged = Path(str(module.__file__)).read_text("utf-8")
        self.passes = self._run(session, module, unchanged)
        if self.passes:
            for change in self._changes:
                if self._run(session, module, change.source):
                    self.survivors.append(change)
        return True

    def _run(self, session: pytest.Session, module: ModuleType, source: str) -> bool:
        """Whether all tests pass in a child process with another source of a module."""

        def tests() -> str:
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
            os.dup2(2, 1)  # to /dev/null
            patch(module, source)
            return _first_failure(session)

        code, killer = in_child(tests)
        if code or killer:
            self.killers[killer if code == 0 else f"the change itself, status {code}"] += 1
        return not (code or killer)


def _first_failure(session: pytest.Session) -> str:
    """Run the tests up to the first that fails; returns its name, or nothing."""
    items = session.items
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return item.nodeid
    return ""


def judge(target: Target, changes: Sequence[Mutant]) -> Judge:
    """Run the tests of a target on every change."""
    module = target.source.removeprefix("src/").removesuffix(".py").replace("/", ".")
    plugin = Judge(module, changes)
    tests = [str(ROOT / test) for test in target.tests]
    options = ["-x", "-m", "not slow and not browser", "--import-mode=importlib", "-oaddopts="]
    options += [f"-pno:{name}" for name in ("terminal", "cacheprovider", "xdist")]
    with tempfile.TemporaryDirectory() as folder:
        # What hypothesis finds on one change is not tried first on the next, nor by other runs.
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = folder
        pytest.main([*options, f"--rootdir={ROOT}", *tests], plugins=[plugin])
    return plugin


def explained(page: Path = PAGE) -> set[tuple[str, str, str]]:
    """The survivors that the page explains."""
    row = re.compile(r"\| `(\w+)` \| `(\w+)` \| `(.*)` \| .+ \|")
    lines = page.read_text("utf-8").splitlines() if page.is_file() else []
    return {(m[1], m[2], m[3].replace("\\|", "|")) for m in map(row.fullmatch, lines) if m}


def main(arguments: Sequence[str] | None = None) -> int:
    """Break the targets; returns 1 if a change survives without an explanation."""
    parser = argparse.ArgumentParser(description="Break readers, and see that a test notices.")
    parser.add_argument("targets", nargs="*", help=f"default: all of {', '.join(TARGETS)}")
    parser.add_argument("--list", action="store_true", help="show the changes; run nothing")
    parser.add_argument("--killers", action="store_true", help="show which tests notice how much")
    parser.add_argument("--function", action="append", help="only changes in this function")
    options = parser.parse_args(arguments)
    names = options.targets or list(TARGETS)
    unknown = [name for name in names if name not in TARGETS]
    if unknown:
        parser.error(f"unknown target {unknown[0]!r}; expected one of {', '.join(TARGETS)}")
    if len(names) > 1:  # pytest wants to be the first to import hypothesis, so one at a time
        given = sys.argv[1:] if arguments is None else list(arguments)
        flags = [word for word in given if word not in names]
        program = [sys.executable, "-m", "tests.harness.mutants"]
        return max([subprocess.call([*program, name, *flags]) for name in names])
    return break_target(names[0], options)


def break_target(name: str, options: argparse.Namespace) -> int:
    """Break one target; returns 1 if a change survives without an explanation."""
    target = TARGETS[name]
    functions = options.function or target.functions
    changes = mutants((ROOT / target.source).read_text("utf-8"), functions)
    if options.list:
        for change in changes:
            print(f"{target.source}:{change.line} {change.before}  →  {change.after}")
        return 0
    judged = judge(target, changes)
    if not judged.passes:
        print(f"{name}: without a change, {dict(judged.killers)} fails; nothing was measured")
        return 2
    known = explained()
    survivors = {change.key(name): change for change in judged.survivors}
    for key in survivors.keys() - known:
        change = survivors[key]
        print(f"SURVIVES {target.source}:{change.line} {change.function}")
        print(f"    {change.before}  →  {change.after}")
    for key in known - survivors.keys():
        if key[0] == name and (not functions or key[1] in functions):
            print(f"killed, or gone, though the page explains it: {' '.join(key)}")
    for test, number in judged.killers.most_common() if options.killers else ():
        print(f"{number:5} {test}")
    print(
        f"{name}: {len(changes)} changes, {len(changes) - len(judged.survivors)} killed by "
        f"{judged.num_tests} tests, {len(survivors.keys() & known)} explained",
        flush=True,
    )
    return 1 if survivors.keys() - known else 0


if __name__ == "__main__":
    sys.exit(main())
