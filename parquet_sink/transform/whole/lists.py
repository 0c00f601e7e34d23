"""Lists in keys of Kafka Connect's own transforms."""

from parquet_sink.config.key import Check, Key, Origin, Type, Value
from parquet_sink.config.values import Values
from parquet_sink.transform.keys import TRANSFORM


def list_key(name: str, doc: str, missing: str, *, what: str = "name") -> Key:
    """A list that must not be empty."""

    def some(value: Value) -> str | None:
        return None if value else f"It has no {what}; {missing}"

    check = Check(f"at least one {what}", some)
    return Key(name, TRANSFORM, Type.LIST, doc, required=True, missing=missing, check=check, origin=Origin.CONNECT)


def in_order(values: Values, name: str) -> tuple[str, ...]:
    """The entries as Kafka Connect has them: in order, repeated ones too."""
    if name not in values.texts:
        return values.names(name)
    return tuple(one.strip() for one in values.texts[name].split(","))
