"""Checks of where files go: the target's own, and of keys that mean something for another target alone."""

from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.targets.target_class import TYPE, archive_class, built_in, target_of


def check(values: Values, report: Report) -> None:
    """Of a type that is wrong, which was told, nothing is known of the other keys."""
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
