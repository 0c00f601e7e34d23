"""Checks of the way from record to row that look at more than one key."""

from parquet_sink.archive.settings import URL
from parquet_sink.config.key import ems
from parquet_sink.config.report import Report, quoted
from parquet_sink.config.values import Values
from parquet_sink.rows.settings import MOST_VARCHAR_BYTES, SHORTEST_HMAC_KEY
from parquet_sink.targets.target_class import target_of

_FIELDS, _METHOD = ems("obfuscation.fields"), ems("obfuscation.method")
_SALT, _RANDOM, _HMAC_KEY = (
    ems("obfuscation.sha512.salt"),
    ems("obfuscation.sha512.randomsalt"),
    ems("obfuscation.hmac.key"),
)
_LOWERCASE = ems("convert.lowercase.fields")
_ORDER = ems("order.field.name")
_NO_ORDER = {
    "kafkaPartition": "it is the same in all rows of a topic-partition",
    "kafkaPartitionOffset": "it is text, and 0_10 is less than 0_9 there",
}
_METADATA = ("kafkaPartition", "kafkaOffset", "kafkaTimestamp", "kafkaPartitionOffset")


def check(values: Values, report: Report) -> None:
    """Flattening, lower case and obfuscation."""
    _flattener(values, report)
    _order(values, report)
    _lowercase(values, report)
    if values.is_blank(_FIELDS):
        report.problem(_FIELDS, "It is empty; name the fields to obfuscate, or remove the key.")
    if values.names(_FIELDS):
        _obfuscation(values, report)


def _flattener(values: Values, report: Report) -> None:
    chunks = values.number(ems("flattener.jsonblob.chunks")) is not None
    discard = values.flag(ems("flattener.collections.discard"))
    if not values.flag(ems("flattener.enable")):
        for wanted, name in ((discard, "flattener.collections.discard"), (chunks, "flattener.jsonblob.chunks")):
            if wanted:
                report.problem(ems("flattener.enable"), f"It is false, but {ems(name)} needs it; set true.")
    length = ems("data.fallback.varchar.length")
    if chunks and length not in values.given:
        report.problem(
            length, f"It is missing, but {ems('flattener.jsonblob.chunks')} needs it; give 1 to {MOST_VARCHAR_BYTES}."
        )


def _order(values: Values, report: Report) -> None:
    """Columns that are there and order nothing; where tombstones delete, an older row would come back."""
    order, keys = values.text(_ORDER), values.names(ems("data.primary.key"))
    why = _NO_ORDER.get(order or "") if values.flag(ems("embed.kafka.metadata")) and keys else None
    if why is None:
        return
    tell = report.problem if values.text(ems("tombstones")) == "row" else report.warn
    tell(_ORDER, f"{quoted(str(order))} does not tell which row is newer: {why}; take kafkaOffset, or kafkaTimestamp.")


def _lowercase(values: Values, report: Report) -> None:
    """A name that can match nothing would leave a field in clear, or every record without its key."""
    if not values.flag(_LOWERCASE):
        return
    order = values.text(_ORDER)
    named = {_FIELDS: values.names(_FIELDS), ems("data.primary.key"): values.names(ems("data.primary.key"))}
    named[_ORDER] = () if order is None else (order,)
    for key, names in named.items():
        wrong = [name for name in names if name != name.lower() and name not in _METADATA]
        if wrong:
            report.problem(
                key,
                f"{quoted(wrong[0])} matches nothing, because {_LOWERCASE} turns names into lower case before; write "
                f"{quoted(wrong[0].lower())}.",
            )


def _fresh_salts(values: Values, report: Report) -> None:
    """A range that is repeated would come as other bytes under the same name: refused, as often as it is tried."""
    if _SALT in values.given:
        report.warn(_RANDOM, f"It has no effect, because {_SALT} is set.")
    elif (place := _kept_by_name(values)) is not None:
        report.problem(
            _RANDOM,
            f"It is true, but {place} keeps each file under its name and takes no other bytes for it, and with fresh "
            f"salts a file that is sent again after a crash has other bytes; give a salt of your own in {_SALT}, or "
            f"set {_METHOD}=hmac-sha256.",
        )


def _kept_by_name(values: Values) -> str | None:
    """The key and value of what never takes another content under a name; None for a push API alone."""
    archive = values.text(URL)
    return target_of(values).kept_by(values) or (None if archive is None else f"{URL}={archive}")


def _obfuscation(values: Values, report: Report) -> None:
    _added(values, report)
    method = values.text(_METHOD)
    if method == "sha512" and _SALT not in values.given and not values.flag(_RANDOM):
        report.problem(_SALT, f"It is missing, but {_METHOD}=sha512 needs it; give a salt, or set {_RANDOM}=true.")
    if method == "hmac-sha256" and _HMAC_KEY not in values.given:
        report.problem(
            _HMAC_KEY,
            f"It is missing, but {_METHOD}=hmac-sha256 needs it; give a secret of {SHORTEST_HMAC_KEY} bytes or more.",
        )
    if method != "sha512":
        _without(values, (_SALT, _RANDOM), "sha512", report)
    elif values.flag(_RANDOM):
        _fresh_salts(values, report)
    if method != "hmac-sha256":
        _without(values, (_HMAC_KEY,), "hmac-sha256", report)


def _added(values: Values, report: Report) -> None:
    """What is named and cannot be obfuscated would leave in clear."""
    chunks = values.number(ems("flattener.jsonblob.chunks")) or 0
    added = {f"payload_chunk{number}" for number in range(1, chunks + 1)}
    added |= set(_METADATA) if values.flag(ems("embed.kafka.metadata")) else set()
    if values.text(ems("tombstones")) == "row":
        added.add(str(values.text(ems("tombstones.column"))))
    for name in values.names(_FIELDS):
        if name in added:
            report.problem(_FIELDS, f"{quoted(name)} is a column that the sink adds; name fields of the record.")


def _without(values: Values, keys: tuple[str, ...], method: str, report: Report) -> None:
    for key in keys:
        if key in values.given:
            report.warn(key, f"It has no effect unless {_METHOD} is {method}.")
