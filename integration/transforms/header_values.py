"""Texts of headers as SimpleHeaderConverter reads them, compared one by one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from integration.transforms import ours
from integration.transforms.cases import Case
from integration.transforms.outcome import Outcomes, Row, Value, untyped
from parquet_sink.convert.connect_values.decoder import parse


@dataclass(frozen=True)
class Known:
    """A value that differs for a reason. test: of the text, Kafka's value and ours."""

    name: str
    reason: str
    test: Callable[[str, Value, Value], bool]


KNOWN: Final = (
    Known(
        "lists and maps of several types",
        "Connect gives them no type: they are kept as JSON has it, what JSON has no word for as text",
        lambda text, theirs, ours: (
            theirs is not None and theirs[0] in ("List", "Map") and untyped(theirs) == untyped(ours)
        ),
    ),
    Known(
        "decimals of many digits",
        "Arrow holds 76 digits, of which convert/connect_values/ uses 64; the text stands for more",
        lambda text, theirs, ours: theirs is not None and theirs[0] == "BigDecimal" and ours == ("String", text),
    ),
    Known(
        "a time of 24 hours",
        "a column of times ends with the day; the text stands for it",
        lambda text, theirs, ours: theirs == ("Date", 86_400_000) and ours == ("String", text),
    ),
)


def compare(cases: list[Case], theirs: list[Outcomes]) -> tuple[set[str], list[str]]:
    """Names of known differences that occur, and those that nothing explains."""
    seen: set[str] = set()
    found = []
    for text, value in _values(cases, theirs):
        mine = value_of(text)
        if mine == value:
            continue
        known = next((one.name for one in KNOWN if one.test(text, value, mine)), None)
        if known is None:
            found.append(f"{text!r}\n  kafka: {value}\n  ours:  {mine}")
        else:
            seen.add(known)
    return seen, found


def _values(cases: list[Case], theirs: list[Outcomes]) -> Iterator[tuple[str, Value]]:
    for case, outcomes in zip(cases, theirs, strict=True):
        assert isinstance(outcomes, list)
        for record, row in zip(case.records, outcomes, strict=True):
            assert isinstance(row, Row)
            for (_, text), (_, value) in zip(record.headers, row.headers, strict=True):
                assert text is not None
                yield text.decode(), value


def value_of(text: str) -> Value:
    """What this package makes of a header's text."""
    return ours.header(parse(text))
