"""Parts of a message are found wherever they stand."""

import pytest

from tests.messages import assert_says, saying


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
