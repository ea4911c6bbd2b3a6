"""ArrowTokenizer in the real Ray Data and the real Spark, with the examples of the page."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import byteweld
from byteweld import ArrowTokenizer, Tokenizer

pa = pytest.importorskip("pyarrow", reason="no pyarrow; run `make test-cluster`")
pq = pytest.importorskip("pyarrow.parquet")

SOURCE = Path(byteweld.__file__).parents[1]
PAGE = Path(__file__).parents[2] / "docs" / "guides" / "datasets.md"
END = "<|endoftext|>"
TOK = Tokenizer.from_merges(
    {b: bytes([b]) for b in range(256)} | {256: b"ab", 257: b"abc"},
    [(b"a", b"b"), (b"ab", b"c")],
    special_tokens=[END],
)
ROWS = [
    {"id": number, "text": None if number % 7 == 3 else f"abc é 漢 {number}\0 " * (number % 5)}
    for number in range(500)
]
TABLE = pa.Table.from_pylist(ROWS, pa.schema({"id": pa.int64(), "text": pa.string()}))


def expected(after: list[int]) -> dict[int, list[int] | None]:
    """The ids of every row by its number."""
    return {
        row["id"]: None if row["text"] is None else TOK.encode(row["text"]) + after for row in ROWS
    }


def found(rows: Any) -> dict[int, list[int] | None]:
    return {row["id"]: row["input_ids"] for row in rows}


def example(library: str, folder: Path) -> str:
    """The example of the page, with the paths in `folder`, which has what it reads."""
    section = PAGE.read_text("utf-8").split(". In Ray Data and Spark\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    (code,) = (block for block in blocks if library in block)
    TOK.save(folder / "tokenizer.json")
    (folder / "books").mkdir()
    for number in range(2):
        part = TABLE.slice(number * 250, 250)
        pq.write_table(part, folder / "books" / f"{number}.parquet", row_group_size=100)
    paths = {"books/": "books", "ids/": "ids", "/data/tokenizer.json": "tokenizer.json"}
    for path, name in paths.items():
        assert f'"{path}"' in code
        code = code.replace(f'"{path}"', repr(str(folder / name)))
    return code


# ---------------------------------------------------------------------- Ray Data


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """A cluster of its own on the loopback interface, which asks for a token."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")]))
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.delenv("RAY_ADDRESS", raising=False)
        ray = pytest.importorskip("ray", reason="no ray; run `make test-cluster`")
        pytest.importorskip("ray.data", reason="no ray[data]; run `make test-cluster`")
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            _node_ip_address="127.0.0.1",
            object_store_memory=200 << 20,
            logging_level="error",
        )
        ray.data.DataContext.get_current().enable_progress_bars = False
        yield ray
        ray.shutdown()


def test_ray_asks_for_the_token(ray):
    address = ray.get_runtime_context().gcs_address
    code = f"import ray; ray.init(address={address!r}); print('joined')"
    for token, joins in [("0" * 64, False), (os.environ["RAY_AUTH_TOKEN"], True)]:
        environment = {**os.environ, "RAY_AUTH_TOKEN": token}
        run = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True
        )
        assert ("joined" in run.stdout) is joins, run.stderr


def test_the_example_for_ray(ray, tmp_path):
    exec(compile(example("import ray", tmp_path), "docs", "exec"), {})
    rows = pq.read_table(tmp_path / "ids")
    assert rows.schema.field("input_ids").type.value_type == pa.int32()
    assert rows.column_names == ["id", "input_ids"]
    assert found(rows.to_pylist()) == expected([258])


def test_an_instance_in_ray_tasks(ray):
    data = ray.data.from_arrow([TABLE.slice(0, 300), TABLE.slice(300)])
    rows = data.map_batches(ArrowTokenizer(TOK), batch_format="pyarrow", batch_size=64).take_all()
    assert found(rows) == expected([])
    assert [row["text"] for row in sorted(rows, key=lambda row: row["id"])] == [
        row["text"] for row in ROWS
    ]


def test_an_error_in_ray_names_the_row(ray):
    table = pa.table({"text": ["fine", END]})
    tokenize = ArrowTokenizer(TOK, special_text="fail")
    data = ray.data.from_arrow(table).map_batches(tokenize, batch_format="pyarrow")
    with pytest.raises(Exception, match=r"row 1 of the column 'text': text contains the special"):
        data.take_all()
    with pytest.raises(Exception, match=r"pass batch_format='pyarrow'"):
        ray.data.from_arrow(table).map_batches(ArrowTokenizer(TOK)).take_all()


# ---------------------------------------------------------------------- Spark


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """A local session on the loopback interface."""
    sql = pytest.importorskip("pyspark.sql", reason="no pyspark; run `make test-cluster`")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("no Java, which Spark needs; install one")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")]))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        settings = {
            "spark.ui.enabled": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "1g",
            "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
            "spark.log.level": "OFF",
        }
        session = sql.SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
        yield session
        session.stop()


@pytest.fixture
def books(spark):
    return spark.createDataFrame([(row["id"], row["text"]) for row in ROWS], "id long, text string")


def test_the_example_for_spark(spark, tmp_path):
    names: dict[str, Any] = {"spark": spark}
    exec(compile(example("pyspark", tmp_path), "docs", "exec"), names)
    rows = spark.read.parquet(str(tmp_path / "ids"))
    assert rows.schema.simpleString() == "struct<id:bigint,input_ids:array<int>>"
    assert found(rows.collect()) == expected([258])
    # The page says that this string is the same schema.
    said = "id bigint, input_ids array<int>"
    assert f'"{said}"' in PAGE.read_text("utf-8")
    again = names["books"].mapInArrow(names["tokenize"], said)
    assert again.schema == names["schema"]
    assert found(again.collect()) == expected([258])


def test_an_instance_with_its_tokenizer_in_spark(books):
    tokenize = ArrowTokenizer(TOK, dtype="int64")
    rows = books.mapInArrow(tokenize, "id bigint, text string, input_ids array<bigint>").collect()
    assert found(rows) == expected([])
    assert sorted((row["id"], row["text"]) for row in rows if row["text"] is not None) == [
        (row["id"], row["text"]) for row in ROWS if row["text"] is not None
    ]


def test_an_empty_frame_in_spark(books):
    empty = books.where("id < 0").mapInArrow(
        ArrowTokenizer(TOK, keep_columns=[]), "input_ids array<int>"
    )
    assert empty.collect() == []


def test_an_error_in_spark_names_the_column(books):
    wrong = books.mapInArrow(ArrowTokenizer(TOK, text_column="body"), "input_ids array<int>")
    with pytest.raises(Exception, match=r"no column 'body' \(text_column\); the columns are 'id'"):
        wrong.collect()
