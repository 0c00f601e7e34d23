"""Checks of `connect.ems.tombstones=row`: what would delete nothing, or another row, is refused."""

from collections.abc import Iterator, Sequence
from typing import Final

from parquet_sink.config.key import ems
from parquet_sink.config.report import Report, quoted
from parquet_sink.config.values import Values
from parquet_sink.convert.configuration import choose
from parquet_sink.convert.json.settings import JsonConverter
from parquet_sink.convert.plain.settings import ByteArrayConverter
from parquet_sink.worker_config.worker import Worker

_TOMBSTONES, _COLUMN, _KEYS = ems("tombstones"), ems("tombstones.column"), ems("data.primary.key")
_ORDER, _FIELDS = ems("order.field.name"), ems("obfuscation.fields")
_ORDER_COLUMN: Final = "__celonis_order"
_OF_ONE_RECORD: Final = ("kafkaOffset", "kafkaTimestamp", "kafkaPartitionOffset")
_SHARED: Final = "kafkaPartition"


def check(values: Values, worker: Worker, report: Report) -> None:
    """With `skip` nothing is judged."""
    if values.text(_TOMBSTONES) != "row":
        if _TOMBSTONES in values.given and _COLUMN in values.given:
            report.warn(_COLUMN, f"It has no effect unless {_TOMBSTONES} is row.")
        return
    if not values.names(_KEYS):
        report.problem(
            _TOMBSTONES,
            f"It is row, but without {_KEYS} nothing tells which row a tombstone deletes; name the key columns, or set "
            "skip.",
        )
    elif choose("key", values, worker.converters) is None and "key.converter" not in values.given:
        report.problem(
            _TOMBSTONES,
            "It is row, but key.converter is set neither here nor in the worker file, so keys would be bytes; name the "
            f"keys' converter, for plain JSON {JsonConverter.class_name} with key.converter.schemas.enable=false.",
        )
    _bytes(values, worker, report)
    _forms(values, report)
    _names(values, report)
    _order(values, report)
    _obfuscation(values, report)


def added(values: Values) -> Iterator[str]:
    """The columns that the sink adds beside that of tombstones."""
    if values.flag(ems("embed.kafka.metadata")):
        yield from (_SHARED, *_OF_ONE_RECORD)
    if values.text(_ORDER) is None:
        yield _ORDER_COLUMN


def _bytes(values: Values, worker: Worker, report: Report) -> None:
    """Bytes are the key of no row that comes from a format which has none, unless a transform makes something of it."""
    key, value = (choose(side, values, worker.converters) for side in ("key", "value"))
    if key is None or value is None or "transforms" in values.given:
        return
    if key.converter is ByteArrayConverter and not value.converter.has_bytes(value.values):
        report.problem(
            _TOMBSTONES,
            f"It is row, but key.converter={key.name.rpartition('.')[2]} leaves keys as bytes, which no column of such "
            "values has, so that a tombstone would delete nothing; name the converter that reads what keys hold.",
        )


def _forms(values: Values, report: Report) -> None:
    """Where a key is not the key of one row."""
    if values.number(ems("flattener.jsonblob.chunks")) is not None:
        report.problem(
            _TOMBSTONES,
            f"It is row, but {ems('flattener.jsonblob.chunks')} leaves no column that a key could fill; set skip.",
        )
    if values.text(ems("explode.mode")) == "List":
        report.problem(
            _TOMBSTONES,
            f"It is row, but with {ems('explode.mode')}=List a record is many rows, and its key is the key of none of "
            "them; set skip.",
        )


def _names(values: Values, report: Report) -> None:
    """The column must be no other one, and a primary key must be able to come from a record's key."""
    others, keys = tuple(added(values)), values.names(_KEYS)
    if (wrong := _why_taken(values, others)) is not None:
        report.problem(_COLUMN, f"{quoted(values.text(_COLUMN) or '')} {wrong}; choose another name.")
    own = [name for name in keys if name in others and name != _SHARED]
    if own:
        report.problem(
            _TOMBSTONES,
            f"It is row, but the primary key {own[0]} differs from record to record, so that a tombstone would delete "
            "no row; name columns that its key has, or set skip.",
        )
    elif keys and all(name in others for name in keys):
        report.problem(
            _TOMBSTONES, f"It is row, but {_KEYS} names nothing that a key has; name its columns, or set skip."
        )


def _why_taken(values: Values, others: Sequence[str]) -> str | None:
    """Which column has the name already, in whatever letter case: to some targets that is the same one."""
    column, order = values.text(_COLUMN) or "", values.text(_ORDER)
    named = dict.fromkeys(values.names(_KEYS), _KEYS) | ({} if order is None or order in others else {order: _ORDER})
    for other in (*others, *named):
        if column == other:
            return f"is named by {named[other]}, too" if other in named else "is another column that the sink adds"
        if column.lower() == other.lower():
            what = f"which {named[other]} names" if other in named else "another column that the sink adds"
            return f"differs in letter case alone from {other}, {what}"
    return None


def _order(values: Values, report: Report) -> None:
    """A column of records is null in a tombstone's row, which would be older than every other."""
    order = values.text(_ORDER)
    if order is None or (values.flag(ems("embed.kafka.metadata")) and order in (_SHARED, *_OF_ONE_RECORD)):
        return
    report.problem(
        _ORDER,
        f"{quoted(order)} is null in the row of a tombstone ({_TOMBSTONES}=row), so that no target could tell "
        f"whether it is newer than the row it deletes; remove it, so that {_ORDER_COLUMN} orders by offset.",
    )


def _obfuscation(values: Values, report: Report) -> None:
    """A key column whose text does not tell rows apart, or is never the same again, finds no row, or all."""
    method = values.text(ems("obfuscation.method"))
    salted = ems("obfuscation.sha512.salt") in values.given
    random = method == "sha512" and values.flag(ems("obfuscation.sha512.randomsalt")) and not salted
    if method != "fix" and not random:
        return
    why = "makes all its values equal" if method == "fix" else "makes equal values differ"
    for field in values.names(_FIELDS):
        if any(column in values.names(_KEYS) for column in _columns_on_the_way(field)):
            report.problem(
                _TOMBSTONES,
                f"It is row, but {_FIELDS} names the primary key {quoted(field)}, and {ems('obfuscation.method')}="
                f"{method} {why}; take hmac-sha256.",
            )


def _columns_on_the_way(field: str) -> Iterator[str]:
    """The columns that may have what a path names: its own, or one of a list or an object that it leads through."""
    from parquet_sink.rows.flatten.trees import column_name  # with Arrow, which other files are checked without

    steps = field.split(".")
    yield from (column_name(".".join(steps[:end])) for end in range(1, len(steps) + 1))
