"""JsonConverter: JSON alone, or in an envelope with its schema."""

from typing import TYPE_CHECKING, Final

from parquet_sink import plugins
from parquet_sink.config.declared import declared, key
from parquet_sink.config.key import Origin, Type
from parquet_sink.config.values import Values
from parquet_sink.convert.settings import CONVERT_SETTINGS, SIDES, Converter, setting_key, without_meaning

if TYPE_CHECKING:
    from parquet_sink.convert.decoded import Decoder

DECIMAL_FORMAT: Final = setting_key(
    "decimal.format",
    Type.STRING,
    "Form in which decimals are written; both are read, whichever is set.",
    choices=("BASE64", "NUMERIC"),
)
CACHE: Final = "What is kept of schemas is bounded by max.schemas.per.subject."
CACHE_SIZE: Final = without_meaning(CACHE, "schemas.cache.size")


@declared(group=CONVERT_SETTINGS, origin=Origin.CONNECT)
class JsonConverter(Converter):
    """JSON: with `schemas_enable` each value is an envelope of schema and payload."""

    title = "JSON; with `schemas.enable=true` in an envelope with its schema"
    class_name = "org.apache.kafka.connect.json.JsonConverter"
    word = "json"
    label = "JSON"
    sides = SIDES
    opens = "parquet_sink.convert.json.envelope:decoder"
    more = (DECIMAL_FORMAT,)
    unused = (*Converter.unused, *CACHE_SIZE)

    schemas_enable: bool = key(
        "schemas.enable",
        "Whether each JSON value is an envelope of schema and payload (`true`, Kafka Connect's default), or JSON "
        "alone. Anything but an envelope is invalid input under `true`; set `false` for plain JSON objects.",
        default=True,
    )
    replace_null_with_default: bool = key(
        "replace.null.with.default",
        "Whether null in a field with a default is read as that default. JSON without a schema has no defaults.",
        default=True,
    )

    @classmethod
    def has_bytes(cls, values: Values) -> bool:
        return values.flag("schemas.enable")

    @property
    def what(self) -> str:
        return "JSON in an envelope with its schema" if self.schemas_enable else "JSON without a schema"

    def open(self) -> "Decoder":
        if self.schemas_enable:
            return super().open()
        made: Decoder = plugins.named("parquet_sink.convert.json.decoder:decoder")()
        return made


PLAIN_JSON: Final = JsonConverter(schemas_enable=False)
