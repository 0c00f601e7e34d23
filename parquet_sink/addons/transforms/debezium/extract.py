"""Debezium's ExtractNewRecordState by its keys, of the versions before and after 3.2."""

import re
from typing import ClassVar, Final

from parquet_sink.addons.transforms.debezium.columns import Work
from parquet_sink.addons.transforms.debezium.event import OP, SOURCE, TRANSACTION, Deletes, Reference, Unwrapping
from parquet_sink.config.key import Key, Type
from parquet_sink.config.report import quoted
from parquet_sink.config.values import Values
from parquet_sink.model.records import RecordParts
from parquet_sink.transform.keys import REPLACE_NULL, connect_key, in_order
from parquet_sink.transform.protocol import Side, WrongSettings
from parquet_sink.transform.records import DecodedRecords

_MODE: Final = "delete.tombstone.handling.mode"
_OLD_MODE, _OLD_TOMBSTONES = "delete.handling.mode", "drop.tombstones"
_MODES: Final[dict[str, Deletes]] = {
    "drop": "drop",
    "tombstone": "tombstone",
    "rewrite": "rewrite",
    "rewrite-with-tombstone": "rewrite",
    "delete-to-tombstone": "tombstone",
}
_OLD_MODES: Final[dict[str, Deletes]] = {"drop": "drop", "none": "tombstone", "rewrite": "rewrite"}
_FIELD: Final = re.compile(r"(?:(?P<struct>[^.:,]+)\.)?(?P<field>[^.:,]+)(?::(?P<new>[^:,]+))?")
_HELD: Final = {
    **dict.fromkeys((OP, "ts_ms", "ts_us", "ts_ns"), ""),
    **dict.fromkeys(("id", "data_collection_order", "total_order"), TRANSACTION),
    "updateDescription": "updateDescription",
}
"""Where a field is whose object is not named; any other is in `source`."""


def _fields_key(name: str, what: str) -> Key:
    return connect_key(
        name,
        Type.LIST,
        f"Fields of the event that become {what}: `op`, `ts_ms`, `lsn` (of `source`), `source.ts_ms`, "
        "`transaction.id`; `source.ts_ms:at` gives one another name.",
        default=(),
    )


def _prefix_key(name: str, of: str) -> Key:
    return connect_key(name, Type.STRING, f"What stands before the names of `{of}`.", default="__", may_be_empty=True)


class ExtractNewRecordState:
    """Makes rows of Debezium's change events (`after`), and deletions; what is no change event passes as it is."""

    keys: ClassVar[tuple[Key, ...]] = (
        connect_key(
            _MODE,
            Type.STRING,
            "What becomes of events of deleted rows, and of the tombstones behind them. `tombstone` and "
            "`delete-to-tombstone`: the event is a tombstone, the one behind it is dropped. `drop`: both are dropped. "
            "`rewrite`: a row of `before`, and all rows have `__deleted`, the text `true` or `false`; the tombstone is "
            "dropped. `rewrite-with-tombstone`: likewise, and the tombstone stays.",
            default="tombstone",
            choices=tuple(_MODES),
        ),
        connect_key(
            _OLD_TOMBSTONES,
            Type.BOOLEAN,
            f"Before Debezium 3.2: whether tombstones are dropped. It counts where `{_MODE}` is not set.",
            default=True,
        ),
        connect_key(
            _OLD_MODE,
            Type.STRING,
            f"Before Debezium 3.2: what becomes of events of deleted rows (`none`: tombstones). It counts where "
            f"`{_MODE}` is not set; where only `{_OLD_TOMBSTONES}` is, it is `drop`.",
            default="drop",
            choices=tuple(_OLD_MODES),
        ),
        _fields_key("add.fields", "fields of the row"),
        _prefix_key("add.fields.prefix", "add.fields"),
        _fields_key("add.headers", "headers, of tombstones `op` alone"),
        _prefix_key("add.headers.prefix", "add.headers"),
        connect_key(
            "route.by.field",
            Type.STRING,
            "The field of the row that holds the name of the topic, for predicates and transforms behind; the table "
            "stays.",
        ),
        connect_key(
            "drop.fields.header.name",
            Type.STRING,
            'The header that lists fields to leave out, as JSON: `["a", "b"]`.',
        ),
        connect_key(
            "drop.fields.from.key",
            Type.BOOLEAN,
            "Whether these fields are left out of the key, too.",
            default=False,
        ),
        connect_key(
            "drop.fields.keep.schema.compatible",
            Type.BOOLEAN,
            "Of records with a schema, whether only fields that may be null are left out.",
            default=True,
        ),
        REPLACE_NULL,
    )

    def __init__(self, values: Values, side: Side) -> None:
        deletes, tombstones = _deletes(values)
        drop_header = values.text("drop.fields.header.name") or ""
        self._settings = Unwrapping(
            deletes,
            tombstones,
            _references(values, "add.fields"),
            _references(values, "add.headers"),
            values.text("route.by.field") or "",
            drop_header,
            values.flag("drop.fields.from.key"),
            values.flag("drop.fields.keep.schema.compatible"),
        )
        self.needs = RecordParts(
            keys=bool(drop_header) and self._settings.drop_from_key,
            headers=bool(drop_header or self._settings.headers),
            header_values=frozenset({drop_header} if drop_header else ()),
        )

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        work = Work(self._settings, records)
        for piece in records.values:
            work.piece(piece)
        work.tombstones(records.absent_from(records.values).to_numpy())
        return work.done()


def _deletes(values: Values) -> tuple[Deletes, bool]:
    """What is made of deleted rows, and whether the topic's tombstones stay."""
    if _MODE not in values.given and not values.given.isdisjoint((_OLD_MODE, _OLD_TOMBSTONES)):
        return _OLD_MODES[values.text(_OLD_MODE) or ""], not values.flag(_OLD_TOMBSTONES)
    mode = values.text(_MODE) or ""
    return _MODES[mode], mode == "rewrite-with-tombstone"


def _references(values: Values, key: str) -> tuple[Reference, ...]:
    prefix = values.text(f"{key}.prefix") or ""
    found: list[Reference] = []
    for text in in_order(values, key):
        parts = _FIELD.fullmatch(text)
        if parts is None:
            raise WrongSettings(
                {key: f"{quoted(text)} is not a field of an event; write op, source.ts_ms, or source.ts_ms:name."}
            )
        struct, name, new = parts["struct"], parts["field"], parts["new"]
        held = _HELD.get(name, SOURCE) if struct is None else struct
        own = new or (name if struct is None else f"{struct}_{name}")
        found.append(Reference(held, name, prefix + own))
    names = [one.new for one in found]
    if key == "add.fields" and (double := next((name for name in names if names.count(name) > 1), None)):
        raise WrongSettings({key: f"It gives two fields the name {quoted(double)}; give one another: source.db:name."})
    return tuple(found)
