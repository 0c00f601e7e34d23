"""Every format on real parts: from producers' own bytes through the running sink to the uploaded Parquet files."""

import hmac
import json
from decimal import Decimal
from hashlib import sha1, sha256, sha512
from typing import Any, Final

import pytest
from confluent_kafka import Producer

from integration.conftest import TopicFactory
from integration.formats.expected import flat_of, nested_of
from integration.formats.files import METADATA, only, uploaded
from integration.formats.people import CLEAR, people
from integration.formats.records import FORMATS, record
from integration.harness import Sink, ends
from integration.registry import RegistryServer
from integration.wire import encode_avro, widened
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.spark.session import slots
from parquet_sink.worker.loop.status import Status
from tests.messages import assert_says

DECIMAL: Final = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
WHO: Final = record("Who", name="string")
CHUNKS: Final = {"flattener_jsonblob_chunks": 3, "data_fallback_varchar_length": 5}


def placed(rows: list[dict[str, Any]], offsets: list[int]) -> list[dict[str, Any]]:
    """The rows with what is added of Kafka, but the time."""
    return [
        {**row, "kafkaPartition": 0, "kafkaOffset": offset, "kafkaPartitionOffset": f"0_{offset}"}
        for row, offset in zip(rows, offsets, strict=True)
    ]


def timeless(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without the time at which they were produced."""
    return [{name: value for name, value in row.items() if name != "kafkaTimestamp"} for row in rows]


@pytest.mark.parametrize("format_", ["json", "envelope", "avro", "protobuf", "json_schema", "xml"])
def test_records_arrive_flattened(
    sink: Sink, broker: Broker, topic: TopicFactory, registry: RegistryServer, format_: str
) -> None:
    """The converter is in the connector file: rows and types are as documented, tombstones pass, lag ends at 0."""
    name, found = topic(), FORMATS[format_]
    first, second = found.values(registry, name)
    broker.produce(name, [(b"\xff", first), (b"k", None), (None, second), (b"k", None)])
    assert sink.drain(name, found.properties(registry)).status is Status.DONE
    columns, rows = flat_of(format_)
    file = only(sink)
    assert file.columns == {**columns, **METADATA}
    assert timeless(file.rows) == placed(rows, [0, 2])
    assert sink.offsets(name) == ends(broker, name) == [4]


@pytest.mark.parametrize("format_", ["envelope", "avro", "protobuf", "json_schema"])
def test_records_arrive_nested(
    sink: Sink, broker: Broker, topic: TopicFactory, registry: RegistryServer, format_: str
) -> None:
    """The converter is in the worker file: structs, three-level lists and maps, required where the schema says so."""
    name, found = topic(), FORMATS[format_]
    broker.produce(name, [(None, value) for value in found.values(registry, name)])
    properties = sink.properties(name, flattener_enable=False, embed_kafka_metadata=False)
    run = sink.make(properties, until_caught_up=True, worker=found.properties(registry)).start().until_ended()
    assert run.status is Status.DONE
    columns, rows = nested_of(format_)
    file = only(sink)
    assert (file.columns, file.rows) == (columns, rows)
    assert sink.offsets(name) == [2]


@pytest.mark.parametrize(
    ("format_", "chunks"),
    [
        ("string", [["grü", "ße, ", "Ada"], ["", None, None], ["01234", "56789", None]]),
        ("bytes", [['"AP8=', '"', None], ['""', None, None]]),
        ("long", [["-1", None, None], ["10995", "11627", "776"]]),
    ],
)
def test_values_without_fields_arrive_in_chunks(
    sink: Sink, broker: Broker, topic: TopicFactory, format_: str, chunks: list[list[str | None]]
) -> None:
    """Text as it is, all else as JSON, cut between characters into as many columns as the file says."""
    name, found = topic(), FORMATS[format_]
    with RegistryServer() as unused:
        values = found.values(unused, name)
        properties = found.properties(unused)
    broker.produce(name, [*((b"k", value) for value in values), (b"k", None)])
    assert sink.drain(name, properties, embed_kafka_metadata=False, **CHUNKS).status is Status.DONE
    names = [f"payload_chunk{number}" for number in (1, 2, 3)]
    assert only(sink).columns == dict.fromkeys(names, "string")
    assert only(sink).rows == [dict(zip(names, chunk, strict=True)) for chunk in chunks]
    assert sink.offsets(name) == [len(values) + 1]


EVENT: Final = record("Event", id="long")
EVENT_2: Final = record("Event", id="long", more=["null", "string"])


def asked(registry: RegistryServer, schema_id: int) -> int:
    """How often a schema was asked for."""
    return [each.path for each in registry.asked if each.method == "GET"].count(f"/schemas/ids/{schema_id}")


def test_schemas_alternate_and_are_asked_for_once(
    sink: Sink, topic: TopicFactory, producer: Producer, registry: RegistryServer
) -> None:
    """Schemas that alternate share files; a process asks for each once, over many ranges; those of keys are not."""
    name, ranges = topic(6), 2 * 6
    avro, keys = (FORMATS["avro"].properties(registry, side) for side in ("value", "key"))
    older = encode_avro(registry, name, json.dumps(EVENT), [{"id": n} for n in range(0, 240, 2)])
    newer = encode_avro(registry, name, json.dumps(EVENT_2), [{"id": n, "more": str(n)} for n in range(1, 240, 2)])
    [key] = encode_avro(registry, f"{name}-key", json.dumps(record("Key", id="long")), [{"id": 1}])
    run = sink.make({**sink.properties(name), **avro, **keys}).start()
    for first in (0, 60):
        for n in range(first, first + 60):
            for value in (older[n], newer[n]):
                producer.produce(name, value, key, partition=n % 6)
        assert producer.flush(20) == 0
        run.until_records(2 * (first + 60))
    run.stop()
    assert ranges <= len(run.accepted) < 2 * ranges
    rows = sorted((row["id"], row["more"]) for file in uploaded(sink) for row in file.rows)
    assert rows == [(n, str(n) if n % 2 else None) for n in range(240)]
    processes = 2 * slots(sink.spark)
    assert processes < ranges
    assert all(1 <= asked(registry, schema_id) <= processes for schema_id in (1, 2))
    assert asked(registry, 3) == 0
    assert sink.offsets(name, 6) == [40] * 6


SUPPLIER: Final = record("Supplier", Name="string", Mail=["null", "string"])
PART: Final = record("Part", Id="long", Supplier="Supplier", Price={**DECIMAL, "precision": 20})
PART_2: Final = record("Part", Stock="int", Id="long", Supplier="Supplier", Price={**DECIMAL, "precision": 20})


def test_everything_at_once(
    sink: Sink, broker: Broker, topic: TopicFactory, registry: RegistryServer, caplog: pytest.LogCaptureFixture
) -> None:
    """References, a newer schema in mid-range, lower case, doubles for decimals, keys, one path that hides, one not."""
    name = topic()
    registry.register("supplier", json.dumps(SUPPLIER))
    suppliers = [{"Name": "Ada", "Mail": CLEAR}, {"Name": "Bob", "Mail": None}]
    parts = [{"Id": n, "Supplier": suppliers[n % 2], "Price": Decimal("0.10"), "Stock": n} for n in range(4)]
    references = [("Supplier", "supplier", 1)]
    older = encode_avro(registry, name, json.dumps(PART), parts[:2], references)
    newer = encode_avro(registry, name, json.dumps(PART_2), parts[2:], references)
    broker.produce(name, [(None, value) for value in (*older, *newer)])
    run = sink.drain(
        name,
        FORMATS["avro"].properties(registry),
        convert_lowercase_fields=True,
        convert_decimals_to_double=True,
        data_primary_key="id,supplier_name",
        obfuscation_fields="supplier.mail,supplier.phone",
        parquet_compression_codec="none",
    )
    assert run.status is Status.DONE
    file = only(sink)
    payload = {"id": "int64", "supplier_name": "string", "supplier_mail": "string", "price": "double", "stock": "int32"}
    assert file.columns == {**payload, **METADATA, "__celonis_order": "int64 required"}
    assert [tuple(row.values())[:5] for row in file.rows] == [
        (0, "Ada", "*****", 0.1, None),
        (1, "Bob", None, 0.1, None),
        (2, "Ada", "*****", 0.1, 2),
        (3, "Bob", None, 0.1, 3),
    ]
    assert CLEAR.encode() not in file.content
    assert_says(caplog.text, f"topic {name}", "no field supplier.phone", "connect.ems.obfuscation.fields")
    assert [row["__celonis_order"] for row in file.rows] == [0, 1, 2, 3]
    assert sink.offsets(name) == [4]


APICURIO: Final = "io.apicurio.registry.utils.converter.AvroConverter"


def test_apicurios_converter_with_ids_of_eight_bytes(
    sink: Sink, broker: Broker, topic: TopicFactory, registry: RegistryServer
) -> None:
    """Under Apicurio's own names: its address is read as the one that speaks Confluent's protocol."""
    name = topic()
    values = encode_avro(registry, name, json.dumps(EVENT_2), [{"id": 1, "more": "x"}, {"id": 2, "more": None}])
    broker.produce(name, [(None, widened(value)) for value in values])
    address = {"value.converter.apicurio.registry.url": f"{registry.url}/apis/registry/v2"}
    assert sink.drain(name, {"value.converter": APICURIO, **address}).status is Status.DONE
    assert [(row["id"], row["more"]) for row in only(sink).rows] == [(1, "x"), (2, None)]
    assert sink.offsets(name) == [2]


def hidden(text: str, method: str) -> str | None:
    """What a method makes of a text; None where nobody can tell."""
    data = text.encode()
    return {
        "fix": "*****",
        "sha1": sha1(sha1(data).digest()).hexdigest(),
        "sha256": sha256(data).hexdigest(),
        "sha512": sha512(sha512(b"pepper" + data).digest()).hexdigest(),
        "hmac-sha256": hmac.new(b"0123456789abcdef", data, sha256).hexdigest(),
    }.get(method)


@pytest.mark.parametrize(
    ("format_", "method"),
    [
        ("json", "fix"),
        ("avro", "sha1"),
        ("json_schema", "sha256"),
        ("envelope", "sha512"),
        ("avro", "hmac-sha256"),
        ("xml", "random"),
    ],
)
def test_obfuscated_text_leaves_nowhere_in_clear(
    sink: Sink, broker: Broker, topic: TopicFactory, registry: RegistryServer, format_: str, method: str
) -> None:
    """By the dotted path while columns are flattened, and in lists that become JSON text."""
    name, found = topic(), FORMATS[format_]
    broker.produce(name, [(None, value) for value in people(format_, registry, name)])
    more: dict[str, dict[str, object]] = {
        "sha512": {"obfuscation_sha512_salt": "pepper"},
        "random": {"obfuscation_sha512_randomsalt": True},
        "hmac-sha256": {"obfuscation_hmac_key": "0123456789abcdef"},
    }
    run = sink.drain(
        name,
        found.properties(registry),
        obfuscation_method="sha512" if method == "random" else method,
        obfuscation_fields="who.name,who.nicks.value,friends.value.name",
        parquet_compression_codec="none",
        **more.get(method, {}),
    )
    assert run.status is Status.DONE
    file = only(sink)
    assert CLEAR.encode() not in file.content
    [row, again] = file.rows
    texts = [
        [one["who_name"], *json.loads(one["who_nicks"]), *(friend["name"] for friend in json.loads(one["friends"]))]
        for one in (row, again)
    ]
    if method == "random":
        assert len({*texts[0], *texts[1]}) == 10
        assert {len(text) for text in texts[0]} == {128}
    else:
        assert texts == [[hidden(f"{CLEAR}{n}", method) for n in (1, 2, 3, 4, 5)]] * 2
    assert row["open"] == "seen"


def test_exploded_elements_have_metadata_and_keys(
    sink: Sink, broker: Broker, topic: TopicFactory, registry: RegistryServer
) -> None:
    """One row for each element, with the place of its record; an empty list has none, and its offset is passed."""
    name = topic()
    schema = record("Batch", lines={"type": "array", "items": record("Line", id="long", by=WHO)})
    lines = [{"id": n, "by": {"name": f"n{n}"}} for n in range(4)]
    batches = [{"lines": lines[:2]}, {"lines": []}, {"lines": lines[2:]}, {"lines": []}]
    broker.produce(name, [(None, value) for value in encode_avro(registry, name, json.dumps(schema), batches)])
    run = sink.drain(name, FORMATS["avro"].properties(registry), explode_mode="List", data_primary_key="id")
    assert run.status is Status.DONE
    file = only(sink)
    columns = {"id": "int64", "by_name": "string", **METADATA, "__celonis_order": "int64 required"}
    assert file.columns == columns
    assert [(row["id"], row["by_name"], row["kafkaPartitionOffset"], row["__celonis_order"]) for row in file.rows] == [
        (0, "n0", "0_0", 0),
        (1, "n1", "0_0", 0),
        (2, "n2", "0_2", 2),
        (3, "n3", "0_2", 2),
    ]
    assert "_firstOffset-0_lastOffset-2_" in file.name
    assert file.name.endswith("_rows-2.parquet")
    assert sink.offsets(name) == [4]


def test_a_chunk_hides_what_is_to_be_hidden(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """Text is obfuscated before a record becomes JSON in chunks."""
    name = topic()
    value = {"who": {"name": CLEAR}, "tags": ["x", 1, {}], "": {}}
    broker.produce(name, [(None, json.dumps(value).encode())])
    sink.drain(
        name,
        embed_kafka_metadata=False,
        obfuscation_fields="who.name",
        parquet_compression_codec="none",
        flattener_jsonblob_chunks=2,
        data_fallback_varchar_length=100,
    )
    file = only(sink)
    assert file.rows == [{"payload_chunk1": '{"who":{"name":"*****"},"tags":["x",1,{}],"":{}}', "payload_chunk2": None}]
    assert CLEAR.encode() not in file.content
