"""Keys of both converters, with the settings of all converters: `value.converter.*` and `key.converter.*`."""

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
PREFIXES: Final = ("value.converter.", "key.converter.")


def settings_under(prefix: str) -> tuple[Key, ...]:
    """The whole table as keys of a file, `value.converter.` or `key.converter.` before each name."""
    return tuple(setting.under(prefix) for setting in SETTINGS)


def find_setting(name: str) -> Setting | None:
    """The setting of a name without its prefix: an exact one before the longest that ends in `.*`."""
    matching = [setting for setting in SETTINGS if setting.key.matches(name)]
    return max(matching, key=lambda one: (not one.key.is_prefix, len(one.key.name)), default=None)


def _known(value: Value) -> str | None:
    return converters.refusal(str(value))


_KNOWN = Check("a known converter, see below", _known)


def _converter(side: str, doc: str, default_text: str) -> Key:
    name = f"{side}.converter"
    connect = Origin.CONNECT
    return Key(name, CONVERT, Type.STRING, doc, default_text=default_text, check=_KNOWN, origin=connect)


def _unused_converter(name: str, what: str) -> Key:
    doc = f"Any is accepted, with its settings: {what} are never used, so nothing decodes them."
    return Key(name, CONVERT, Type.STRING, doc, origin=Origin.CONNECT)


CONVERTER_KEYS: Final = (
    _converter(
        "value",
        "How values of records are decoded. Must be set here or in the worker file. Named here, it takes no setting "
        "from the worker file, as in Kafka Connect; settings without it add to the worker's converter.",
        "the worker's",
    ),
    _converter(
        "key",
        "How keys of records are decoded, where something asks for a key. Nothing does yet, but it must be a converter "
        "that is known, with settings that are right.",
        "the worker's, else keys are bytes",
    ),
    _unused_converter("header.converter", "headers of records"),
    _unused_converter("header.converter.*", "headers of records"),
    *(key for prefix in PREFIXES for key in settings_under(prefix)),
)
