"""From settings to a `TransformChain`, made once in a process, so that it is kept from micro-batch to micro-batch."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Generic, TypeVar

import numpy as np
import pyarrow as pa

from parquet_sink.config.class_settings import ClassSettings
from parquet_sink.config.report import printable
from parquet_sink.convert.connect_values.settings import SIMPLE_HEADER
from parquet_sink.convert.decoded import Piece, Untyped
from parquet_sink.convert.decoders import decoder_for, key_decoder_for
from parquet_sink.convert.plain.settings import BYTES
from parquet_sink.convert.settings import Converter
from parquet_sink.errors import ConnectorError, RetryLater, TransformFailed
from parquet_sink.model.records import VALUES_ONLY, RecordParts
from parquet_sink.plugins import PluginUnusable
from parquet_sink.process import plugin_errors
from parquet_sink.process.per_process import PerProcess
from parquet_sink.process.plugin_errors import WrongAnswer
from parquet_sink.transform.chain import Step, TransformChain
from parquet_sink.transform.classes import class_name, find_predicate, find_transform
from parquet_sink.transform.protocol import Predicate, Transform
from parquet_sink.transform.records import DecodedRecords
from parquet_sink.transform.settings import StepSettings

_T = TypeVar("_T")
_Inner = TypeVar("_Inner", bound=Transform | Predicate)


def is_ours(inner: object) -> bool:
    """Whether it is of this package, whose tests say what it gives."""
    return type(inner).__module__.startswith("parquet_sink.")


def checked(found: DecodedRecords, given: DecodedRecords) -> DecodedRecords:
    """The same. Raises WrongAnswer when a record would come from nowhere, come twice, or be lost without a word."""
    if found.batch is not given.batch:
        raise WrongAnswer("it gave another batch than it was given")
    positions = found.positions.to_numpy()
    if not np.isin(positions, given.positions.to_numpy()).all() or (np.diff(positions) <= 0).any():
        raise WrongAnswer("it gave records that it was not given, or not in their order")
    _check("values", found.values, positions, several=True)
    _check("keys", found.keys or (), positions, several=False)
    return found


def _check(what: str, pieces: tuple[Piece, ...], positions: np.ndarray, *, several: bool) -> None:
    """several: whether a record may have several rows, one after the other in one piece."""
    places = []
    for piece in pieces:
        count = len(piece.trees if isinstance(piece, Untyped) else piece.rows)
        if count != len(piece.positions):
            raise WrongAnswer(f"a piece of its {what} has {count} records for {len(piece.positions)} positions")
        here = piece.positions.to_numpy()
        if (np.diff(here) < (0 if several else 1)).any():
            raise WrongAnswer(f"the positions of a piece of its {what} do not increase")
        places.append(np.unique(here))
    every = np.concatenate(places) if places else np.zeros(0, np.int64)
    if len(np.unique(every)) != len(every):
        raise WrongAnswer(f"it gave one record in two pieces of its {what}")
    if not np.isin(every, positions).all():
        raise WrongAnswer(f"its {what} have a record that is not among its positions")


def checked_choice(found: pa.BooleanArray, given: DecodedRecords) -> pa.BooleanArray:
    """The same. Raises WrongAnswer when it does not choose among these records."""
    if len(found) != len(given) or found.type != pa.bool_() or found.null_count:
        raise WrongAnswer(f"it must give {len(given)} booleans, one for each record and none null")
    return found


def chain_for(
    steps: tuple[StepSettings, ...], key: Converter | None, header: Converter = SIMPLE_HEADER
) -> TransformChain | None:
    """The process's chain for these settings; None for no steps.

    key: of the key converter, None where none is set. header: of the header converter.

    Raises TransformFailed when a class that the driver found is not here, or fails.
    """
    return chain_of(steps, key, header) if steps else None


def chain_of(
    steps: tuple[StepSettings, ...],
    key: Converter | None,
    header: Converter,
    also: RecordParts = VALUES_ONLY,
) -> TransformChain:
    """The same also without steps. also: what of a record is wanted in the end, beside its value. Raises likewise."""
    return _chains.get((steps, key or BYTES, header, also))


def _made(of: tuple[tuple[StepSettings, ...], Converter, Converter, RecordParts]) -> TransformChain:
    steps, key, header, also = of
    return TransformChain([_step(one) for one in steps], key_decoder_for(key), decoder_for(header), also)


_chains: Final = PerProcess(_made)


def needs_of(steps: tuple[StepSettings, ...]) -> RecordParts:
    """What of a record these look at beside its value."""
    needs = VALUES_ONLY
    for step in steps:
        needs |= _step(step).needs
    return needs


def _step(settings: StepSettings) -> Step:
    transform, predicate = settings.transform, settings.predicate
    with _found("transforms", transform):
        transforms, side = find_transform(transform.type)
        inner = transforms(transform.values(transforms.keys), side)
    named = NamedTransform(f"transforms.{transform.name}", transform.type, inner, transform.secrets)
    name = f"transforms.{transform.name} ({transform.type})"
    written_out = class_name(transform.type)
    if predicate is None:
        return Step(named, name=name, class_name=written_out)
    with _found("predicates", predicate):
        predicates = find_predicate(predicate.type)
        choice = predicates(predicate.values(predicates.keys))
    chooses = NamedPredicate(f"predicates.{predicate.name}", predicate.type, choice, predicate.secrets)
    return Step(named, chooses, settings.negate, name, written_out)


@contextmanager
def _found(kind: str, settings: ClassSettings) -> Iterator[None]:
    """Raises TransformFailed where a class cannot be loaded that was there when the file was read."""
    try:
        yield
    except PluginUnusable as error:
        raise TransformFailed(
            f"{kind}.{settings.name}.type: {error} It was found where the connector was started; it must be on every "
            "machine that runs Spark tasks."
        ) from None


class _Named(Generic[_Inner]):
    """A transform or predicate under its name in the file, so that what its code raises names it."""

    def __init__(self, name: str, type_: str, inner: _Inner, secrets: tuple[str, ...] = ()) -> None:
        self._name, self._type, self._inner, self._secrets = name, type_, inner, secrets
        self.needs, self._trusted = inner.needs, is_ours(inner)

    def _called(
        self, code: Callable[[DecodedRecords], _T], check: Callable[[_T, DecodedRecords], _T], records: DecodedRecords
    ) -> _T:
        """What the code gives. Raises ConnectorError, TransformFailed for all that it did not raise on purpose."""
        try:
            found = code(records)
            return found if self._trusted else check(found, records)
        except MemoryError:
            raise
        except Exception as error:
            raise failed(self._name, self._type, records, error, self._secrets) from error


class NamedTransform(_Named[Transform]):
    """A transform whose errors say which one it is, and where."""

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        return self._called(self._inner.apply, checked, records)


class NamedPredicate(_Named[Predicate]):
    """Likewise for a predicate."""

    def test(self, records: DecodedRecords) -> pa.BooleanArray:
        return self._called(self._inner.test, checked_choice, records)


def failed(
    name: str, type_: str, records: DecodedRecords, error: Exception, secrets: tuple[str, ...] = ()
) -> ConnectorError:
    """What is raised in place of an error from the code of a transform or predicate. secrets: of its settings."""
    batch = records.batch
    key = (batch.topic, batch.partition)
    where = f"topic {batch.topic}, topic-partition {batch.partition}, offsets {_offsets(records)}"
    if isinstance(error, RetryLater):
        why = printable(plugin_errors.without(str(error), secrets)).rstrip(".")
        return RetryLater(f"{where}: {name} ({type_}) cannot work now: {why}.").at(key)
    if isinstance(error, ConnectorError):
        return error
    return TransformFailed(
        f"{where}: {name} ({type_}) failed with {plugin_errors.reported(error, secrets)}. No record is blamed, "
        "and nothing from there on is committed. Correct its code, which must reject a record that it cannot take, or "
        "its settings, then start again."
    ).at(key)


def _offsets(records: DecodedRecords) -> str:
    found = records.batch.offsets.take(records.positions)
    return f"{found[0]} to {found[-1]}" if len(found) > 1 else str(found[0] if len(found) else "none")
