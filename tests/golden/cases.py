"""The table of golden cases: each format, transform, predicate and option that changes rows or files, with its options.

`tests/golden/test_files.py` fails for a converter, a transform, a predicate or an option that no case has.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tests.golden.files import Case, E, converter
from tests.golden.records import KEYS, VALUES, Stream

FLAT: Final = ("string", "latin", "bytes", "boolean", "short", "integer", "long", "float", "double")
"""Formats whose values are no records: a transform puts each into a field."""
TREES: Final = ("json", "envelope", "avro")
SIDES: Final = ("json", "envelope")
"""Without a schema, and with one."""
_HOISTED: Final = {"transforms": "h", "transforms.h.type": "HoistField", "transforms.h.field": "value"}
_APICURIO: Final = {
    "value.converter": "io.apicurio.registry.utils.converter.AvroConverter",
    "value.converter.schema.registry.url": None,
    "value.converter.apicurio.registry.url": "https://registry.example.com/apis/registry/v3",
    "value.converter.apicurio.registry.as-confluent": "true",
    "value.converter.apicurio.registry.use-id": "contentId",
}
_SEE_KEY: Final = {"see.type": "KeyToValue", "see.prefix": "key_", "see.key.field": "whole_key", "see.existing": "keep"}
_SEE_HEADERS: Final = {"see.type": "HeaderToValue", "see.prefix": "header_", "see.existing": "keep"}
_SEE_TOPIC: Final = {"see.type": "InsertField", "see.topic.field": "topic"}
_C: Final = "org.apache.kafka.connect.transforms."


def stream(format_: str = "json", count: int = 400, key: str = "", **more: int) -> Stream:
    """Records of a format; keys are of the same one, where keys can be."""
    return Stream(format_, key or (format_ if format_ in KEYS else "string"), count, **more)


def cases() -> Sequence[Case]:
    """All of them, each under a name of its own."""
    found = [*_formats(), *_settings(), *_transforms(), *_predicates(), *_rows(), *_files()]
    assert len({one.name for one in found}) == len(found)
    return found


def _formats() -> Iterator[Case]:
    for format_ in VALUES:
        changes = _HOISTED if format_ in FLAT else {}
        count = 60 if format_ == "mixed" else 2_000
        yield Case(f"format {format_}", changes, (stream(format_, count, bad=50),))
        yield Case(f"format {format_}, a record", changes, (stream(format_, 1),))
        yield Case(f"format {format_} in chunks", _chunks(3, 150), (stream(format_, 90, bad=30),))
    yield Case("format avro of Apicurio", _APICURIO, (stream("avro", bad=50),))
    for key in KEYS:
        see = {"transforms": "see", **{f"transforms.{name}": text for name, text in _SEE_KEY.items()}}
        yield Case(f"key {key}", see, (stream("json", key=key),))
    for format_ in ("json", "string", "bytes", "long"):
        see = {"transforms": "see", **{f"transforms.{name}": text for name, text in _SEE_HEADERS.items()}}
        yield Case(f"header {format_}", {**see, **converter("header", format_)}, (stream(text_headers=False),))
    yield Case("header as SimpleHeaderConverter reads it", see, (stream(text_headers=False),))
    yield Case("two topics of one connector", {}, (stream(), stream("json", seed=8, first=5_000)))


def _chunks(chunks: int, size: int) -> dict[str, str]:
    return {f"{E}flattener.jsonblob.chunks": str(chunks), f"{E}data.fallback.varchar.length": str(size)}


_OPTIONS: Final[Mapping[str, Sequence[str]]] = {
    "envelope": ("replace.null.with.default=false", "decimal.format=NUMERIC"),
    "avro": (
        *("enhanced.avro.schema.support=true", "generalized.sum.type.support=true", "flatten.singleton.unions=false"),
    ),
    "json_schema": (
        *("use.optional.for.nonrequired=true", "generalized.sum.type.support=true", "flatten.singleton.unions=false"),
        *("decimal.format=NUMERIC", "preserve.additional.properties=true"),
    ),
    "protobuf": (
        *("generate.index.for.unions=false", "flatten.unions=true", "int.for.enums=true"),
        *("optional.for.nullables=true", "optional.for.proto2=false", "wrapper.for.nullables=true"),
        "wrapper.for.raw.primitives=false",
    ),
}


def _settings() -> Iterator[Case]:
    for format_, options in _OPTIONS.items():
        for option in options:
            name, _, text = option.partition("=")
            yield Case(f"{format_} with {option}", {f"value.converter.{name}": text}, (stream(format_, 450),))
            nested = {f"value.converter.{name}": text, f"{E}flattener.enable": "false"}
            yield Case(f"{format_} with {option}, nested", nested, (stream(format_, 450),))


def _step(type_: str, options: str, see: Mapping[str, str], predicate: str = "") -> dict[str, str]:
    """A transform with options such as `a=b; c=d`, and one behind it that shows what it did."""
    given = dict(one.strip().split("=", 1) for one in options.split(";") if one.strip())
    step = {"t.type": type_, **{f"t.{name}": text for name, text in given.items()}, **see}
    more = {} if not predicate else {"predicates": "p", "transforms.t.predicate": "p", "predicates.p.type": predicate}
    names = "t,see" if see else "t"
    return {"transforms": names, **{f"transforms.{name}": text for name, text in step.items()}, **more}


_VALUES: Final[Mapping[str, Sequence[str]]] = {
    "Cast": (
        "spec=id:string,part:int8,Amount:string,amount:string,ok:int32,text_of_number:int64,placed:string",
        "spec=part:float32,id:boolean,ok:string,price:float64,day:int32,at:int64,note:string",
        "spec=id:int16,Amount:int64,small:string; replace.null.with.default=false",
        "spec=Name:int32",
        "spec=string",
    ),
    "Flatten": ("", "delimiter=_"),
    "InsertField": (
        "topic.field=t; partition.field=p!; offset.field=o?; timestamp.field=at_ms",
        "static.field=fixed; static.value=text; replace.null.with.default=false",
        "timestamp.field=id",
        "timestamp.field=at!",
    ),
    "MaskField": (
        *("fields=id,Name,note,amount,Amount,ok,tags,customer,placed", "fields=Name,note; replacement=xxx"),
        *("fields=id; replacement=7; replace.null.with.default=false", "fields=price,day,at,small", "fields=raw"),
    ),
    "ReplaceField": (
        *("exclude=customer,tags", "include=id,part,customer", "renames=id:number,part:id"),
        *(
            "blacklist=items; renames=Name:name,note:name",
            "whitelist=id,Amount,amount; replace.null.with.default=false",
        ),
    ),
    "TimestampConverter": (
        *("field=placed; target.type=string; format=yyyy-MM-dd'T'HH:mm:ss.SSS", "field=placed; target.type=unix"),
        *("field=placed; target.type=Date", "field=placed; target.type=Time", "field=placed; target.type=Timestamp"),
        "field=placed; target.type=unix; unix.precision=seconds; replace.null.with.default=false",
        "field=placed; target.type=string; format=EEE, d MMM yyyy; unix.precision=microseconds",
        "field=day; target.type=Timestamp; unix.precision=nanoseconds",
        "field=Name; target.type=unix; format=yyyy-MM-dd",
    ),
    "ExtractField": (
        *("field=customer", "field=customer.address; field.syntax.version=V2", "field=items"),
        "field=customer; field.syntax.version=V1; replace.null.with.default=false",
    ),
    "HoistField": ("field=whole",),
    "SetSchemaMetadata": ("schema.name=Other; schema.version=3; replace.null.with.default=false",),
    "parquet_sink.Sql": (
        "query=SELECT id, part + 1 AS part, upper(CAST(id AS VARCHAR)) AS shouted FROM records WHERE id % 3 <> 0",
    ),
    "sql": ("query=SELECT *, 7 AS seven FROM records",),
}
_KEYS: Final[Mapping[str, Sequence[str]]] = {
    "Cast": ("spec=id:string,part:int8",),
    "Flatten": ("delimiter=_",),
    "InsertField": ("topic.field=t; static.field=fixed; static.value=text",),
    "MaskField": ("fields=id",),
    "ReplaceField": ("renames=id:number",),
    "TimestampConverter": ("field=id; target.type=Timestamp",),
    "ExtractField": ("field=id",),
    "HoistField": ("field=whole",),
    "SetSchemaMetadata": ("schema.name=Other",),
}
_SEEN: Final[Sequence[tuple[str, str, Mapping[str, str]]]] = (
    ("HeaderFrom$Value", "fields=id,part,customer; headers=a,b,c; operation=move", _SEE_HEADERS),
    ("HeaderFrom$Value", "fields=id,customer,tags; headers=a,b,c; operation=copy", _SEE_HEADERS),
    ("HeaderFrom$Key", "fields=id; headers=a; operation=copy; replace.null.with.default=false", _SEE_HEADERS),
    ("DropHeaders", "headers=kind", _SEE_HEADERS),
    ("InsertHeader", "header=new; value.literal=12", _SEE_HEADERS),
    ("RegexRouter", "regex=(o)rders; replacement=$1-new", _SEE_TOPIC),
    ("TimestampRouter", "", _SEE_TOPIC),
    ("TimestampRouter", "topic.format=${timestamp}/${topic}; timestamp.format=yyyy-MM-dd HH:mm", _SEE_TOPIC),
    ("ValueToKey", "fields=id,part; replace.null.with.default=false", _SEE_KEY),
    ("ValueToKey", "fields=id,absent", _SEE_KEY),
    ("HeaderToValue", "headers=kind:id,again; prefix=h_; existing=fail", {}),
    ("HeaderToValue", "headers=kind:id,again; existing=replace", {}),
    ("HeaderToValue", "headers=kind:id; existing=fail", {}),
    ("KeyToValue", "fields=id:part; existing=replace", {}),
    ("KeyToValue", "existing=fail", {}),
    ("KeyToValue", "fields=id:key_id,part; prefix=k_; existing=keep; key.field=whole", {}),
)

_EVENTS: Final[Sequence[tuple[str, Mapping[str, str]]]] = (
    ("add.fields=op,source.ts_ms,transaction.id:tx; route.by.field=route", _SEE_TOPIC),
    ("delete.tombstone.handling.mode=rewrite; add.fields=lsn; add.fields.prefix=", {}),
    ("drop.tombstones=false; delete.handling.mode=rewrite; replace.null.with.default=false", {}),
    ("add.headers=op,table; add.headers.prefix=dbz_", _SEE_HEADERS),
    ("drop.fields.header.name=drop; drop.fields.from.key=true; drop.fields.keep.schema.compatible=false", _SEE_KEY),
)
_DROP: Final = {
    "transforms.drop.type": "InsertHeader",
    "transforms.drop.header": "drop",
    "transforms.drop.value.literal": '["name"]',
}


def _transforms() -> Iterator[Case]:
    for options, see in _EVENTS:
        changes = {**_step("ExtractNewRecordState", options, see), **_DROP}
        changes["transforms"] = "drop," + changes["transforms"]
        yield Case(f"ExtractNewRecordState {options}", changes, (stream("events", 150, "json"),))
    for format_ in SIDES:
        for type_, several in _VALUES.items():
            for options in several:
                yield Case(
                    f"{type_} {options} of {format_}", _step(type_, options, {}), (stream(format_, 150, bad=40),)
                )
        for type_, several in _KEYS.items():
            for options in several:
                changes = _step(f"{_C}{type_}$Key", options, _SEE_KEY)
                yield Case(f"{type_} {options} of keys in {format_}", changes, (stream(format_, 90),))
        for type_, options, see in _SEEN:
            yield Case(f"{type_} {options} of {format_}", _step(type_, options, see), (stream(format_, 150),))


def _predicates() -> Iterator[Case]:
    for format_ in SIDES:
        for type_, options in (
            ("RecordIsTombstone", {}),
            ("HasHeaderKey", {"predicates.p.name": "kind"}),
            ("TopicNameMatches", {"predicates.p.pattern": "ord.*"}),
        ):
            for negate in ("false", "true"):
                for transform, more in (("Filter", ""), ("InsertField", "static.field=chosen; static.value=yes")):
                    changes = {**_step(transform, more, {}, type_), **options, "transforms.t.negate": negate}
                    name = f"{transform} for {type_}{' negated' if negate == 'true' else ''} of {format_}"
                    yield Case(name, changes, (stream(format_, 90), stream(format_, 90, seed=9)))


_ROWS: Final[Mapping[str, Mapping[str, str | None]]] = {
    "primary keys": {"data.primary.key": "id,part"},
    "primary keys that may be null": {"data.primary.key": "id,part", "allow.null.pk": "true"},
    "a primary key that is flattened": {"data.primary.key": "customer_name"},
    "an order field": {"data.primary.key": "id", "order.field.name": "placed"},
    "tombstones as rows": {"data.primary.key": "id", "tombstones": "row"},
    "tombstones as rows by a column": {"data.primary.key": "id,part", "tombstones": "row", "tombstones.column": "gone"},
    "no metadata": {"embed.kafka.metadata": "false"},
    "no metadata with keys": {"embed.kafka.metadata": "false", "data.primary.key": "id"},
    "nested": {"flattener.enable": "false"},
    "without lists": {"flattener.collections.discard": "true"},
    "nested in lower case": {"flattener.enable": "false", "convert.lowercase.fields": "true"},
    "chunks": {"flattener.jsonblob.chunks": "4", "data.fallback.varchar.length": "120"},
    "decimals to double": {"convert.decimals.to.double": "true"},
    "nested decimals to double": {"convert.decimals.to.double": "true", "flattener.enable": "false"},
    "lower case": {"convert.lowercase.fields": "true"},
    "obfuscation": {"obfuscation.fields": "Name,note,customer.name,items.value.sku"},
    "obfuscation, sha1": {"obfuscation.fields": "Name,note,customer.name", "obfuscation.method": "sha1"},
    "obfuscation, sha256": {"obfuscation.fields": "Name,note,customer_name", "obfuscation.method": "sha256"},
    "obfuscation, sha512": {
        "obfuscation.fields": "Name,note",
        "obfuscation.method": "sha512",
        "obfuscation.sha512.salt": "salt",
    },
    "obfuscation, hmac": {
        "obfuscation.fields": "Name,note,customer.name,items.value.sku",
        "obfuscation.method": "hmac-sha256",
        "obfuscation.hmac.key": "0123456789abcdef0123456789abcdef",
        "flattener.enable": "false",
    },
    "obfuscation of what is not text": {"obfuscation.fields": "id"},
    "raw": {"mode": "raw", "embed.kafka.metadata": None},
}
_EXPLODED: Final = ("ReplaceField", "include=items", {"explode.mode": "List"})


def _rows() -> Iterator[Case]:
    for name, options in _ROWS.items():
        changes = {f"{E}{key}": text for key, text in options.items()}
        for format_ in TREES:
            yield Case(f"{name}, {format_}", changes, (stream(format_, 450, bad=90),))
    type_, options, mode = _EXPLODED
    for format_ in ("json", "envelope", "avro", "json_schema"):
        changes = {**_step(type_, options, {}), **{f"{E}{key}": text for key, text in mode.items()}}
        yield Case(f"explode, {format_}", changes, (stream(format_, 450, bad=90),))
        yield Case(f"explode with keys, {format_}", {**changes, f"{E}data.primary.key": "sku"}, (stream(format_, 300),))
        nested = {**changes, f"{E}flattener.enable": "false", f"{E}convert.lowercase.fields": "true"}
        yield Case(f"explode nested, {format_}", nested, (stream(format_, 300),))
    together = {
        f"{E}data.primary.key": "id",
        f"{E}tombstones": "row",
        f"{E}convert.lowercase.fields": "true",
        f"{E}convert.decimals.to.double": "true",
        f"{E}obfuscation.fields": "name,note",
        f"{E}parquet.compression.codec": "ZSTD",
        **_step("InsertField", "static.field=Fixed; static.value=text", {}),
    }
    for format_ in TREES:
        yield Case(f"many options together, {format_}", together, (stream(format_, 1_500, bad=90),))


def _files() -> Iterator[Case]:
    for codec in ("snappy", "zstd", "gzip", "lz4", "none"):
        yield Case(f"codec {codec}", {f"{E}parquet.compression.codec": codec})
    small = {f"{E}parquet.row.group.size.bytes": "20000", f"{E}commit.records": "2000"}
    yield Case("small row groups", small, (stream(count=2_000),))
    yield Case("a file for each 90 records", {f"{E}commit.records": "90"}, (stream("avro"),))
    yield Case("files of a size", {f"{E}commit.size.bytes": "1000000"}, (stream(count=3_500, seed=3),))
    tables = {f"{E}target.table.map": "orders:ORDERS,ret.*:RETURNS"}
    yield Case("tables of topics", tables, (stream(), stream(seed=4)))
    stop: dict[str, str | None] = {"errors.tolerance": None, "errors.deadletterqueue.topic.name": None}
    stop["errors.deadletterqueue.context.headers.enable"] = None
    for format_ in TREES:
        yield Case(f"it stops at a bad record, {format_}", stop, (stream(format_, 400, bad=150, seed=1),))
    policy = {**stop, f"{E}error.policy.continue.on.invalid.input": "true"}
    yield Case("invalid input goes on", policy, (stream(bad=30),))
