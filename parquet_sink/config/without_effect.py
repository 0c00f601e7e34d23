"""What is said about keys that a file sets and that change nothing: unknown, removed, without effect."""

from collections.abc import Callable, Collection, Iterable

from parquet_sink.config.key import Key, find
from parquet_sink.config.report import Report, did_you_mean
from parquet_sink.config.values import Values


def _nothing(name: str) -> str | None:
    return None


def warn_about(
    table: Collection[Key],
    values: Values,
    names: Iterable[str],
    unknown: Callable[[str], str],
    report: Report,
    *,
    foreign: Callable[[str], str | None] = _nothing,
    unvalidated: tuple[str, ...] = (),
) -> None:
    """Warn about each name that is unknown, or known and without effect.

    unknown: the sentence for an unknown name. foreign: why a key means nothing beside what else the file says.
    unvalidated: beginnings of names of which nothing can be said, because what would know them is refused or not there.
    """
    for name in names:
        key = find(table, name)
        if key is None:
            if not name.startswith(unvalidated):
                report.warn(name, unknown(name))
        elif name in values.given:
            reason = foreign(name) or _reason(key, values)
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


def suggest(name: str, table: Iterable[Key], prefixes: Iterable[str]) -> str:
    """A sentence with the nearest known name, with a leading blank; empty when none is near.

    prefixes: beginnings that many names share; names are compared without them, because they make all look alike.
    """
    names = [key.name for key in table if not (key.is_prefix or key.deprecated)]
    short = {one: one for one in names}
    for prefix in prefixes:
        behind = {one.removeprefix(prefix): one for one in names if one.startswith(prefix)}
        if name.startswith(prefix):
            return did_you_mean(name.removeprefix(prefix), behind, cutoff=0.6)
        short = {**behind, **short}
    return did_you_mean(name, short, cutoff=0.8)
