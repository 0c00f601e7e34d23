"""Lists cut out of records against the same records parsed as a whole."""

import json

import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.convert.decoded import Tree
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.json.exact import is_plain, parse, text_of, with_digits
from parquet_sink.convert.json.lists import KnownLists, Lists, with_lists_as_text
from tests.rows.json_records import LISTS, framed, objects, regular
from tests.thorough import examples

LISTS_AT: Lists = {"l": {}, "q": {"l": {}, "m": {}}}
KNOWN = KnownLists.of(LISTS_AT, [("c",), ("l",), ("q", "l")])
SPACES = st.sampled_from(["", " ", "\n\t", " " * 70])


@st.composite
def records(draw: st.DrawFn) -> bytes:
    """Records with lists where they are known and where they are not, and what only looks like one."""
    anything = st.sampled_from(LISTS)
    one = objects(st.sampled_from(["l", "q", "c", "z", 'x\\"l', "\\u006c"]), anything | objects(st.just("l"), anything))
    text = draw(one | regular() | framed)
    space = draw(SPACES)
    return text.replace('"l"', f'{space}"l"{space}').encode("utf-8", "surrogateescape")


def is_cut(before: object, after: object, name: str, level: int, discard: bool) -> bool:
    """Whether one value is the other, but for the text of plain lists that have a known name."""
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() == after.keys() and all(
            is_cut(value, after[key], key, level + 1, discard) for key, value in before.items()
        )
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(
            is_cut(one, other, "", level + 1, discard) for one, other in zip(before, after, strict=True)
        )
    if isinstance(before, list):
        text = None if discard else text_of(before)
        return name in {"l", "m", "q"} and after == text and is_plain([before], level)
    return before == after


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(records(), min_size=1, max_size=8), st.booleans(), st.booleans())
def test_records_stay_what_they_are_but_for_text_where_lists_were(
    values: list[bytes], sliced: bool, discard: bool
) -> None:
    """A list becomes the text that the exact way gives it, if that takes it; what is not JSON stays none."""
    array = pa.array([b"[", *values, b"]"] if sliced else values, pa.binary()).slice(int(sliced), len(values))
    found = with_lists_as_text(array, KNOWN, discard, None)
    found.validate(full=True)
    for before, after in zip(values, found.to_pylist(), strict=True):
        try:
            tree = orjson.loads(before)
        except orjson.JSONDecodeError:
            with pytest.raises(orjson.JSONDecodeError):
                orjson.loads(after)
        else:
            assert not after or is_cut(with_digits(tree, before), orjson.loads(after), "", 0, discard), (before, after)


@pytest.mark.parametrize("text", LISTS)
def test_a_list_is_cut_wherever_the_exact_way_need_not_look_twice(text: str) -> None:
    """In a valid record none stays a list but where a number may be an integer beyond int64."""
    value = f'{{"c":"[","q" : {{"y":1, "l" :\n{text}}} }}'.encode("utf-8", "surrogateescape")
    (found,) = with_lists_as_text(pa.array([value], pa.binary()), KNOWN, False, None).to_pylist()
    try:
        tree = parse(value)
    except InvalidValue:
        with pytest.raises(orjson.JSONDecodeError):
            orjson.loads(found)
        return
    if not is_plain([tree], 0):
        assert not found
        return
    tree = with_digits(tree, value)
    below = tree["q"]
    assert isinstance(below, dict)
    if isinstance(below["l"], list):
        below["l"] = text_of(below["l"])
    assert orjson.loads(found) == tree


@pytest.mark.parametrize("name", ["a", "ä", 'a"', "a\\", "a/b", "a:b", "a,", " a", "[", "null", "{"])
@pytest.mark.parametrize("in_ascii", [False, True])
def test_lists_of_any_name_are_cut(name: str, in_ascii: bool) -> None:
    """However the name is written."""
    known = KnownLists.of({"o": {name: {}}}, [("o", name)])
    value = json.dumps({"o": {"b": ["c"], name: [1]}}, ensure_ascii=in_ascii).encode()
    (found,) = with_lists_as_text(pa.array([value], pa.binary()), known, False, None).to_pylist()
    assert orjson.loads(found) == {"o": {"b": ["c"], name: "[1]"}}


@pytest.mark.parametrize("name", [":", ",", " : ", "", "  ", "]", "}", ":1,"])
def test_names_that_may_stand_between_strings_are_not_cut(name: str) -> None:
    """So text that looks like a list behind such a name stays."""
    value = f'{{"x,"{name}":[1]","y":[2]}}'.encode()
    found = with_lists_as_text(pa.array([value], pa.binary()), KnownLists.of({name: {}}, []), True, None)
    assert found.to_pylist() == [value]


def test_a_list_that_may_be_another_fields_text_is_cut_where_that_is_no_matter() -> None:
    """Where lists are rewritten, or told apart from text, a name that text fields have, too, says too little."""
    known = KnownLists.of({"a": {}}, [("b", "a")])
    values = pa.array([b'{"a":[1]}'], pa.binary())
    assert with_lists_as_text(values, known, False, None).to_pylist() == [b'{"a":"[1]"}']
    assert with_lists_as_text(values, known, False, None, told_apart=True).to_pylist() == [b'{"a":[1]}']
    assert with_lists_as_text(values, known, False, lambda tree: tree).to_pylist() == [b'{"a":[1]}']


def test_lists_are_rewritten_where_they_stand() -> None:
    """By all paths that may end in the name; where these differ, or one refuses, the record is for the exact path."""

    def rewrite(tree: Tree) -> Tree:
        if tree.get("L") == [0]:
            raise InvalidValue("0")
        lower: Tree = orjson.loads(orjson.dumps(tree).lower())
        return {key: ["*"] if key in {"l", "n"} else below for key, below in lower.items()}

    known = KnownLists.of({"L": {}, "Q": {"M": {}, "N": {}}, "N": {}}, [])
    values = [b'{"L":[1]}', b'{"L":[0]}', b'{"Q":{"M":[2]}}', b'{"N":[3]}', b'{"x":"[1]"}', b'{"x": "\\u005b"}']
    found = with_lists_as_text(pa.array(values, pa.binary()), known, False, rewrite, lower=True).to_pylist()
    assert found == [b'{"L":"[\\"*\\"]"}', b"", b'{"Q":{"M":"[2]"}}', b"", b"", b""]


def test_many_lists_with_brackets_in_their_text_are_cut() -> None:
    """Where each ends is looked for nearby, so that one record of them is no burden."""
    value = b"{" + b",".join([b'"l":["]"]'] * 20_000) + b"}"
    (found,) = with_lists_as_text(pa.array([value], pa.binary()), KNOWN, False, None).to_pylist()
    assert found == value.replace(b'["]"]', rb'"[\"]\"]"')


def test_a_name_of_many_paths_is_not_rewritten_by_each() -> None:
    """It is left to the exact path."""
    known = KnownLists.of({f"o{number}": {"a": {}} for number in range(5)}, [])
    values = pa.array([b'{"o1":{"a":[1]}}'], pa.binary())
    assert with_lists_as_text(values, known, False, None).to_pylist() == [b'{"o1":{"a":"[1]"}}']
    assert with_lists_as_text(values, known, False, lambda tree: tree).to_pylist() == values.to_pylist()
