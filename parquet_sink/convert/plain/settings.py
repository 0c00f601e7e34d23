"""StringConverter, ByteArrayConverter and the converters of numbers."""

from typing import Final

from parquet_sink.config.declared import declared, key
from parquet_sink.config.key import Check, Origin, Value
from parquet_sink.convert.settings import CONVERT_SETTINGS, SIDES, Converter

_CONNECT: Final = "org.apache.kafka.connect.converters"
_NO_TEXT: Final = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape"})


def _encoding(value: Value) -> str | None:
    """The names are Python's codecs for text; some of them (`idna`) read something else than a character set."""
    reason = "It is not a known character set; write UTF-8, ISO-8859-1, windows-1252, UTF-16 or the like."
    text = str(value)
    try:
        "a".encode(text)
    except (LookupError, ValueError):
        return reason
    return reason if text.lower().replace("_", "-") in _NO_TEXT else None


@declared(group=CONVERT_SETTINGS, origin=Origin.CONNECT)
class StringConverter(Converter):
    """Text."""

    title = "text"
    class_name = "org.apache.kafka.connect.storage.StringConverter"
    word = "string"
    label = "text"
    sides = SIDES
    opens = "parquet_sink.convert.plain.decoder:Texts"

    encoding: str = key(
        "converter.encoding",
        "Character set of text. A value that is not text in it is invalid input. The name is written twice, as in "
        "`value.converter.converter.encoding`.",
        default="UTF-8",
        check=Check("a character set that Python knows", _encoding),
    )


@declared(group=CONVERT_SETTINGS)
class ByteArrayConverter(Converter):
    """Bytes as they are."""

    title = "bytes as they are"
    class_name = f"{_CONNECT}.ByteArrayConverter"
    word = "bytes"
    sides = SIDES
    opens = "parquet_sink.convert.plain.decoder:Bytes"


@declared(group=CONVERT_SETTINGS)
class NumberConverter(Converter):
    """Values that all have the same number of bytes."""

    sides = SIDES
    opens = "parquet_sink.convert.plain.decoder:Numbers"

    def __init_subclass__(cls) -> None:
        cls.class_name = f"{_CONNECT}.{cls.__name__}"
        cls.word = cls.__name__.removesuffix("Converter").lower()


class BooleanConverter(NumberConverter):
    """True or false."""

    title = "one byte, 0 or 1"


class ShortConverter(NumberConverter):
    """Whole numbers of 16 bits."""

    title = "a number of 2 bytes"


class IntegerConverter(NumberConverter):
    """Whole numbers of 32 bits."""

    title = "a number of 4 bytes"


class LongConverter(NumberConverter):
    """Whole numbers of 64 bits."""

    title = "a number of 8 bytes"


class FloatConverter(NumberConverter):
    """Fractions of 32 bits."""

    title = "a fraction of 4 bytes"


class DoubleConverter(NumberConverter):
    """Fractions of 64 bits."""

    title = "a fraction of 8 bytes"


BYTES: Final = ByteArrayConverter()
"""How keys are read where no converter is set for them."""
