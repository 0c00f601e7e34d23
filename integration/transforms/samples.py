"""Records at random: shapes of fields, with a schema and without one, and values that are odd on purpose."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

NAMES: Final = ("a", "b", "c", "d", "ts", "id", "ünï", "a.b", "Upper", "x y")
ODD_NAMES: Final = ("", "$x", "A", ".", "a..b", "🎉", "`a`", "ts_", "null", "__deleted")
TEXTS: Final = (
    *("", "a", "abc", "12", "12.0", " 12", "12 ", "+5", "-5", "-0", "007", "1e3", "1E400", ".5", "5.", "1f"),
    *("1d", "0x10"),
    *("0x1p3", "NaN", "-Infinity", "Infinity", "inf", "nan", "1_000", "true", "TRUE", "True", "yes", "false", "null"),
    *("127", "128", "-129", "32768", "2147483648", "9223372036854775807", "9223372036854775808", "3.4e39", "1e-50"),
    *("2020-01-01", "2020-01-01T00:00:00Z", "2020-01-01T12:34:56.789Z", "12:34:56.789Z", "2020-13-45", "1969-12-31"),
    *("2020-13-45xyz", "2020-01-01 12:34:56", "١٢", "ünïcode", "🎉 party", "tab\there", "nul\0", "\u2028"),
    *("a,b", "a:b"),
    *("Wed, 1 Jan 2020", "01/02/2020", "01/13/20", "20200229", "Jan 1, 2020 12:30 PM", "12:34:56.789", "366", "69"),
    *("2020-01-01T12:34:56+01:00", "2020-01-01T12:34:56Z", "2020-01-01T12:34:56-0330", "0000-00-00", "0001-01-01"),
    *("1582-10-04", "1582-10-10", "1582-10-15", "-0044-03-15", "12345-06-07", "9999-12-31", "2020-02-30", "1500-02-29"),
    *("2020-1-1", "2020-01-01T24:00:00Z", "2020-01-01 1:2:3", "January", "monday", "12 AM", "0 PM"),
)
LONGS: Final = (
    *(0, 1, -1, 5, 42, 127, 128, -128, -129, 255, 256, 32767, 32768, -32769, 65536, 2**31 - 1, 2**31, -(2**31)),
    *(-(2**31) - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 1_600_000_000, 1_600_000_000_123),
    *(1_600_000_000_123_456, -1_500, -86_400_001, 86_399_999, 10**7, 10**12),
)
DOUBLES: Final = (  # none that Java below 19 writes with more digits than it takes (JDK-4511638)
    *(0.0, 1.0, 0.5, -0.5, 3.99, -3.99, 0.1, 1e7, 1e-3, 9.999e-4, 1.5e300, -1.5e300),
    *(5e-324, 1.7976931348623157e308),
    *(123456789.125, 2147483648.0, 9.3e18, -9.3e18, 1e19, 300.7, 16777217.0, 3.4028235e38, 1e39, 1e21),
    *(100.0, 1234567.0),
    *(2e-3, 4.9e-3, 2.2250738585072014e-308, 9007199254740993.0, 1.1, 2.0**-149),
)
DAYS: Final = (
    *(0, 1, -1, 18_262, -25_567, 2_932_896),
    *(-141_427, -141_428, -141_438, -719_162, -719_163, -719_529, -1_000_000, 2_932_897, 10_000_000, 59, 11_016),
)
MILLIS: Final = (
    *(0, 1, -1, 1_577_836_800_000, 1_577_882_096_789, -1_500, -86_400_000, -86_400_001, 253_402_300_799_999),
    *(-12_219_292_800_000, -12_219_292_800_001, -62_135_596_800_000, -62_135_596_800_001, -100_000_000_000_000),
    *(253_402_300_800_000, 9_000_000_000_000_000, 951_782_400_000, 86_399_999, 86_400_000),
)
TIMES: Final = (0, 1, 86_399_999, 45_296_789)
PLAIN: Final = ("int8", "int16", "int32", "int64", "float", "double", "boolean", "string", "bytes")
LOGICAL: Final = ("Date", "Time", "Timestamp", "Decimal")
_LOGICAL_BASE: Final = {"Date": "int32", "Time": "int32", "Timestamp": "int64", "Decimal": "bytes"}
_DATA: Final = "org.apache.kafka.connect.data."
_BOUNDS: Final = {"int8": 2**7, "int16": 2**15, "int32": 2**31, "int64": 2**63}

Schema = dict[str, Any]


@dataclass(frozen=True)
class Shape:
    """What records of a case look like. kinds: what a field is, by its name; the names of nested fields have dots.

    schema: Connect's, as JsonConverter writes it; None without one.
    """

    kinds: Mapping[str, str]
    schema: Schema | None

    def named(self, rng: Random, *kinds: str) -> str:
        """A field, of one of the kinds if there is one; sometimes one that does not exist."""
        fitting = [name for name, kind in self.kinds.items() if name and kind in kinds]
        if rng.random() < 0.07:
            return rng.choice(("missing", *NAMES))
        if fitting and rng.random() < 0.85:
            return rng.choice(fitting)
        return rng.choice([name for name in self.kinds if name] or ["a"])


def schema_shape(rng: Random) -> Shape:
    """Records with a schema; now and then a value that is not a record."""
    if rng.random() < 0.1:
        schema = _any_schema(rng, 1)
        return Shape({}, schema)
    schema = struct_schema(rng, 0)
    return Shape(_kinds(schema), schema)


def _some_names(rng: Random) -> list[str]:
    """Usual ones, and now and then odd ones among them."""
    among = NAMES if rng.random() < 0.8 else (*NAMES[:4], *ODD_NAMES)
    return rng.sample(among, rng.randrange(0 if rng.random() < 0.1 else 1, 6))


def struct_schema(rng: Random, depth: int) -> Schema:
    """A struct of some fields, optional or not, with a default or without."""
    names = [name for name in _some_names(rng) if name]  # Connect's schemas have no empty name
    return {
        "type": "struct",
        "optional": rng.random() < (0.4 if depth else 0.2),
        "fields": [{"field": name, **_any_schema(rng, depth + 1)} for name in names],
    }


def _any_schema(rng: Random, depth: int) -> Schema:
    chance = rng.random()
    if chance < 0.12 and depth < 4:
        return struct_schema(rng, depth)
    if chance < 0.18 and depth < 4:
        items = _any_schema(rng, depth + 1)
        return {"type": "array", "optional": rng.random() < 0.5, "items": items}
    if chance < 0.23 and depth < 4:
        keys = {"type": "string", "optional": False} if rng.random() < 0.8 else {"type": "int32", "optional": False}
        return {"type": "map", "optional": rng.random() < 0.5, "keys": keys, "values": _any_schema(rng, depth + 1)}
    schema: Schema = {"optional": rng.random() < 0.5}
    if chance < 0.42:
        name = rng.choice(LOGICAL)
        schema |= {"type": _LOGICAL_BASE[name], "name": _DATA + name, "version": 1}
        if name == "Decimal":
            schema["parameters"] = {"scale": str(rng.choice((0, 2, 5)))}
    else:
        schema["type"] = rng.choice(PLAIN)
    if rng.random() < 0.12:
        schema["default"] = _payload(rng, {**schema, "optional": False}, {})
    return schema


def kind_of(schema: Schema) -> str:
    """`Date`, or `int32`."""
    name = str(schema.get("name", ""))
    return name.removeprefix(_DATA) if name.startswith(_DATA) else str(schema["type"])


def _kinds(schema: Schema, prefix: str = "") -> dict[str, str]:
    found = {}
    for one in schema.get("fields", ()):
        found[prefix + one["field"]] = kind_of(one)
        if one["type"] == "struct":
            found |= _kinds(one, f"{prefix}{one['field']}.")
    return found


def envelope(rng: Random, schema: Schema) -> bytes:
    """A value of the schema as JsonConverter writes it; a null where it is optional, rarely."""
    payload = None if schema["optional"] and rng.random() < 0.1 else _payload(rng, schema, {})
    return _text({"schema": schema, "payload": payload})


def _payload(rng: Random, schema: Schema, seen: Mapping[str, object]) -> object:
    if schema["optional"] and rng.random() < 0.2:
        return None
    kind = kind_of(schema)
    if kind == "struct":
        there = [one for one in schema["fields"] if not (one["optional"] and rng.random() < 0.05)]
        return {one["field"]: _payload(rng, one, seen) for one in there}
    if kind == "array":
        return [_payload(rng, schema["items"], seen) for _ in range(rng.randrange(3))]
    if kind == "map" and schema["keys"]["type"] == "string":
        return {key: _payload(rng, schema["values"], seen) for key in rng.sample(TEXTS[:8], rng.randrange(3))}
    if kind == "map":
        return [[key, _payload(rng, schema["values"], seen)] for key in rng.sample((1, 2, -3), rng.randrange(3))]
    return scalar(rng, kind)


def scalar(rng: Random, kind: str) -> object:
    """A value as JsonConverter writes it in JSON."""
    if kind in _BOUNDS:
        bound = _BOUNDS[kind]
        return rng.choice([one for one in LONGS if -bound <= one < bound])
    if kind == "float":
        return rng.choice((0.0, 1.5, 3.99, -3.99, 1e7, 0.1, 3.4e38, 1e-45, 16777216.0, 300.7))
    lists: dict[str, Sequence[object]] = {
        "double": DOUBLES,
        "boolean": (True, False),
        "string": TEXTS,
        "Date": DAYS,
        "Time": TIMES,
        "Timestamp": MILLIS,
    }
    if kind in lists:
        return rng.choice(lists[kind])
    if kind == "Decimal":
        number = rng.choice((0, 1, -1, 12_345, -99_999, 10**17, 255, -256, 2**63, -(2**63), 10**37 + 1, -(10**40)))
        return base64.b64encode(number.to_bytes((number.bit_length() + 8) // 8, "big", signed=True)).decode()
    return base64.b64encode(rng.choice((b"", b"\0", b"abc", b"\xff\xfe", "ü".encode()))).decode()


def tree_shape(rng: Random) -> Shape:
    """Records without a schema."""
    names = _some_names(rng)
    kinds = {}
    for name in names:
        kind = rng.choice(("int64", "double", "boolean", "string", "string", "object", "list", "mixed"))
        kinds[name] = kind
        if kind == "object":
            kinds |= {f"{name}.{rng.choice(NAMES)}": rng.choice(("int64", "string", "list")) for _ in range(2)}
    return Shape(kinds, None)


def tree(rng: Random, shape: Shape, odd: float) -> dict[str, object]:
    """A record. odd: how likely a field is absent, null, or of another kind."""
    found: dict[str, object] = {}
    for path, kind in shape.kinds.items():
        top = next(
            (name for name in shape.kinds if path.startswith(f"{name}.") and shape.kinds[name] == "object"), None
        )
        into = found if top is None else found.get(top)
        chance = rng.random()
        if not isinstance(into, dict) or chance < odd:
            continue
        name = path if top is None else path[len(top) + 1 :]
        into[name] = None if chance < 2 * odd else _plain(rng, "mixed" if chance < 2.5 * odd else kind)
    return found


def _plain(rng: Random, kind: str, depth: int = 0) -> object:
    if kind == "mixed":
        kind = rng.choice(("int64", "double", "boolean", "string", "list", "map") if depth < 3 else ("int64", "string"))
    if kind == "object":
        return {}
    if kind == "list":
        return [_plain(rng, "mixed", depth + 1) for _ in range(rng.randrange(4))]
    if kind == "map":
        return {name: _plain(rng, "mixed", depth + 1) for name in rng.sample(NAMES, rng.randrange(3))}
    return scalar(rng, kind)


def bare(rng: Random, shape: Shape, odd: float) -> bytes:
    """A value without a schema: an object, rarely something else."""
    if rng.random() < odd / 4:
        return _text(rng.choice((None, 5, "text", 1.5, True, [1, 2], [], {}, "")))
    return _text(tree(rng, shape, odd))


def _text(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
