"""What happens to a record, in order and in words."""

import pytest

from tests.connectors.ems.connector_files import E, settings_of

STEPS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "transforms": "two,one",
    "transforms.one.type": "tests.transform.classes.Keep",
    "transforms.one.predicate": "p",
    "transforms.one.negate": "true",
    "transforms.two.type": "tests.transform.classes.Keep$Key",
    "transforms.two.predicate": "p",
    "predicates": "p",
    "predicates.p.type": "tests.transform.classes.Never",
}

NO_METADATA = {f"{E}embed.kafka.metadata": "false"}


def test_the_steps_of_a_plain_connector() -> None:
    """Decoded, made to columns, sent; nothing is there that is not done."""
    assert settings_of().description(keys=False, headers=False) == (
        "decoded: value: JSON without a schema; key: not read; headers: not read",
        "a null value (tombstone): no row, its offset is committed",
        "flattened to columns, lists as JSON text",
        "columns added: kafkaPartition, kafkaOffset, kafkaTimestamp, kafkaPartitionOffset",
        "a row of a file for table ORDERS",
        "a record that fails on the way: the connector stops before it",
    )


def test_transforms_stand_in_their_order_with_their_predicates() -> None:
    """Between decoding and columns; what they ask for is read."""
    decoded, *steps = settings_of(STEPS).description(keys=True, headers=True)
    assert decoded == ("decoded: value: JSON without a schema; key: text; headers: text, read by SimpleHeaderConverter")
    assert steps[:2] == [
        (
            "transforms.two: tests.transform.classes.Keep$Key, for records that predicates.p "
            "(tests.transform.classes.Never) chooses"
        ),
        (
            "transforms.one: tests.transform.classes.Keep, for other records than predicates.p "
            "(tests.transform.classes.Never) chooses"
        ),
    ]


@pytest.mark.parametrize(
    ("changes", "step"),
    [
        ({f"{E}convert.decimals.to.double": "true"}, "decimals become doubles"),
        ({f"{E}convert.lowercase.fields": "true"}, "names of fields become lower case"),
        ({f"{E}explode.mode": "List"}, "a record that wraps a list of records is exploded: a row for each"),
        ({f"{E}obfuscation.fields": "a,b.c"}, "obfuscated with fix: a, b.c"),
        ({f"{E}flattener.enable": "false"}, "nested columns"),
        ({f"{E}flattener.collections.discard": "true"}, "flattened to columns, without lists"),
        (
            {f"{E}flattener.jsonblob.chunks": "3", f"{E}data.fallback.varchar.length": "9"},
            "its JSON is cut into 3 columns of 9 bytes",
        ),
        (
            {f"{E}data.primary.key": "id", f"{E}order.field.name": "at"},
            "primary keys, not null: id; ordered by at",
        ),
        ({f"{E}data.primary.key": "id"}, "primary keys, not null: id; ordered by the offset"),
        (
            {f"{E}data.primary.key": "id", f"{E}tombstones": "row", "key.converter": "string", **NO_METADATA},
            "columns added: __celonis_order, __deleted",
        ),
        (
            {f"{E}data.primary.key": "id", **NO_METADATA},
            "columns added: __celonis_order",
        ),
    ],
)
def test_a_step_is_told_where_it_is_set(changes: dict[str, str], step: str) -> None:
    """And only there."""
    assert step in settings_of(changes).description(keys=False, headers=False)
    assert step not in settings_of().description(keys=False, headers=False)
