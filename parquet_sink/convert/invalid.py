"""How a converter says that a value has no row."""

Path = tuple[str | int, ...]
"""Where in a value: names of fields, and positions in lists."""

_SHOWN_PATH = 200


class InvalidValue(ValueError):
    """A value that has no row; the text says why and where, and never holds the content of a field."""


def of_key(reason: str) -> str:
    """What a converter says of a value, said of a key."""
    return reason.replace("value.converter", "key.converter").replace("the value", "the key")


class NotObfuscated(InvalidValue):
    """What is to be obfuscated in a value cannot be."""


def show(path: Path) -> str:
    """A path for a message, `customer.lines[2].price`: control characters escaped, cut when very long."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    printable = text.encode("unicode_escape").decode() if not text.isprintable() else text
    return printable if len(printable) <= _SHOWN_PATH else printable[:_SHOWN_PATH] + "..."
