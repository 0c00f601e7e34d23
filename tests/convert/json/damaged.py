"""Reads JSON in C, whole and damaged, with lists, too; prints how many blocks were read. One argument: a seed."""

import random
import sys

import orjson
import pyarrow as pa

from parquet_sink.convert.json import fast
from parquet_sink.convert.json.lists import KnownLists, with_lists_as_text

POINT = pa.struct([("x", pa.float64()), ("p", pa.struct([("t", pa.string())]))])
SCHEMA = pa.schema([("i", pa.int64()), ("f", pa.float64()), ("s", pa.string()), ("b", pa.bool_()), ("o", POINT)])
PUT = (b"", b'"', b"\\", b"{", b"}", b",", b":", b"0", b"-", b".", b"e5", b"\x00", b"\xff", b"\\u00e9", b"9" * 30)
TEXTS = ("", "a", "größe", "\U0001f600" * 9, '"\\\n', "x" * 5_000)


def record(chance: random.Random) -> bytes:
    """A record of the schema."""
    text, fraction = (
        chance.choice(TEXTS),
        chance.choice((0.1, -0.0, 1e300, chance.random(), chance.randrange(10**15) / 100)),
    )
    found = {"i": chance.randrange(-(2**63), 2**63), "f": fraction, "s": text, "b": chance.random() < 0.5}
    found["o"] = chance.choice((None, {}, {"x": fraction, "p": {"t": text}}))
    return orjson.dumps({name: found[name] for name in chance.sample([*found], chance.randrange(6))})


def damaged(chance: random.Random, value: bytes) -> bytes:
    """The value with some bytes in the place of others."""
    at = chance.randrange(len(value) + 1)
    return value[:at] + chance.choice(PUT) + value[at + chance.randrange(3) :]


KNOWN = KnownLists.of({"l": {}, "größe": {}}, [])


def with_lists(chance: random.Random) -> bytes:
    """A record with lists, with white space now and then."""
    one = [record(chance).decode(), *map(str, (chance.choice(TEXTS), chance.random(), True, None, -0.0, [], [[{}]]))]
    found = {name: chance.sample(one, chance.randrange(5)) for name in ("l", "m", "größe", '"l')}
    text = orjson.dumps(found, option=chance.choice((0, orjson.OPT_INDENT_2)))
    return text.replace(b"l", chance.choice((b"l", b"\\u006c")), chance.randrange(2))


def main(seed: int) -> None:
    """Raises AssertionError where something is read that Arrow's reader does not read, or otherwise."""
    chance = random.Random(seed)
    whole = read = 0
    for _ in range(4_000):
        values = [record(chance) for _ in range(chance.choice((1, 3, 50)))]
        if chance.random() < 0.7:
            which = chance.randrange(len(values))
            values[which] = damaged(chance, values[which])
        else:
            whole += 1
        array = pa.array(values, pa.binary())
        found = fast.read_in_c(array, SCHEMA)
        if found is not None:
            read += 1
            found.validate(full=True)
            (expected,) = fast.parsed(fast.lines(array), SCHEMA, "error").to_batches()
            assert found.equals(expected), values
        values = [damaged(chance, with_lists(chance)) if chance.random() < 0.5 else with_lists(chance) for _ in values]
        with_lists_as_text(pa.array(values, pa.binary()), KNOWN, False, None).validate(full=True)
    assert read >= whole, (read, whole)
    print("read", read)


if __name__ == "__main__":
    main(int(sys.argv[1]))
