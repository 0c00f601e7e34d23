"""Java's properties syntax and Connect's JSON forms."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.config.file_syntax import parse_file, parse_json
from parquet_sink.config.properties import as_properties, parse_properties
from parquet_sink.errors import InvalidConfiguration
from tests.messages import assert_says, saying

CASES = [
    ("a=b", {"a": "b"}),
    ("a = b ", {"a": "b "}),
    ("a:b", {"a": "b"}),
    ("a b", {"a": "b"}),
    ("a\t\f=\tb", {"a": "b"}),
    ("a  :  = b", {"a": "= b"}),
    ("a==b", {"a": "=b"}),
    ("a", {"a": ""}),
    ("a=", {"a": ""}),
    ("=b", {"": "b"}),
    ("# a=b\n! c=d\n  # e=f\n", {}),
    ("a=b # no comment", {"a": "b # no comment"}),
    ("a=1\\\n    ,2\\\r\n\t,3", {"a": "1,2,3"}),
    ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
    ("a=1\\\n# 2", {"a": "1# 2"}),
    ("a=1\\\n\nb=2", {"a": "1", "b": "2"}),
    ("\\\n# comment\na=1", {"a": "1"}),
    ("# comment \\\na=1", {"a": "1"}),
    ("a=1\\", {"a": "1"}),
    ("a=1\n\\\n", {"a": "1", "": ""}),
    ("a=1\n\\\n\n", {"a": "1"}),
    ("a\\ b\\=\\:c=d", {"a b=:c": "d"}),
    ("a=\\t\\n\\r\\f\\q\\\\", {"a": "\t\n\r\fq\\"}),
    ("a=\\u00e9\\uD83D\\uDE00", {"a": "é😀"}),
    ("a=é", {"a": "é"}),
    ("a=1\rb=2\r\nc=3", {"a": "1", "b": "2", "c": "3"}),
    ("a.b-c_d=x", {"a.b-c_d": "x"}),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_properties_are_read_as_java_reads_them(text: str, expected: dict[str, str]) -> None:
    """Separators, comments, continuations and escapes mean what they mean to java.util.Properties."""
    assert parse_properties(text, "f").properties == expected


def _escape(text: str, *, ascii_only: bool) -> str:
    """The way java.util.Properties.store writes a key or value."""
    named = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
    out = []
    for char in text:
        if char in named:
            out.append(named[char])
        elif char in " =:#!\\":
            out.append("\\" + char)
        elif ascii_only and not char.isascii():
            units = char.encode("utf-16-be")
            out += [f"\\u{units[i : i + 2].hex().upper()}" for i in range(0, len(units), 2)]
        else:
            out.append(char)
    return "".join(out)


characters = st.characters(exclude_categories=["Cs"])


@given(
    st.dictionaries(st.text(characters, min_size=1), st.text(characters)),
    st.sampled_from(["=", ":", " ", " = "]),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
)
def test_what_java_stores_is_read_back(values: dict[str, str], separator: str, end: str, ascii_only: bool) -> None:
    """Any keys and values survive being escaped and read, with every separator and line end."""
    text = "".join(
        f"{_escape(key, ascii_only=ascii_only)}{separator}{_escape(value, ascii_only=ascii_only)}{end}"
        for key, value in values.items()
    )
    assert parse_properties(text, "f").properties == values


@given(st.dictionaries(st.text(characters, min_size=1), st.text(characters)))
def test_what_is_written_is_read_back(values: dict[str, str]) -> None:
    """Any keys and values, one a line, so that a person can edit them."""
    text = as_properties(values)
    assert parse_properties(text, "f").properties == values
    assert text.count("\n") == len(values)


def _problems(data: bytes, source: str) -> list[bool]:
    """For each problem with the file, whether it has the documented form."""
    try:
        parse_file(data, source)
    except InvalidConfiguration as error:
        return [problem.startswith(("Invalid [", f"Invalid file [{source}]. Line ")) for problem in error.problems]
    return []


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text makes the parser fail in any other way than with the one error it is documented to raise."""
    assert _problems(text.encode("utf-8", "surrogatepass"), "f.properties") in ([], [True])


@given(st.binary())
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """Whatever the bytes, the answer is keys or an error that names the file or a key."""
    assert all(_problems(data, "f.properties") + _problems(data, "f.json"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a=1\nb=\\u12", ("Line 2", "\\u needs", "four hexadecimal digits", "backslash as \\\\")),
        ("a=\\ud83d", ("Line 1", "\\uXXXX", "half of a pair", "write both halves")),
    ],
)
def test_a_broken_escape_names_file_and_line(text: str, words: tuple[str, ...]) -> None:
    """A malformed escape is refused with the file and the line it begins on."""
    with pytest.raises(InvalidConfiguration, match=saying("[f]", *words)):
        parse_properties(text, "f")


def test_a_key_set_twice_is_warned_about_and_the_last_counts() -> None:
    """The warning names both lines and no value."""
    parsed = parse_properties("a=1\n\n# x\na=2", "f")
    assert parsed.properties == {"a": "2"}
    (warning,) = parsed.warnings
    assert_says(warning, "[a]", "twice", "lines 1 and 4", "last one counts")


def test_bytes_that_are_not_utf8_name_the_line() -> None:
    """A file in another encoding is refused where the first wrong byte stands."""
    told = saying("[f.properties]", "Line 2", "byte 0xE9", "not UTF-8", "save the file", "as \\uXXXX")
    with pytest.raises(InvalidConfiguration, match=told):
        parse_file(b"a=1\nb=caf\xe9\n", "f.properties")


def test_a_byte_order_mark_is_no_part_of_the_first_key() -> None:
    """Editors on Windows write one."""
    assert parse_file(b"\xef\xbb\xbfname=a", "f").properties == {"name": "a"}


def test_json_scalars_become_their_texts() -> None:
    """Numbers keep their digits, booleans are lower case, null is absent."""
    text = '{"name": "a", "config": {"i": 10, "f": 1.50, "t": true, "n": null, "s": "x"}}'
    assert parse_json(text, "f").properties == {"name": "a", "i": "10", "f": "1.50", "t": "true", "s": "x"}


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.booleans()))
def test_flat_json_and_connects_form_say_the_same(values: dict[str, str | int | bool]) -> None:
    """An object with config inside and the same object flat have the same keys."""
    values = {key: value for key, value in values.items() if key not in ("config", "name")}
    flat = parse_json(json.dumps({"name": "n", **values}), "f").properties
    assert parse_json(json.dumps({"name": "n", "config": values}), "f").properties == flat
    assert len(flat) == len(values) + 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1,\n "b": }', ("[f]", "Line 2", "no valid JSON", "column 7", "Expecting value")),
        ("[1]", ("[f]", "Line 1", "must be an object", '{"name": ..., "config": {...}}')),
        ('{"a": {"b": 1}}', ("[a]", "an object", "write one text")),
        ('{"name": "n", "config": {"a": ["x"]}}', ("[a]", "a list", "write one text")),
        ("[" * 200_000, ("[f]", "Line 1", "too deeply", "one flat object")),
        ('{"name": "a", "config": {"name": "b"}}', ("[name]", "twice", 'beside "config"', "differs", "remove one")),
        ('{"config": {}, "initial_state": "GONE"}', ("[initial_state]", '"GONE"', "RUNNING, PAUSED, STOPPED")),
    ],
)
def test_bad_json_is_refused_with_place_and_cause(text: str, words: tuple[str, ...]) -> None:
    """Each kind of wrong JSON has its message."""
    with pytest.raises(InvalidConfiguration, match=saying(*words)):
        parse_json(text, "f")


def test_what_connects_rest_api_returns_is_a_connector_file() -> None:
    """An answer of GET /connectors/<name> may be saved and used."""
    text = '{"name":"a","config":{"topics":"t"},"tasks":[{"connector":"a","task":0}],"type":"sink","more":1}'
    parsed = parse_json(text, "f")
    assert parsed.properties == {"topics": "t", "name": "a"}
    (warning,) = parsed.warnings
    assert_says(warning, "[more]", 'beside "config"', "no effect", "move it inside")


def test_a_json_key_set_twice_is_warned_about() -> None:
    """JSON allows it, so it is said."""
    parsed = parse_json('{"config": {"a": 1, "a": 2}}', "f")
    assert parsed.properties == {"a": "2"}
    (warning,) = parsed.warnings
    assert_says(warning, "[a]", "twice", "one JSON object", "last one counts")


def test_json_is_told_from_properties_by_name_or_first_character() -> None:
    """A JSON file may have any name."""
    assert parse_file(b' {"a": "b"}', "f.properties").properties == {"a": "b"}
    with pytest.raises(InvalidConfiguration):
        parse_file(b"a=b", "f.json")
