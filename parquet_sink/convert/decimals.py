"""Decimals whose scale no column has, as columns and as text."""

from decimal import Context, Decimal

from parquet_sink.convert.decoded import MAX_PRECISION

LONGEST_DECIMAL = 64
"""Bytes of an unscaled value."""

_PLAIN_ZEROS = 130
"""Zeros that a text may have for its scale alone, as many as Oracle's NUMBER needs; beyond, it has an exponent."""

_CONTEXT = Context(prec=1_000, Emin=-(10**10), Emax=10**10)


def fit_decimal(precision: int, scale: int) -> tuple[int, int]:
    """Return precision and scale of the column for decimals whose scale may be negative or above their precision.

    The column has the zeros of a negative scale as digits. scale: from -MAX_PRECISION to MAX_PRECISION.
    """
    return (max(precision, scale), scale) if scale >= 0 else (min(precision - scale, MAX_PRECISION), 0)


def to_decimal_text(unscaled: bytes, scale: int) -> str:
    """Return all digits of a decimal. unscaled: two's complement, big endian."""
    number = Decimal(int.from_bytes(unscaled, "big", signed=True)).scaleb(-scale, _CONTEXT)
    return format(number, "f") if abs(scale) <= _PLAIN_ZEROS else str(number)
