"""What is reshaped from raw files is what the direct way gives, in every format: rows, and records without one."""

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from integration.bench.formats import FORMATS, REGISTRY_URL
from integration.registry import RegistryServer
from parquet_sink.cli.main import main
from parquet_sink.connectors.check import check_files
from parquet_sink.model.records import RecordBatch
from parquet_sink.model.rejected import Rejected
from parquet_sink.rows.raw import RawRowBuilder
from parquet_sink.rows.run import Run
from parquet_sink.task.record_steps import StopAtRejected, steps_for

COUNT: Final = 60
FORMATS_COMPARED: Final = ("json", "avro", "json_envelope", "json_schema", "protobuf", "nested", "json_sha256")
STEPS: Final = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "false",
    "transforms": "only,key,headers",
    "transforms.only.type": "Filter",
    "transforms.only.predicate": "dropped",
    "predicates": "dropped",
    "predicates.dropped.type": "HasHeaderKey",
    "predicates.dropped.name": "drop",
    "transforms.key.type": "KeyToValue",
    "transforms.key.fields": "order_id:of_key",
    "transforms.headers.type": "HeaderToValue",
    "transforms.headers.headers": "trace",
    "connect.ems.data.primary.key": "order_id",
    "connect.ems.tombstones": "row",
}
Row = dict[str, Any]
pair = st.sampled_from([("trace", b"t"), ("trace", None), ("drop", b""), ("n", b"7")])
record = st.fixed_dictionaries(
    {
        "damage": st.sampled_from(["", "", "", "", "tombstone", "cut", "empty"]),
        "headers": st.lists(
            st.sampled_from([("trace", b"t"), ("trace", None), ("drop", b""), ("n", b"7")]), max_size=3
        ),
        "gap": st.sampled_from([1, 1, 1, 2, 30]),
        "key": st.sampled_from([b'{"order_id": %d}', b'{"order_id": %d}', b"no JSON %d", None]),
    }
)


@pytest.fixture(scope="module")
def values() -> Iterator[Mapping[str, tuple[Mapping[str, str], list[bytes]]]]:
    """By format: keys of a connector file, and values, whose schemas are in a registry that runs."""
    with RegistryServer() as registry:
        yield {
            name: (
                {**one.keys, **({REGISTRY_URL: registry.url} if one.uses_registry else {})},
                list(one.values(registry.url, COUNT)),
            )
            for name, one in FORMATS.items()
            if name in FORMATS_COMPARED
        }


def connector(folder: Path, more: Mapping[str, str]) -> Path:
    """A connector file."""
    keys = {
        "name": "orders",
        "topics": "orders",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "errors.tolerance": "all",
        "connect.ems.endpoint": f"directory:{folder / 'out'}",
        "connect.ems.target.table": "ORDERS",
        "connect.ems.commit.size.bytes": "10000000",
        "connect.ems.commit.records": "17",
        "connect.ems.commit.interval.ms": "30000",
        "connect.ems.tmp.dir": str(folder / "tmp"),
        **more,
    }
    path = folder / "orders.properties"
    path.write_text("".join(f"{key}={text}\n" for key, text in keys.items()))
    return path


def batch_of(records: list[Row], values: list[bytes]) -> RecordBatch:
    """The records as Kafka's reader gives them."""
    damaged = {"": lambda v: v, "tombstone": lambda v: None, "cut": lambda v: v[: len(v) // 2], "empty": lambda v: b""}
    offsets, at = [], 100
    for one in records:
        at += one["gap"]
        offsets.append(at)
    chosen = [damaged[one["damage"]](value) for one, value in zip(records, values, strict=False)]
    keys = [one["key"] and one["key"] % number for number, one in enumerate(records)]
    headers, stamps = [one["headers"] for one in records], range(1, len(records) + 1)
    return RecordBatch.of("orders", 2, offsets, stamps, chosen, keys, headers, timestamp_types="CreateTime")


def directly(path: Path, batch: RecordBatch) -> tuple[list[Row], list[Row]]:
    """Rows and rejected records by the connector's own steps."""
    (connector_settings,) = check_files([str(path)]).require()
    shaper = steps_for(connector_settings, StopAtRejected()).shaper(connector_settings.shape)
    rows: list[Row] = []
    rejected: list[Row] = []
    for one in shaper.shape(batch, across_rejected=True):
        if isinstance(one, Run):
            rows += one.rows.to_pylist()
        else:
            rejected.append(_rejected(one))
    return rows, rejected


def _rejected(one: Rejected) -> Row:
    headers = None if one.headers is None else [{"key": name, "value": text} for name, text in one.headers]
    told = {"stage": str(one.stage), "reason": one.reason}
    return {"offset": one.offset, "key": one.key, "value": one.value, "headers": headers, **told}


def by_raw_files(
    folder: Path, path: Path, batch: RecordBatch, cuts: list[tuple[int, int]]
) -> tuple[list[Row], list[Row]]:
    """The same by raw files of these records, which may overlap and leave none out."""
    (run,) = RawRowBuilder().shape(batch)
    assert isinstance(run, Run)
    raw = folder / "raw"
    raw.mkdir()
    for number, (first, count) in enumerate(cuts):
        pq.write_table(run.rows.slice(first, count), raw / f"{number}.parquet", row_group_size=7, store_schema=False)
    out = folder / "reshaped"
    assert main(["reshape", str(path), str(raw), "--out", str(out)]) == 0
    files = [pq.read_table(file) for file in sorted((out / "ORDERS").glob("*.parquet"), key=_first_offset)]
    kept = [row for file in (out / "_rejected").rglob("*.parquet") for row in pq.read_table(file).to_pylist()]
    names = ("offset", "key", "value", "headers", "stage", "reason")
    return [row for table in files for row in table.to_pylist()], [{name: row[name] for name in names} for row in kept]


def _first_offset(path: Path) -> int:
    return int(path.name.split("firstOffset-")[1].split("_")[0])


def there(rows: list[Row]) -> list[Row]:
    """Without columns that are null, which a file has or has not by the rows around."""
    return [{name: found for name, found in row.items() if found is not None} for row in rows]


@pytest.mark.parametrize("steps", [{}, STEPS], ids=["plain", "steps"])
@pytest.mark.parametrize("name", FORMATS_COMPARED)
def test_reshaped_is_what_the_direct_way_gives(
    values: Mapping[str, tuple[Mapping[str, str], list[bytes]]], name: str, steps: Mapping[str, str]
) -> None:
    """Keys, headers, tombstones, transforms and metadata, bad records among good ones, however raw files are cut."""
    keys, known = values[name]

    @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(record, min_size=1, max_size=COUNT), st.data())
    def equal(records: list[Row], data: st.DataObject) -> None:
        ends = sorted({0, len(records), *data.draw(st.lists(st.integers(0, len(records)), max_size=4))})
        again = data.draw(st.integers(0, len(records) - 1))
        cuts = [(one, other - one) for one, other in pairwise(ends)]
        with TemporaryDirectory() as folder:
            path, batch = connector(Path(folder), {**keys, **steps}), batch_of(records, known)
            rows, rejected = directly(path, batch)
            found = by_raw_files(Path(folder), path, batch, [*cuts, (again, 9)])
            assert there(found[0]) == there(rows)
            assert sorted(found[1], key=lambda row: row["offset"]) == rejected

    equal()


def test_what_is_compared_is_not_nothing(
    values: Mapping[str, tuple[Mapping[str, str], list[bytes]]], tmp_path: Path
) -> None:
    """The steps of the property do what they are there for: rows of tombstones, columns of keys, rejected records."""
    damages = ["", "tombstone", "cut", ""]
    records = [{"damage": one, "headers": [], "gap": 1, "key": b'{"order_id": %d}'} for one in damages]
    records[3]["headers"] = [("drop", b"")]
    path = connector(tmp_path, {**values["avro"][0], **STEPS})
    rows, rejected = directly(path, batch_of(records, values["avro"][1]))
    assert [(row["of_key"], row["__deleted"]) for row in rows] == [(0, False), (None, True)]
    assert [json.loads(row["key"])["order_id"] for row in rejected] == [2]
