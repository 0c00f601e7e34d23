"""Keys of transforms and predicates: those that all of them have, and what the keys of their classes have in common."""

from typing import Final

from parquet_sink.config.key import Check, Key, Origin, Type, Value
from parquet_sink.config.values import Values

TRANSFORM: Final = "Transforms and predicates"


def connect_key(
    name: str,
    type_: Type,
    doc: str,
    *,
    default: Value = None,
    default_text: str = "",
    missing: str = "",
    choices: tuple[str, ...] = (),
    check: Check | None = None,
    needs: str = "",
    no_effect: str = "",
    deprecated: str = "",
    may_be_empty: bool = False,
    origin: Origin = Origin.CONNECT,
) -> Key:
    """One of Kafka Connect's keys, unless `origin` says otherwise. missing: the cure, of a key that is required."""
    return Key(
        name,
        TRANSFORM,
        type_,
        doc,
        default=default,
        default_text=default_text,
        required=bool(missing),
        missing=missing,
        choices=choices,
        check=check,
        needs=needs,
        no_effect=no_effect,
        deprecated=deprecated,
        may_be_empty=may_be_empty,
        origin=origin,
    )


def list_key(name: str, doc: str, missing: str) -> Key:
    """A list that must not be empty. missing: the cure."""

    def some(value: Value) -> str | None:
        return None if value else f"It has no name; {missing}"

    return connect_key(name, Type.LIST, doc, missing=missing, check=Check("at least one name", some))


def in_order(values: Values, name: str) -> tuple[str, ...]:
    """The entries of a list as Kafka Connect has them: in order, repeated ones too."""
    if name not in values.texts:
        return values.names(name)
    return tuple(one.strip() for one in values.texts[name].split(","))


REPLACE_NULL: Final = connect_key(
    "replace.null.with.default",
    Type.BOOLEAN,
    "In Kafka Connect, whether a null field becomes the default that its schema gives.",
    default=False,
    no_effect=(
        "Here a null stays null: whether a default takes its place was decided when the value was decoded "
        "(`value.converter.replace.null.with.default`)."
    ),
)

STEP_KEYS: Final = (
    connect_key(
        "type",
        Type.STRING,
        "The transform's class: Kafka Connect's full name or its last part (`Cast$Value`, for values also `Cast`), one "
        "of ours, the name of an entry point of an installed Python package, or `package.module.Class`. `$Key` behind "
        "it is for keys of records.",
        missing="name the transform's class, for example Cast$Value.",
    ),
    connect_key(
        "predicate", Type.STRING, "The predicate that chooses the records it is for.", default_text="all records"
    ),
    connect_key(
        "negate",
        Type.BOOLEAN,
        "Whether it is for the records that the predicate does not choose. An error without `predicate`.",
        default=False,
    ),
)
"""Behind `transforms.N.`."""

PREDICATE_KEYS: Final = (
    connect_key(
        "type",
        Type.STRING,
        "The predicate's class, named as a transform's is.",
        missing="name the predicate's class, for example TopicNameMatches.",
    ),
)
"""Behind `predicates.N.`."""

TRANSFORM_KEYS: Final = (
    connect_key(
        "transforms",
        Type.LIST,
        "Names of the transforms that records go through, between decoding and shaping, in this order.",
        default=(),
    ),
    connect_key("transforms.*", Type.STRING, "Settings of transforms, each behind its name."),
    connect_key("predicates", Type.LIST, "Names of the predicates that transforms may ask.", default=()),
    connect_key("predicates.*", Type.STRING, "Settings of predicates, each behind its name."),
)
"""Of a connector file."""
