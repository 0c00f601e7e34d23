"""What Java does with numbers, texts and dates; each value was printed by Java 17, odd floats by Java 19's rule."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.addons.transforms.fields.java import numbers
from parquet_sink.addons.transforms.fields.java.date_columns import epoch_ms
from parquet_sink.addons.transforms.fields.java.date_format import WRITTEN, DateFormat, NoDate, PatternUnusable
from parquet_sink.convert.calendars import chosen_text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (1e-3, "0.001"),
        (9.999e-4, "9.999E-4"),
        (12.0, "12.0"),
        (-0.0, "-0.0"),
        (0.1 + 0.2, "0.30000000000000004"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (5e-324, "4.9E-324"),
        (2e23, "2.0E23"),
        (123456.75, "123456.75"),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
    ],
)
def test_doubles_as_text(number: float, text: str) -> None:
    """`Double.toString`."""
    assert numbers.of_float(number) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.1, "0.1"),
        (1e7, "1.0E7"),
        (16777216.0, "1.6777216E7"),
        (3.4028234663852886e38, "3.4028235E38"),
        (1e-45, "1.4E-45"),
    ],
)
def test_floats_as_text(number: float, text: str) -> None:
    """`Float.toString`: the shortest digits among floats of 32 bits."""
    assert numbers.of_float32(float(np.float32(number))) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_text_of_doubles_is_read_back(number: float) -> None:
    """Whatever is printed is the same number when it is parsed."""
    assert numbers.parse_float(numbers.of_float(number)) == number


@pytest.mark.parametrize(
    ("text", "double", "single"),
    [
        ("1.5f", 1.5, 1.5),
        (" 3 ", 3.0, 3.0),
        ("0x1p3", 8.0, 8.0),
        ("0x.8p1", 1.0, 1.0),
        ("1e400", math.inf, math.inf),
        (".5", 0.5, 0.5),
        ("-Infinity", -math.inf, -math.inf),
        ("1.00000017881393432617187499", 1.0000001788139343, 1.0000001192092896),
        ("3.4028235677973366e38", 3.4028235677973366e38, 3.4028234663852886e38),
        ("0.1", 0.1, 0.10000000149011612),
    ],
)
def test_texts_as_floats(text: str, double: float, single: float) -> None:
    """`Double.parseDouble` and `Float.parseFloat`, which rounds once."""
    assert (numbers.parse_float(text), numbers.parse_float32(text)) == (double, single)


@given(
    st.sampled_from(
        ["1.000000178813934326171875", "3.40282356779733661637539395458142568448e38", "7.006492321624085e-46"]
    ),
    st.sampled_from(["", "0" * 4_000, "0" * 5_000 + "1", "9" * 12_000]),
    st.booleans(),
    st.sampled_from(["", "-"]),
)
def test_long_texts_are_rounded_once(text: str, more: str, shorter: bool, sign: str) -> None:
    """Beside the middle of two floats of 32 bits the last of many thousand digits decides."""
    digits, _, power = text.partition("e")
    exact = Decimal(digits[: -1 if shorter else None] + more + (f"e{power}" if power else ""))
    written = f"{sign}{digits[: -1 if shorter else None]}{more}{'e' + power if power else ''}"
    assert numbers.parse_float(written) == float(written)
    found = abs(numbers.parse_float32(written))
    with np.errstate(over="ignore"):
        near = np.float32(float(exact))
    around = [np.nextafter(near, np.float32(0)), near, np.nextafter(near, np.float32(math.inf))]
    with localcontext(prec=20_000):
        held = {float(one): Decimal(2**128) if math.isinf(one) else Decimal(float(one)) for one in around}
        gaps = {one: abs(value - exact) for one, value in held.items()}
    assert gaps[found] == min(gaps.values())


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0" * 50_000 + "7", 7),
        ("-" + "\u0660" * 5_000 + "٣", -3),
        ("+" + "0" * 9_000, 0),
        ("0" * 30 + "2147483647", 2**31 - 1),
    ],
)
def test_leading_zeros_do_not_count(text: str, number: int) -> None:
    """Java reads any number of them, in whatever script."""
    assert numbers.parse_integer(text, 32) == number
    assert numbers.saturated(text) == number


@pytest.mark.parametrize("digits", [41, 4_301, 10_001, 300_000])
def test_long_whole_numbers_are_beyond_every_type(digits: int) -> None:
    """They are refused, or stay at the limit, and nothing but that."""
    for text in ("9" * digits, "-1" + "0" * digits):
        with pytest.raises(numbers.NoNumber):
            numbers.parse_integer(text, 64)
        assert abs(numbers.saturated(text)) > 2**100
        assert (numbers.saturated(text) < 0) == text.startswith("-")


@pytest.mark.parametrize("text", ["", "1e", "0x1", "1_0", "one", "NAN", "1 2", "٣"])
def test_texts_that_are_no_floats(text: str) -> None:
    """They raise."""
    for parse in (numbers.parse_float, numbers.parse_float32):
        with pytest.raises(numbers.NoNumber):
            parse(text)


@pytest.mark.parametrize(("text", "bits", "number"), [("+5", 32, 5), ("-0", 8, 0), ("٣", 16, 3), ("127", 8, 127)])
def test_texts_as_whole_numbers(text: str, bits: int, number: int) -> None:
    """`Integer.parseInt` and its like."""
    assert numbers.parse_integer(text, bits) == number


@pytest.mark.parametrize(
    ("text", "epoch_ms"),
    [
        ("20205E-1-1", 1_577_836_800_000),
        ("9" * 5_000 + "-1", -6_019_000_092_841_406_464),
        ("0" * 5_000 + "2020-01", 1_577_836_800_000),
        ("-1E400-1", 6_017_484_157_321_406_464),
        ("1E-400-1", -62_167_392_000_000),
        ("2020" + "0" * 300 + "E-300-1", 1_577_836_800_000),
        ("19999999999999999999999999E-22-3", 951_868_800_000),
        ("30000000005E-1-1", -6_019_000_092_841_406_464),
        ("3000000000-1", -3_972_633_960_222_496_768),
    ],
)
def test_numbers_of_any_length_in_dates(text: str, epoch_ms: int) -> None:
    """`y-M` of Java 17: what has no room stays at a limit, a power of ten counts, and nothing takes long."""
    assert DateFormat("y-M").parse(text) == epoch_ms
    with pytest.raises(NoDate):
        DateFormat("y-M").parse("1E" + "9" * 5_000 + "-1")


@pytest.mark.parametrize(
    ("text", "bits"), [("128", 8), ("12.0", 32), ("", 32), (" 1", 32), ("2147483648", 32), ("\U0001d7cf", 32)]
)
def test_texts_that_are_no_whole_numbers(text: str, bits: int) -> None:
    """Neither blanks nor fractions, and nothing beyond the range."""
    with pytest.raises(numbers.NoNumber):
        numbers.parse_integer(text, bits)


def test_narrowing() -> None:
    """Whole numbers wrap, fractions are cut and stay at the limits; decimals wrap."""
    assert [numbers.wrapped(number, 8) for number in (300, 128, -129)] == [44, -128, 127]
    assert [numbers.truncated(number, 32) for number in (3.99, -3.99, 1e10, math.nan)] == [3, -3, 2**31 - 1, 0]
    assert [numbers.truncated(number, 64) for number in (2.0**63, -(2.0**63), -math.inf)] == [
        2**63 - 1,
        -(2**63),
        -(2**63),
    ]
    assert numbers.decimal_as_int64(Decimal("18446744073709551617.9")) == 1
    assert numbers.decimal_as_int64(Decimal("1E+100")) == 0


@pytest.mark.parametrize(
    ("epoch_ms", "text"),
    [
        (-1, "23:59:59.999Z"),
        (0, "00:00:00.000Z"),
        (86_399_999, "23:59:59.999Z"),
        (86_400_000, "1970-01-02"),
        (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
        (253_402_300_800_000, "10000-01-01"),
    ],
)
def test_dates_choose_their_form(epoch_ms: int, text: str) -> None:
    """`Values.dateFormatFor`: a time, a date, or both, by the value."""
    assert chosen_text(epoch_ms) == text


@pytest.mark.parametrize(
    ("pattern", "text", "epoch_ms"),
    [
        ("yyyy-MM-dd", "2020-13-45xyz", 1_613_260_800_000),
        ("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", "2024-02-29T12:30:00.5Z", 1_709_209_800_005),
        ("yyyyMMdd", "20240229", 1_709_164_800_000),
        ("dd/MM/yy", "01/02/45", 2_369_520_000_000),
        ("dd/MM/yy", "01/02/99", 917_827_200_000),
        ("EEE, d MMM yyyy HH:mm:ss Z", "thu, 29 february 2024 01:00:00 +0130", 1_709_162_999_000 + 1000),
        ("h:mm a", "12:05 AM", 300_000),
        ("hh a", "12 pm", 43_200_000),
        ("yyyy-DDD", "2024-366", 1_735_603_200_000),
        ("yyyy-MM-dd'T'HH:mm:ssXXX", "2024-02-29T00:00:00-05:00", 1_709_182_800_000),
        ("yyyy-MM-dd", "1582-10-10", -12_218_860_800_000),
        ("yyyy-MM-dd", "0001-01-01", -62_135_769_600_000),
        ("yyyy-MM-dd zzz", "2024-02-29 GMT+2:30", 1_709_164_800_000 - 9_000_000),
        ("s", "1E3", 1_000_000),
        ("kk", "24", 0),
        ("M", "2147483648", 5_647_336_530_739_200_000),
    ],
)
def test_texts_are_read_leniently(pattern: str, text: str, epoch_ms: int) -> None:
    """Fields beyond their ranges roll over, what follows is ignored, names are read in any case."""
    assert DateFormat(pattern).parse(text) == epoch_ms


@pytest.mark.parametrize(
    ("pattern", "text"), [("yyyy-MM-dd", "yesterday"), ("yyyy-MM-dd", ""), ("d MMM", "1 Foo"), ("X", "x"), ("'x'", "y")]
)
def test_texts_that_do_not_begin_as_the_pattern_says(pattern: str, text: str) -> None:
    """They raise."""
    with pytest.raises(NoDate):
        DateFormat(pattern).parse(text)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2023-11-14T22:13:20.123Z"),
        ("EEE MMM d h:mm a z ''yy", "Tue Nov 14 10:13 PM UTC '23"),
        ("EEEE, MMMM u D k K Z y", "Tuesday, November 2 318 22 10 +0000 2023"),
    ],
)
def test_instants_are_written(pattern: str, text: str) -> None:
    """Names are English, the time is UTC."""
    assert DateFormat(pattern).format(1_700_000_000_123) == text


def test_the_calendar_is_julian_before_1582() -> None:
    """As in Java the day after 4 October 1582 is the 15th, and the year before 1 is shown without its era."""
    shown = DateFormat("yyyy-MM-dd")
    assert [shown.format(ms) for ms in (-12_219_292_800_000, -12_219_292_800_001)] == ["1582-10-15", "1582-10-04"]
    assert shown.format(-62_135_769_600_000 - 1) == "0001-12-31"


@pytest.mark.parametrize(
    ("pattern", "why"), [("YYYY", "y"), ("yyyy'T", "quote"), ("q", "use y M"), ("XXXX", "4 times")]
)
def test_patterns_that_cannot_be_used(pattern: str, why: str) -> None:
    """Letters that are not known here, and quotes that do not end, are told."""
    with pytest.raises(PatternUnusable, match=why):
        DateFormat(pattern)


PATTERNS = ["yyyy-MM-dd", "yyyyMMddHHmmssSSS", "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", "(dd)[MM] yyyy", "HH:mm:ss"]


@given(
    st.sampled_from(PATTERNS),
    st.lists(st.tuples(st.integers(-(10**14), 10**14), st.integers(0, 30), st.sampled_from(["", "0", "9", "-", "E"]))),
)
def test_columns_of_dates(pattern: str, instants: list[tuple[int, int, str]]) -> None:
    """Texts that are read at once are read as one by one; whatever is in an unusual form is left."""
    one = DateFormat(pattern)
    assert one.usual is not None
    written = [one.format(epoch_ms) for epoch_ms, _, _ in instants]
    edited = [text[:at] + more + text[at + len(more) :] for text, (_, at, more) in zip(written, instants, strict=True)]
    found = epoch_ms(pa.array(edited, pa.string()), one.usual).to_pylist()
    for text, number in zip(edited, found, strict=True):
        assert number is None or number == one.parse(text)
    usual = [at for at, (_, _, more) in enumerate(instants) if not more and instants[at][0] > -(10**12)]
    assert None not in [found[at] for at in usual]


@pytest.mark.parametrize("pattern", ["yy", "d/M/yyyy", "EEE", "yyyy'E'", "yyyy1", "HH HH", "'x'"])
def test_patterns_without_a_usual_form(pattern: str) -> None:
    """Where a number's end depends on what follows, texts are read one by one."""
    assert DateFormat(pattern).usual is None


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("yy", "NaN", -62_167_392_000_000),
        ("yyyy-MM-dd", "2020-NaN-05", 1_575_504_000_000),
        ("HH:mm", "NaN:30", 1_800_000),
    ],
)
def test_nan_is_read_as_the_number_0_in_dates(pattern: str, text: str, expected: int) -> None:
    """Java's NumberFormat takes NaN for a number, and a date's field is 0 then."""
    assert DateFormat(pattern).parse(text) == expected


LATE = 1_704_067_199_005
"""2023-12-31T23:59:59.005Z, a Sunday."""


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyyMMdd", "20231231"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", "2023-12-31T23:59:59.005Z"),
        ("yy y M MMM MMMM L", "23 2023 12 Dec December 12"),
        ("YYYY-ww W", "2024-01 6"),
        ("D F E EEEE u", "365 5 Sun Sunday 7"),
        ("h a K k H", "11 PM 11 23 23"),
        ("G z zzzz Z X XXX", "AD UTC Coordinated Universal Time +0000 Z Z"),
        ("'o''clock' ''", "o'clock '"),
        ("dddd/SS", "0031/05"),
    ],
)
def test_every_letter_is_written(pattern: str, text: str) -> None:
    """In English and UTC, as Java wrote each line."""
    assert DateFormat(pattern, WRITTEN).format(LATE) == text


def test_dates_before_1970_are_written() -> None:
    """Days and the time of the day count down from there; before Christ, too."""
    assert DateFormat("yyyy-MM-dd HH:mm:ss.SSS EEE").format(-1) == "1969-12-31 23:59:59.999 Wed"
    assert DateFormat("G yyyy-MM-dd YYYY", WRITTEN).format(-62_135_942_400_000) == "BC 0001-12-30 0001"


@pytest.mark.parametrize("pattern", ["'open", "b", "QQ", "XXXX"])
def test_what_java_refuses_to_write_is_refused(pattern: str) -> None:
    """Unknown letters and texts without an end."""
    with pytest.raises(PatternUnusable):
        DateFormat(pattern, WRITTEN)


def test_letters_that_are_only_written_are_not_read() -> None:
    """What reads texts may not have them."""
    with pytest.raises(PatternUnusable, match="has Y"):
        DateFormat("YYYY")


@pytest.mark.parametrize(("pattern", "step"), [("yyyyMMdd", 86_400_000), ("yyyyMMddHH", 1), ("'H'", 86_400_000)])
def test_a_format_of_days_is_the_same_all_day(pattern: str, step: int) -> None:
    """Only formats with a letter for the time of the day look at it."""
    assert DateFormat(pattern).step_ms == step
