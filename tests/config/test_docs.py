"""The generated reference is complete, current, and free of contradictions in the table."""

from pathlib import Path

import pytest

from parquet_sink.config.key import Key, Type, find
from parquet_sink.connectors.documentation import help_text, markdown
from parquet_sink.connectors.ems.keys import EMS_KEYS
from parquet_sink.connectors.worker_keys import WORKER_KEYS
from parquet_sink.convert.converter_setting import CONVERT_SETTINGS
from parquet_sink.convert.keys import PREFIXES, SETTINGS

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
SETTING_KEYS = tuple(setting.key for setting in SETTINGS)
TABLES = (EMS_KEYS, WORKER_KEYS, SETTING_KEYS)
ALL = [pytest.param(table, key, id=key.name) for table in TABLES for key in table]

PAGE_TEXT, HELP_TEXT = markdown(), help_text()


def test_the_page_in_the_repository_is_what_the_table_says() -> None:
    """After a change of the table: python -m parquet_sink.connectors.documentation > docs/configuration.md."""
    assert PAGE.read_text(encoding="utf-8") == markdown()


@pytest.mark.parametrize(("table", "key"), ALL)
def test_every_key_is_documented(table: tuple[Key, ...], key: Key) -> None:
    """On the page and in the help, with a sentence that ends; settings of converters once, under their own names."""
    prefix = next((prefix for prefix in PREFIXES if key.name.startswith(prefix) and key.name != f"{prefix}*"), "")
    name = key.name.removeprefix(prefix)
    assert f"| `{name}` |" in PAGE_TEXT or (key.group == CONVERT_SETTINGS and f"`{name}`" in PAGE_TEXT)
    assert f"  {name} (" in HELP_TEXT
    assert key.doc.endswith(".")


@pytest.mark.parametrize(("table", "key"), ALL)
def test_every_key_is_consistent(table: tuple[Key, ...], key: Key) -> None:
    """Found by its own name; its default fits type, range, choices and check; a required key says how to cure it."""
    assert find(table, key.name) is key
    assert [other.name for other in table].count(key.name) == 1
    assert bool(key.required) == bool(key.missing)
    if key.needs:
        assert find(table, key.needs) is not None
    if key.default is None or key.default == ():
        return
    kinds = {Type.BOOLEAN: bool, Type.INT: int, Type.LONG: int, Type.LIST: tuple}
    assert type(key.default) is kinds.get(key.type, str)
    assert not key.choices or key.default in key.choices
    assert key.check is None or key.check.test(key.default) is None
    assert key.not_built is None or not key.not_built.when(key.default)
    if type(key.default) is int:
        assert (key.minimum or 0) <= key.default <= (key.maximum or 2**63 - 1)


def test_help_fits_a_terminal() -> None:
    """Text is wrapped at 100 columns; only the line of a key's name and limits may be longer."""
    wrapped = [line for line in help_text().splitlines() if line.startswith("      ")]
    assert max(map(len, wrapped)) <= 120


def test_an_exact_key_is_found_before_the_longest_prefix() -> None:
    """consumer.override.isolation.level is a key of its own."""
    name = "consumer.override.isolation.level"
    exact, general = find(EMS_KEYS, name), find(EMS_KEYS, "consumer.override.x")
    assert exact is not None
    assert exact.name == name
    assert general is not None
    assert general.name == "consumer.override.*"
    assert find(EMS_KEYS, "consumer.overrid") is None
