"""docs/configuration.md and the help on keys, written from the table.

`python -m parquet_sink.config.docs > docs/configuration.md`
"""

import sys
import textwrap
from collections.abc import Iterable

from parquet_sink.config.docs_cells import TABLE_HEAD, default_of, limits_of, meaning_of, row_of
from parquet_sink.config.docs_convert import converters, settings, with_kinds
from parquet_sink.config.key import Group, Key, Type
from parquet_sink.config.keys import CONNECTOR_KEYS, WORKER_KEYS
from parquet_sink.config.keys_convert import SETTINGS

_WORKER_GROUPS = (Group.WORKER, Group.WORKER_READING, Group.WORKER_NO_EFFECT, Group.WORKER_NOT_BUILT)
_WIDTH = 100

_INTRO = """\
<!-- Written by `python -m parquet_sink.config.docs > docs/configuration.md`; do not edit. -->
# Configuration

A connector is one file, in Java's properties form or as JSON (`{"name": ..., "config": {...}}` or one flat object), as
Kafka Connect and the EMS connector have it. Files are UTF-8. What all connectors of a process share stands in the
worker file (`--worker`). `parquet-sink check FILE...` validates files without connecting to anything.

- A wrong value is told as `Invalid [key]. reason`, all of a file at once, and nothing starts.
- A key that is unknown, removed or without effect is told as a warning, with the nearest known key.
- A key or value whose feature is not built yet is refused by name, never ignored.
- A blank value counts as absent. Choices may be written in any case.

## Secrets
Secrets are never printed, logged or put in an error. Better than in the file itself they stand elsewhere, and the file
names the place, in any value:

| Placeholder | Stands for |
|---|---|
| `${env:NAME}` | the environment variable `NAME` |
| `${file:PATH:KEY}` | the value of `KEY` in the properties file `PATH` |
| `${directory:PATH:FILE}` | the content of `FILE` in the folder `PATH` |

These are Kafka's config providers by their usual names; the worker file need not declare them. A placeholder that
cannot be filled is an error. Client settings are secret by their name: those with `password`, `jaas`, `secret`,
`credential` or `token` in it, and those that end in `.key` or `.pem`.

## Brokers
`--bootstrap-servers` wins over the environment variable `PARQUET_SINK_BOOTSTRAP_SERVERS`, that over
`consumer.bootstrap.servers` and `bootstrap.servers` of the worker file. A connector's
`consumer.override.bootstrap.servers` wins over all of them, with a warning when the option or the variable is set.
Every other `consumer.override.*` wins over the worker's `consumer.*`.

# Keys of a connector file
"""
_WORKER_INTRO = """
# Keys of the worker file

The file of Kafka Connect's standalone mode (`connect-standalone.properties`). It may be absent. Settings of its
converters are those of a connector file.
"""


def markdown() -> str:
    """The whole page."""
    parts = [_INTRO]
    for group in Group:
        if group is Group.CONVERT_SETTINGS:
            parts += [converters(), settings()]
        elif group not in _WORKER_GROUPS:
            parts.append(_section(group, CONNECTOR_KEYS))
    parts.append(_WORKER_INTRO)
    parts += [_section(group, WORKER_KEYS) for group in _WORKER_GROUPS]
    return "\n".join(parts)


def _section(group: Group, table: Iterable[Key]) -> str:
    rows = [row_of(key) for key in table if key.group is group]
    return "\n".join([f"## {group.value}", "", *TABLE_HEAD, *rows, ""])


def help_text() -> str:
    """All keys as plain text, for a terminal."""
    return "\n".join(_help_lines())


def _help_lines() -> Iterable[str]:
    for title, table in (("Connector file", CONNECTOR_KEYS), ("Worker file", WORKER_KEYS)):
        for group in Group:
            if group is not Group.CONVERT_SETTINGS:
                yield from _help_group(f"{title}: {group.value}", [key for key in table if key.group is group])
            elif table is CONNECTOR_KEYS:
                title_of_settings = "Both files, after value.converter. or key.converter."
                yield from _help_group(title_of_settings, [with_kinds(one) for one in SETTINGS if not one.unused])
                yield from _help_group("Accepted without effect there", [one.key for one in SETTINGS if one.unused])


def _help_group(title: str, members: list[Key]) -> Iterable[str]:
    if not members:
        return
    yield title
    for key in members:
        yield f"  {key.name} ({_brief(key)})"
        yield textwrap.fill(
            meaning_of(key).replace("**", "").replace("`", ""),
            _WIDTH,
            initial_indent="      ",
            subsequent_indent="      ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    yield ""


def _brief(key: Key) -> str:
    limits = limits_of(key).replace("`", "")
    default = default_of(key).replace("`", "")
    kind = (
        limits if limits and key.type is Type.STRING else "; ".join(part for part in (key.type.value, limits) if part)
    )
    return f"{kind}; {default if key.required else 'default: ' + default}"


if __name__ == "__main__":
    sys.stdout.write(markdown())
