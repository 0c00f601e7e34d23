"""The generated reference is complete, current, and free of contradictions in the table."""

from pathlib import Path

import pytest

from parquet_sink.config.key import Key, Type, find
from parquet_sink.connectors.documentation import help_text, markdown
from parquet_sink.connectors.ems.sink import EMS_KEYS
from parquet_sink.convert.keys import PREFIXES, SETTINGS
from parquet_sink.convert.settings import CONVERT_SETTINGS
from parquet_sink.worker_config.worker_keys import WORKER_KEYS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "configuration.md"
SETTING_KEYS = tuple(setting.key for setting in SETTINGS)
TABLES = (EMS_KEYS, WORKER_KEYS, SETTING_KEYS)
PAGE_TEXT, HELP_TEXT = markdown(), help_text()


def test_the_page_in_the_repository_is_what_the_table_says() -> None:
    """After a change: python -m parquet_sink.connectors.documentation > docs/reference/configuration.md."""
    assert PAGE.read_text(encoding="utf-8") == markdown()


def documented(key: Key) -> bool:
    """On the page and in the help, with a sentence that ends; settings of converters once, under their own names."""
    prefix = next((prefix for prefix in PREFIXES if key.name.startswith(prefix) and key.name != f"{prefix}*"), "")
    name = key.name.removeprefix(prefix)
    on_page = f"| `{name}` |" in PAGE_TEXT or (key.group == CONVERT_SETTINGS and f"`{name}`" in PAGE_TEXT)
    return on_page and f"  {name} (" in HELP_TEXT and key.doc.endswith(".")


@pytest.mark.parametrize("table", TABLES)
def test_every_key_is_documented(table: tuple[Key, ...]) -> None:
    """All keys are on the page and in the help, with a sentence."""
    assert len(table) > 10
    assert [key.name for key in table if not documented(key)] == []


def default_fits(key: Key) -> bool:
    """Whether a default that there is fits type, range, choices and check, and means something that is built."""
    if key.default is None or key.default == ():
        return True
    kinds = {Type.BOOLEAN: bool, Type.INT: int, Type.LONG: int, Type.LIST: tuple}
    in_range = type(key.default) is not int or (key.default if key.minimum is None else key.minimum) <= key.default <= (
        key.maximum or 2**63 - 1
    )
    return (
        type(key.default) is kinds.get(key.type, str)
        and (not key.choices or key.default in key.choices)
        and (key.check is None or key.check.test(key.default) is None)
        and (key.not_built is None or not key.not_built.when(key.default))
        and in_range
    )


@pytest.mark.parametrize("table", TABLES)
def test_every_key_is_consistent(table: tuple[Key, ...]) -> None:
    """Found by its own name, once; its default fits; a required key says how to cure it; what it needs is a key."""
    assert [key.name for key in table if find(table, key.name) is not key] == []
    assert len({key.name for key in table}) == len(table)
    assert [key.name for key in table if bool(key.required) != bool(key.missing)] == []
    assert [key.name for key in table if key.needs and find(table, key.needs) is None] == []
    assert [key.name for key in table if not default_fits(key)] == []


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
