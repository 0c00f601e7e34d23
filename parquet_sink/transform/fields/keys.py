"""What the tables of keys of several transforms have in common."""

from typing import Final

from parquet_sink.config.key import Check, Key, Origin, Type, Value
from parquet_sink.config.report import quoted
from parquet_sink.transform.keys import TRANSFORM as GROUP

REPLACE_NULL: Final = Key(
    "replace.null.with.default",
    GROUP,
    Type.BOOLEAN,
    "In Kafka Connect, whether a null field becomes the default that its schema gives.",
    default=False,
    no_effect=(
        "Here a null stays null: whether a default takes its place was decided when the value was decoded "
        "(`value.converter.replace.null.with.default`)."
    ),
    origin=Origin.CONNECT,
)


def _pairs(value: Value) -> str | None:
    for pair in value if isinstance(value, tuple) else ():
        if pair.count(":") != 1 or not all(pair.split(":")):
            return f"{quoted(pair)} is no pair of names; write old:new, a colon between."
    return None


PAIRS: Final = Check("pairs of names with a colon between", _pairs)
