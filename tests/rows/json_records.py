"""JSON records at random, mostly of shapes that repeat, and settings to shape them with."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

from hypothesis import strategies as st

from parquet_sink.convert.json import decoder as json_decoder
from parquet_sink.convert.json import fallback
from parquet_sink.rows.run import Run
from parquet_sink.rows.settings import ObfuscationSettings, ShapeSettings

KEYS = ["a", "b", "c", "a_b", "a-b", "b_c", "n", "A", "B-c"]
ODD_KEYS = ["", "kafkaOffset", "__celonis_order", "é", "a\\u0000", "a_\\u0062", "\\ud83d\\ude00"]
INTEGERS = ["0", "7", "-12", "-0", "9007199254740991", "9007199254740992", "9007199254740993", "9223372036854775807"]
FRACTIONS = ["0.5", "-0.0", "0.0", "1e5", "1E-7", "1e-400", "5e-324", "2.2250738585072011e-308"]
LARGE = ["9007199254740992.0", "9007199254740993.0", "1e19", "-1e300", "1.7976931348623157e308", "1152921504606846976"]
TEXTS = ['""', '"x"', '"ü"', '"\\u00fc\\n\\/"', '"\\u0000"', '"\\ud83d\\ude00"', '"{}"', '"}\\n{"']
TEXTS += ['"null"', '"7"', '"\x7f"']
BAD_NUMBERS = ["01", "+1", "1.", ".5", "NaN", "-Infinity", "1e400", "9223372036854775808", "-9223372036854775809"]
BAD_NUMBERS += ["18446744073709551616", "100000000000000000000000000000", "0x1", "-", "1" * 400]
BAD_TEXTS = ['"\\ud800"', '"\\udc00"', '"\\ud800\\ud800"', '"\n"', '"\r"', '"\t"', '"\x00"']
BAD_TEXTS += ['"\\x"', '"x', "'x'", '"\udcff"', '"\udced\udca0\udc80"', '"\udcc0\udc80"']
FRAMES = ["{},{}", "[{}]", "{}{}", "{}null{}", "{}\n{}", "{}\r{}", " {}", "{}\n", "\ufeff{}"]
FRAMES += ["{}}", "{}x", "{}\x00", "\t{}\r\n"]
WHOLE = ["", " ", "{}", "{ }", "null", "1", '"x"', "true", "[]", "{", "}", "{}null", '{"a"}', "{\n}", "{}{}"]


@st.composite
def scalars(draw: st.DrawFn) -> str:
    """The text of a number, a string, a boolean or null; mostly valid."""
    kind = draw(st.integers(0, 99))
    if kind < 30:
        return draw(st.sampled_from(INTEGERS) | st.integers(-(2**63), 2**63 - 1).map(str))
    if kind < 50:
        return draw(st.sampled_from(FRACTIONS + LARGE) | st.floats(allow_nan=False, allow_infinity=False).map(repr))
    if kind < 75:
        return draw(st.sampled_from(TEXTS))
    if kind < 96:
        return draw(st.sampled_from(["true", "false", "null"]))
    return draw(st.sampled_from(BAD_NUMBERS + BAD_TEXTS))


def objects(keys: st.SearchStrategy[str], values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """The text of an object: keys may come twice, white space anywhere."""
    space = st.sampled_from(["", "", "", " ", "\n", "\r\t"])
    fields = st.lists(st.tuples(space, keys, space, values), max_size=5)
    return fields.map(lambda parts: "{" + ",".join(f'{a}"{k}"{b}:{b}{v}{a}' for a, k, b, v in parts) + "}")


trees = st.recursive(
    scalars(),
    lambda below: (
        objects(st.sampled_from(KEYS), below)
        | st.lists(below, max_size=3).map(lambda parts: "[" + ",".join(parts) + "]")
    ),
    max_leaves=6,
)
odd = objects(st.sampled_from(KEYS + ODD_KEYS), trees) | st.sampled_from(WHOLE)
framed = st.tuples(st.sampled_from(FRAMES), odd).map(lambda pair: pair[0].replace("{}", pair[1]))

LISTS = ["[]", "[ ]", "[1]", "[ 1 ,\t2.50\n]", "[1e5,1E-7,-0,-0.0,5e-324]", '[{"l":[1]},{}]', "[[1],[2,[]]]"]
LISTS += ['[{"l":1,"l":2}]', '["\\u00fc\\n\\/","ü"]', '["]"]', '["["]', '["\\"]"]', '["\\\\"]', '[{"\\"l\\":[":1}]']
LISTS += ['["\\u005b\\u0000"]', "[null,true]", "[9223372036854775807]", "[9223372036854775808]", "[-1e300]"]
LISTS += ["[18446744073709551616]", "[1e19]", "[1e999]", "[NaN]", "[1,]", "[1", "1]", "[1],[2]", "[1]]", '["x]']
LISTS += ["[0.12345678901234567890]", '[{"l": 1e-400,"x":[12345678901234567890.5]}, 0.1000000000000000000]']
LISTS += ["[123456789012345678e5,3e-324,0.30000000000000004,-0.0000000000000000000]", "[1.5,12345678901234567890.5e3]"]
LISTS += ['["\udcff"]', '["\\ud800"]', "[01]", "[\n\n1]", "[{]", "[}"]
LISTS += ['["]",{"l":[1]}]', '["]",9223372036854775808]', '[{"l":["["]},"]"]']
LISTS += [f"{'[' * depth}{']' * depth}" for depth in (98, 99, 100, 300)]
LISTS += ["null", '"[1]"', '"\\u005b1]"', '"\\"l\\":[1]"', '",\\"l\\":[1]"', '"["', '"],"', '"{"', "{}", "7"]
"""Lists, some of them none or refused, and other values that look like some."""

inner = objects(st.sampled_from(["z", "w"]), st.sampled_from(["true", "false", "null", "null", "{}"]))
TEMPLATE = {
    "a": st.sampled_from(INTEGERS) | scalars(),
    "b": st.sampled_from(["1.5", "2", "-0", "-0.0", "null", "1e18", "9007199254740993"]),
    "c": st.sampled_from(TEXTS),
    "n": st.just("null"),
    "o": objects(st.sampled_from(["x"]), st.sampled_from(["1", "2", "null", "{}", "2.5"])) | st.just("null"),
    "p": objects(st.sampled_from(["y", "x"]), inner | st.just("null")),
    "e": st.sampled_from(["{}", "null", "{ }"]),
    "l": st.sampled_from([LISTS[0], LISTS[3], LISTS[5]]) | st.sampled_from(LISTS),
    "q": objects(st.sampled_from(["l", "m"]), st.sampled_from([*LISTS[:9], *LISTS])),
}


@st.composite
def regular(draw: st.DrawFn) -> str:
    """A record of a shape that repeats, so that the fast path has something to do."""
    names = draw(st.lists(st.sampled_from(sorted(TEMPLATE)), min_size=1, max_size=7, unique=True))
    return "{" + ",".join(f'"{name}":{draw(TEMPLATE[name])}' for name in names) + "}"


@st.composite
def values(draw: st.DrawFn) -> list[bytes | None]:
    """The values of one block: a few distinct records, repeated, with odd ones and tombstones between."""
    pool = draw(st.lists(regular(), min_size=1, max_size=4))
    pick = st.sampled_from(pool)
    one = st.integers(0, 19).flatmap(lambda n: regular() if n < 2 else odd if n == 2 else framed if n == 3 else pick)
    texts = draw(st.lists(one | pick | pick, max_size=12))
    tombstone = draw(st.integers(-20, 11))
    return [None if i == tombstone else t.encode("utf-8", "surrogateescape") for i, t in enumerate(texts)]


OBJECTS = [
    '[{"A":"x","b":["y"]}]',
    '[{"a":"x"},{"A":null}]',
    '[{"a":"x","A":"y"}]',
    '[{"L":["z"]}]',
    '["x","y"]',
    '["x"]',
]
"""Lists of what may be hidden, or named otherwise."""


@st.composite
def lists_of_records(draw: st.DrawFn) -> list[bytes | None]:
    """The values of one block: records of one shape or two, most of which have a list where others have one."""
    usual = st.sampled_from([*OBJECTS, *LISTS[:8]])
    unusual = st.sampled_from([*LISTS, '"[x]"', '"\\u005bx]"', '"x"', "1"])

    def member(value: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        names = st.sampled_from(["l", "l", "q", "L", "c"])
        return st.tuples(names, value).map(lambda pair: f'"{pair[0]}":{pair[1]}')

    def record(value: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        below = st.lists(member(value), max_size=2).map(lambda found: "{" + ",".join(found) + "}")
        return st.lists(member(value | below), min_size=1, max_size=3).map(lambda found: "{" + ",".join(found) + "}")

    pool = draw(st.lists(record(usual), min_size=1, max_size=3))
    one = st.sampled_from(pool) | st.sampled_from(pool) | record(unusual)
    return [text.encode("utf-8", "surrogateescape") for text in draw(st.lists(one, max_size=10))]


ABOVE = ObfuscationSettings(("a", "n.b"))
"""Paths that end at what may be an object."""
HIDDEN = ObfuscationSettings(("b", "a.b", "n.c", "c.value"))
IN_LISTS = ObfuscationSettings(("l.value", "q.l.value", "q.m.value"))

hidden = st.sampled_from(
    [None, IN_LISTS, ObfuscationSettings(("l.value.a", "q.l.value.a")), ObfuscationSettings(("l", "q.c.value"), "sha1")]
)

shape_settings = st.builds(
    ShapeSettings,
    flatten=st.booleans(),
    discard_collections=st.booleans(),
    embed_metadata=st.booleans(),
    primary_keys=st.sampled_from([(), (), ("c",), ("a", "c"), ("kafkaOffset",)]),
    allow_null_primary_keys=st.booleans(),
    order_field=st.sampled_from([None, "a"]),
    lowercase=st.booleans(),
    obfuscation=st.sampled_from([None, None, None, HIDDEN, IN_LISTS, replace(HIDDEN, method="sha256"), ABOVE]),
)


@contextmanager
def eager() -> Iterator[None]:
    """The fast path is tried on the smallest blocks, too."""
    with (
        patch.object(json_decoder, "SMALLEST", 1),
        patch.object(json_decoder, "FEWEST", 1),
        patch.object(json_decoder, "ODD_WORTH_IT", 0),
        patch.object(json_decoder, "ONE_IN", 1),
        patch.object(fallback, "WINDOW", 3),
    ):
        yield


def facts(run: Run) -> tuple[object, ...]:
    """A run to values that compare by type and sign, too (1 is not 1.0, 0.0 is not -0.0)."""
    run.rows.validate(full=True)
    rows = repr(run.rows.to_pylist())
    return rows, str(run.rows.schema), run.records, run.first_offset, run.last_offset, run.incompatible
