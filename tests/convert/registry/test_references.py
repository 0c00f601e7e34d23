"""References of a schema: order, repetition, circles, bounds."""

from collections.abc import Mapping, Sequence

import pytest

from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.registry.client import (
    DEEPEST,
    MOST_CHARACTERS,
    MOST_REFERENCES,
    Reference,
    StoredSchema,
    resolve,
)
from parquet_sink.convert.registry.registered import Referenced
from tests.messages import saying


def to(*names: str) -> tuple[Reference, ...]:
    """References to the first version of subjects of the same name."""
    return tuple(Reference(name, name, 1) for name in names)


def names(graph: Mapping[str, Sequence[str]], *first: str) -> str:
    """The order in which everything below comes."""
    found = resolve(to(*first), lambda reference: StoredSchema("AVRO", "", to(*graph.get(reference.name, ()))))
    return "".join(referenced.name for referenced in found)


def test_what_is_referred_to_comes_first() -> None:
    """Depth first, each after those that it refers to, each once."""
    assert names({}) == ""
    assert names({}, "b", "a") == "ba"
    assert names({"a": "bc", "b": "d", "c": "d"}, "a", "d") == "dbca"


def test_names_and_texts_are_the_referring_schemas_own() -> None:
    """The name is how the referring schema calls it; the text is that subject's and version's."""
    found = resolve(
        [Reference("com.acme.Money", "money-value", 3)],
        lambda reference: StoredSchema("AVRO", f"{reference.subject} {reference.version}"),
    )
    assert found == (Referenced("com.acme.Money", "money-value 3"),)


def test_of_equal_names_the_first_counts() -> None:
    """As Confluent's client has it."""
    references = [Reference("n", "s1", 1), Reference("n", "s2", 1)]
    found = resolve(references, lambda reference: StoredSchema("AVRO", reference.subject))
    assert found == (Referenced("n", "s1"),)


@pytest.mark.parametrize("graph", [{"a": "a"}, {"a": "b", "b": "a"}, {"a": "b", "b": "c", "c": "b"}])
def test_circles_are_refused(graph: Mapping[str, str]) -> None:
    """References that come back to themselves have no order."""
    with pytest.raises(InvalidValue, match="circle.*subject [ab] version 1"):
        names(graph, "a")


def test_count_depth_and_size_are_bounded() -> None:
    """A registry cannot make us walk for ever."""
    chain = {str(index): [str(index + 1)] for index in range(DEEPEST + 5)}
    with pytest.raises(InvalidValue, match=f"deeper than {DEEPEST}"):
        names(chain, "0")
    with pytest.raises(InvalidValue, match=f"more than {MOST_REFERENCES} references"):
        names({}, *map(str, range(MOST_REFERENCES + 1)))
    half = "x" * (MOST_CHARACTERS // 2 + 1)
    with pytest.raises(InvalidValue, match=saying("more than 32 Mi", "characters")):
        resolve(to("a", "b"), lambda _: StoredSchema("AVRO", half))


def test_subjects_are_shown_printable() -> None:
    """A subject may be any text; a message has no control characters."""
    assert str(Reference("n", "a\nb", 1)) == "subject a\\nb version 1"
