"""An event as names and values, for log lines that programs read. Pure."""

from dataclasses import asdict
from typing import Any, Final

from parquet_sink.model.events import Event
from parquet_sink.model.failure import Failure
from parquet_sink.model.receipts import Receipt

_LEFT_OUT: Final = {"at_s", "receipt", "failure", "tried", "answers", "seconds"}


def fields_of(event: Event) -> dict[str, Any]:
    """`event`, its class's name, and what it has to say: of a file what its receipt says; what is not known is absent.

    Times are of the line that it stands in; attempts one by one are in the history.
    """
    fields = {"event": type(event).__name__, **_plain(asdict(event))}
    receipt: Receipt | None = getattr(event, "receipt", None)
    if receipt is not None:
        fields |= {**_plain(asdict(receipt)), **{f"{name}_s": round(s, 3) for name, s in receipt.seconds.items()}}
    failure: Failure | None = receipt.failure if receipt is not None else getattr(event, "failure", None)
    if failure is not None:
        fields |= {"error": failure.kind, "failure": failure.message}
        if failure.topic_partition is not None:
            fields |= dict(zip(("topic", "partition"), failure.topic_partition, strict=True))
    return fields


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in _LEFT_OUT and value is not None}
