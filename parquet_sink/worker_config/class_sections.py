"""Lists of names in a worker file, each with a class and its params: `config.providers`, `event.listeners`."""

from collections.abc import Mapping
from typing import Final

from parquet_sink.config.report import Report, did_you_mean, quoted

CLASS: Final = "class"
PARAM: Final = "param."


def sections(list_key: str, what: str, properties: Mapping[str, str], report: Report) -> dict[str, dict[str, str]]:
    """By name, in the order of the list, the texts behind it, by `class` and `param.KEY`; others are warned about.

    what: one of the list, in words.
    """
    prefix = f"{list_key}."
    names = [name for one in properties.get(list_key, "").split(",") if (name := one.strip())]
    found: dict[str, dict[str, str]] = {name: {} for name in names}
    for full in sorted(one for one in properties if one.startswith(prefix)):
        rest = full.removeprefix(prefix)
        owner = max((name for name in names if rest.startswith(f"{name}.")), key=len, default=None)
        if owner is None:
            name, _, behind = rest.partition(".")
            hint = did_you_mean(name, {one: f"{prefix}{one}.{behind}" for one in names}, cutoff=0.6)
            report.warn(
                full,
                f"It has no effect: {list_key} does not name {quoted(name)}; list it there, or remove the key.{hint}",
            )
            continue
        behind = rest.removeprefix(f"{owner}.")
        if behind != CLASS and not behind.startswith(PARAM):
            report.warn(
                full,
                f"It is unknown and has no effect; a {what} has {prefix}{owner}.class and {prefix}{owner}.param.*.",
            )
        found[owner][behind] = properties[full]
    if (again := next((name for name in names if names.count(name) > 1), None)) is not None:
        report.problem(list_key, f"{quoted(again)} is named twice; name each {what} once.")
    return found
