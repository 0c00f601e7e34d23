"""docs/configuration.md and the help on keys, written from the table.

`python -m parquet_sink.config.docs > docs/configuration.md`
"""

import sys
import textwrap
from collections.abc import Iterable

from parquet_sink.config.key import Group, Key, Origin, Type
from parquet_sink.config.keys import CONNECTOR_KEYS, WORKER_KEYS

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

The file of Kafka Connect's standalone mode (`connect-standalone.properties`). It may be absent.
"""


def markdown() -> str:
    """The whole page."""
    parts = [_INTRO]
    parts += [_section(group, CONNECTOR_KEYS) for group in Group if group not in _WORKER_GROUPS]
    parts.append(_WORKER_INTRO)
    parts += [_section(group, WORKER_KEYS) for group in _WORKER_GROUPS]
    return "\n".join(parts)


def _section(group: Group, table: Iterable[Key]) -> str:
    rows = [_row(key) for key in table if key.group is group]
    head = ["| Key | Type | Default | Limits | Meaning | From |", "|---|---|---|---|---|---|"]
    return "\n".join([f"## {group.value}", "", *head, *rows, ""])


def _row(key: Key) -> str:
    cells = (f"`{key.name}`", key.type.value, default_of(key), limits_of(key), meaning_of(key), from_(key))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def from_(key: Key) -> str:
    """Who defined the key; for our own, since which version."""
    return f"new in {key.since}" if key.origin is Origin.OWN else key.origin.value


def default_of(key: Key) -> str:
    """The default in words; `required` when there can be none."""
    if key.required:
        return "required"
    if key.default_text:
        return key.default_text
    if isinstance(key.default, bool):
        return str(key.default).lower()
    return str(key.default) if isinstance(key.default, int | str) else "none"


def limits_of(key: Key) -> str:
    """Range, choices and check in words; empty when there are none."""
    built = [choice for choice in key.choices if not (key.not_built and key.not_built.when(choice))]
    parts = [", ".join(f"`{choice}`" for choice in built)] if built else []
    if key.maximum is not None:
        parts.append(f"{key.minimum} to {key.maximum}")
    elif key.minimum is not None:
        parts.append(f"{key.minimum} or more")
    if key.check is not None:
        parts.append(key.check.rule)
    return "; ".join(parts)


def meaning_of(key: Key) -> str:
    """The documentation text with what the table adds to it."""
    parts = [key.doc]
    if key.other_choice:
        parts.append(f"Any other text is read as `{key.other_choice}`, with a warning.")
    if key.needs:
        parts.append(f"Has no effect without `{key.needs}`.")
    if key.not_built is not None and key.group is not Group.WORKER_NOT_BUILT:
        parts.append(f"**Not built yet** ({key.not_built.values}): {key.not_built.cure}")
    if key.no_effect and key.group is not Group.WORKER_NO_EFFECT:
        parts.append(f"Accepted without effect: {key.no_effect}")
    if key.deprecated:
        parts.append(f"Accepted without effect: {key.deprecated}")
    return " ".join(parts)


def help_text() -> str:
    """All keys as plain text, for a terminal."""
    return "\n".join(_help_lines())


def _help_lines() -> Iterable[str]:
    for title, table in (("Connector file", CONNECTOR_KEYS), ("Worker file", WORKER_KEYS)):
        for group in Group:
            members = [key for key in table if key.group is group]
            if members:
                yield f"{title}: {group.value}"
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
            if members:
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
