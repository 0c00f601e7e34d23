"""XmlConverter: XML documents, as the EMS connector reads them."""

from typing import TYPE_CHECKING

from parquet_sink.config.declared import declared
from parquet_sink.config.values import Values
from parquet_sink.convert.settings import CONVERT_SETTINGS, Converter, opened

if TYPE_CHECKING:
    from parquet_sink.convert.decoded import Decoder


@declared(group=CONVERT_SETTINGS)
class XmlConverter(Converter):
    """XML documents."""

    title = "XML documents"
    class_name = "com.celonis.kafka.connect.ems.converter.XmlConverter"
    word = "xml"

    @classmethod
    def has_bytes(cls, values: Values) -> bool:
        return False

    def open(self) -> "Decoder":
        return opened("parquet_sink.convert.xml.decoder:decoder")
