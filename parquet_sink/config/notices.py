"""What is said about keys that a file sets and that change nothing: unknown, removed, without effect."""

from collections.abc import Callable, Iterable

from parquet_sink.config import keys
from parquet_sink.config.key import Key
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values

_CONVERTER = "value.converter."


def warn_about(
    table: Iterable[Key],
    values: Values,
    names: Iterable[str],
    unknown: Callable[[str], str],
    report: Report,
    *,
    foreign_converter: bool,
) -> None:
    """Warn about each name that is unknown, or known and without effect.

    unknown: the sentence for an unknown name. foreign_converter: settings under `value.converter.` belong to a
    converter that is refused or not used, so nothing is said about them.
    """
    known = tuple(table)
    for name in names:
        key = keys.find(known, name)
        if key is None:
            if not (foreign_converter and name.startswith(_CONVERTER)):
                report.warn(name, unknown(name))
        elif name in values.given:
            _warn_known(name, key, values, report)


def _warn_known(name: str, key: Key, values: Values, report: Report) -> None:
    if key.deprecated:
        report.warn(name, f"It is deprecated and has no effect: {key.deprecated}")
    elif key.no_effect and values.differs(key):
        report.warn(name, f"It has no effect here: {key.no_effect}")
    elif key.needs and key.needs not in values.given and values.differs(key):
        report.warn(name, f"It has no effect unless {key.needs} is set.")
