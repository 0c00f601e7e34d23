"""SimpleHeaderConverter: headers alone, and theirs unless another converter is named."""

from typing import Final

from parquet_sink.config.declared import declared
from parquet_sink.convert.settings import CONVERT_SETTINGS, Converter


@declared(group=CONVERT_SETTINGS)
class SimpleHeaderConverter(Converter):
    """Text that says by its form what it is."""

    title = "headers alone: text that is read as JSON-like as it can be"
    class_name = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
    word = reported = "simple_header"
    sides = ("header",)
    opens = "parquet_sink.convert.connect_values.decoder:SimpleHeaders"

    @property
    def what(self) -> str:
        return "text, read by SimpleHeaderConverter"


SIMPLE_HEADER: Final = SimpleHeaderConverter()
