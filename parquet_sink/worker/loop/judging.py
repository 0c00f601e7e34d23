"""Configurations are judged before the worker's loop hears of them, in the thread of who asks: it may take seconds.

Config providers are asked for that, files read, classes loaded.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from parquet_sink.config.report import quoted
from parquet_sink.connectors.class_keys import keys_of
from parquet_sink.connectors.hidden import restore, unknown
from parquet_sink.connectors.loading import Loaded
from parquet_sink.worker.herder.errors import InvalidConnector

NOTHING: Final[Mapping[str, str]] = {}


@dataclass(frozen=True)
class Judged:
    """A configuration that may be stored. before: what was stored when it was judged; hidden passwords are from there.

    loaded: with `properties`, which are to be stored.
    """

    before: Mapping[str, str] = field(repr=False)
    loaded: Loaded


def judge(
    name: str,
    config: Mapping[str, str],
    before: Mapping[str, str],
    load: Callable[[Mapping[str, str], str], Loaded],
) -> Judged:
    """name: in the request; a configuration without one gets it. Raises InvalidConnector with all that is wrong."""
    named = {**config, "name": config.get("name", "").strip() or name}
    keys = keys_of(named)
    whole = restore(named, before, keys)
    loaded = load(whole, name)
    problems = [*loaded.problems, *unknown(whole, keys)]
    judged_name = name if loaded.settings is None else loaded.settings.name
    if not name or {name} != {whole["name"], judged_name}:
        problems.append(
            f"Invalid [name]. {quoted(whole['name'].strip())} is not {quoted(name)}, the name in the request; write "
            "that, or leave the key out. A name is not empty, and neither begins nor ends with a blank."
        )
    if problems:
        raise InvalidConnector(problems)
    return Judged(before, loaded)
