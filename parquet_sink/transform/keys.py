"""Keys of transforms and predicates that all of them have; each class has its own beside these."""

from typing import Final

from parquet_sink.config.key import Key, Origin, Type

TRANSFORM: Final = "Transforms and predicates"


def _key(name: str, type_: Type, doc: str, *, required: bool = False, missing: str = "", text: str = "") -> Key:
    return Key(
        name, TRANSFORM, type_, doc, required=required, missing=missing, default_text=text, origin=Origin.CONNECT
    )


STEP_KEYS: Final = (
    _key(
        "type",
        Type.STRING,
        "The transform's class: Kafka Connect's full name or its last part (`Cast$Value`, for values also `Cast`), one "
        "of ours, the name of an entry point of an installed Python package, or `package.module.Class`. `$Key` behind "
        "it is for keys of records.",
        required=True,
        missing="name the transform's class, for example Cast$Value.",
    ),
    _key("predicate", Type.STRING, "The predicate that chooses the records it is for.", text="all records"),
    Key(
        "negate",
        TRANSFORM,
        Type.BOOLEAN,
        "Whether it is for the records that the predicate does not choose. An error without `predicate`.",
        default=False,
        origin=Origin.CONNECT,
    ),
)
"""Behind `transforms.N.`."""

PREDICATE_KEYS: Final = (
    _key(
        "type",
        Type.STRING,
        "The predicate's class, named as a transform's is.",
        required=True,
        missing="name the predicate's class, for example TopicNameMatches.",
    ),
)
"""Behind `predicates.N.`."""

TRANSFORM_KEYS: Final = (
    Key(
        "transforms",
        TRANSFORM,
        Type.LIST,
        "Names of the transforms that records go through, between decoding and shaping, in this order.",
        default=(),
        origin=Origin.CONNECT,
    ),
    _key("transforms.*", Type.STRING, "Settings of transforms, each behind its name."),
    Key(
        "predicates",
        TRANSFORM,
        Type.LIST,
        "Names of the predicates that transforms may ask.",
        default=(),
        origin=Origin.CONNECT,
    ),
    _key("predicates.*", Type.STRING, "Settings of predicates, each behind its name."),
)
"""Of a connector file."""
