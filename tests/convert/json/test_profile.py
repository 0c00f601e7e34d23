"""The fields of a topic's JSON records, as the fast reading needs them."""

from types import NoneType

import pyarrow as pa
import pytest

from parquet_sink.convert.json.profile import MAX_FIELDS, MAX_NAME, JsonProfile, merged


def test_a_profile_grows_from_null_to_something_and_from_whole_numbers_to_fractions() -> None:
    """A field that was always null is read as what it then is; a fraction widens whole numbers."""
    profile = JsonProfile()
    assert profile.learn({"a": None, "b": 1, "o": {}})
    assert profile.schema == pa.schema([("a", pa.null()), ("b", pa.int64()), ("o", pa.struct([]))])
    assert profile.learn({"a": True, "b": 1.5, "o": {"x": "y"}})
    types = [("a", pa.bool_()), ("b", pa.float64()), ("o", pa.struct([("x", pa.string())]))]
    assert profile.schema == pa.schema(types)
    assert profile.narrower() == pa.schema([types[0], ("b", pa.int64()), types[2]])
    assert profile.learn({"b": 7})
    assert profile.narrower() is None
    assert profile.schema == pa.schema(types)


@pytest.mark.parametrize(
    "odd", [{"a": "x"}, {"a": {"x": 1}}, {"a": [1]}, {"": 1}, {"o": 7}, {"b" * (MAX_NAME + 1): 1}, {"o": {"": None}}]
)
def test_what_a_profile_cannot_cover_changes_no_type(odd: dict[str, object]) -> None:
    """A field of another type, or without a name, is told; the field stays what it was."""
    profile = JsonProfile()
    assert profile.learn({"a": 1, "o": {"p": 1}})
    before = profile.schema
    assert not profile.learn(odd)
    assert profile.schema == before


def test_lists_are_text_or_nothing() -> None:
    """Where lists stay, their place is read as text; where they are discarded, as null. Both know the place."""
    for discard, kind in ((False, str), (True, NoneType)):
        fields = {"l": kind, "n": {"m": kind}}
        profile = JsonProfile(discard_lists=discard)
        assert profile.learn({"l": [1], "n": {"m": []}})
        assert (profile.lists, profile.fields) == ({"l": {}, "n": {"m": {}}}, fields)
        again = JsonProfile(discard_lists=discard)
        again.restore(profile.serialize())
        assert (again.lists, again.fields, again.size) == (profile.lists, profile.fields, profile.size)


def test_names_that_differ_in_case_alone_are_covered_once() -> None:
    """Where names become lower case, only the first field that was more than null is read."""
    profile = JsonProfile(ignore_case=True)
    assert profile.learn({"a": None, "A": 1})
    assert not profile.learn({"a": 1})
    assert JsonProfile().learn({"a": 1, "A": 1})


def test_a_profile_is_limited() -> None:
    """However many fields come, so many are known, at all depths together."""
    profile = JsonProfile()
    profile.learn({f"n{number}": None for number in range(MAX_FIELDS - 10)})
    assert not profile.learn({"o": {f"n{number}": [] for number in range(30)}})
    assert profile.size == MAX_FIELDS


def test_two_profiles_are_merged() -> None:
    """Each brings what the other lacks; where they contradict, the second counts."""
    one, other = JsonProfile(), JsonProfile()
    one.learn({"a": 1, "b": "x", "l": [1], "n": None})
    other.learn({"a": 1.5, "b": 2, "c": {"d": True}})
    both = JsonProfile()
    both.restore(merged(one.serialize(), other.serialize()))
    assert both.fields == {"a": float, "b": int, "c": {"d": bool}, "l": str, "n": type(None)}
    assert both.lists == {"l": {}}
    assert merged(one.serialize(), None) == one.serialize()
    assert merged(None, other.serialize()) == other.serialize()
    otherwise = JsonProfile(discard_lists=True)
    otherwise.learn({"z": 1})
    assert merged(one.serialize(), otherwise.serialize()) == otherwise.serialize()
