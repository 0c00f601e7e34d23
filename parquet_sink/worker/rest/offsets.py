"""`/connectors/{name}/offsets`: where a connector stands, a sink's group or a source's storage, and how it is moved."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import isinf
from typing import Any, Final

from parquet_sink.worker.herder.errors import HerderError, OffsetsRefused
from parquet_sink.worker.herder.protocol import Herder
from parquet_sink.worker.herder.values import OFFSET, PARTITION, TOPIC, StoredOffset
from parquet_sink.worker.rest import renderings
from parquet_sink.worker.rest.call import (
    ONE,
    Call,
    NumberText,
    Parameter,
    Reply,
    RestError,
    as_rest_errors,
    command,
    endpoint,
    known_fields,
    object_of,
    texts_of,
    unreadable,
)
from parquet_sink.worker_config.rest.roles import Role

_PLAIN: Final = (str, int, float, bool, type(None))
_LIMIT: Final = 2**63
_MOST_DIGITS: Final = 20

_LONGEST: Final = 19
_ENDS: Final = Parameter("ends", "boolean", "Whether to show where each topic-partition ends now, too.", default=False)
_ANSWERS: Final = {200: "Message", 400: "Error", 404: "Error", 500: "Error"}
_STANDS: Final = {**_ANSWERS, 200: "Offsets"}
_PATH: Final = f"{ONE}/offsets"


class Offsets:
    """The endpoints, each a method that may be called from any thread."""

    def __init__(self, herder: Herder) -> None:
        self._herder = herder

    @endpoint("GET", _PATH, "Where its group stands", _STANDS, role=Role.OPERATOR, query=(_ENDS,), pool="cluster")
    def get(self, call: Call) -> Reply:
        what = self._words("Failed to retrieve", "consumer group offsets for sink connector", call.connector)
        with _refused(what, call.connector):
            return Reply(renderings.offsets(self._herder.offsets(call.connector), ends=call.flag("ends")))

    @command("PATCH", _PATH, "Move its group, when it is stopped", _ANSWERS, role=Role.ADMIN, takes="NewOffsets")
    def alter(self, call: Call) -> Reply:
        body = object_of(call.body, "offsets")
        known_fields(body, ("offsets",))
        given = body.get("offsets")
        if given is None or given == []:
            raise RestError(400, "Partitions / offsets need to be provided for an alter offsets request")
        if not isinstance(given, list):
            raise unreadable('"offsets" is not a JSON list; send one')
        read = read_source_offset if self._is_source(call.connector) else _read
        wanted = tuple({tuple(one.partition.items()): one for one in map(read, given)}.values())
        what = self._words("Failed to alter", "consumer group offsets for connector", call.connector)
        with _refused(what, call.connector):
            self._herder.alter_offsets(call.connector, wanted)
        return Reply({"message": "The offsets for this connector have been altered successfully"})

    @command("DELETE", _PATH, "Remove its group's offsets, when it is stopped", _ANSWERS, role=Role.ADMIN)
    def reset(self, call: Call) -> Reply:
        what = self._words("Failed to reset", "consumer group offsets for connector", call.connector)
        with _refused(what, call.connector):
            self._herder.reset_offsets(call.connector)
        return Reply({"message": "The offsets for this connector have been reset successfully"})

    def _words(self, failed: str, of_sink: str, name: str) -> str:
        """Kafka Connect's, for a connector of this kind."""
        if not self._is_source(name):
            return f"{failed} {of_sink}"
        return f"{'Failed to retrieve' if 'retrieve' in failed else 'Failed to modify'} offsets for source connector"

    def _is_source(self, name: str) -> bool:
        try:
            return renderings.type_of(self._herder.info(name).config) == "source"
        except HerderError:  # the request itself reports it
            return False


@contextmanager
def _refused(what: str, name: str) -> Iterator[None]:
    """Within, what the broker or the worker refuses becomes Kafka Connect's words, with the cause behind them."""
    with as_rest_errors():
        try:
            yield
        except OffsetsRefused as error:
            raise RestError(500, str(error) if error.alone else f"{what} {name}: {error}") from error


def _read(entry: Any) -> StoredOffset:
    """One of the list. Raises RestError."""
    _check_entry(entry)
    partition = _partition(_part(entry, "partition"))
    offset = _part(entry, "offset")
    if offset is None:
        return StoredOffset(partition, None)
    if OFFSET not in offset:
        raise RestError(400, f"The offset for a sink connector should either be null or contain the key '{OFFSET}'")
    return StoredOffset(partition, {OFFSET: _number(offset[OFFSET], "offset", 64)})


def _check_entry(entry: Any) -> None:
    if not isinstance(entry, dict):
        raise unreadable("an entry of offsets is not a JSON object; send partition and offset in one")
    known_fields(entry, ("partition", "offset"))


def _part(entry: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    found = entry.get(name)
    if found is not None and not isinstance(found, dict):
        raise unreadable(f'"{name}" of an entry is not a JSON object; send one')
    return found


def _partition(given: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if given is None:
        raise RestError(400, "The partition for a sink connector offset cannot be null or missing")
    if TOPIC not in given or PARTITION not in given:
        raise RestError(
            400, f"The partition for a sink connector offset must contain the keys '{TOPIC}' and '{PARTITION}'"
        )
    if given[TOPIC] is None:
        raise RestError(400, "Kafka topic names must be valid strings and may not be null")
    if given[PARTITION] is None:
        raise RestError(400, "Kafka partitions must be valid numbers and may not be null")
    topic = texts_of({TOPIC: given[TOPIC]}, "partition")[TOPIC]
    return {TOPIC: topic, PARTITION: _number(given[PARTITION], "partition", 32)}


def _number(given: Any, what: str, bits: int) -> int:
    """A whole number, as JSON has it or as text. Raises RestError."""
    digits = given.removeprefix("-").removeprefix("+") if isinstance(given, str) else ""
    if digits.isascii() and digits.isdigit() and len(digits) <= _LONGEST and abs(int(given)) < 2 ** (bits - 1):
        return int(given)
    shown = str(given).lower() if isinstance(given, bool) else "null" if given is None else given
    raise RestError(
        400,
        f"Failed to parse the following Kafka {what} value in the provided offsets: '{shown}'. {what.capitalize()} "
        "values for sink connectors need to be integers.",
    )


def read_source_offset(entry: Any) -> StoredOffset:
    """One of the list. Raises RestError."""
    _check_entry(entry)
    partition = _flat(entry.get("partition"), "partition")
    if partition is None:
        raise RestError(500, "Partition objects cannot be null")
    return StoredOffset(partition, _flat(entry.get("offset"), "offset"))


def _flat(given: Any, name: str) -> Mapping[str, Any] | None:
    if given is None:
        return None
    if not isinstance(given, dict):
        raise unreadable(f'"{name}" of an entry is not a JSON object; send one')
    for field, value in given.items():
        if not isinstance(value, _PLAIN):
            raise RestError(
                500, f"Offsets may only contain primitive types as values, but field {field} contains others"
            )
    return {field: _plain(value) for field, value in given.items()}


def _plain(value: Any) -> Any:
    """A number as Java has it: 64 bits, whole or not. Raises RestError."""
    if not isinstance(value, NumberText):
        return value
    if value.lstrip("-").isdigit():
        number = int(value) if len(value) <= _MOST_DIGITS else _LIMIT
        if not -_LIMIT <= number < _LIMIT:
            raise unreadable("a whole number of an entry is beyond 64 bits; send one that is not")
        return number
    if isinf(float(value)):
        raise unreadable("a number of an entry is beyond what 64 bits hold; send one that is not")
    return float(value)
