"""What the documentation says of one key, cell by cell. Pure."""

from parquet_sink.config.key import Group, Key, Origin

TABLE_HEAD = ("| Key | Type | Default | Limits | Meaning | From |", "|---|---|---|---|---|---|")


def row_of(key: Key) -> str:
    """One line of a table."""
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
