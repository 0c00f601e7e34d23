"""Rules of the way from record to row that look at more than one key: order, letter case, obfuscation, tombstones.

Also names that transforms change before the sink looks for them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from parquet_sink import plugins
from parquet_sink.archive.settings import URL
from parquet_sink.config.report import Report, quoted
from parquet_sink.config.values import Values
from parquet_sink.convert import configuration
from parquet_sink.convert.configuration import choose
from parquet_sink.convert.json.settings import JsonConverter
from parquet_sink.convert.plain.settings import ByteArrayConverter
from parquet_sink.plugins import PluginUnusable
from parquet_sink.rows.settings import (
    CHUNK_BYTES,
    CHUNKS,
    DISCARD,
    EXPLODE,
    FIELDS,
    FLATTEN,
    HMAC_KEY,
    LOWERCASE,
    METADATA,
    METHOD,
    MOST_VARCHAR_BYTES,
    ORDER,
    PRIMARY_KEYS,
    RANDOM_SALT,
    SALT,
    SHORTEST_HMAC_KEY,
    TOMBSTONE_COLUMN,
    TOMBSTONES,
)
from parquet_sink.targets.target_class import target_of
from parquet_sink.worker_config.worker import Worker

_NO_ORDER = {
    "kafkaPartition": "it is the same in all rows of a topic-partition",
    "kafkaPartitionOffset": "it is text, and 0_10 is less than 0_9 there",
}
_METADATA = ("kafkaPartition", "kafkaOffset", "kafkaTimestamp", "kafkaPartitionOffset")
_ORDER_COLUMN: Final = "__celonis_order"
_OF_ONE_RECORD: Final = ("kafkaOffset", "kafkaTimestamp", "kafkaPartitionOffset")
_SHARED: Final = "kafkaPartition"
_OTHERWISE: Final[Mapping[str, str]] = {
    FIELDS: "or it leaves in clear",
    PRIMARY_KEYS: "or no record has its primary key",
    ORDER: "or no record has its order",
}
_Path = list[str]
_Settings = Mapping[str, str]


def check(values: Values, worker: Worker, report: Report) -> None:
    """All of them, the converters' own included."""
    configuration.check(values, worker.converters, worker.source, worker.machine, report)
    _flattener(values, report)
    _order(values, report)
    _lowercase(values, report)
    if values.is_blank(FIELDS):
        report.problem(FIELDS, "It is empty; name the fields to obfuscate, or remove the key.")
    if values.names(FIELDS):
        _obfuscation(values, report)
    if values.text(TOMBSTONES) == "row":
        _tombstones(values, worker, report)
    elif TOMBSTONES in values.given and TOMBSTONE_COLUMN in values.given:
        report.warn(TOMBSTONE_COLUMN, f"It has no effect unless {TOMBSTONES} is row.")
    if values.names("transforms"):
        _names_after_transforms(values, report)


def _flattener(values: Values, report: Report) -> None:
    chunks = values.number(CHUNKS) is not None
    if not values.flag(FLATTEN):
        for wanted, name in ((values.flag(DISCARD), DISCARD), (chunks, CHUNKS)):
            if wanted:
                report.problem(FLATTEN, f"It is false, but {name} needs it; set true.")
    if chunks and CHUNK_BYTES not in values.given:
        report.problem(CHUNK_BYTES, f"It is missing, but {CHUNKS} needs it; give 1 to {MOST_VARCHAR_BYTES}.")


def _order(values: Values, report: Report) -> None:
    """Columns that are there and order nothing; where tombstones delete, an older row would come back."""
    order, keys = values.text(ORDER), values.names(PRIMARY_KEYS)
    why = _NO_ORDER.get(order or "") if values.flag(METADATA) and keys else None
    if why is None:
        return
    say = report.problem if values.text(TOMBSTONES) == "row" else report.warn
    say(ORDER, f"{quoted(str(order))} does not say which row is newer: {why}; take kafkaOffset, or kafkaTimestamp.")


def _lowercase(values: Values, report: Report) -> None:
    """A name that can match nothing would leave a field in clear, or every record without its key."""
    if not values.flag(LOWERCASE):
        return
    order = values.text(ORDER)
    named = {FIELDS: values.names(FIELDS), PRIMARY_KEYS: values.names(PRIMARY_KEYS)}
    named[ORDER] = () if order is None else (order,)
    for key, names in named.items():
        wrong = [name for name in names if name != name.lower() and name not in _METADATA]
        if wrong:
            report.problem(
                key,
                f"{quoted(wrong[0])} matches nothing, because {LOWERCASE} turns names into lower case before; write "
                f"{quoted(wrong[0].lower())}.",
            )


def _fresh_salts(values: Values, report: Report) -> None:
    """A range that is repeated would come as other bytes under the same name: refused, as often as it is tried."""
    archive = values.text(URL)
    if SALT in values.given:
        report.warn(RANDOM_SALT, f"It has no effect, because {SALT} is set.")
    elif place := target_of(values).kept_by(values) or (archive and f"{URL}={archive}"):
        report.problem(
            RANDOM_SALT,
            f"It is true, but {place} keeps each file under its name and takes no other bytes for it, and with fresh "
            f"salts a file that is sent again after a crash has other bytes; give a salt of your own in {SALT}, or "
            f"set {METHOD}=hmac-sha256.",
        )


def _obfuscation(values: Values, report: Report) -> None:
    _added(values, report)
    method = values.text(METHOD)
    if method == "sha512" and SALT not in values.given and not values.flag(RANDOM_SALT):
        report.problem(SALT, f"It is missing, but {METHOD}=sha512 needs it; give a salt, or set {RANDOM_SALT}=true.")
    if method == "hmac-sha256" and HMAC_KEY not in values.given:
        report.problem(
            HMAC_KEY,
            f"It is missing, but {METHOD}=hmac-sha256 needs it; give a secret of {SHORTEST_HMAC_KEY} bytes or more.",
        )
    if method != "sha512":
        _without(values, (SALT, RANDOM_SALT), "sha512", report)
    elif values.flag(RANDOM_SALT):
        _fresh_salts(values, report)
    if method != "hmac-sha256":
        _without(values, (HMAC_KEY,), "hmac-sha256", report)


def _added(values: Values, report: Report) -> None:
    """What is named and cannot be obfuscated would leave in clear."""
    chunks = values.number(CHUNKS) or 0
    added = {f"payload_chunk{number}" for number in range(1, chunks + 1)}
    added |= set(_METADATA) if values.flag(METADATA) else set()
    if values.text(TOMBSTONES) == "row":
        added.add(str(values.text(TOMBSTONE_COLUMN)))
    for name in values.names(FIELDS):
        if name in added:
            report.problem(FIELDS, f"{quoted(name)} is a column that the sink adds; name fields of the record.")


def _without(values: Values, keys: tuple[str, ...], method: str, report: Report) -> None:
    for key in keys:
        if key in values.given:
            report.warn(key, f"It has no effect unless {METHOD} is {method}.")


def _tombstones(values: Values, worker: Worker, report: Report) -> None:
    """`connect.ems.tombstones=row`: what would delete nothing, or another row, is refused."""
    if not values.names(PRIMARY_KEYS):
        report.problem(
            TOMBSTONES,
            f"It is row, but without {PRIMARY_KEYS} nothing says which row a tombstone deletes; name the key columns, "
            "or set skip.",
        )
    elif choose("key", values, worker.converters) is None and "key.converter" not in values.given:
        report.problem(
            TOMBSTONES,
            "It is row, but key.converter is set neither here nor in the worker file, so keys would be bytes; name the "
            f"keys' converter, for plain JSON {JsonConverter.class_name} with key.converter.schemas.enable=false.",
        )
    _bytes_as_keys(values, worker, report)
    _several_rows(values, report)
    _tombstone_names(values, report)
    _tombstone_order(values, report)
    _tombstone_obfuscation(values, report)


def _columns_added(values: Values) -> Iterator[str]:
    """The columns that the sink adds beside that of tombstones."""
    if values.flag(METADATA):
        yield from (_SHARED, *_OF_ONE_RECORD)
    if values.text(ORDER) is None:
        yield _ORDER_COLUMN


def _bytes_as_keys(values: Values, worker: Worker, report: Report) -> None:
    """Bytes are the key of no row that comes from a format which has none, unless a transform makes something of it."""
    key, value = (choose(side, values, worker.converters) for side in ("key", "value"))
    if key is None or value is None or "transforms" in values.given:
        return
    if key.converter is ByteArrayConverter and not value.converter.has_bytes(value.values):
        report.problem(
            TOMBSTONES,
            f"It is row, but key.converter={key.name.rpartition('.')[2]} leaves keys as bytes, which no column of such "
            "values has, so that a tombstone would delete nothing; name the converter that reads what keys hold.",
        )


def _several_rows(values: Values, report: Report) -> None:
    """Where a key is not the key of one row."""
    if values.number(CHUNKS) is not None:
        report.problem(
            TOMBSTONES,
            f"It is row, but {CHUNKS} leaves no column that a key could fill; set skip.",
        )
    if values.text(EXPLODE) == "List":
        report.problem(
            TOMBSTONES,
            f"It is row, but with {EXPLODE}=List a record is many rows, and its key is the key of none of "
            "them; set skip.",
        )


def _tombstone_names(values: Values, report: Report) -> None:
    """The column must be no other one, and a primary key must be able to come from a record's key."""
    others, keys = tuple(_columns_added(values)), values.names(PRIMARY_KEYS)
    if (wrong := _why_taken(values, others)) is not None:
        report.problem(TOMBSTONE_COLUMN, f"{quoted(values.text(TOMBSTONE_COLUMN) or '')} {wrong}; choose another name.")
    own = [name for name in keys if name in others and name != _SHARED]
    if own:
        report.problem(
            TOMBSTONES,
            f"It is row, but the primary key {own[0]} differs from record to record, so that a tombstone would delete "
            "no row; name columns that its key has, or set skip.",
        )
    elif keys and all(name in others for name in keys):
        report.problem(
            TOMBSTONES, f"It is row, but {PRIMARY_KEYS} names nothing that a key has; name its columns, or set skip."
        )


def _why_taken(values: Values, others: Sequence[str]) -> str | None:
    """Which column has the name already, in whatever letter case: to some targets that is the same one."""
    column, order = values.text(TOMBSTONE_COLUMN) or "", values.text(ORDER)
    named = dict.fromkeys(values.names(PRIMARY_KEYS), PRIMARY_KEYS)
    named |= {} if order is None or order in others else {order: ORDER}
    for other in (*others, *named):
        if column == other:
            return f"is named by {named[other]}, too" if other in named else "is another column that the sink adds"
        if column.lower() == other.lower():
            what = f"which {named[other]} names" if other in named else "another column that the sink adds"
            return f"differs in letter case alone from {other}, {what}"
    return None


def _tombstone_order(values: Values, report: Report) -> None:
    """A column of records is null in a tombstone's row, which would be older than every other."""
    order = values.text(ORDER)
    if order is None or (values.flag(METADATA) and order in (_SHARED, *_OF_ONE_RECORD)):
        return
    report.problem(
        ORDER,
        f"{quoted(order)} is null in the row of a tombstone ({TOMBSTONES}=row), so that no target could decide "
        f"whether it is newer than the row it deletes; remove it, so that {_ORDER_COLUMN} orders by offset.",
    )


def _tombstone_obfuscation(values: Values, report: Report) -> None:
    """A key column whose text does not tell rows apart, or is never the same again, finds no row, or all."""
    method = values.text(METHOD)
    salted = SALT in values.given
    random = method == "sha512" and values.flag(RANDOM_SALT) and not salted
    if method != "fix" and not random:
        return
    why = "makes all its values equal" if method == "fix" else "makes equal values differ"
    for field in values.names(FIELDS):
        if any(column in values.names(PRIMARY_KEYS) for column in _columns_on_the_way(field)):
            report.problem(
                TOMBSTONES,
                f"It is row, but {FIELDS} names the primary key {quoted(field)}, and {METHOD}="
                f"{method} {why}; take hmac-sha256.",
            )


def _columns_on_the_way(field: str) -> Iterator[str]:
    """The columns that may have what a path names: its own, or one of a list or an object that it leads through."""
    from parquet_sink.rows.schema.topic_columns import column_name  # with Arrow, which other files are checked without

    steps = field.split(".")
    yield from (column_name(".".join(steps[:end])) for end in range(1, len(steps) + 1))


def _names_after_transforms(values: Values, report: Report) -> None:
    """Warns of names of fields that a transform gives another name, where that is not named."""
    for key, otherwise in _OTHERWISE.items():
        named = values.names(key) or tuple(filter(None, [values.text(key)]))
        for name in named:
            moved, by = _moved(name, values)
            if moved not in (name, *named):
                report.warn(
                    key,
                    f"{quoted(name)} is a field that {by} makes {quoted(moved)}, and transforms come before; name it "
                    f"so, {otherwise}.",
                )


def _moved(name: str, values: Values) -> tuple[str, str]:
    """What the field of a decoded value is called in the end, and the transform that gave it that name."""
    path, by = name.split("."), ""
    for step in values.names("transforms"):
        prefix = f"transforms.{step}."
        change = _CHANGES.get(_class_of(values.texts.get(f"{prefix}type", "").strip()))
        if change is not None:
            own = {key.removeprefix(prefix): text.strip() for key, text in values.texts.items()}
            found = change(path, own)
            path, by = found, by if found == path else f"transforms.{step}"
    return ".".join(path), by


def _class_of(type_: str) -> str:
    from parquet_sink.transform.classes import TRANSFORM_CLASSES  # loads Arrow: only where there are transforms

    try:
        return plugins.locate(TRANSFORM_CLASSES, type_).name.rpartition(".")[2]
    except PluginUnusable:  # reported elsewhere
        return ""


def _renamed(path: _Path, settings: _Settings) -> _Path:
    pairs = [pair.split(":") for pair in settings.get("renames", "").split(",") if pair.count(":") == 1]
    new = {old.strip(): name.strip() for old, name in pairs}
    return path if path[0] in new.values() else [new.get(path[0], path[0]), *path[1:]]


def _hoisted(path: _Path, settings: _Settings) -> _Path:
    field = settings.get("field", "")
    return path if path[0].startswith(field) else [field, *path]


def _extracted(path: _Path, settings: _Settings) -> _Path:
    return path[1:] if len(path) > 1 and path[0] == settings.get("field", "") else path


_CHANGES: Final[Mapping[str, Callable[[_Path, _Settings], _Path]]] = {
    "ReplaceField$Value": _renamed,
    "HoistField$Value": _hoisted,
    "ExtractField$Value": _extracted,
}
