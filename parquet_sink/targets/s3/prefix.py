"""The template of what stands before a file's name: what is right in it, and what all its objects have in common."""

import re
from typing import Final

DATE_FIELDS: Final = frozenset({"yyyy", "MM", "dd", "HH"})
FIELDS: Final = ("topic", "partition", "first_offset", "table", "yyyy", "MM", "dd", "HH")
FIELD: Final = re.compile(r"\{([^{}]*)\}")


def wrong(template: str) -> str | None:
    """Why a text is not a template of a prefix, with the cure; None when it is one."""
    unknown = [name for name in FIELD.findall(template) if name not in FIELDS]
    if unknown:
        return f"{{{unknown[0]}}} is not a field; use {', '.join(f'{{{name}}}' for name in FIELDS)}."
    rest = FIELD.sub("x", template)
    if "{" in rest or "}" in rest:
        return "A brace is not closed or not opened; a field stands in braces, such as {topic}."
    parts = rest.strip("/").split("/")
    if rest.strip("/") and any(part in ("", ".", "..") for part in parts):
        return "It has an empty part, or one that is . or ..; write names between single slashes."
    if not template.isprintable():
        return "It holds characters that cannot be printed; remove them."
    return None


def fields(template: str) -> frozenset[str]:
    """The fields that a template uses."""
    return frozenset(FIELD.findall(template))


def dated(template: str) -> bool:
    """Whether it needs the timestamp of a file's first record."""
    return not DATE_FIELDS.isdisjoint(fields(template))


def fixed_part(template: str) -> str:
    """What stands before the first field: all objects of a template begin with it."""
    return template.lstrip("/").partition("{")[0]


def pattern(template: str) -> str:
    """The template with a star for each field, as readers of such folders write it."""
    return FIELD.sub("*", template).strip("/")
