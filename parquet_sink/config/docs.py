"""The documentation of keys, written from their tables: Markdown for a page, plain text for a terminal."""

import textwrap
from collections.abc import Iterable, Iterator

from parquet_sink.config.key import Key, Origin, Type

_WIDTH = 100
TABLE_HEAD = ("| Key | Type | Default | Limits | Meaning | From |", "|---|---|---|---|---|---|")


def row_of(key: Key) -> str:
    """One line of a table."""
    cells = (f"`{key.name}`", type_of(key), default_of(key), limits_of(key), meaning_of(key), from_(key))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def type_of(key: Key) -> str:
    """How a value is written, in words."""
    return key.type.value if key.unit is None else key.unit.value


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
    return str(key.default) if isinstance(key.default, int | float | str) else "none"


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
    if key.not_built is not None and not _says(key, key.not_built.cure):
        parts.append(f"**Not built yet** ({key.not_built.values}): {key.not_built.cure}")
    if key.no_effect and not _says(key, key.no_effect):
        parts.append(f"Accepted without effect: {key.no_effect}")
    if key.deprecated:
        parts.append(f"Accepted without effect: {key.deprecated}")
    return " ".join(parts)


def _says(key: Key, reason: str) -> bool:
    return reason.lower() in key.doc.lower()


def groups(table: Iterable[Key]) -> tuple[str, ...]:
    """Titles of sections, in the order in which the table begins them."""
    return tuple(dict.fromkeys(key.group for key in table))


def section(group: str, table: Iterable[Key]) -> str:
    """The keys of a group as Markdown, with its title."""
    rows = [row_of(key) for key in table if key.group == group]
    return "\n".join([f"## {group}", "", *TABLE_HEAD, *rows, ""])


def help_section(title: str, members: list[Key]) -> Iterator[str]:
    """Keys as plain text, for a terminal; nothing when there are none."""
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
    kind = limits if limits and key.type is Type.STRING else "; ".join(part for part in (type_of(key), limits) if part)
    return f"{kind}; {default if key.required else 'default: ' + default}"
