"""A converter of one's own: lines of comma-separated text to records, and back."""

from parquet_sink.api import Converter, InvalidValue, OneByOne, declared, key


@declared(group="Lines of text")
class Lines(Converter):
    """Its settings, which stand behind `value.converter.`, and which are handed to Spark's processes by value."""

    title = "lines of comma-separated text"
    sides = ("value", "key")

    columns: tuple[str, ...] = key("columns", "Names of the fields, in their order.", missing="name the fields.")
    separator: str = key("separator", "What stands between two fields.", default=",")

    @classmethod
    def check(cls, values, machine, report):
        if len(values.text("separator")) != 1:
            report.problem("separator", f"{values.quoted('separator')} is not a single character; write one.")

    def open(self):
        return Decoder(self.columns, self.separator)

    def encoder(self):
        def encode(value, arrow_type):
            if value is None:
                return None
            if not isinstance(value, dict):
                raise InvalidValue("it has no fields, and a line has columns")
            return self.separator.join(str(value.get(name, "")) for name in self.columns).encode()

        return encode


class Decoder(OneByOne):
    """Made once in a process, of settings that were found right."""

    def __init__(self, columns, separator):
        self.columns, self.separator = columns, separator

    def record(self, value):
        try:
            fields = value.decode().split(self.separator)
        except UnicodeDecodeError:
            raise InvalidValue("the line is no UTF-8") from None
        if len(fields) != len(self.columns):
            raise InvalidValue(f"the line has {len(fields)} fields, and columns names {len(self.columns)}")
        return dict(zip(self.columns, fields, strict=True))
