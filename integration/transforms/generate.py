"""Cases at random from a seed: the same seed gives the same cases."""

from collections.abc import Iterator
from random import Random
from typing import Final

from integration.transforms import configurations, header_texts, samples
from integration.transforms.cases import Case, Header, Record
from integration.transforms.samples import Shape

HEADER_TEXTS: Final = (
    *("", "text", "12", "300", "-40000", "1.5", "true", "false", "TRUE", "null", "2020-01-01", "12:34:56.789Z"),
    *("2020-01-01T00:00:00.000Z", "[1, 2]", '["a"]', '{"a": 1}', '"quoted"'),
    *("[1,", "{a:1}", "[]", "{}", "ünï", " 5 "),
)
STAMPS: Final = (None, 0, 1, 1_577_836_800_000, 1_700_000_000_123, 1_577_882_096_789, 253_402_300_800_000)


def cases(seed: int) -> Iterator[Case]:
    """Cases without an end; each transform comes first in its turn."""
    rng = Random(seed)
    while True:
        for name in configurations.TRANSFORMS:
            yield case(rng, name)


def case(rng: Random, first: str) -> Case:
    """A case that begins with a transform by its short name."""
    value = samples.schema_shape(rng) if rng.random() < 0.5 else samples.tree_shape(rng)
    key = samples.schema_shape(rng) if rng.random() < 0.5 else samples.tree_shape(rng)
    more = rng.choices((0, 1, 2, 3), (30, 35, 25, 10))[0]
    names = [first, *rng.choices(configurations.TRANSFORMS, k=more)]
    steps = tuple(configurations.step(rng, name, value, key) for name in names)
    records = tuple(_records(rng, value, key))
    return Case(
        steps, records, key.schema is not None, value.schema is not None, rng.choice(("orders", "orders", "o-1"))
    )


def _records(rng: Random, value: Shape, key: Shape) -> Iterator[Record]:
    odd = rng.choice((0.0, 0.0, 0.05, 0.2))
    nulls = rng.choice((odd / 3, odd / 3, odd / 3, 0.3))
    for _ in range(rng.choice((1, 2, 5, 10, 20))):
        stamp = rng.choice(STAMPS)
        yield Record(_bytes(rng, key, odd, 0.2), _bytes(rng, value, odd, nulls), _headers(rng), stamp)


def _bytes(rng: Random, shape: Shape, odd: float, nulls: float) -> bytes | None:
    if rng.random() < nulls:
        return None
    return samples.bare(rng, shape, odd) if shape.schema is None else samples.envelope(rng, shape.schema)


def _headers(rng: Random) -> tuple[Header, ...]:
    count = rng.choice((0, 0, 1, 2, 3))
    return tuple((rng.choice(configurations.HEADERS), _header_value(rng)) for _ in range(count))


def _header_value(rng: Random) -> bytes | None:
    return None if rng.random() < 0.1 else rng.choice(HEADER_TEXTS).encode()


def header_cases(seed: int) -> Iterator[Case]:
    """Cases without an end whose records have nothing but headers, to be decoded."""
    rng = Random(seed)
    while True:
        texts = [header_texts.text(rng) for _ in range(20)]
        headers = tuple((f"h{at}", text.encode()) for at, text in enumerate(texts))
        yield Case((), (Record(None, None, headers),))
