"""Custom converters: a user's class that a connector file names by an entry point or as `package.module.Class`."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final, Protocol, cast, runtime_checkable

import pyarrow as pa

from parquet_sink import plugins
from parquet_sink.config import declared
from parquet_sink.config.class_settings import ClassCheck, ClassSettings, Texts, validate
from parquet_sink.config.key import Key
from parquet_sink.config.machine import Machine
from parquet_sink.config.provider import Resolved
from parquet_sink.config.report import PrefixedReport, Report
from parquet_sink.config.values import Values
from parquet_sink.convert.decoded import Decoded, Decoder, Tree, Untyped, one_by_one
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.settings import Converter, CustomConverter, Encoder, Side
from parquet_sink.errors import ConnectorError, ConverterFailed
from parquet_sink.plugins import CONVERTERS, Kind, PluginUnusable
from parquet_sink.process import plugin_errors


@runtime_checkable
class ConverterClass(Protocol):
    """What `value.converter` names: a class, or whatever else is called like one. It may be a `Converter` instead.

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


class OneByOne(ABC):
    """A decoder that is written for one value: a record without a schema, in Python's own types."""

    @abstractmethod
    def record(self, value: bytes) -> Tree | None:
        """The record: a dict, with dict, list, str, int within 64 bits, finite float, bool and None below.

        None: a tombstone. Raises InvalidValue with a reason that holds no content.
        """

    def decode(self, values: pa.BinaryArray) -> Decoded:
        """All of them, each independent of the others."""
        positions, trees, invalid = one_by_one(values, self.record)
        pieces = (Untyped(pa.array(positions, pa.int64()), trees),) if trees else ()
        return Decoded(pieces, invalid)


def check(name: str, side: Side, found: Resolved, machine: Machine, report: Report) -> Texts | None:
    """The settings of a class, validated by its own keys; None when something is wrong. name: as the file has it."""
    class_, key = plugins.find(CONVERTER_CLASSES, name), f"{side}.converter"
    prefixed = PrefixedReport(report, f"{key}.")

    def make(values: Values) -> None:
        if (whole := _whole(class_)) is None:
            if not callable(getattr(class_(values, side), "decode", None)):
                report.problem(key, f"{_class_name(class_)} makes no decoder: {_NEEDED['decode']}")
            return
        if not whole.can_open():
            report.problem(key, f"{_class_name(whole)} has no method open: {_NEEDED['open']}")
        if side not in whole.sides:
            report.problem(key, f"It converts no {side}s; name another converter.")
        declared.check(whole, values, prefixed)
        whole.check(values, machine, prefixed)

    return validate(ClassCheck("converter", tuple(class_.keys), make, key), found, prefixed)


_NEEDED: Final = {
    "open": "define open(self), which returns the decoder, an object with a method decode.",
    "decode": "derive from parquet_sink.api.OneByOne and define record(self, value), or define decode(self, values).",
}


def _class_name(class_: object) -> str:
    return getattr(class_, "__qualname__", type(class_).__qualname__)


def settings(found: ClassSettings, machine: Machine) -> CustomConverter:
    """Of a class about whose settings there was no problem."""
    if (whole := _whole(plugins.find(CONVERTER_CLASSES, found.type))) is None:
        return CustomConverter(found)
    return CustomConverter(found, declared.made(whole, found.values(whole.keys), machine))


def _whole(found: Any) -> type[Converter] | None:
    """The class as a `Converter`, where it is one."""
    return found if isinstance(found, type) and issubclass(found, Converter) else None


def decoder(settings: CustomConverter) -> Decoder:
    """Of the class that the settings name. Raises ConverterFailed where it is not there."""
    custom = settings.settings
    try:
        if settings.whole is not None:
            return _GuardedDecoder(custom, settings.whole.open())
        found = plugins.find(CONVERTER_CLASSES, custom.type)
        return _GuardedDecoder(custom, found(custom.values(found.keys), cast(Side, custom.name.partition(".")[0])))
    except PluginUnusable as error:
        raise ConverterFailed(
            f"{custom.name}: {error} It was found where the connector was started; it must be on every machine that "
            "runs Spark tasks."
        ) from None


def writes(name: str) -> bool:
    """Whether a class has an encoder. name: as the file has it."""
    whole = _whole(plugins.find(CONVERTER_CLASSES, name))
    return whole is not None and whole.writes()


def encoder(settings: CustomConverter) -> Encoder:
    """Of a class that `writes`: InvalidValue is a value's fault, and whatever else it raises is its own."""
    assert settings.whole is not None
    encode = settings.whole.encoder()

    def guarded(value: object, arrow: pa.DataType | None) -> bytes | None:
        try:
            return encode(value, arrow)
        except (ConnectorError, InvalidValue, MemoryError):
            raise
        except Exception as error:
            raise _failed_with(settings.settings, error) from error

    return guarded


def _failed(custom: ClassSettings, what: str, where: str = "") -> ConverterFailed:
    return ConverterFailed(
        f"{where}{custom.name} ({custom.type}) {what}. No record is blamed, and nothing from there on is "
        "committed. Correct its code, which must call a value invalid that it cannot read, then start again."
    )


def _failed_with(custom: ClassSettings, error: Exception) -> ConverterFailed:
    return _failed(custom, f"failed with {plugin_errors.reported(error, custom.secrets)}")


class _GuardedDecoder:
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
            raise _failed_with(self._settings, error) from error
        self._check(found, len(values))
        return found

    def failed(self, where: str, what: str) -> ConverterFailed:
        """As `OwnDecoder` has it."""
        return _failed(self._settings, what, f"{where}: ")

    def _check(self, found: Decoded, count: int) -> None:
        """A record that is reported twice, or that is none of these, would be lost or come twice."""
        places = [at for piece in found.pieces for at in piece.positions.to_pylist()] + list(found.invalid)
        lengths = [len(piece.trees if isinstance(piece, Untyped) else piece.rows) for piece in found.pieces]
        if len(set(places)) != len(places) or not all(0 <= at < count for at in places):
            raise _failed(self._settings, "gave a position twice, or one that there is not")
        if lengths != [len(piece.positions) for piece in found.pieces]:
            raise _failed(self._settings, "gave another number of records than of positions")
