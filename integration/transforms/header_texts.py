"""Texts for `SimpleHeaderConverter` at random: single values, lists and maps of them, and what is nearly one."""

from random import Random
from typing import Final

from integration.transforms.samples import TEXTS

WORDS: Final = (
    *TEXTS,
    *("0", "00", "0.0", "-0.0", "1.50", "1e5", "1E+5", "-1.5e-3", "1.0", "100.0", "3.4028236e38", "1e39"),
    *("1e309", "4.9e-324"),
    *("32767", "-32768", "2147483647", "-2147483649", "-9223372036854775808", "18446744073709551616", "0.1", "1.1"),
    *("123456789.123456789", "16777217", "16777217.0", "9007199254740993", "0.30000000000000004", "1234567890123.5"),
    *("2020-02-30", "2020-02-29", "20200101", "0001-01-01", "9999-12-31", "2020-1-1", "2020-01-01T", "2020-01-01 "),
    *("2020-01-01T00:00:00.000Z", "2020-01-01T00:00:00.000+0100"),
    *("2020-01-01T00:00:00.000+01:00", "2020-01-01T25:00:00.000Z"),
    *("12:34:56.789Z", "12:34:56.789+0000", "12:34:56.789", "24:00:00.000Z"),
    *("00:00:00.000Z", "1969-12-31T23:59:59.999Z"),
    *("nulL", "NULL", "null ", " null", "tRue", "truE", "true ", " true", "truefalse", "\\", "\\n", 'a"b'),
    *("it's", "a\\,b"),
    *("a b", "  ", "\t", "-", "+", ".", "e", "E5", "1e", "--1", "1-", "١٢٣", "½", "∞", "1,000", "1 000", "1/2"),
    *("a=b", "a/b"),
)
_QUOTABLE: Final = (
    *("", "a", "12", "true", "null", "2020-01-01", "a,b", "[1]"),
    *('say \\"hi\\"', "ünï", " x ", "\\\\", "12:34:56.789Z"),
)
_SPACES: Final = ("", "", "", " ", "  ", "\t")
_SOUP: Final = ("[", "]", "{", "}", ",", ":", '"', "\\", " ", "1", "a", "true", "null", "1.5", "-", ".", "2020-01-01")


def text(rng: Random) -> str:
    """One of them."""
    chance = rng.random()
    if chance < 0.35:
        return _spaced(rng, rng.choice(WORDS)) if rng.random() < 0.2 else rng.choice(WORDS)
    if chance < 0.85:
        found = nested(rng, 0)
        return _damaged(rng, found) if rng.random() < 0.15 else found
    return "".join(rng.choice(_SOUP) for _ in range(rng.randrange(1, 7)))


def nested(rng: Random, depth: int) -> str:
    """A list, a map, or one value."""
    chance = rng.random()
    if depth > 2 or chance < (0.1 if depth == 0 else 0.6):
        return _one(rng)
    items = [_spaced(rng, nested(rng, depth + 1)) for _ in range(rng.randrange(4))]
    if rng.random() < 0.06:
        items.append("")
    if chance < 0.8:
        return f"[{','.join(items)}]"
    keys = [_spaced(rng, _one(rng)) for _ in items]
    return "{" + ",".join(f"{key}:{item}" for key, item in zip(keys, items, strict=True)) + "}"


def _one(rng: Random) -> str:
    if rng.random() < 0.4:
        return f'"{rng.choice(_QUOTABLE)}"'
    return rng.choice(("1", "2", "300", "70000", "5000000000", "1.5", "true", "false", "null", "abc", *WORDS))


def _spaced(rng: Random, found: str) -> str:
    return rng.choice(_SPACES) + found + rng.choice(_SPACES)


def _damaged(rng: Random, found: str) -> str:
    at = rng.randrange(len(found) + 1)
    return found[:at] + rng.choice(("", rng.choice(_SOUP))) + found[at + 1 :]
