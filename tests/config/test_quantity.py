"""Sizes and durations as people write them: exact, and nothing that could be meant otherwise."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.config.key import Key, Type
from parquet_sink.config.provider import Resolved
from parquet_sink.config.quantity import Unit, amount, examples, seconds
from parquet_sink.config.report import Report
from parquet_sink.config.values import read
from tests.messages import assert_says

SIZES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12} | {
    name: 1 << power for name, power in (("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40))
}
TIMES = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
UNITS = [(Unit.BYTES, *one) for one in SIZES.items()] + [(Unit.MILLISECONDS, *one) for one in TIMES.items()]
NUMBERS = st.from_regex(r"[0-9]{1,15}(\.[0-9]{1,12})?", fullmatch=True)


@given(st.sampled_from(UNITS), NUMBERS, st.sampled_from(["", " "]))
def test_what_is_read_is_what_was_written(unit: tuple[Unit, str, int], number: str, between: str) -> None:
    """A number times its unit, as fractions have it, and refused where that is not a whole number."""
    kind, name, size = unit
    exact = Fraction(number) * size
    if exact.denominator == 1:
        assert amount(f"{number}{between}{name}", kind) == exact
    else:
        with pytest.raises(ValueError, match="not a whole number"):
            amount(f"{number}{between}{name}", kind)


@given(st.text(max_size=12))
def test_any_text_is_a_quantity_or_none(text: str) -> None:
    """Whatever is read is ASCII, with digits first and a unit of the kind last; nothing else raises."""
    for unit, names in ((Unit.BYTES, SIZES), (Unit.MILLISECONDS, TIMES)):
        try:
            found = amount(text, unit)
        except ValueError:
            continue
        if found is not None:
            assert text.isascii()
            assert text[0].isdigit()
            assert text.lower().endswith(tuple(name.lower() for name in names))


@pytest.mark.parametrize(
    "text",
    [
        *("10", "", "MB", "-1MB", "+1MB", "1e3MB", "1_000kB", "10M", "10k", "10mbit", "1,5MB", ".5MB", "5.MB", "30s"),
        *("10  MB", "10\tMB", "10MB ", "10MB5", "9" * 21 + "B"),
        *(f"{digit}MB" for digit in ("\N{ARABIC-INDIC DIGIT TWO}", "\N{FULLWIDTH DIGIT ONE}", "1\N{SUPERSCRIPT TWO}")),
    ],
)
def test_what_is_no_size(text: str) -> None:
    """Signs, other digits, bare letters and durations are none."""
    assert amount(text, Unit.BYTES) is None


@pytest.mark.parametrize(
    "text", ["30", "30S", "5M", "1H", "1h30m", "-5m", "10MB", "1 week", "1y", "s", "30\N{LATIN SMALL LETTER LONG S}"]
)
def test_what_is_no_duration(text: str) -> None:
    """Units are small letters, one by itself; a month is not a minute."""
    assert amount(text, Unit.MILLISECONDS) is None


def test_units_of_sizes_are_written_in_any_case() -> None:
    """mb, MB and Mb are 1,000,000 bytes; MIB and mib are 1,048,576."""
    assert {amount(text, Unit.BYTES) for text in ("1mb", "1MB", "1Mb", "1 MB")} == {1_000_000}
    assert {amount(text, Unit.BYTES) for text in ("1mib", "1MiB", "1MIB")} == {1_048_576}


@pytest.mark.parametrize(
    ("text", "found"),
    [("30", 30.0), ("0.5", 0.5), ("500ms", 0.5), ("1.5h", 5400.0), ("0.5ms", None), ("-1", None), ("nan", None)],
)
def test_seconds_of_a_command_line(text: str, found: float | None) -> None:
    """A plain number is seconds; with a unit it is what it says."""
    assert seconds(text) == found


def _read(text: str, key: Key) -> tuple[object, list[str]]:
    report = Report()
    values = read((key,), Resolved({key.name: text}, {key.name: text}), report)
    return values.value(key.name), report.problems


SIZE = Key("a.bytes", "A", Type.LONG, "A size.", default=1, minimum=0, unit=Unit.BYTES)
AGE = Key("a.ms", "A", Type.INT, "An age.", default=1, minimum=-1, unit=Unit.MILLISECONDS)


@given(st.integers(0, 10**12))
def test_a_plain_number_counts_as_before(number: int) -> None:
    """Of bytes or milliseconds; a unit of one unit is the same."""
    assert _read(str(number), SIZE) == _read(f"{number}B", SIZE) == (number, [])


@pytest.mark.parametrize(
    ("key", "text", "said"),
    [
        (SIZE, "ten", ('"ten"', "10MB or 10000000", "KiB")),
        (SIZE, "0.5B", ('"0.5B"', "whole number of bytes", "10MB or 10000000")),
        (SIZE, "99999999999TB", ('"99999999999TB"', "more than 9223372036854775807")),
        (AGE, "30S", ('"30S"', "30s or 30000", "ms, s, m")),
        (AGE, "-1s", ('"-1s"', "30s or 30000")),
        (AGE, "25d", ('"25d"', "more than 2147483647")),
        (AGE, "1e3", ('"1e3"', "30s or 30000")),
    ],
)
def test_what_is_wrong_is_told_with_key_value_and_cure(key: Key, text: str, said: tuple[str, ...]) -> None:
    """Also what a number of the key's bits does not hold; then the default stands in."""
    value, problems = _read(text, key)
    assert value == 1
    (problem,) = problems
    assert_says(problem, f"[{key.name}]", *said)


@pytest.mark.parametrize(
    ("minimum", "maximum", "text"),
    [(None, None, "30s or 30000"), (60_000, None, "5m or 300000"), (1, 1_000, "500ms or 500"), (1, 2, "milliseconds")],
)
def test_examples_are_within_limits(minimum: int | None, maximum: int | None, text: str) -> None:
    """A cure is never refused itself."""
    assert text in examples(Unit.MILLISECONDS, minimum, maximum)
