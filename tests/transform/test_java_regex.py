"""Java's regular expressions in Python: matches were seen to be the same in Java, or the expression is refused."""

import pytest

from parquet_sink.transform.java_regex import NotKept, java_pattern, java_replacement


@pytest.mark.parametrize(
    ("expression", "matching", "others"),
    [
        ("orders-(.*)", ["orders-1", "orders-"], ["orders", "my-orders-1"]),
        ("a++b", ["aab"], ["aa"]),
        ("(?<n>o)\\k<n>", ["oo"], ["o"]),
        ("\\Qa.b\\E", ["a.b"], ["axb"]),
        ("\\x61\\u0062\\x{63}\\0144", ["abcd"], ["abc"]),
        ("\\p{Alpha}[\\p{Digit}_]", ["a1", "Z_"], ["1a", "é1"]),
        ("\\P{Lower}", ["A", "1"], ["a"]),
        ("[]a]+", ["]a"], ["b"]),
        ("[a||b~]", ["|", "~", "a"], ["c"]),
        ("(?i)ORD", ["ord"], ["or"]),
        ("(?i:a)b", ["Ab"], ["AB"]),
        ("\\d\\w", ["1a"], ["٣a", "1é"]),
        ("a\\z|b\\Z", ["a", "b"], ["c"]),
        ("a\\-b\\/", ["a-b/"], ["ab"]),
        ("(a)\\1", ["aa"], ["a"]),
        ("a{1,2}", ["a", "aa"], ["aaa", ""]),
    ],
)
def test_what_is_kept_matches_alike(expression: str, matching: list[str], others: list[str]) -> None:
    """Full matches, as Java finds them."""
    pattern = java_pattern(expression)
    assert [text for text in [*matching, *others] if pattern.fullmatch(text)] == matching


@pytest.mark.parametrize(
    "expression",
    [
        *(
            "[a[b]]",
            "[a-z&&[^b]]",
            "[a--b]",
            "\\p{L}",
            "[\\P{Alpha}]",
            "\\h",
            "\\v",
            "\\R",
            "\\X",
            "\\G",
            "\\N{DIGIT ONE}",
        ),
        *(
            "(?x)a",
            "(?u)a",
            "a(?i)b",
            "(?-i)a",
            "(?P<n>a)",
            "(?#c)a",
            "(?(1)a)",
            "(?<=a+)b",
            "{",
            "a{,2}",
            "a{x}",
            "\\y",
        ),
        *("(", "\\y", "\\N{DIGIT ONE}", "[a", "a\\", "*a", "\\2", "(a)\\10", "(?<n>a)(?<n>b)", "(?<n_1>a)"),
    ],
)
def test_what_cannot_be_kept_is_refused(expression: str) -> None:
    """Syntax that means something else to Python, or nothing, never gets there."""
    with pytest.raises(NotKept):
        java_pattern(expression)


@pytest.mark.parametrize(
    ("replacement", "result"),
    [
        ("x", "x"),
        ("$2-$1", "b-a"),
        ("${n}", "b"),
        ("$10", "a0"),
        ("\\$1", "$1"),
        ("\\\\", "\\"),
        ("$3", ""),
        ("$0", "ab"),
    ],
)
def test_replacements(replacement: str, result: str) -> None:
    """As many digits as make a group's number, names, escapes; a group that did not take part is nothing."""
    pattern = java_pattern("(a)(?<n>b)(c)?")
    found = pattern.fullmatch("ab")
    assert found is not None
    assert java_replacement(replacement, pattern)(found) == result


@pytest.mark.parametrize("replacement", ["$4", "$", "$x", "${m}", "\\", "a$"])
def test_a_replacement_that_java_would_fail_with_is_refused(replacement: str) -> None:
    """When the file is checked, not with the first record."""
    with pytest.raises(NotKept):
        java_replacement(replacement, java_pattern("(a)(?<n>b)(c)?"))
