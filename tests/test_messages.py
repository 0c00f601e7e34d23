"""Tests of messages assert on key, value and cure, so that a sentence can be put better without a change of tests."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.messages import assert_line_says, assert_says, saying

HOUSE: Final = Path(__file__).parent.parent
WORDS: Final = 6
"""More in one literal of an assertion are a sentence.

A text that others rely on (a protocol's, a table's) is a named constant."""


@pytest.mark.parametrize("folder", ["tests", "integration"])
def test_no_assertion_holds_a_sentence(folder: str) -> None:
    """No literal below `assert` or in `match=` has more than six words."""
    found = [
        f"{path.relative_to(HOUSE)}:{literal.lineno}: {literal.value}"
        for path in sorted((HOUSE / folder).rglob("*.py"))
        for literal in _asserted(ast.parse(path.read_text()))
        if len(str(literal.value).split()) > WORDS
    ]
    assert not found, "\n".join(["Assert on key, value and cure: tests.messages", *found])


def _asserted(tree: ast.Module) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            yield from _texts(node.test)
        elif isinstance(node, ast.Call):
            for argument in node.keywords:
                if argument.arg == "match":
                    yield from _texts(argument.value)


def _texts(node: ast.expr) -> Iterator[ast.Constant]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner


def test_parts_stand_in_any_order_and_on_any_line() -> None:
    """Both ways find parts in another order, over lines, with characters that mean something in an expression."""
    error = ValueError("Invalid value [a.b=(1)].\nGive a number in [a.b].")
    assert_says(error, "Give a number", "[a.b=(1)]")
    with pytest.raises(ValueError, match=saying("Give a number", "[a.b=(1)]")):
        raise error


def test_a_part_that_is_missing_is_named() -> None:
    """A message without one of the parts fails, and says which."""
    with pytest.raises(AssertionError, match="cure"):
        assert_says("a key", "key", "cure")
    with pytest.raises(AssertionError), pytest.raises(ValueError, match=saying("key", "cure")):
        raise ValueError("a key")


def test_parts_of_one_line_stand_together() -> None:
    """Parts on two lines are not those of one; the number of lines counts where it is given."""
    assert_line_says("a.b is wrong\nc.d is wrong", "c.d", "wrong", times=1)
    with pytest.raises(AssertionError, match="0 lines"):
        assert_line_says("a.b is wrong\nc.d is right", "a.b", "right")
    with pytest.raises(AssertionError, match="2 lines"):
        assert_line_says("a.b is wrong\nc.d is wrong", "wrong", times=1)
