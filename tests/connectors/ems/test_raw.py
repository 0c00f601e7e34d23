"""`connect.ems.mode=raw` in a connector file: what it sets, what is refused beside it, and what has no effect."""

import pytest

from parquet_sink.connectors.loading import Loaded
from parquet_sink.convert.settings import ConverterSettings
from parquet_sink.rows.raw import RAW_PARTS
from parquet_sink.targets.push.settings import PushSettings
from parquet_sink.task.record_steps import policy_for, steps_for
from tests.connectors.ems.connector_files import E, load_file
from tests.messages import assert_says

RAW: dict[str, str | None] = {f"{E}mode": "raw", "value.converter": None, "value.converter.schemas.enable": None}


def _load(more: dict[str, str | None]) -> Loaded:
    return load_file({**RAW, **more})


def test_no_converter_is_needed() -> None:
    """Nothing is decoded or shaped, and nobody misses a converter; the files of a shaped connector are other ones."""
    loaded = _load({})
    settings = loaded.require()
    assert (settings.shape.raw, settings.value, settings.key, settings.transforms) == (
        *(True, ConverterSettings(), None, ()),
    )
    assert loaded.warnings == ()
    assert settings.fingerprint != load_file().require().fingerprint
    assert not load_file({f"{E}mode": "shaped"}).require().shape.raw


def test_all_of_a_record_is_read_and_nothing_for_rejected_ones() -> None:
    """No record can be rejected, so what single ones would cost is not spent, wherever they would go."""
    settings = _load({"errors.tolerance": "all"}).require()
    assert steps_for(settings, policy_for(settings)).needs == RAW_PARTS


def test_rows_are_told_apart_by_where_they_come_from() -> None:
    """Primary keys are columns of raw files, the newest row is that of the highest offset."""
    target = _load({f"{E}data.primary.key": "topic,partition,offset"}).require().target
    assert isinstance(target, PushSettings)
    assert (target.primary_keys, target.order_column) == (("topic", "partition", "offset"), "offset")
    kept, columns, row = _load({}).require().description(keys=False, headers=False)
    assert_says(kept, "raw", "nothing is decoded", "tombstone", "row")
    assert columns.split(": ")[1].split(", ") == [
        *("key", "value", "headers", "timestamp", "timestamp_type", "topic", "partition", "offset"),
    ]
    assert_says(row, "row", "table ORDERS")


@pytest.mark.parametrize(
    ("more", "key", "told"),
    [
        (
            {"transforms": "m", "transforms.m.type": "MaskField$Value", "transforms.m.fields": "a"},
            "transforms",
            ("change records", "remove it", "set shaped"),
        ),
        ({f"{E}obfuscation.fields": "name"}, f"{E}obfuscation.fields", ("hide fields", "remove it", "set shaped")),
        (
            {f"{E}data.primary.key": "topic,id"},
            f"{E}data.primary.key",
            ('"id"', "not identify a row", "name topic, partition, offset"),
        ),
        (
            {f"{E}data.primary.key": "offset", f"{E}order.field.name": "changed"},
            f"{E}order.field.name",
            ('"changed"', "not order rows", "name offset"),
        ),
        ({f"{E}mode": "row"}, f"{E}mode", ('"row"', "not one of", "shaped, raw", "Did you mean raw?")),
    ],
)
def test_what_cannot_be_done_is_refused(more: dict[str, str | None], key: str, told: tuple[str, ...]) -> None:
    """Who masks fields must not find them in clear; keys must be columns that are there."""
    (problem,) = [one for one in _load(more).problems if one.startswith(f"Invalid [{key}]")]
    assert_says(problem, *told)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("value.converter", "org.apache.kafka.connect.json.JsonConverter"),
        ("key.converter", "org.apache.kafka.connect.storage.StringConverter"),
        (f"{E}tombstones", "row"),
        (f"{E}flattener.enable", "false"),
        (f"{E}embed.kafka.metadata", "false"),
        (f"{E}explode.mode", "List"),
        ("errors.tolerance", "all"),
        (f"{E}error.policy.continue.on.invalid.input", "true"),
    ],
)
def test_what_has_no_effect_is_said(key: str, text: str) -> None:
    """A converter, and all that shapes, is named in a warning each."""
    loaded = _load({key: text})
    assert loaded.problems == ()
    (warning,) = [one for one in loaded.warnings if one.startswith(f"Warning [{key}]")]
    assert_says(warning, "no effect", f"{E}mode is raw")
