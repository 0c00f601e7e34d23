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


class Unfit(Exception):
    """A part of a value that does not fit its type. reason: without content. path: grows from the inside out."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: Path = ()

    def below(self, step: str | int) -> "Unfit":
        """The same, seen from what holds it under this name or position."""
        self.path = (step, *self.path)
        return self

    def said_of(self, whole: str) -> str:
        """What is wrong with the field, or with the whole."""
        return f"{f'field {show(self.path)}' if self.path else whole} {self.reason}"

    def __str__(self) -> str:
        return self.said_of("the value")
