"""What happens to a record, in order and in words."""

import pytest

from tests.connectors.ems.connector_files import E, settings_of
from tests.messages import assert_says

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
    decoded, tombstone, columns, added, row, failing = settings_of().description(keys=False, headers=False)
    assert_says(decoded, "decoded", "value: JSON without a schema", "key: not read", "headers: not read")
    assert_says(tombstone, "tombstone", "no row", "offset is committed")
    assert_says(columns, "flattened to columns", "lists as JSON text")
    assert_says(added, "added", "kafkaPartition, kafkaOffset, kafkaTimestamp, kafkaPartitionOffset")
    assert_says(row, "a row", "table ORDERS")
    assert_says(failing, "fails", "stops before it")


def test_transforms_stand_in_their_order_with_their_predicates() -> None:
    """Between decoding and columns; what they ask for is read."""
    decoded, *steps = settings_of(STEPS).description(keys=True, headers=True)
    assert_says(decoded, "value: JSON without a schema", "key: text", "headers: text", "SimpleHeaderConverter")
    chosen = ("predicates.p", "(tests.transform.classes.Never)", "chooses")
    assert_says(steps[0], "transforms.two", "tests.transform.classes.Keep$Key", "for records that", *chosen)
    assert_says(steps[1], "transforms.one", "tests.transform.classes.Keep,", "for other records", *chosen)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({f"{E}convert.decimals.to.double": "true"}, ("decimals", "doubles")),
        ({f"{E}convert.lowercase.fields": "true"}, ("names of fields", "lower case")),
        ({f"{E}explode.mode": "List"}, ("exploded", "a list of records", "a row for each")),
        ({f"{E}obfuscation.fields": "a,b.c"}, ("obfuscated with fix", "a, b.c")),
        ({f"{E}flattener.enable": "false"}, ("nested columns",)),
        ({f"{E}flattener.collections.discard": "true"}, ("flattened", "without lists")),
        (
            {f"{E}flattener.jsonblob.chunks": "3", f"{E}data.fallback.varchar.length": "9"},
            ("JSON is cut", "3 columns", "9 bytes"),
        ),
        (
            {f"{E}data.primary.key": "id", f"{E}order.field.name": "at"},
            ("primary keys, not null: id", "ordered by at"),
        ),
        ({f"{E}data.primary.key": "id"}, ("primary keys, not null: id", "by the offset")),
        (
            {f"{E}data.primary.key": "id", f"{E}tombstones": "row", "key.converter": "string", **NO_METADATA},
            ("columns added", ": __celonis_order, __deleted"),
        ),
        ({f"{E}data.primary.key": "id", **NO_METADATA}, ("columns added", ": __celonis_order")),
    ],
)
def test_a_step_is_told_where_it_is_set(changes: dict[str, str], words: tuple[str, ...]) -> None:
    """And only there."""
    (step,) = [one for one in settings_of(changes).description(keys=False, headers=False) if words[-1] in one]
    assert_says(step, *words)
    assert not [one for one in settings_of().description(keys=False, headers=False) if words[-1] in one]
