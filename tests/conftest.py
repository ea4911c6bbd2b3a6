"""Shared by all tests: the data in ../shared, the hard strings, the settings of hypothesis.

`BYTEWELD_EXAMPLES=10` makes every property try ten times the number of examples it names; the
default is a quarter.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.helpers.strategies import examples, read_nasty

TESTS = Path(__file__).parent
SHARED = TESTS.parent.parent / "shared" / "data"

# A shell without job control, cron and nohup start what they run with SIGINT ignored, and children
# inherit that. A handler is not inherited: they start with the default.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No test depends on the vocabularies of the user who runs it.
for variable in ("BYTEWELD_HOME", "HF_HUB_CACHE"):
    os.environ[variable] = str(Path(tempfile.gettempdir(), "byteweld-tests-nowhere"))
for variable in ("BYTEWELD_PATH", "BYTEWELD_MIRROR"):
    os.environ.pop(variable, None)

settings.register_profile(
    "byteweld",
    examples(100),
    deadline=None,  # the machine may be busy; pytest's timeout ends a test that hangs
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)
settings.load_profile("byteweld")


# Files of the folders of `make check` whose tests start processes that work, or take seconds.
HEAVY = {
    *("test_c_reader", "test_damaged_files", "test_distributed", "test_distributed_comparing"),
    *("test_distributed_counting", "test_distributed_proving", "test_end_to_end", "test_formats"),
    *("test_fuzz_encode", "test_hard_corpora", "test_harness", "test_hf_tokenizer_json"),
    *("test_hostile_arguments", "test_kills", "test_limits", "test_many_specials", "test_memory"),
    *("test_mutants", "test_notebooks", "test_out_of_memory", "test_out_of_memory_encoding"),
    *("test_reading_limits", "test_run", "test_run_memory", "test_slices", "test_tables"),
    *("test_unfinished"),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.stem in HEAVY:
            item.add_marker("heavy")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of large corpora, real vocabularies and frozen answers, if it exists."""
    if not SHARED.is_dir():
        pytest.skip(f"no shared data at {SHARED}")
    return SHARED


@pytest.fixture(scope="session")
def data() -> Path:
    """The small corpora that come with the tests."""
    return TESTS / "data"


@pytest.fixture(scope="session")
def nasty_texts(data: Path) -> list[str]:
    """The hard strings of nasty.txt."""
    return read_nasty(data / "nasty.txt")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real browser: the system's Chromium (BYTEWELD_CHROMIUM, or one on the PATH)."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = (os.environ.get("BYTEWELD_CHROMIUM"), *map(shutil.which, names))
    chromium = next(filter(None, found), None)
    if chromium is None:
        pytest.skip("no Chromium found; install one, or set BYTEWELD_CHROMIUM")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="no playwright; `pip install --group browser`"
    )
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()
