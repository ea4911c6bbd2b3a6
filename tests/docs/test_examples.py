"""Every example of the docs runs, page by page, from top to bottom.

Each page starts in a copy of the folder that the quickstart leaves behind. Its corpus is the
language reference inside Python, so the output is compared with the pages only by the Python
version whose text it is; other versions still run every example.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path
from pydoc_data.topics import topics

import pytest

from tests.helpers.pages import (
    NOT_RUN,
    ROOT,
    RUN,
    VOCABULARIES,
    PageRunner,
    blocks,
    is_shown,
    pages,
    shell_environment,
    write_programs,
)

DOCS = ROOT / "docs"
QUICKSTART = DOCS / "quickstart.md"
PAGES = [page for page in pages(DOCS) if page != QUICKSTART]
# Of Python 3.11.7.
TOPICS = "6061bdb5e47e53fb60fbb31038afe373b0674dc91e89004a8b91fcdcc4971890"
COMPARES = hashlib.sha256(repr(sorted(topics.items())).encode()).hexdigest() == TOPICS


def run_page(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run a page in a folder; return what was missing."""
    home = folder.parent / "home"
    home.mkdir()
    if not (folder / "byteweld").exists():
        (folder / "byteweld").symlink_to(ROOT)  # the clone that the quickstart makes
    environment = shell_environment(write_programs(folder.parent / "bin"), home)
    monkeypatch.chdir(folder)
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "HOME", "BYTEWELD_MIRROR"):
        monkeypatch.setenv(name, environment[name])
    if "<!-- needs: " in page.read_text("utf-8") and VOCABULARIES.is_dir():
        environment["BYTEWELD_PATH"] = str(VOCABULARIES)
        monkeypatch.setenv("BYTEWELD_PATH", str(VOCABULARIES))
    runner = PageRunner(page, environment, compares=COMPARES)
    runner.run()
    return runner.missing


@pytest.fixture(scope="session")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The folder that the quickstart leaves behind, and what it missed."""
    folder = tmp_path_factory.mktemp("quickstart") / "work"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        return folder, run_page(QUICKSTART, folder, patch)


@pytest.fixture
def started(quickstart: tuple[Path, list[str]]) -> Path:
    """The folder that the quickstart leaves behind."""
    return quickstart[0]


def test_the_quickstart_makes_what_the_guides_use(quickstart: tuple[Path, list[str]]) -> None:
    folder, missing = quickstart
    assert len(list((folder / "books").glob("*.txt"))) == len(topics)
    assert (folder / "tokenizer.json").is_file()
    if missing:
        pytest.skip("; ".join(missing))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_the_examples_of_a_page_run(
    page: Path, started: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(started, tmp_path / "work", symlinks=True)
    missing = run_page(page, tmp_path / "work", monkeypatch)
    if missing:
        pytest.skip("; ".join(missing))


def test_blocks_have_a_language_and_say_why_they_are_not_run() -> None:
    for page in DOCS.rglob("*.md"):
        for block in blocks(page.read_text("utf-8")):
            where = f"{page.relative_to(DOCS)}:{block.line}"
            assert block.language in RUN | NOT_RUN, f"{where}: a block of {block.language!r}"
            assert block.not_run is None or block.language in RUN, f"{where} is never run"
            assert block.not_run is None or len(block.not_run.split()) > 1, f"{where}: no reason"


# ---------------------------------------------------------------------- the runner itself


def test_outputs_are_compared_apart_from_times() -> None:
    assert is_shown("wrote a (25 ms)\n12.5 MB/s\n", ["wrote a (1.3 s)", "113 bytes/s"])
    assert is_shown("a\nb\nc  1\n", ["a", "...", "c     1"])
    assert not is_shown("21 documents\n", ["22 documents"])
    assert not is_shown("a\nb\nd\n", ["a", "...", "c"])


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("```python\nassert 1 == 2\n```\n", "AssertionError|assert"),
        ("```pycon\n>>> 1 + 1\n3\n```\n", "Expected"),
        ("```sh\nfalse\n```\n", "exit 1"),
        ("```sh\ntrue  # exit code 1\n```\n", "exit 0"),
        ("```console\n$ echo a\nb\n```\n", "the page shows"),
        ("```bash\necho a\n```\n", "a block of 'bash'"),
    ],
)
def test_an_example_that_is_wrong_is_noticed(
    page: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "page.md").write_text(page)
    monkeypatch.chdir(tmp_path)
    environment = shell_environment(write_programs(tmp_path / "bin"), tmp_path)
    runner = PageRunner(tmp_path / "page.md", environment, compares=True)
    with pytest.raises(AssertionError) as caught:
        runner.run()
    assert re.search(message, f"AssertionError {caught.value}")
