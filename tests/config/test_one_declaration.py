"""Each key is declared once: in the room that it is of, by the settings that it fills."""

import re
from collections import defaultdict
from importlib import import_module
from pathlib import Path

from parquet_sink.config.declared import keys_of

ROOT = Path(__file__).parents[2] / "parquet_sink"
TABLES = {
    "addons/sources/connector": "puts together what any source has",
    "connectors/ems": "puts together what the EMS sink has",
    "convert": "puts together what converters have",
    "convert/registry": "is read for each side of a record",
    "targets": "has what several targets share",
    "transform": "is of transforms as a list, whose own keys are with their classes",
}
"""Rooms with a module of keys beside their settings, and why."""
OTHER_WORDS = {
    "connect.ems.commit.interval.ms",
    "connect.ems.tmp.dir",
    "connect.ems.stop.timeout.ms",
    "errors.retry.delay.max.ms",
    "errors.retry.timeout",
    "errors.tolerance",
    "file",
    "generalized.sum.type.support",
    "errors.log.enable",
    "errors.log.include.messages",
    "producer.override.*",
    "producer.override.acks",
    "producer.override.bootstrap.servers",
    "producer.override.enable.idempotence",
    "producer.override.transactional.id",
}
"""Keys that say something else of another kind of connector, or of another format."""


def declaring() -> dict[str, set[str]]:
    """By the full name of a key the classes that declare it."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in ROOT.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"^@declared\([^\n]*\)\nclass (\w+)", text, re.MULTILINE):
            module = ".".join(("parquet_sink", *path.relative_to(ROOT).with_suffix("").parts))
            cls = getattr(import_module(module), name)
            of_bases = {key.name for base in cls.__bases__ for key in keys_of(base)}
            of_groups = {
                key.name for part in vars(cls)["__declared__"].values() if part.group for key in keys_of(part.group)
            }
            for key in keys_of(cls):
                if key.name not in of_bases | of_groups:
                    found[key.name].add(name)
    return found


def test_a_key_has_one_declaration() -> None:
    """But for those that say something else where another kind of connector has them."""
    found = declaring()
    assert len(found) > 150
    assert {name for name, classes in found.items() if len(classes) > 1} <= OTHER_WORDS


def test_keys_stand_with_the_settings_that_they_fill() -> None:
    """A module of keys beside settings has a reason."""
    beside = {
        str(path.parent.relative_to(ROOT)) for path in ROOT.rglob("keys.py") if path.with_name("settings.py").exists()
    }
    tables = {str(path.parent.relative_to(ROOT)) for path in ROOT.rglob("keys.py")}
    assert beside <= tables <= TABLES.keys()
