"""`connect.ems.tombstones=row` in a connector file: what it sets, and where it is refused with a cure."""

import pytest

from parquet_sink.connectors.loading import Loaded
from tests.connectors.ems.connector_files import GOOD, E, load_file
from tests.messages import assert_says

KEYED = {f"{E}data.primary.key": "id,line", f"{E}tombstones": "row", "key.converter": "string"}


def _load(more: dict[str, str | None]) -> Loaded:
    properties = {**GOOD, **KEYED, **more}
    return load_file({key: text for key, text in properties.items() if text is not None})


def test_the_column_is_set_where_tombstones_become_rows() -> None:
    """Under its name; without `row` there is none."""
    assert _load({}).require().shape.tombstone_column == "__deleted"
    assert _load({f"{E}tombstones.column": "gone"}).require().shape.tombstone_column == "gone"
    assert _load({f"{E}tombstones": "skip"}).require().shape.tombstone_column is None


EQUAL = (f"{E}obfuscation.method=fix", "values equal", "take hmac-sha256")
PROBLEMS = [
    ({f"{E}data.primary.key": None}, "tombstones", ("nothing says which row", "name the key columns", "set skip")),
    ({"key.converter": None}, "tombstones", ("key.converter", "neither here", "name the keys' converter")),
    (
        {"key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter"},
        "tombstones",
        ("key.converter=ByteArrayConverter", "keys as bytes", "name the converter"),
    ),
    (
        {f"{E}flattener.jsonblob.chunks": "2", f"{E}data.fallback.varchar.length": "100"},
        "tombstones",
        ("no column that a key", "set skip"),
    ),
    ({f"{E}explode.mode": "List"}, "tombstones", ("the key of none", "set skip")),
    ({f"{E}tombstones.column": "kafkaOffset"}, "tombstones.column", ('"kafkaOffset"', "the sink adds", "another name")),
    (
        {f"{E}tombstones.column": "__celonis_order"},
        "tombstones.column",
        ('"__celonis_order"', "the sink adds", "another name"),
    ),
    (
        {f"{E}tombstones.column": "line"},
        "tombstones.column",
        ('"line"', f"named by {E}data.primary.key", "another name"),
    ),
    (
        {f"{E}tombstones.column": "kafkaoffset"},
        "tombstones.column",
        ('"kafkaoffset"', "letter case alone", "from kafkaOffset", "the sink adds", "another name"),
    ),
    (
        {f"{E}tombstones.column": "LINE"},
        "tombstones.column",
        ('"LINE"', "letter case alone", "from line", f"{E}data.primary.key names", "another name"),
    ),
    ({f"{E}tombstones.column": "a b"}, "tombstones.column", ('"a b"', "a column's name", "begin with a letter")),
    ({f"{E}data.primary.key": "id,kafkaOffset"}, "tombstones", ("kafkaOffset", "differs from record", "set skip")),
    ({f"{E}data.primary.key": "kafkaPartition"}, "tombstones", ("nothing that a key", "name its columns", "set skip")),
    ({f"{E}order.field.name": "changed"}, "order.field.name", ('"changed"', "null in the row", "remove it")),
    (
        {f"{E}order.field.name": "kafkaPartitionOffset"},
        "order.field.name",
        ('"kafkaPartitionOffset"', "0_10 is less than", "take kafkaOffset"),
    ),
    (
        {f"{E}order.field.name": "kafkaPartition"},
        "order.field.name",
        ('"kafkaPartition"', "same in all rows", "take kafkaOffset"),
    ),
    ({f"{E}obfuscation.fields": "id"}, "tombstones", ('"id"', *EQUAL)),
    ({f"{E}obfuscation.fields": "line.value"}, "tombstones", ('"line.value"', *EQUAL)),
    (
        {
            f"{E}obfuscation.fields": "id",
            f"{E}obfuscation.method": "sha512",
            f"{E}obfuscation.sha512.randomsalt": "true",
        },
        "tombstones",
        ('"id"', "equal values differ", "take hmac-sha256"),
    ),
    (
        {f"{E}obfuscation.fields": "__deleted"},
        "obfuscation.fields",
        ('"__deleted"', "the sink adds", "fields of the record"),
    ),
]


@pytest.mark.parametrize(("more", "key", "told"), PROBLEMS)
def test_what_would_delete_nothing_or_another_row_is_refused(
    more: dict[str, str | None], key: str, told: tuple[str, ...]
) -> None:
    """One problem, which names the key, what is wrong, and the cure."""
    (problem,) = _load(more).problems
    assert problem.startswith(f"Invalid [{E}{key}]. ")
    assert_says(problem, *told)
    assert problem.endswith(".")


@pytest.mark.parametrize(
    "more",
    [
        {f"{E}data.primary.key": "id,kafkaPartition"},
        {f"{E}order.field.name": "kafkaOffset"},
        {f"{E}order.field.name": "kafkaTimestamp"},
        {f"{E}embed.kafka.metadata": "false", f"{E}tombstones.column": "kafkaOffset"},
        {f"{E}obfuscation.fields": "name,lines.value,customer.id"},
        {"key.converter": "bytes", "value.converter.schemas.enable": "true"},
    ],
)
def test_what_makes_sense_is_accepted(more: dict[str, str | None]) -> None:
    """Without a problem or a warning."""
    loaded = _load(more)
    assert (loaded.problems, loaded.warnings) == ((), ())


def test_with_skip_nothing_is_judged_and_its_column_has_no_effect() -> None:
    """The column alone is warned about."""
    for skip in (None, "skip"):
        loaded = _load({f"{E}tombstones": skip, f"{E}tombstones.column": "gone", f"{E}data.primary.key": None})
        assert loaded.problems == ()
        (warning,) = [one for one in loaded.warnings if f"[{E}tombstones.column]" in one]
        assert_says(warning, "no effect", f"unless {E}tombstones")
