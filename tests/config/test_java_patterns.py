"""Java's regular expressions and replacements give what Java's Matcher gives."""

import pytest

from parquet_sink.config.java_patterns import Replacement, compiled


@pytest.mark.parametrize(
    ("pattern", "replacement", "text", "wanted"),
    [
        ("orders-(.*)", "ORDERS_$1", "orders-eu", "ORDERS_eu"),
        ("(a)(b)?", "$2$1", "a", "a"),
        ("(a)", "$10", "a", "a0"),
        ("()()()()()()()()()(a)", "$10", "a", "a"),
        ("a", "$0$0", "a", "aa"),
        ("(?<name>a)", "${name}_x", "a", "a_x"),
        ("(?<!b)(a)", "$1", "a", "a"),
        ("a", r"\$1\\", "a", "$1\\"),
        ("a", "", "a", ""),
    ],
)
def test_a_replacement_is_expanded(pattern: str, replacement: str, text: str, wanted: str) -> None:
    """By number, as many digits as name a group, by name, and with a backslash before what is meant as it is."""
    own = compiled(pattern)
    found = own.fullmatch(text)
    assert found is not None
    assert Replacement(own, replacement).expanded(found) == wanted


@pytest.mark.parametrize(
    ("pattern", "replacement", "reason"),
    [
        ("(a)", "$2", "its pattern has no group $2"),
        ("(a)", "${b}", "its pattern has no group that ${b} names"),
        ("(a)", "${b", "its pattern has no group that ${b names"),
        ("(a)", "x$", "its replacement has a $ that no number follows"),
        ("(a)", "$x", "its replacement has a $ that no number follows"),
        ("(a)", "x\\", "its replacement ends with a backslash"),
    ],
)
def test_what_names_no_group_is_told(pattern: str, replacement: str, reason: str) -> None:
    """Before anything is replaced."""
    with pytest.raises(ValueError, match="its") as told:
        Replacement(compiled(pattern), replacement)
    assert str(told.value).startswith(reason)


def test_what_is_no_pattern_is_told() -> None:
    """With what is wrong with it."""
    with pytest.raises(ValueError, match="it is no valid regular expression"):
        compiled("a(")
