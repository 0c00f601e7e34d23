"""A converter of one's own: a class that a connector file names by an entry point or as `package.module.Class`."""

from collections.abc import Sequence
from typing import Final, Protocol, runtime_checkable

import pyarrow as pa

from parquet_sink import plugins
from parquet_sink.config.class_settings import ClassSettings
from parquet_sink.config.key import Key
from parquet_sink.config.values import Values
from parquet_sink.convert.decoded import Decoded, Decoder, Trees
from parquet_sink.convert.one_by_one import OneByOne as OneByOne  # noqa: PLC0414 - one door for authors
from parquet_sink.convert.settings import Side
from parquet_sink.errors import ConnectorError, ConverterFailed
from parquet_sink.plugins import CONVERTERS, Kind, PluginUnusable
from parquet_sink.process import plugin_errors


@runtime_checkable
class ConverterClass(Protocol):
    """What `value.converter` names: a class, or whatever else is called like one.

    keys: what `value.converter.` (or `key.converter.`, `header.converter.`) may stand before, named without that.
    """

    keys: Sequence[Key]

    def __call__(self, values: Values, side: Side) -> Decoder:
        """A decoder. values: by the names of `keys`, defaults included.

        It is made when a file is checked, too, so it does nothing but look at its settings. Raises WrongSettings.
        """
        ...


CONVERTER_CLASSES: Final[Kind[ConverterClass]] = Kind(
    CONVERTERS,
    "converter",
    ("Converter",),
    ConverterClass,  # type: ignore[type-abstract]
    called=True,
    by_path=True,
)


def decoder(settings: ClassSettings, side: Side = "value") -> Decoder:
    """Of the class that the settings name. Raises ConverterFailed where it is not there."""
    try:
        found = plugins.find(CONVERTER_CLASSES, settings.type)
        return _Named(settings, found(settings.values(found.keys), side))
    except PluginUnusable as error:
        raise ConverterFailed(
            f"{settings.name}: {error} It was found where the connector was started; it must be on every machine that "
            "runs Spark tasks."
        ) from None


class _Named:
    """A decoder under its name in the file, so that what its code raises names it."""

    def __init__(self, settings: ClassSettings, inner: Decoder) -> None:
        self._settings, self._inner = settings, inner

    def decode(self, values: pa.BinaryArray) -> Decoded:
        """Raises ConnectorError; ConverterFailed for all that the code did not raise on purpose."""
        try:
            found = self._inner.decode(values)
        except (ConnectorError, MemoryError):
            raise
        except Exception as error:
            raise self._failed(f"failed with {plugin_errors.reported(error, self._settings.secrets)}") from error
        self._check(found, len(values))
        return found

    def _check(self, found: Decoded, count: int) -> None:
        """A record that is told of twice, or that is none of these, would be lost or come twice."""
        places = [at for piece in found.pieces for at in piece.positions.to_pylist()] + list(found.invalid)
        lengths = [len(piece.trees if isinstance(piece, Trees) else piece.rows) for piece in found.pieces]
        if len(set(places)) != len(places) or not all(0 <= at < count for at in places):
            raise self._failed("gave a position twice, or one that there is not")
        if lengths != [len(piece.positions) for piece in found.pieces]:
            raise self._failed("gave another number of records than of positions")

    def _failed(self, what: str) -> ConverterFailed:
        return ConverterFailed(
            f"{self._settings.name} ({self._settings.type}) {what}. No record is blamed, and nothing from there on is "
            "committed. Correct its code, which must call a value invalid that it cannot read, then start again."
        )
