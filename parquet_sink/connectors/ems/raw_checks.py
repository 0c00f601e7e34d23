"""Checks of `connect.ems.mode=raw`: what would have to change a record is refused, what decodes has no effect."""

from typing import Final

from parquet_sink.config.key import ems
from parquet_sink.config.report import Report, quoted
from parquet_sink.config.values import Values
from parquet_sink.convert.settings import SIDES
from parquet_sink.rows.settings import RAW_IDENTITY, RAW_ORDER, SHAPE_KEYS
from parquet_sink.settings.connector import INVALID, TOLERANCE

MODE: Final = ems("mode")
_KEYS, _ORDER, _FIELDS = ems("data.primary.key"), ems("order.field.name"), ems("obfuscation.fields")
_CHANGING: Final = {
    "transforms": "would change records",
    _FIELDS: "would hide fields",
}
"""Who sets these counts on what they do."""
_HONOURED: Final = frozenset({MODE, _KEYS, _ORDER})
_REJECTING: Final = (TOLERANCE, INVALID)


def is_raw(values: Values) -> bool:
    """Whether records are kept as they came."""
    return values.text(MODE) == "raw"


def check(values: Values, report: Report) -> None:
    """Of a file in raw mode."""
    for name, what in _CHANGING.items():
        if values.names(name):
            why = f"It {what}, but {MODE} is raw, which keeps them as they came"
            report.problem(name, f"{why}; remove it, or set shaped. Of raw files parquet-sink reshape makes rows.")
    _identity(values, report)
    _of_no_effect(values, report)


def _identity(values: Values, report: Report) -> None:
    wrong = [name for name in values.names(_KEYS) if name not in RAW_IDENTITY]
    if wrong:
        report.problem(
            _KEYS,
            f"{quoted(wrong[0])} tells no row of a raw file from the others ({MODE} is raw); name "
            f"{', '.join(RAW_IDENTITY)}, or remove the key.",
        )
    order = values.text(_ORDER)
    if order is not None and order != RAW_ORDER:
        report.problem(
            _ORDER, f"{quoted(order)} orders no rows of a raw file ({MODE} is raw); name {RAW_ORDER}, or remove it."
        )


def _of_no_effect(values: Values, report: Report) -> None:
    for name in sorted(values.given):
        if name.startswith(tuple(f"{side}.converter" for side in SIDES)):
            report.warn(name, f"It has no effect: {MODE} is raw, and nothing is decoded.")
    for key in SHAPE_KEYS:
        if key.name in values.given - _HONOURED and values.differs(key):
            report.warn(key.name, f"It has no effect: {MODE} is raw, and nothing is shaped.")
    for name in _REJECTING:
        if values.text(name) == "all" or values.flag(name):
            report.warn(name, f"It has no effect: {MODE} is raw, and every record has a row.")
