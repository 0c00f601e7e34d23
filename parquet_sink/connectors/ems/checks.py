"""Rules of the EMS sink's keys that look at more than one key, or at a key and the machine."""

from typing import Final

from parquet_sink.archive.settings import MAX_WAITING_BYTES, REQUIRED, URL, why_same
from parquet_sink.config.key import ems
from parquet_sink.config.report import Report, quoted
from parquet_sink.config.values import Values
from parquet_sink.connectors import reading
from parquet_sink.connectors.ems import row_checks
from parquet_sink.convert.settings import SIDES
from parquet_sink.files.settings import IN_MEMORY, KEEP, ROW_GROUP, TMP_DIR
from parquet_sink.kafka.settings import COMMIT_SIZE, NAME_KEY
from parquet_sink.notify import settings as notices
from parquet_sink.parked.settings import DIR, MAX_BYTES
from parquet_sink.rows.settings import FIELDS, MODE, ORDER, PRIMARY_KEYS, RAW_IDENTITY, RAW_ORDER, SHAPE_KEYS
from parquet_sink.settings.connector import INVALID, TOLERANCE, tolerates
from parquet_sink.targets.table_map import MAP_KEY, TableMap, parse
from parquet_sink.targets.target_class import TYPE, archive_class, built_in, target_of
from parquet_sink.worker_config.worker import Worker

_CA_FILE: Final = ems("tls.ca.file")
_CHANGING: Final = {"transforms": "would change records", FIELDS: "would hide fields"}
"""Who sets these counts on what they do."""
_HONOURED: Final = frozenset({MODE, PRIMARY_KEYS, ORDER})


def check(values: Values, worker: Worker, report: Report) -> None:
    """All of them."""
    reading.check(values, worker, report)
    reading.check_errors(values, worker, report)
    _parked(values, report)
    _target(values, report)
    _archive(values, report)
    notices.check(values, report)
    _tables(values, report)
    if is_raw(values):
        _raw(values, report)
    else:
        row_checks.check(values, worker, report)
    _files(values, worker, report)
    if "name" not in values.given:
        report.warn("name", "It is missing, so the name is MissingSinkName; name the connector.")


def is_raw(values: Values) -> bool:
    """Whether records are kept as they came."""
    return values.text(MODE) == "raw"


def _parked(values: Values, report: Report) -> None:
    """What is parked must outlive the machine's next start; and keys of it must mean something."""
    if values.text(NAME_KEY) is not None or not tolerates(values):
        for name in sorted({DIR, MAX_BYTES} & values.given):
            why = "no record is diverted" if values.text(NAME_KEY) is None else f"diverted records go to {NAME_KEY}"
            report.warn(name, f"Nothing new is parked: {why}.")
    elif values.flag(IN_MEMORY) and DIR not in values.given:
        report.problem(
            DIR,
            f"It is missing, and {IN_MEMORY} is true: diverted records would be kept in memory only; name "
            f"a folder on a disk.",
        )


def _target(values: Values, report: Report) -> None:
    """The target's own rules, and keys that mean something for another target alone.

    Of a type that is wrong, which was reported, nothing is known of the other keys.
    """
    named = values.texts.get(TYPE, "").strip().lower()
    if named not in ("", (values.text(TYPE) or "").lower()):
        return
    target, archive = target_of(values), archive_class(values)
    for other in built_in():
        if type(other) is not type(target) and other.hint:
            used = other.store_keys if type(archive) is type(other) else frozenset[str]()
            for key in other.keys:
                if values.knows(key.name) and key.name in values.given - used and values.differs(key):
                    report.warn(key.name, f"It has no effect: {other.hint}.")
    target.check(values, report)


def _archive(values: Values, report: Report) -> None:
    """It is another place than the target; and keys of it must mean something."""
    url, archive = values.text(URL), archive_class(values)
    if url is None or archive is None:
        return
    target = target_of(values)
    if type(target) is not type(archive):
        archive.check_store(values, report)
    if (reason := why_same(url, target.place(values))) is not None:
        report.problem(URL, reason)
    if MAX_WAITING_BYTES in values.given and values.flag(REQUIRED):
        report.warn(MAX_WAITING_BYTES, f"It has no effect, because {REQUIRED} is true: nothing waits.")


def _tables(values: Values, report: Report) -> None:
    """What is wrong with the map itself was reported when it was read."""
    text = values.text(MAP_KEY)
    tables = TableMap() if text is None else parse(text)
    named = values.names("topics")
    for topic in named:
        if (reason := tables.why_unusable(topic)) is not None:
            report.problem(MAP_KEY, reason)
    for rule, why in tables.idle(named) if named else ():
        report.warn(MAP_KEY, f"{quoted(str(rule))} is for none of the topics: {why}.")


def _files(values: Values, worker: Worker, report: Report) -> None:
    machine, tmp_dir, ca_file = worker.machine, values.text(TMP_DIR), values.text(_CA_FILE)
    if values.flag(IN_MEMORY):
        if machine.memory_dir is None:
            report.problem(IN_MEMORY, "This machine has no writable memory-backed folder /dev/shm; set false.")
        if values.flag(KEEP):
            report.warn(KEEP, f"It is off, because {IN_MEMORY} is true.")
        if tmp_dir is not None:
            report.warn(TMP_DIR, f"It has no effect, because {IN_MEMORY} is true.")
    else:
        reading.check_folder(values, worker, report)
    if ca_file is not None and not machine.is_file(machine.absolute(ca_file)):
        report.problem(_CA_FILE, f"There is no file {values.quoted(_CA_FILE)}; name an existing PEM file.")
    row_group, file = values.number(ROW_GROUP), values.number(COMMIT_SIZE)
    if row_group is not None and file is not None and row_group > file:
        report.warn(ROW_GROUP, f"{row_group} is more than {COMMIT_SIZE} and is lowered to {file}.")


def _raw(values: Values, report: Report) -> None:
    """`connect.ems.mode=raw`: what would have to change a record is refused, what decodes has no effect."""
    for name, what in _CHANGING.items():
        if values.names(name):
            why = f"It {what}, but {MODE} is raw, which keeps them as they came"
            report.problem(name, f"{why}; remove it, or set shaped. Of raw files parquet-sink reshape makes rows.")
    wrong = [name for name in values.names(PRIMARY_KEYS) if name not in RAW_IDENTITY]
    if wrong:
        report.problem(
            PRIMARY_KEYS,
            f"{quoted(wrong[0])} does not identify a row of a raw file ({MODE} is raw); name "
            f"{', '.join(RAW_IDENTITY)}, or remove the key.",
        )
    order = values.text(ORDER)
    if order is not None and order != RAW_ORDER:
        report.problem(
            ORDER, f"{quoted(order)} does not order rows of a raw file ({MODE} is raw); name {RAW_ORDER}, or remove it."
        )
    _without_effect_in_raw(values, report)


def _without_effect_in_raw(values: Values, report: Report) -> None:
    for name in sorted(values.given):
        if name.startswith(tuple(f"{side}.converter" for side in SIDES)):
            report.warn(name, f"It has no effect: {MODE} is raw, and nothing is decoded.")
    for key in SHAPE_KEYS:
        if key.name in values.given - _HONOURED and values.differs(key):
            report.warn(key.name, f"It has no effect: {MODE} is raw, and records are not turned into other rows.")
    for name in (TOLERANCE, INVALID):
        if values.text(name) == "all" or values.flag(name):
            report.warn(name, f"It has no effect: {MODE} is raw, and every record has a row.")
