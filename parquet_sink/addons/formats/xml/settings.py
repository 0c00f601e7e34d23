"""XmlConverter: XML documents, as the EMS connector reads them."""

from parquet_sink.config.declared import declared
from parquet_sink.config.values import Values
from parquet_sink.convert.settings import CONVERT_SETTINGS, Converter


@declared(group=CONVERT_SETTINGS)
class XmlConverter(Converter):
    """XML documents."""

    title = "XML documents"
    class_name = "com.celonis.kafka.connect.ems.converter.XmlConverter"
    word = "xml"
    opens = "parquet_sink.addons.formats.xml.decoder:XmlDecoder"

    @classmethod
    def has_bytes(cls, values: Values) -> bool:
        return False
