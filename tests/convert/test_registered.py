"""Records that name a schema: one decoder for each, and what becomes of those without."""

from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.convert.decoded import Decoded, Decoder, SchemaColumns, Untyped
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.registry.registered import ASK_AGAIN_S, RegisteredDecoder, RegisteredSchema
from parquet_sink.errors import RegistryFailed
from tests.factories import Clock
from tests.messages import assert_says
from tests.thorough import examples


class Schemas:
    """A registry of ids below 100: odd ones Avro, even ones Protobuf; it counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.registered = set(range(1, 100))
        self.away = False

    def get(self, schema_id: int) -> RegisteredSchema:
        self.asked.append(schema_id)
        if self.away:
            raise RegistryFailed("away")
        if schema_id not in self.registered:
            raise InvalidValue(f"schema id {schema_id} is not registered at here")
        return RegisteredSchema(schema_id, "AVRO" if schema_id % 2 else "PROTOBUF", str(schema_id))


class Upper:
    """Decodes payloads to upper case; `bad` is invalid, `none` a tombstone; two pieces, one of each class."""

    def __init__(self, schema: RegisteredSchema) -> None:
        self._name = schema.text

    def decode(self, values: pa.BinaryArray) -> Decoded:
        texts = values.cast(pa.string()).to_pylist()
        good = [index for index, text in enumerate(texts) if text not in ("bad", "none")]
        typed = [index for index in good if texts[index] != "tree"]
        trees = [index for index in good if texts[index] == "tree"]
        rows = pa.array([{self._name: texts[index].upper()} for index in typed], pa.struct({self._name: pa.string()}))
        return Decoded(
            (
                SchemaColumns(pa.array(typed, pa.int64()), rows),
                Untyped(pa.array(trees, pa.int64()), [{self._name: "TREE"} for _ in trees]),
            ),
            {index: "it is bad" for index, text in enumerate(texts) if text == "bad"},
        )


def refusing(schema: RegisteredSchema) -> Decoder:
    """Makes no decoder for id 13."""
    if schema.id == 13:
        raise InvalidValue("it is recursive")
    return Upper(schema)


def decoder(
    schemas: Schemas,
    make: Callable[[RegisteredSchema], Decoder] = refusing,
    cache_size: int = 10,
    clock: Callable[[], float] = lambda: 0.0,
) -> RegisteredDecoder:
    """A decoder of Avro."""
    return RegisteredDecoder(schemas, "AVRO", make, 4, cache_size, clock=clock)


def values(*items: tuple[int, str] | bytes) -> pa.BinaryArray:
    """Values in the wire format, or as they are."""
    made = [
        item if isinstance(item, bytes) else b"\0" + item[0].to_bytes(4, "big") + item[1].encode() for item in items
    ]
    return pa.array(made, pa.binary())


def fates(decoded: Decoded) -> dict[int, object]:
    """What became of each position; each is told at most once."""
    found: dict[int, object] = dict(decoded.invalid)
    for piece in decoded.pieces:
        rows = piece.rows.to_pylist() if isinstance(piece, SchemaColumns) else piece.trees
        places = piece.positions.to_pylist()
        assert places == sorted(places)
        for place, row in zip(places, rows, strict=True):
            assert place not in found
            found[place] = row
    return found


def test_schemas_alternate_and_positions_stay() -> None:
    """Each value is decoded with its schema, and told where it stood."""
    given_values = values((1, "a"), (3, "b"), (1, "bad"), (3, "tree"), (1, "none"), (1, "c"), b"{}")
    found = fates(decoder(Schemas()).decode(given_values))
    assert "0x7b" in str(found.pop(6))
    assert found == {0: {"1": "A"}, 1: {"3": "B"}, 2: "it is bad", 3: {"3": "TREE"}, 5: {"1": "C"}}


def test_one_schema_is_asked_for_once() -> None:
    """The decoder of a schema is kept from block to block."""
    schemas = Schemas()
    subject = decoder(schemas)
    for _ in range(3):
        assert fates(subject.decode(values((1, "a"), (1, "bad")))) == {0: {"1": "A"}, 1: "it is bad"}
    assert schemas.asked == [1]


def test_unknown_id_is_invalid_and_asked_again_later() -> None:
    """Its records have a reason; the registry is asked again after some seconds, for it may come to know."""
    schemas, clock = Schemas(), Clock()
    schemas.registered.remove(17)
    subject = decoder(schemas, clock=clock)
    for _ in range(3):
        found = fates(subject.decode(values((17, "a"), (1, "b"))))
        assert_says(found.pop(0), "schema id 17", "not registered", "at here")
        assert found == {1: {"1": "B"}}
    assert schemas.asked.count(17) == 1
    schemas.registered.add(17)
    clock.seconds = ASK_AGAIN_S - 0.1
    assert 0 in subject.decode(values((17, "a"))).invalid
    clock.seconds = ASK_AGAIN_S
    assert fates(subject.decode(values((17, "a")))) == {0: {"17": "A"}}
    assert schemas.asked.count(17) == 2


def test_schema_of_another_kind_is_invalid() -> None:
    """The reason names both kinds, and the registry is asked once."""
    schemas = Schemas()
    subject = decoder(schemas)
    for _ in range(2):
        [told] = subject.decode(values((2, "a"))).invalid.values()
        assert_says(told, "schema id 2", "registered as PROTOBUF", "reads AVRO")
    assert schemas.asked == [2]


def test_refused_schema_is_invalid() -> None:
    """A schema that the format cannot read makes its records invalid, with the id; it is tried once."""
    tried: list[int] = []

    def make(schema: RegisteredSchema) -> Decoder:
        tried.append(schema.id)
        return refusing(schema)

    subject = decoder(Schemas(), make)
    for _ in range(2):
        assert_says(subject.decode(values((13, "a"))).invalid[0], "schema id 13", "it is recursive")
    assert tried == [13]


def test_a_registry_that_is_away_is_no_records_fault() -> None:
    """RegistryFailed passes; nothing is remembered of it."""
    schemas = Schemas()
    schemas.away = True
    subject = decoder(schemas)
    with pytest.raises(RegistryFailed):
        subject.decode(values((1, "a")))
    schemas.away = False
    assert fates(subject.decode(values((1, "a")))) == {0: {"1": "A"}}


def test_the_cache_is_bounded() -> None:
    """More schemas than it holds are asked for again, the one used longest ago first."""
    schemas = Schemas()
    subject = decoder(schemas, cache_size=2)
    for schema_id in (1, 3, 1, 5, 1, 3):
        subject.decode(values((schema_id, "a")))
    assert schemas.asked == [1, 3, 5, 3]


RECORDS = st.tuples(st.sampled_from([1, 2, 3, 13, 500]), st.sampled_from(["a", "b", "bad", "none", "tree"]))


@settings(max_examples=examples(80), deadline=None)
@given(st.lists(st.one_of(RECORDS, st.sampled_from([b"", b"{}", b"\0\0"])), max_size=25))
def test_a_record_fares_in_company_as_alone(items: list[tuple[int, str] | bytes]) -> None:
    """No value changes what becomes of another."""
    together = fates(decoder(Schemas()).decode(values(*items)))
    for place, item in enumerate(items):
        assert together.get(place) == fates(decoder(Schemas()).decode(values(item))).get(0)
