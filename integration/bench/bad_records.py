"""`python -m integration.bench.bad_records [FORMAT...]`: what one bad record in a hundred costs.

See docs/explanation/benchmark.md.

Blocks of one format go from bytes to rows in this process, as a Spark task does with a range, the clean ones and those
of each kind of bad record by turns: CPU time of all threads per record, the least of some rounds. No broker is needed.
"""

import json
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from integration.bench.formats import CONVERTER, FORMATS, REGISTRY_URL, Format, envelope, orders, plain
from integration.bench.named_transforms import TRANSFORMS
from integration.bench.running import connector_file
from integration.registry import RegistryServer
from parquet_sink.connectors.check import check_files
from parquet_sink.convert.decoders import decoder_for
from parquet_sink.model.records import RecordBatch
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.rows.run import Run
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.transform.building import chain_for

RECORDS: Final = 30_000
BLOCK: Final = 10_000
ONE_IN: Final = 100
ROUNDS: Final = 3
_FLUSH: Final = {"commit.records": 250_000, "commit.size.bytes": 100_000_000, "commit.interval.ms": 10_000}

Damage = Callable[[bytes], bytes]


@dataclass(frozen=True)
class Case:
    """A format, and the ways in which its records are damaged."""

    format: Format
    kinds: Mapping[str, Damage]


def swapped(old: str, new: str) -> Damage:
    """The first of this text in a record becomes that one. Raises AssertionError for a record without it."""

    def damage(value: bytes) -> bytes:
        assert old.encode() in value, (old, value)
        return value.replace(old.encode(), new.encode(), 1)

    return damage


def member(name: str, literal: str | None, *, within: str | None = None) -> Damage:
    """A member of an object gets another value, written as JSON; None: it is missing. within: the object, by name."""

    def damage(value: bytes) -> bytes:
        head, brace, rest = value.partition(b"{")
        tree = json.loads(brace + rest)
        found = tree if within is None else tree[within]
        assert name in found, (name, value)
        mark = "\x00mark"
        if literal is None:
            del found[name]
        else:
            found[name] = mark
        text = json.dumps(tree, separators=(",", ":"))
        return head + (text if literal is None else text.replace(json.dumps(mark), literal, 1)).encode()

    return damage


def truncated(value: bytes) -> bytes:
    """Without its last byte."""
    return value[:-1]


def halved(value: bytes) -> bytes:
    """Its first half."""
    return value[: len(value) // 2]


def not_utf8(value: bytes) -> bytes:
    """With a byte in a text that is no UTF-8; of the same length."""
    assert b"customer-" in value
    return value.replace(b"customer-", b"customer\xff", 1)


_WIRE: Final[Mapping[str, Damage]] = {
    "wrong magic byte": lambda value: b"\x07" + value[1:],
    "unknown schema id": lambda value: value[:1] + struct.pack(">I", 999_999) + value[5:],
    "header cut short": lambda value: value[:3],
    "empty": lambda value: b"",
}
_TEXT: Final[Mapping[str, Damage]] = {"truncated": truncated, "half of it": halved, "bad UTF-8": not_utf8}


def _json_kinds(within: str | None = None) -> dict[str, Damage]:
    return {
        **_TEXT,
        "other type": member("amount", '"none"', within=within),
        "other type, number": member("customer", "17", within=within),
        "other type, object": member("customer", '{"a":1}', within=within),
        "fraction for integer": member("quantity", "1.5", within=within),
        "out of range": member("quantity", str(2**70), within=within),
        "missing": member("order_id", None, within=within),
        "null": member("order_id", "null", within=within),
        "infinite": member("amount", "1e999", within=within),
    }


def _nested_kinds() -> dict[str, Damage]:
    return {
        **_TEXT,
        "missing": member("order_id", None),
        "null": member("order_id", "null"),
        "not an object": lambda value: b"[1,2]",
        "a number": lambda value: b"7",
    }


def _plain_kinds() -> dict[str, Damage]:
    return {**_nested_kinds(), "infinite": member("amount", "1e999"), "equal keys": swapped('"status":', '"customer":')}


def _avro_kinds() -> dict[str, Damage]:
    return {
        **_WIRE,
        "truncated": truncated,
        "half of it": halved,
        "byte too many": lambda value: value + b"\x00",
        "bad UTF-8": not_utf8,
        "length out of range": lambda value: value[:5] + b"\x02\xff\xff\xff\xff\x0f" + value[6:],
    }


def _protobuf_kinds() -> dict[str, Damage]:
    return {
        **_WIRE,
        "truncated": truncated,
        "half of it": halved,
        "bad UTF-8": not_utf8,
        "unknown message": lambda value: value[:5] + b"\x02\x08" + value[6:],
    }


def _xml(url: str, count: int) -> list[bytes]:
    """The orders as documents."""
    return [
        b"<order>" + b"".join(f"<{name}>{value}</{name}>".encode() for name, value in one.items()) + b"</order>"
        for one in orders(count)
    ]


_KEY: Final = {"connect.ems.data.primary.key": "status"}


def cases() -> dict[str, Case]:
    """By name."""
    return {
        "json": Case(FORMATS["json"], _plain_kinds()),
        "nested": Case(FORMATS["nested"], _nested_kinds()),
        "json_envelope": Case(
            FORMATS["json_envelope"],
            {
                **_json_kinds("payload"),
                "no envelope": lambda value: b'{"a":1}',
                "no object": lambda value: value[: value.index(b'"payload":')] + b'"payload":7}',
                "other schema": swapped('"int64"', '"int65"'),
            },
        ),
        "envelope_key": Case(
            Format(envelope, {**FORMATS["json_envelope"].keys, **_KEY}),
            {"null key": member("status", "null", within="payload")},
        ),
        "json_schema": Case(
            FORMATS["json_schema"], {**_WIRE, **_json_kinds(), "no object": lambda value: value[:5] + b"7"}
        ),
        "avro": Case(FORMATS["avro"], _avro_kinds()),
        "avro_key": Case(
            Format(FORMATS["avro"].values, {**FORMATS["avro"].keys, **_KEY}, uses_registry=True),
            {"null key": _null_status},
        ),
        "protobuf": Case(FORMATS["protobuf"], _protobuf_kinds()),
        "string": Case(FORMATS["string"], {"bad UTF-8": not_utf8, "too long": lambda value: value * 4}),
        "xml": Case(
            Format(_xml, {CONVERTER: "com.celonis.kafka.connect.ems.converter.XmlConverter"}),
            {**_TEXT, "no fields": lambda value: b"<a/>", "missing": _without_order_id},
        ),
        **_transformed(),
    }


def _transformed() -> dict[str, Case]:
    """Transforms that one record in a hundred makes fail, of JSON without a schema and with one."""
    schema = {"value.converter.schemas.enable": "true"}
    number, no_number = '"code":"4711"', swapped('"code":"4711"', '"code":"47x1"')
    moment, no_moment = '"code":"2026-11-18T11:06:40.137Z"', swapped('"code":"2026', '"code":"year')
    sql = "SELECT *, CAST(code AS INTEGER) AS number FROM records"
    ways = {
        "cast_int": ({"type": "Cast$Value", "spec": "code:int64"}, number, no_number),
        "cast_float": ({"type": "Cast$Value", "spec": "code:float64"}, number, no_number),
        "timestamp": ({**TRANSFORMS["timestamp"].keys, "field": "code"}, moment, no_moment),
        "sql": ({"type": "sql", "query": sql}, number, no_number),
        "own": ({"type": "integration.bench.refusing.Refusing$Value"}, number, no_number),
    }
    found = {}
    for name, (keys, extra, damage) in ways.items():
        own = {"transforms": "one", **{f"transforms.one.{key}": text for key, text in keys.items()}}
        found[f"json+{name}"] = Case(Format(_with_code(plain, extra), own), {"fails": damage})
        found[f"envelope+{name}"] = Case(Format(_with_code(envelope, extra), own | schema), {"fails": damage})
    mask = {"type": "MaskField$Value", "fields": "amount", "replacement": "7"}
    own = {"transforms": "one", **{f"transforms.one.{key}": text for key, text in mask.items()}}
    found["json+mask"] = Case(Format(plain, own), {"fails": member("amount", "true")})
    return found


def _with_code(values: Callable[[str, int], Sequence[bytes]], member: str) -> Callable[[str, int], list[bytes]]:
    """The orders with one text more, in their schema, too, if they have one."""
    field = b'{"type":"string","optional":false,"field":"code"},{"type":"int64","optional":false,"field":"order_id"}'

    def with_code(url: str, count: int) -> list[bytes]:
        return [
            value.replace(b'{"type":"int64","optional":false,"field":"order_id"}', field).replace(
                b'{"order_id":', b"{" + member.encode() + b',"order_id":'
            )
            for value in values(url, count)
        ]

    return with_code


def _null_status(value: bytes) -> bytes:
    """An order in Avro, without its status, the third field: a union of null and text."""
    customer = 6 + _varint_size(value, 5) - 1
    length = value[customer] // 2
    status = customer + 1 + length
    return value[:status] + b"\x00" + value[status + 2 + value[status + 1] // 2 :]


def _varint_size(value: bytes, at: int) -> int:
    size = 1
    while value[at + size - 1] & 0x80:
        size += 1
    return size


def _without_order_id(value: bytes) -> bytes:
    start, end = value.index(b"<order_id>"), value.index(b"</order_id>") + len(b"</order_id>")
    return value[:start] + value[end:]


def main(names: Sequence[str]) -> int:
    """Measures the formats that are named, or all; the exit status."""
    known = cases()
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"bad_records: no format {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    print(f"µs CPU per record, bytes to rows, {RECORDS:,} records, one bad in {ONE_IN} (least of {ROUNDS - 1} rounds)")
    with RegistryServer() as registry, TemporaryDirectory() as folder:
        for name in names or known:
            for line in _lines(name, known[name], registry.url, Path(folder)):
                print(line, flush=True)
    return 0


def _lines(name: str, case: Case, url: str, folder: Path) -> Iterator[str]:
    values = case.format.values(url, RECORDS)
    settings = settings_of(
        name, {**case.format.keys, REGISTRY_URL: url} if case.format.uses_registry else case.format.keys, folder
    )
    work = {"clean": _blocks(values)}
    for kind, damage in case.kinds.items():
        bad = [damage(value) if at % ONE_IN == ONE_IN // 2 else value for at, value in enumerate(values)]
        work[kind] = _blocks(bad)
    times: dict[str, list[float]] = {kind: [] for kind in work}
    rejected = {}
    for _ in range(ROUNDS):
        for kind, blocks in work.items():
            us, rejected[kind] = _once(settings, blocks)
            times[kind].append(us)
    clean = min(times["clean"][1:])
    for kind, found in times.items():
        least = min(found[1:])
        yield f"{name:14} {kind:22} {least:6.2f} µs  {least / clean:5.2f} x  {rejected[kind]:6,} rejected"


def settings_of(name: str, keys: Mapping[str, str], folder: Path) -> SinkSettings:
    """The settings of the bench's connector file with these keys on top."""
    tolerant = {"errors.tolerance": "all", "connect.ems.parked.dir": str(folder / "parked")}
    path = connector_file(folder, name, "orders", "http://127.0.0.1:9/push", _FLUSH, {**tolerant, **keys})
    (settings,) = check_files([str(path)], None, bootstrap_servers="127.0.0.1:9").require()
    return settings


def _blocks(values: Sequence[bytes]) -> list[RecordBatch]:
    found = []
    for first in range(0, len(values), BLOCK):
        some = values[first : first + BLOCK]
        offsets = range(first, first + len(some))
        found.append(RecordBatch.of("orders", 0, offsets, [1_795_000_000_000] * len(some), some))
    return found


def _once(settings: SinkSettings, blocks: Sequence[RecordBatch]) -> tuple[float, int]:
    """µs per record, with what a first block teaches known; and how many records were rejected."""
    chain = chain_for(settings.transforms, settings.key)
    taught = RowBuilder(settings.shape, None, decoder_for(settings.value), chain)
    list(taught.shape(blocks[0], across_rejected=True))
    shaper = RowBuilder(settings.shape, taught.known, decoder_for(settings.value), chain)
    rejected = 0
    began = time.process_time()
    for block in blocks:
        rejected += sum(not isinstance(one, Run) for one in shaper.shape(block, across_rejected=True))
    return 1e6 * (time.process_time() - began) / sum(map(len, blocks)), rejected


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
