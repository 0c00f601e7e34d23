"""Transforms that the benchmark knows by name, with settings that fit its orders."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

_JSON: Final = "org.apache.kafka.connect.json.JsonConverter"


@dataclass(frozen=True)
class Measured:
    """A transform with settings for the orders. keys: behind `transforms.N.`, for one that is on records of any form.

    more: further keys of the connector file. record: what each record has beside its value, as a producer takes it.
    """

    keys: Mapping[str, str]
    more: Mapping[str, str] = field(default_factory=dict)
    record: Mapping[str, Any] = field(default_factory=dict)


_KEYED: Final = {"key": b'{"shop":"Berlin","till":7}'}
_KEY_JSON: Final = {"key.converter": _JSON, "key.converter.schemas.enable": "false"}
_HEADED: Final = {"headers": [("trace", b"4bf92f3577b34da6"), ("attempt", b"2")]}

TRANSFORMS: Final[Mapping[str, Measured]] = {
    "insert": Measured({"type": "InsertField$Value", "static.field": "source", "static.value": "shop"}),
    "origin": Measured({"type": "InsertField$Value", "topic.field": "_topic", "offset.field": "_offset"}),
    "mask": Measured({"type": "MaskField$Value", "fields": "customer", "replacement": "***"}),
    "sql": Measured(
        {"type": "sql", "query": "SELECT *, amount * 1.19 AS with_tax FROM records WHERE status <> 'test'"}
    ),
    "cast": Measured({"type": "Cast$Value", "spec": "quantity:int64,amount:string"}),
    "replace": Measured({"type": "ReplaceField$Value", "exclude": "currency", "renames": "amount:gross"}),
    "flatten": Measured({"type": "Flatten$Value"}),
    "timestamp": Measured(
        {
            "type": "TimestampConverter$Value",
            "field": "updated_at",
            "target.type": "unix",
            "format": "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'",
        }
    ),
    "insertheader": Measured({"type": "InsertHeader", "header": "source", "value.literal": "shop"}, record=_HEADED),
    "dropheaders": Measured({"type": "DropHeaders", "headers": "trace"}, record=_HEADED),
    "headerfrom": Measured(
        {"type": "HeaderFrom$Value", "fields": "status", "headers": "status", "operation": "copy"}, record=_HEADED
    ),
    "router": Measured({"type": "RegexRouter", "regex": "(.*)", "replacement": "$1-routed"}),
    "filter": Measured(
        {"type": "Filter", "predicate": "has_error"},
        {"predicates": "has_error", "predicates.has_error.type": "HasHeaderKey", "predicates.has_error.name": "error"},
        _HEADED,
    ),
    "valuetokey": Measured({"type": "ValueToKey", "fields": "order_id"}, _KEY_JSON, _KEYED),
    "keytovalue": Measured({"type": "parquet_sink.KeyToValue"}, _KEY_JSON, _KEYED),
    "headertovalue": Measured({"type": "parquet_sink.HeaderToValue"}, record=_HEADED),
    "hoist": Measured(
        {"type": "HoistField$Value", "field": "order"}, {"connect.ems.data.primary.key": "order_order_id"}
    ),
}
"""By name, in the order in which several are configured: what a query asks for is there as it came, and
what moves fields comes last."""


def keys_of(names: Sequence[str]) -> dict[str, str]:
    """What a connector file needs for these transforms, one after the other."""
    found = {"transforms": ",".join(names)} if names else {}
    for name in names:
        found |= {f"transforms.{name}.{key}": text for key, text in TRANSFORMS[name].keys.items()}
        found |= TRANSFORMS[name].more
    return found


def record_of(names: Sequence[str]) -> dict[str, Any]:
    """What records need beside their value for these transforms."""
    found: dict[str, Any] = {}
    for name in names:
        found |= TRANSFORMS[name].record
    return found
