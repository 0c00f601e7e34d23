"""Keys of the converters of values, keys and headers, with their settings: `value.converter.*` and so on."""

from typing import Final

from parquet_sink.config.key import Check, Key, Origin, Type, Value
from parquet_sink.convert import converters
from parquet_sink.convert.converter_setting import Setting
from parquet_sink.convert.decoding_settings import DECODING_SETTINGS
from parquet_sink.convert.registry.apicurio_keys import APICURIO_SETTINGS
from parquet_sink.convert.registry.keys import REGISTRY_SETTINGS
from parquet_sink.convert.unused_settings import UNUSED_SETTINGS

CONVERT: Final = "Converters"

SETTINGS: tuple[Setting, ...] = (*DECODING_SETTINGS, *REGISTRY_SETTINGS, *APICURIO_SETTINGS, *UNUSED_SETTINGS)
PREFIXES: Final = ("value.converter.", "key.converter.", "header.converter.")


def settings_under(prefix: str) -> tuple[Key, ...]:
    """The table as keys of a file, `value.converter.` and so on before each name; for headers what can concern them."""
    some = [one for one in SETTINGS if "header" not in prefix or one.kinds & converters.HEADER_KINDS]
    return tuple(setting.under(prefix) for setting in some)


def find_setting(name: str) -> Setting | None:
    """The setting of a name without its prefix: an exact one before the longest that ends in `.*`."""
    matching = [setting for setting in SETTINGS if setting.key.matches(name)]
    return max(matching, key=lambda one: (not one.key.is_prefix, len(one.key.name)), default=None)


def _known(value: Value) -> str | None:
    return converters.refusal(str(value))


_KNOWN = Check("the class of a known converter", _known)


def _converter(side: str, doc: str, default_text: str) -> Key:
    name = f"{side}.converter"
    connect = Origin.CONNECT
    return Key(name, CONVERT, Type.STRING, doc, default_text=default_text, check=_KNOWN, origin=connect)


CONVERTER_KEYS: Final = (
    _converter(
        "value",
        "How values of records are decoded. Must be set here or in the worker file. Named here, it takes no setting "
        "from the worker file, as in Kafka Connect; settings without it add to the worker's converter.",
        "the worker's",
    ),
    _converter(
        "key",
        "How keys of records are decoded, where a transform or predicate asks for a key; else they are not even read.",
        "the worker's, else keys are bytes",
    ),
    Key(
        "header.converter",
        CONVERT,
        Type.STRING,
        "How values of headers are decoded, where a transform asks for them: as in Kafka Connect by "
        "`SimpleHeaderConverter`, or as JSON, text, bytes or a number. In a file without transforms any is accepted.",
        default_text="the worker's, else SimpleHeaderConverter",
        origin=Origin.CONNECT,
    ),
    Key(
        "header.converter.*",
        CONVERT,
        Type.STRING,
        "Any other is accepted, with any settings, in a file without transforms.",
        origin=Origin.CONNECT,
    ),
    *(key for prefix in PREFIXES for key in settings_under(prefix)),
)
"""Converters of values, keys and headers, with their settings."""
