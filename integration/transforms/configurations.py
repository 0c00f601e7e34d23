"""Configurations of transforms and predicates at random, most of them such that they fit the records of a case."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from integration.transforms.cases import Step
from integration.transforms.samples import LOGICAL, NAMES, PLAIN, Shape

_PACKAGE: Final = "org.apache.kafka.connect.transforms."
_CASTS: Final = ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string")
_FORMATS: Final = (
    *("yyyy-MM-dd", "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", "yyyy-MM-dd HH:mm:ss", "dd/MM/yyyy", "yyyyMMdd", "HH:mm:ss.SSS"),
    *("yyyy-MM-dd'T'HH:mm:ssXXX", "EEE, d MMM yyyy", "yy", "yyyy-MM-dd'T'HH:mm:ss'Z'", "MMM d, yyyy hh:mm a", "D"),
    *(
        "yyyy-MM-dd'T'HH:mm:ssZ",
        "MM/dd/yy",
        "y",
        "yyyyy",
        "yyy",
        "EEEE",
        "MMMM",
        "u",
        "kk",
        "KK a",
        "SSSSSS",
        "z",
        "zzzz",
    ),
    *("'at' yyyy", "''yy", "yyyyDDD", "X", "XX", "hh:mm:ss a", "h a", "yyyy-M-d H:m:s", "", "yyyy MM", "M", "d"),
)
_LITERALS: Final = (
    *("12", "300", "-1", "1.5", "true", "text", "2020-01-01", "2020-01-01T00:00:00.000Z", "[1,2]", '{"a":1}'),
    *("", "null"),
    *("12:34:56.789Z", '"quoted"', "99999999999", " padded ", "ünï", "[]", "{}", "NaN"),
)
HEADERS: Final = ("h", "trace", "x-id", "ünï", "h2")

Keys = dict[str, str]


def _cast(rng: Random, shape: Shape) -> Keys:
    if rng.random() < 0.03 or not shape.kinds:
        return {"spec": rng.choice(_CASTS)}
    names = {shape.named(rng, *PLAIN, *LOGICAL) for _ in range(rng.randrange(1, 4))}
    spec = ",".join(f"{name}:{rng.choice(_CASTS)}" for name in sorted(names))
    if rng.random() < 0.04:
        spec = rng.choice(
            ("", "a:", ":int8", "a:bytes", "a:int8:int16", "a:int8,a:int16", "a:INT8", "a : int8", "int32,a:int8")
        )
    return {"spec": spec}


def _replace_field(rng: Random, shape: Shape) -> Keys:
    keys = {}
    if rng.random() < 0.5:
        keys["exclude"] = _names(rng, shape)
    if rng.random() < 0.4:
        keys["include"] = _names(rng, shape)
    if rng.random() < 0.5:
        taken = NAMES if shape.schema is not None or rng.random() < 0.04 else ()
        pairs = [f"{shape.named(rng)}:{rng.choice((*taken, f'new{at}'))}" for at in range(rng.randrange(1, 3))]
        keys["renames"] = ",".join(pairs)
    if rng.random() < 0.05:
        keys["whitelist"] = _names(rng, shape)
    if rng.random() < 0.03:
        keys["renames"] = rng.choice(("a", "a:b:c", ":", "a:", "a:b,a:c", "a:x,b:x"))
    return keys


def _insert_field(rng: Random, shape: Shape) -> Keys:
    keys = {}
    for part in ("topic", "partition", "offset", "timestamp"):
        if rng.random() < 0.4:
            keys[f"{part}.field"] = rng.choice(("new", f"_{part}", f"_{part}", f"_{part}", shape.named(rng)))
            keys[f"{part}.field"] += rng.choice(("", "", "!", "?"))
    if rng.random() < 0.5 or not keys:
        keys["static.field"] = rng.choice(("source", "source!", "source?", shape.named(rng)))
        keys["static.value"] = rng.choice(("x", "", "12", "ünï"))
    if rng.random() < 0.04:
        keys.pop("static.value", None)
    return keys


def _mask_field(rng: Random, shape: Shape) -> Keys:
    keys = {"fields": _names(rng, shape)}
    if rng.random() < 0.5:
        keys["replacement"] = rng.choice(
            ("***", "0", "42", "-1", "300", "1.5", "9223372036854775807", "ünï", "", " 7", "1f")
        )
    return keys


def _flatten(rng: Random, shape: Shape) -> Keys:
    return {} if rng.random() < 0.4 else {"delimiter": rng.choice(("_", ".", "", "--", "ü"))}


def _timestamp_converter(rng: Random, shape: Shape) -> Keys:
    keys = {"target.type": rng.choice(("string", "unix", "Date", "Time", "Timestamp"))}
    if shape.kinds and rng.random() < 0.85:
        keys["field"] = shape.named(rng, "int64", "string", "Date", "Time", "Timestamp")
    if rng.random() < 0.75:
        keys["format"] = rng.choice(_FORMATS)
    if rng.random() < 0.4:
        keys["unix.precision"] = rng.choice(("seconds", "milliseconds", "microseconds", "nanoseconds"))
    if rng.random() < 0.04:
        keys |= rng.choice(
            ({"target.type": "date"}, {"unix.precision": "days"}, {"format": "bbb"}, {"format": "yyyy-'x"})
        )
    return keys


def _extract_field(rng: Random, shape: Shape) -> Keys:
    keys = {"field": shape.named(rng, *PLAIN, *LOGICAL, "array", "map", "struct", "list", "object")}
    if rng.random() < 0.5:
        keys["field.syntax.version"] = rng.choice(("V1", "V2", "V2", "v2", "V3"))
        keys["field"] = rng.choice(
            (keys["field"], keys["field"], "`a.b`", "a.`a.b`", "a.b.c", "`a", "a..b", "a.", "a`b")
        )
    return keys


def _hoist_field(rng: Random, shape: Shape) -> Keys:
    return {"field": rng.choice(("w", "ünï", "a", "a.b", ""))}


def _value_to_key(rng: Random, shape: Shape) -> Keys:
    return {"fields": _names(rng, shape)}


def _filter(rng: Random, shape: Shape) -> Keys:
    return {}


def _header_from(rng: Random, shape: Shape) -> Keys:
    count = rng.randrange(1, 4)
    headers = [rng.choice((*HEADERS, "new")) for _ in range(count if rng.random() < 0.95 else count + 1)]
    fields = [shape.named(rng) for _ in range(count)]
    return {
        "fields": ",".join(fields),
        "headers": ",".join(headers),
        "operation": rng.choice(("copy", "move", "move", "copy", "move", "both")),
    }


def _drop_headers(rng: Random, shape: Shape) -> Keys:
    return {"headers": ",".join(rng.sample(HEADERS, rng.randrange(1, 3)))}


def _insert_header(rng: Random, shape: Shape) -> Keys:
    return {"header": rng.choice((*HEADERS, "new")), "value.literal": rng.choice(_LITERALS)}


def _regex_router(rng: Random, shape: Shape) -> Keys:
    regexes = (
        "orders",
        "(.*)",
        "or(.*)s",
        "(?<n>o).*",
        "ord",
        "(or)|(x)",
        "ORDERS",
        "(?i)ORDERS",
        ".*",
        "[a-z]+",
        "(",
        "\\w*",
    )
    replacements = ("new", "pre-$1", "$1-$1", "$0", "${n}", "a$2b", "\\$1", "$", "", "x\\\\y", "$10")
    return {"regex": rng.choice(regexes), "replacement": rng.choice(replacements)}


def _timestamp_router(rng: Random, shape: Shape) -> Keys:
    keys = {}
    if rng.random() < 0.7:
        keys["topic.format"] = rng.choice(
            ("${topic}-${timestamp}", "x", "${timestamp}", "${topic}", "${TOPIC}-$1", "a${other}")
        )
    if rng.random() < 0.7:
        keys["timestamp.format"] = rng.choice((*_FORMATS, ""))
    return keys


def _set_schema_metadata(rng: Random, shape: Shape) -> Keys:
    return rng.choice(
        (
            {"schema.name": "n"},
            {"schema.version": "7"},
            {"schema.name": "n", "schema.version": "0"},
            {},
            {"schema.version": "x"},
        )
    )


_SIDED: Final[Mapping[str, Callable[[Random, Shape], Keys]]] = {
    "Cast": _cast,
    "ExtractField": _extract_field,
    "Flatten": _flatten,
    "HeaderFrom": _header_from,
    "HoistField": _hoist_field,
    "InsertField": _insert_field,
    "MaskField": _mask_field,
    "ReplaceField": _replace_field,
    "SetSchemaMetadata": _set_schema_metadata,
    "TimestampConverter": _timestamp_converter,
}
_WHOLE: Final[Mapping[str, Callable[[Random, Shape], Keys]]] = {
    "DropHeaders": _drop_headers,
    "Filter": _filter,
    "InsertHeader": _insert_header,
    "RegexRouter": _regex_router,
    "TimestampRouter": _timestamp_router,
    "ValueToKey": _value_to_key,
}
_WITHOUT_NULLS: Final = frozenset(
    {"Flatten", "DropHeaders", "Filter", "InsertHeader", "RegexRouter", "TimestampRouter"}
)
TRANSFORMS: Final = (*_SIDED, *_WHOLE)
PREDICATES: Final = ("TopicNameMatches", "HasHeaderKey", "RecordIsTombstone")


def step(rng: Random, name: str, value: Shape, key: Shape) -> Step:
    """One transform by its short name, for the value or the key, under a predicate or not."""
    on_key = name in _SIDED and rng.random() < 0.2
    shape = key if on_key else value
    keys = (_SIDED.get(name) or _WHOLE[name])(rng, shape)
    if name not in _WITHOUT_NULLS and rng.random() < 0.15:
        keys["replace.null.with.default"] = rng.choice(("true", "false"))
    if rng.random() < 0.01 and keys:
        keys.pop(rng.choice([*keys]))
    full = _PACKAGE + name + ("" if name not in _SIDED else "$Key" if on_key else "$Value")
    likely = 0.9 if name == "Filter" else 0.2
    if rng.random() >= likely:
        return Step(full, keys)
    return Step(full, keys, predicate(rng), rng.random() < 0.5)


def predicate(rng: Random) -> tuple[str, Mapping[str, str]]:
    """One predicate by its class name, and its keys."""
    name = rng.choice(PREDICATES)
    keys: Keys = {}
    if name == "TopicNameMatches":
        keys = {"pattern": rng.choice(("orders", "ord", "o.*", ".*-.*", "x", "new.*", "(", "(?i)ORDERS"))}
    elif name == "HasHeaderKey":
        keys = {"name": rng.choice((*HEADERS, ""))}
    return f"{_PACKAGE}predicates.{name}", keys


def _names(rng: Random, shape: Shape) -> str:
    return ",".join(dict.fromkeys(shape.named(rng, *PLAIN, *LOGICAL) for _ in range(rng.randrange(1, 4))))
