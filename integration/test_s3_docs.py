"""docs/how-to/s3.md, executed: its connector files against moto's server, its readers on what they put there."""

import io
import re
from contextlib import closing, redirect_stdout
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from integration.s3.server import ACCESS_KEY, REGION, SECRET_KEY, S3Server
from parquet_sink.connectors.check import check_files
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.files.naming import file_name
from parquet_sink.files.parquet import sha256_of
from parquet_sink.files.rotation import Reason
from parquet_sink.targets.outcome import Health, Verdict
from parquet_sink.validate.preflight import inspect

PAGE = (Path(__file__).parents[1] / "docs" / "how-to" / "s3.md").read_text(encoding="utf-8")
DAYS = (30, 31)


def blocks(language: str) -> list[str]:
    """The page's blocks in a language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def finished(folder: Path, day: int) -> FinishedFile:
    """A file of ten records from noon of a day in January 2026 on."""
    first, path = day * 10, folder / f"{day}.parquet"
    pq.write_table(pa.table({"n": list(range(first, first + 10))}), path)
    size, moment = path.stat().st_size, datetime(2026, 1, day, 12, tzinfo=UTC)
    name = file_name("orders", 0, first, first + 9, size, 10)
    about = ("orders", 0, first, first + 9, 10, 10, size, Reason.RECORDS, 0.0, 0.0, None)
    ms = int(moment.timestamp() * 1000)
    return FinishedFile(str(path), name, *about, digest=sha256_of(str(path)), first_ms=ms)


@pytest.fixture(scope="module")
def lake(s3: S3Server) -> str:
    """The page's bucket."""
    s3.client.create_bucket(Bucket="lake")
    return "lake"


@pytest.fixture
def environment(s3: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What the page's files take from it; and AWS is moto's server."""
    given = {
        "MINIO_ACCESS_KEY": ACCESS_KEY,
        "MINIO_SECRET_KEY": SECRET_KEY,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_ENDPOINT_URL_S3": s3.endpoint,
        "AWS_CONFIG_FILE": str(tmp_path / "none"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none"),
    }
    for name, text in given.items():
        monkeypatch.setenv(name, text)


def put(s3: S3Server, kind: str, *files: FinishedFile) -> None:
    """Sends files by the page's connector file of a kind; nothing of it is changed but the server's address."""
    [text] = blocks(f"properties {kind}")
    path = files[0].path + ".properties"
    Path(path).write_text(text.replace("https://minio.example.com:9000", s3.endpoint), encoding="utf-8")
    [settings] = inspect(check_files([path], bootstrap_servers="localhost:9")).require()
    with closing(settings.target.open()) as target:
        assert target.probe(20).health is Health.OK
        for file in files:
            assert target.push(file, 20).verdict is Verdict.ACCEPTED


@pytest.mark.usefixtures("environment")
def test_files_are_where_the_page_says(s3: S3Server, lake: str, tmp_path: Path) -> None:
    """Of MinIO below the topic, of AWS below the prefix; the probes before left nothing."""
    file = finished(tmp_path, 1)
    put(s3, "minio", file)
    assert s3.keys(lake, "orders/") == [f"orders/{file.name}"]
    put(s3, "aws", file)
    assert s3.keys(lake, "kafka/") == [f"kafka/orders/0/{file.name}"]
    assert s3.unfinished(lake) == []


@pytest.mark.usefixtures("environment")
def test_a_lake_is_read_as_the_page_says(s3: S3Server, lake: str, tmp_path: Path, spark: SparkSession) -> None:
    """Arrow from the bucket; DuckDB and Spark from a copy, by the page's statements: only the day that is asked for."""
    put(s3, "lake", *(finished(tmp_path, day) for day in DAYS))
    copy = tmp_path / "copy"
    for key in s3.keys(lake, "events/"):
        (copy / key).parent.mkdir(parents=True, exist_ok=True)
        (copy / key).write_bytes(s3.content(lake, key))
    spark_code, arrow_code = blocks("python")
    arrow = arrow_code.replace("minio.example.com:9000", s3.endpoint)
    arrow = arrow.replace('"key"', f'"{ACCESS_KEY}"').replace('"secret"', f'"{SECRET_KEY}"')
    assert printed(arrow.replace("S3FileSystem(", f"S3FileSystem(region={REGION!r}, ")) == "10\n"
    assert printed(spark_code.replace("s3a://lake", str(copy)), spark=spark).split() == [
        *("+------+----------+-----+", "|", "topic|", "date|count|", "+------+----------+-----+"),
        *("|orders|2026-01-31|", "10|", "+------+----------+-----+"),
    ]
    [sql] = blocks("sql")
    _, _, query = sql.partition(";\n")
    with duckdb.connect() as database:
        found = database.execute(query.replace("s3://lake", str(copy))).fetchall()
    assert [(topic, str(date), records) for topic, date, records in found] == [("orders", "2026-01-31", 10)]


def printed(code: str, **names: object) -> str:
    """What a block prints."""
    with redirect_stdout(io.StringIO()) as out:
        exec(code, dict(names))
    return out.getvalue()
