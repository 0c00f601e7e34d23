"""Transforms and predicates by the names that a connector file has for them."""

from typing import Final

from parquet_sink import plugins
from parquet_sink.plugins import PREDICATES, TRANSFORMS, Kind
from parquet_sink.transform.protocol import PredicateClass, Side, TransformClass

TRANSFORM_CLASSES: Final[Kind[TransformClass]] = Kind(
    TRANSFORMS,
    "transform",
    ("$Value", "Transformation"),
    TransformClass,  # type: ignore[type-abstract]
    called=True,
    by_path=True,
)
PREDICATE_CLASSES: Final[Kind[PredicateClass]] = Kind(
    PREDICATES,
    "predicate",
    ("Predicate",),
    PredicateClass,  # type: ignore[type-abstract]
    called=True,
    by_path=True,
)

_WITHOUT_PACKAGE: Final = {"sql": "parquet_sink.transform.sql.transform.Sql"}
"""Of names without a package what stands in dead letters, wherever the class is."""


def find_transform(name: str) -> tuple[TransformClass, Side]:
    """The class of a name, and the side that the name says: `$Key` or `$Value` behind it, without one the value.

    Raises plugins.PluginUnusable.
    """
    located = plugins.locate(TRANSFORM_CLASSES, name)
    side: Side = "key" if located.name.endswith("$Key") else "value"
    return plugins.load(TRANSFORM_CLASSES, located), side


def class_name(name: str) -> str:
    """The full name of a transform's class as Kafka Connect writes it, where it has one; else ours, or its author's.

    Raises plugins.PluginUnusable.
    """
    located = plugins.locate(TRANSFORM_CLASSES, name)
    name = _WITHOUT_PACKAGE.get(located.name, located.name)
    return name if "." in name else located.path.replace(":", ".")


def find_predicate(name: str) -> PredicateClass:
    """The class of a name. Raises plugins.PluginUnusable."""
    return plugins.find(PREDICATE_CLASSES, name)
