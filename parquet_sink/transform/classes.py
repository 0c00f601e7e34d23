"""Transforms and predicates by the names that a connector file has for them."""

from typing import Final

from parquet_sink import plugins
from parquet_sink.config.report import quoted
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
_NOT_BUILT: Final = {
    "io.debezium.transforms.ByLogicalTableRouter": (
        "it brings topics together under one name, which changes no table here; name the topics in topics or "
        "topics.regex with one connect.ems.target.table, or connect.ems.target.table.map, and remove it. A topic's "
        "name in a field is for RegexRouter or ExtractNewRecordState's route.by.field"
    ),
    "io.debezium.connector.mongodb.transforms.ExtractNewDocumentState": (
        "change events of MongoDB have documents as text; let Debezium's connector have it as its own transform, so "
        "that the topic has rows"
    ),
}
"""Classes of others that are known and not there, and the cure."""


def find_transform(name: str) -> tuple[TransformClass, Side]:
    """The class of a name, and the side that the name says: `$Key` or `$Value` behind it, without one the value.

    Raises plugins.PluginUnusable.
    """
    cure = next((cure for full, cure in _NOT_BUILT.items() if name in (full, full.rpartition(".")[2])), None)
    if cure is not None:
        raise plugins.PluginUnusable(f"{quoted(name)} is not built: {cure}.")
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
