"""Transforms by name: built in, of an installed package, and by their path."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from parquet_sink import plugins
from parquet_sink.config.values import NOTHING
from parquet_sink.plugins import PluginUnusable
from parquet_sink.transform.classes import find_predicate, find_transform
from tests.messages import assert_says

OWN = """
from parquet_sink.model.records import VALUES_ONLY

class Keep:
    keys = ()
    needs = VALUES_ONLY
    def __init__(self, values, side):
        self.side = side
    def apply(self, records):
        return records

class Odd:
    keys = ()
    def __init__(self, values):
        pass

class Bare:
    pass
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module of a user's own; its name."""
    name = "own_transforms_for_a_test"
    (tmp_path / f"{name}.py").write_text(OWN, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield name
    sys.modules.pop(name, None)


@pytest.mark.parametrize(("name", "side"), [("Keep", "value"), ("Keep$Value", "value"), ("Keep$Key", "key")])
def test_a_class_by_its_path(own: str, name: str, side: str) -> None:
    """What stands behind its name says which side of a record it works on; without that it is the value."""
    found, on = find_transform(f"{own}.{name}")
    assert (found.__name__, on) == ("Keep", side)  # type: ignore[attr-defined]
    assert found(NOTHING, on).side == side  # type: ignore[attr-defined]


@pytest.mark.parametrize(("name", "side"), [("com.x.Keep$Key", "key"), ("Keep$Key", "key"), ("keep", "value")])
def test_a_class_of_an_installed_package(own: str, tmp_path: Path, name: str, side: str) -> None:
    """By the names of its entry points, and what is short for them."""
    (tmp_path / "own-1.dist-info").mkdir()
    points = f"[parquet_sink.transforms]\ncom.x.Keep$Key = {own}:Keep\nkeep = {own}:Keep\n"
    (tmp_path / "own-1.dist-info" / "entry_points.txt").write_text(points, encoding="utf-8")
    found, on = find_transform(name)
    assert (found.__name__, on) == ("Keep", side)  # type: ignore[attr-defined]


def test_a_predicate_by_its_path(own: str) -> None:
    """A class with keys is one."""
    assert find_predicate(f"{own}.Odd").keys == ()


def test_names_as_kafka_connect_has_them(own: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The full name, the last part of it, and for values that without `$Value`."""
    names = {
        "org.x.Mask$Value": f"{own}:Keep",
        "org.x.Mask$Key": f"{own}:Keep",
        "org.x.DropTransformation": f"{own}:Keep",
    }
    monkeypatch.setattr(plugins, "BUILT_IN", {plugins.TRANSFORMS: names})
    sides = {name: find_transform(name)[1] for name in ("org.x.Mask$Key", "Mask$Key", "Mask$Value", "Mask", "Drop")}
    assert sides == {
        "org.x.Mask$Key": "key",
        "Mask$Key": "key",
        "Mask$Value": "value",
        "Mask": "value",
        "Drop": "value",
    }


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_such_package.Keep", ["not a known transform"]),
        ("{own}.Missing", ["cannot be loaded", "{own}:Missing", "AttributeError"]),
        ("{own}.Bare", ["cannot be used", "transform", "no keys"]),
        ("json.dumps", ["cannot be used", "transform", "no keys"]),
        ("io.debezium.transforms.ByLogicalTableRouter", ["connect.ems.target.table.map"]),
        ("ByLogicalTableRouter", ["RegexRouter"]),
        ("ExtractNewDocumentState", ["not built"]),
        ("io.confluent.connect.transforms.Drop$Value", ["not a known transform"]),
        ("Keep", ["not a known transform"]),
        ("a b.c", ["not a known transform"]),
        (".Keep", ["not a known transform"]),
    ],
)
def test_what_is_no_transform(own: str, name: str, said: list[str]) -> None:
    """The reason says which of the two it is: not there, or not what is wanted."""
    with pytest.raises(PluginUnusable) as error:
        find_transform(name.format(own=own))
    assert_says(error.value, *(part.format(own=own) for part in said))


def test_every_built_in_name_loads() -> None:
    """No name stands for a module that is not there."""
    for name in plugins.BUILT_IN[plugins.TRANSFORMS]:
        assert find_transform(name)[0].keys is not None
    for name in plugins.BUILT_IN[plugins.PREDICATES]:
        assert find_predicate(name).keys is not None
