"""The converter of a connector's values, keys or headers with its settings: its own, or its own on the worker's.

As in Kafka Connect, a converter that the connector file names takes nothing from the worker file. Settings without a
converter add to the worker's.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from parquet_sink.config.key import Value
from parquet_sink.config.secret import Secret
from parquet_sink.config.values import NOTHING, Values
from parquet_sink.convert.converter_setting import Setting
from parquet_sink.convert.converters import Converter, find
from parquet_sink.convert.keys import find_setting
from parquet_sink.convert.settings import ConverterKind, Side

SIDES: Final[tuple[Side, ...]] = ("value", "key", "header")


@dataclass(frozen=True)
class Chosen:
    """What a side is decoded with. Settings go by their own names, without `value.converter.`."""

    side: Side
    name: str
    converter: Converter
    values: Values

    @property
    def prefix(self) -> str:
        return f"{self.side}.converter."

    @property
    def kind(self) -> ConverterKind:
        """JsonConverter reads envelopes unless told otherwise, as Kafka Connect's own default has it."""
        if self.converter.kind == "json" and self.flag("schemas.enable"):
            return "json_envelope"
        return self.converter.kind

    @property
    def settings(self) -> Iterator[tuple[str, Setting]]:
        """The given settings that concern the converter, each under the name that the file has, in their order."""
        for full in sorted(self.values.given):
            name = full.removeprefix(self.prefix)
            setting = find_setting(name) if full.startswith(self.prefix) else None
            if setting is not None and setting.concerns(self.converter):
                yield name, setting

    def given(self, name: str) -> bool:
        return self.prefix + name in self.values.given

    def value(self, name: str) -> Value:
        return self.values.value(self.prefix + name)

    def flag(self, name: str) -> bool:
        return self.values.flag(self.prefix + name)

    def number(self, name: str) -> int:
        number = self.values.number(self.prefix + name)
        assert number is not None, name
        return number

    def text(self, name: str) -> str | None:
        return self.values.text(self.prefix + name)

    def names(self, name: str) -> tuple[str, ...]:
        return self.values.names(self.prefix + name)

    def secret(self, name: str) -> Secret | None:
        return self.values.secret(self.prefix + name)


def choose(side: Side, own: Values, worker: Values = NOTHING) -> Chosen | None:
    """The converter of one side; None when there is none, or none that is known."""
    key = f"{side}.converter"
    values = own if key in own.given or key not in worker.given else own.over(worker, key)
    name = values.text(key)
    converter = None if name is None else find(name, side)
    return None if name is None or converter is None else Chosen(side, name, converter, values)
