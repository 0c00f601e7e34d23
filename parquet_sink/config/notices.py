"""What is said about keys that a file sets and that change nothing: unknown, removed, without effect."""

from collections.abc import Callable, Iterable, Mapping

from parquet_sink.config import check_convert, keys
from parquet_sink.config.chosen import Chosen
from parquet_sink.config.key import Key
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values


def warn_about(
    table: Iterable[Key],
    values: Values,
    names: Iterable[str],
    unknown: Callable[[str], str],
    report: Report,
    converters: Mapping[str, Chosen | None],
) -> None:
    """Warn about each name that is unknown, or known and without effect.

    unknown: the sentence for an unknown name. converters: by the prefix of their settings; where one is None, because
    it is refused or there is none, nothing is said about settings that only it could know.
    """
    known = tuple(table)
    unjudged = tuple(prefix for prefix, chosen in converters.items() if chosen is None)
    for name in names:
        key = keys.find(known, name)
        if key is None:
            if not name.startswith(unjudged):
                report.warn(name, unknown(name))
        elif name in values.given:
            reason = check_convert.foreign(name, converters) or _reason(key, values)
            if reason is not None:
                report.warn(name, reason)


def _reason(key: Key, values: Values) -> str | None:
    if key.deprecated:
        return f"It is deprecated and has no effect: {key.deprecated}"
    if key.no_effect and values.differs(key):
        return f"It has no effect here: {key.no_effect}"
    if key.needs and key.needs not in values.given and values.differs(key):
        return f"It has no effect unless {key.needs} is set."
    return None
