"""`sasl.jaas.config` is read by the rules of Java's client; no error shows what is in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.kafka.client.security.sasl import parse

MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f'{MODULE} required username="me" password="s3cr;t";', {"username": "me", "password": "s3cr;t"}),
        (f"{MODULE} REQUIRED\n  password = 'a b'\n  username=me ;  ", {"username": "me", "password": "a b"}),
        (rf'{MODULE} required password="a\"b\\c\101\n";', {"password": 'a"b\\cA\n'}),
        (f'{MODULE} required // why\n /* here = "too" */ url="http://h/x=1";', {"url": "http://h/x=1"}),
        (f"{MODULE} required url=http://h/x key-a_b$c=1;", {"url": "http://h/x", "key-a_b$c": "1"}),
        (f'{MODULE} required a="";', {"a": ""}),
        (f"{MODULE} required;", {}),
    ],
)
def test_a_login_module_has_options(text: str, expected: dict[str, str]) -> None:
    """Quoted or not, with either kind of quotation mark, escapes and comments; the last of one name counts."""
    found = parse(text)
    assert (found.name, found.short, found.options) == (MODULE, "ScramLoginModule", expected)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "names no login module"),
        ("// nothing", "names no login module"),
        (f"{MODULE};", "comes a flag"),
        (f'{MODULE} username="canary";', "comes a flag"),
        (f'{MODULE} required username="canary"', "semicolon"),
        (f"{MODULE} required username=;", "not of the form"),
        (f"{MODULE} required username canary;", "not of the form"),
        (f'{MODULE} required a="1" password=ca;nary;', "more than one login module"),
        (f"{MODULE} required; {MODULE} required;", "more than one login module"),
        (f'{MODULE} required password="canary;', "no partner"),
    ],
)
def test_what_is_none_is_told(text: str, words: str) -> None:
    """Each with what to write, and none with what was written."""
    with pytest.raises(ValueError, match=words) as found:
        parse(text)
    assert "canary" not in str(found.value)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No other error comes out, and no text hangs it."""
    try:
        parse(f"{MODULE} required {text}")
    except ValueError:
        return


@given(st.text(alphabet=st.characters(exclude_characters="\n"), max_size=40))
def test_any_password_can_be_written(password: str) -> None:
    """In quotation marks, with a backslash before each quotation mark and backslash."""
    quoted = password.replace("\\", "\\\\").replace('"', '\\"')
    assert parse(f'{MODULE} required password="{quoted}";').options == {"password": password}
