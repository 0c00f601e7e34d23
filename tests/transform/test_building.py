"""What a transform of a user's own gives back is looked at: no record is lost, made up or doubled without a word."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa
import pytest

from parquet_sink.addons.transforms.fields.mask_field import MaskField
from parquet_sink.convert.decoded import Untyped
from parquet_sink.convert.json.decoder import JsonTrees
from parquet_sink.errors import TransformFailed
from parquet_sink.model.records import VALUES_ONLY, RecordBatch, RecordParts
from parquet_sink.transform.building import NamedPredicate, NamedTransform, is_ours
from parquet_sink.transform.chain import Step, TransformChain
from parquet_sink.transform.records import DecodedRecords
from tests.messages import saying
from tests.transform.doubles import Identity

BATCH = RecordBatch.of("t", 0, range(3), [0] * 3, [b'{"a":1}', b'{"a":2}', None])


@dataclass
class Own:
    """Changes records in whatever way."""

    change: Callable[[DecodedRecords], DecodedRecords]
    needs: RecordParts = VALUES_ONLY

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        return self.change(records)


@dataclass
class Choice:
    """Chooses in whatever way."""

    found: pa.Array
    needs: RecordParts = VALUES_ONLY

    def test(self, records: DecodedRecords) -> pa.BooleanArray:
        return self.found


def of(*positions: int) -> Untyped:
    """A piece with a record at each position."""
    return Untyped(pa.array(positions, pa.int64()), [{"a": 0} for _ in positions])


def given(change: Callable[[DecodedRecords], DecodedRecords]) -> DecodedRecords:
    """What a chain of one such transform gives."""
    return TransformChain([Step(NamedTransform("transforms.o", "Own", Own(change)))]).apply(
        BATCH, JsonTrees(anything=False)
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda records: records,
        lambda records: records.without([1]),
        lambda records: records.reject({0: "no"}),
        lambda records: replace(records, values=()),
        lambda records: replace(records, values=(of(0, 2), of(1))),
        lambda records: replace(records, values=(of(0, 0, 0, 2),)),
    ],
)
def test_what_may_become_of_records(change: Callable[[DecodedRecords], DecodedRecords]) -> None:
    """They may be kept, dropped, rejected, become null, get a value, or several, each a row."""
    given(change)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda records: replace(records, batch=RecordBatch.of("t", 0, [], [], [])), "another batch"),
        (lambda records: replace(records, positions=pa.array([0, 1, 7])), "that it was not given"),
        (lambda records: replace(records, positions=pa.array([1, 0])), "not in their order"),
        (lambda records: replace(records, positions=pa.array([0, 0, 1])), "not in their order"),
        (lambda records: replace(records, values=(of(0), of(0, 1))), "one record in two pieces"),
        (lambda records: replace(records, values=(of(1, 0),)), "do not increase"),
        (lambda records: replace(records, positions=pa.array([0]), values=(of(0, 1),)), "not among its positions"),
        (lambda records: replace(records, values=(of(0, 0), of(0))), "one record in two pieces"),
        (lambda records: replace(records, keys=(of(0, 0),)), "its keys do not increase"),
        (lambda records: replace(records, keys=(of(5),)), "its keys have a record"),
        (
            lambda records: replace(records, values=(Untyped(pa.array([0, 1]), [{"a": 0}]),)),
            "1 records for 2 positions",
        ),
    ],
)
def test_what_cannot_be(change: Callable[[DecodedRecords], DecodedRecords], said: str) -> None:
    """The connector stops, and names the transform and the mistake."""
    with pytest.raises(TransformFailed, match=saying("transforms.o (Own)", "failed with WrongAnswer", said)):
        given(change)


@pytest.mark.parametrize("found", [pa.array([True, False]), pa.array([True, None, False]), pa.array([1, 0, 1])])
def test_a_choice_is_one_boolean_for_each_record(found: pa.Array) -> None:
    """Anything else would leave records out, or take those that were not meant."""
    step = Step(Identity(), NamedPredicate("predicates.c", "Choice", Choice(found)))
    said = ("predicates.c (Choice)", "failed with WrongAnswer", "3 booleans")
    with pytest.raises(TransformFailed, match=saying(*said)):
        TransformChain([step]).apply(BATCH, JsonTrees(anything=False))


def test_a_full_heap_is_no_mistake_of_its_code() -> None:
    """The Spark task ends by it, and is tried again, as without a transform."""

    def full(records: DecodedRecords) -> DecodedRecords:
        raise MemoryError

    with pytest.raises(MemoryError):
        given(full)


def test_classes_of_this_package_are_tested_instead() -> None:
    """They cost nothing for it."""
    assert is_ours(object.__new__(MaskField))
    assert not is_ours(Identity())
