"""Transforms are applied in order, each to the records that its predicate chooses; failures are told by their stage."""

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.convert.decoded import SchemaColumns, Tree, Untyped
from parquet_sink.convert.decoders import decoder_for as plain
from parquet_sink.convert.json.decoder import JsonTrees
from parquet_sink.convert.settings import ConverterSettings
from parquet_sink.errors import RegistryFailed
from parquet_sink.model.records import VALUES_ONLY, Header, RecordBatch, RecordParts
from parquet_sink.model.rejected import Stage
from parquet_sink.transform.chain import Step, TransformChain
from parquet_sink.transform.classes import class_name as full_name
from parquet_sink.transform.records import DecodedRecords
from tests.transform.doubles import DropAll, EachTree, Identity, Route, Where, has_header, is_tombstone, on_topic

JSON = JsonTrees(anything=False)
RECORD = b'{"a":0}'
KEYS, HEADERS = RecordParts(keys=True), RecordParts(headers=True)
NAMES = RecordParts(headers=True, header_values=frozenset())


def batch(
    values: Sequence[bytes | None],
    keys: Sequence[bytes | None] | None = None,
    headers: Sequence[Sequence[Header] | None] | None = None,
) -> RecordBatch:
    """Records at offsets 100, 102, ..."""
    count = len(values)
    return RecordBatch.of("orders", 3, range(100, 100 + 2 * count, 2), [7] * count, values, keys, headers)


def found(records: DecodedRecords) -> dict[int, Tree | None]:
    """The value of each record that is there, by position; None is a tombstone."""
    out: dict[int, Tree | None] = dict.fromkeys(records.positions.to_pylist())
    for piece in records.values:
        values = piece.trees if isinstance(piece, Untyped) else piece.rows.to_pylist()
        for at, value in zip(piece.positions.to_pylist(), values, strict=True):
            assert at in out
            assert out[at] is None, "in one piece only"
            out[at] = value
    return dict(sorted(out.items()))


def mark(name: str) -> EachTree:
    """Writes what came before into each record."""
    return EachTree(lambda tree, records, at: {**tree, "marks": [*tree.get("marks", []), name]})  # type: ignore[misc]


def test_an_identity_changes_nothing() -> None:
    """All records are seen, tombstones among them, and come out as they went in."""
    identity = Identity()
    out = TransformChain([Step(identity)]).apply(batch([b'{"a":1}', None, b"null", b'{"a":2}']), JSON)
    assert identity.seen == [out]
    assert found(out) == {0: {"a": 1}, 1: None, 2: None, 3: {"a": 2}}
    assert out.rejected == {}


def test_steps_are_taken_in_order() -> None:
    """Each sees what the one before made."""
    out = TransformChain([Step(mark("x")), Step(mark("y")), Step(mark("z"))]).apply(batch([RECORD]), JSON)
    assert found(out) == {0: {"a": 0, "marks": ["x", "y", "z"]}}


def test_a_transform_sees_where_a_record_came_from() -> None:
    """Topic, topic-partition, offset and timestamp are those of Kafka."""

    def origin(tree: Tree, records: DecodedRecords, at: int) -> Tree:
        kafka = records.batch
        return {"from": [kafka.topic, kafka.partition, kafka.offsets[at].as_py(), kafka.timestamps[at].as_py()]}

    out = TransformChain([Step(EachTree(origin))]).apply(batch([None, RECORD]), JSON)
    assert found(out) == {0: None, 1: {"from": ["orders", 3, 102, 7]}}


@pytest.mark.parametrize("negate", [False, True])
def test_a_predicate_chooses(negate: bool) -> None:
    """A transform is applied to the records that its predicate chooses, or to all others."""
    step = Step(mark("x"), Where(lambda records, at: at % 2 == 0), negate)
    out = TransformChain([step]).apply(batch([RECORD] * 5), JSON)
    assert [at for at, tree in found(out).items() if tree and "marks" in tree] == ([1, 3] if negate else [0, 2, 4])


def test_what_is_dropped_is_no_failure() -> None:
    """A filter takes records out, tombstones, too; later steps do not see them."""
    identity = Identity()
    chain = TransformChain([Step(DropAll(), Where(is_tombstone)), Step(identity)])
    out = chain.apply(batch([b'{"a":1}', None, b'{"a":2}', None]), JSON)
    assert found(out) == {0: {"a": 1}, 2: {"a": 2}}
    assert (out.rejected, len(identity.seen[0])) == ({}, 2)


def test_nothing_left_ends_the_chain() -> None:
    """No step is asked about no records."""
    identity = Identity()
    out = TransformChain([Step(DropAll()), Step(identity)]).apply(batch([RECORD, None]), JSON)
    assert (found(out), out.values, identity.seen) == ({}, (), [])


def test_a_record_is_rejected_where_it_fails_first() -> None:
    """Key, value, headers, transforms: one reason, of the first stage; the other records go on."""
    reasons = EachTree(lambda tree, records, at: "it is odd" if tree.get("odd") else tree, KEYS | HEADERS)
    values = [b"{", b"{", b'{"odd":1}', b'{"odd":1}', b'{"n":4}', None]
    keys = [b"{", RECORD, RECORD, RECORD, None, RECORD]
    headers: list[list[Header] | None] = [None, [], None, [], [], []]
    out = TransformChain([Step(reasons)], JSON).apply(batch(values, keys, headers), JSON)
    stages = [Stage.KEY_CONVERTER, Stage.VALUE_CONVERTER, Stage.HEADER_CONVERTER, Stage.TRANSFORMATION]
    assert [out.rejected[at][0] for at in sorted(out.rejected)] == stages
    assert out.rejected[3][1] == "it is odd"
    assert found(out) == {4: {"n": 4}, 5: None}


@pytest.mark.parametrize(
    ("type_", "class_name"),
    [
        ("Cast$Value", "org.apache.kafka.connect.transforms.Cast$Value"),
        ("Cast", "org.apache.kafka.connect.transforms.Cast$Value"),
        ("org.apache.kafka.connect.transforms.Cast$Key", "org.apache.kafka.connect.transforms.Cast$Key"),
        ("sql", "parquet_sink.transform.sql.transform.Sql"),
        ("tests.transform.classes.Keep$Key", "tests.transform.classes.Keep$Key"),
    ],
)
def test_the_class_of_a_transform_is_told_in_full(type_: str, class_name: str) -> None:
    """However the file names it."""
    assert full_name(type_) == class_name


def test_what_rejects_a_record_is_told_by_its_class() -> None:
    """Of the step where it fails, whichever records its predicate chose; what cannot be decoded has none."""
    odd = EachTree(lambda tree, records, at: "it is odd" if tree.get("n", 0) % 2 else tree)
    every = EachTree(lambda tree, records, at: "it is so" if tree.get("n") else tree)
    steps = [Step(odd, on_topic("orders"), class_name="a.Odd"), Step(Identity(), class_name="b.Id")]
    steps += [Step(every, on_topic("none"), negate=True, class_name="c.Every")]
    out = TransformChain(steps).apply(batch([b"{", b'{"n":1}', RECORD, b'{"n":2}', b'{"n":3}']), JSON)
    assert out.rejected.keys() == {0, 1, 3, 4}
    assert out.rejected_by == {1: "a.Odd", 3: "c.Every", 4: "a.Odd"}
    assert TransformChain(steps).apply(batch([RECORD]), JSON).rejected_by == {}


def test_keys_are_decoded_when_asked_for() -> None:
    """A transform of keys gets them decoded, in the form that values have; nobody else pays for it."""
    looks, looks_not = Identity(KEYS), Identity()
    given = batch([RECORD, RECORD, None], [b'{"id":1}', None, b'{"id":3}'])
    TransformChain([Step(looks)], JSON).apply(given, JSON)
    (keys,) = looks.seen[0].keys or ()
    assert isinstance(keys, Untyped)
    assert (keys.positions.to_pylist(), list(keys.trees)) == ([0, 2], [{"id": 1}, {"id": 3}])
    TransformChain([Step(looks_not)], JSON).apply(given, JSON)
    assert looks_not.seen[0].keys is None


def test_predicates_see_headers_and_the_topic_given_before() -> None:
    """A header chooses the records that are routed; a later predicate sees their new topic, the batch keeps the old."""
    shop: list[Header] = [("shop", None)]
    given = batch([RECORD] * 4, None, [shop, [], [("x", b"1"), *shop], []])
    steps = [Step(Route("shops"), has_header("shop")), Step(mark("x"), on_topic("shops"))]
    out = TransformChain([*steps, Step(mark("y"), on_topic("orders"))]).apply(given, JSON)
    assert [tree and tree["marks"] for tree in found(out).values()] == [["x"], ["y"], ["x"], ["y"]]
    assert out.topics is not None
    assert (out.topics.to_pylist(), out.batch.topic) == (["shops", "orders"] * 2, "orders")


def test_what_is_needed_is_what_any_step_needs() -> None:
    """Steps and predicates count; nothing is needed by default."""
    assert TransformChain([Step(Identity())]).needs == VALUES_ONLY
    assert TransformChain([Step(Identity()), Step(Identity(KEYS))]).needs == KEYS
    assert TransformChain([Step(Identity(KEYS), has_header("a"))]).needs == KEYS | NAMES
    assert TransformChain([Step(Identity(HEADERS), has_header("a"))]).needs == HEADERS


def test_trouble_of_no_record_is_raised() -> None:
    """A registry that is away is nobody's fault among the records."""

    class Away:
        def decode(self, values: pa.BinaryArray) -> None:
            raise RegistryFailed("away")

    with pytest.raises(RegistryFailed):
        TransformChain([Step(Identity())]).apply(batch([RECORD]), Away())  # type: ignore[arg-type]


numbers = plain(ConverterSettings("long"))


@given(st.lists(st.none() | st.integers(0, 9), max_size=30), st.lists(st.sets(st.integers(0, 29)), max_size=3))
def test_splitting_and_merging_lose_nothing(values: list[int | None], chosen: list[set[int]]) -> None:
    """However predicates split a batch, of columns or of trees, an identity gives all records as they were."""
    steps = [Step(Identity(HEADERS), Where(lambda records, at, some=some: at in some)) for some in chosen]
    headers: list[list[Header]] = [[("n", b"%d" % number)] * (number % 3) for number in range(len(values))]
    as_json = batch([None if value is None else b'{"n":%d}' % value for value in values], None, headers)
    as_long = batch([None if value is None else value.to_bytes(8, "big") for value in values], None, headers)
    trees, columns = (TransformChain(steps).apply(one, how) for one, how in ((as_json, JSON), (as_long, numbers)))
    assert found(trees) == {at: None if value is None else {"n": value} for at, value in enumerate(values)}
    assert found(columns) == dict(enumerate(values))
    assert all(isinstance(piece, SchemaColumns) for piece in columns.values)
    if chosen:
        assert trees.headers is not None
        names = [[header.name for header in trees.headers[at]] for at in range(len(values))]
        assert names == [["n"] * (number % 3) for number in range(len(values))]
