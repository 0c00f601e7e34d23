"""`python -m integration.bench.cliffs [NAME...]`: records that are dear to shape; see docs/explanation/benchmark.md.

Each case is blocks of JSON records that are shaped one after the other, as a Spark task does with a range: CPU time of
all threads of this process per record, the least of some rounds, and how many runs the records come in. A run is rows
that share a schema, so more runs than blocks are more files. No broker and no Spark are needed.
"""

import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import orjson

from parquet_sink.model.records import RecordBatch
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.rows.settings import ShapeSettings

ROUNDS: Final = 3
BLOCK: Final = 5_000
BLOCKS: Final = 4

Records = Callable[[random.Random], Iterator[object]]


@dataclass(frozen=True)
class Case:
    """Records without an end, and the settings to shape them with. block: records of each block."""

    title: str
    records: Records
    settings: ShapeSettings = field(default_factory=ShapeSettings)
    block: int = BLOCK


def orders(rng: random.Random) -> Iterator[object]:
    """Seven fields, as in the other parts."""
    while True:
        amount, customer = rng.randrange(1, 100_000) / 100, f"customer-{rng.randrange(20_000)}"
        yield {
            "order_id": rng.randrange(10**6),
            "customer": customer,
            "status": "created",
            "amount": amount,
            "currency": "EUR",
            "quantity": rng.randrange(20),
            "updated_at": "2026-11-18T11:06:40.137Z",
        }


def metrics(rng: random.Random, share: float = 0.5) -> Iterator[object]:
    """A value that is a time in nanoseconds, or a fraction."""
    while True:
        is_time = rng.random() < share
        value = 1_700_000_000_000_000_000 + rng.randrange(10**15) if is_time else rng.random()
        yield {"name": "process_start" if is_time else "load", "host": f"host-{rng.randrange(50)}", "value": value}


def few_times(rng: random.Random) -> Iterator[object]:
    """The same, with few of the times."""
    return metrics(rng, 0.01)


def negative_zeros(rng: random.Random) -> Iterator[object]:
    """300 fractions, of which one in twenty is zero with a sign in one of twenty records."""
    names = [f"sensor_{number}" for number in range(300)]
    while True:
        found: dict[str, object] = {name: rng.random() for name in names}
        if rng.random() < 0.05:
            found |= dict.fromkeys(rng.sample(names, 15), -0.0)
        yield found


def negative_zeros_everywhere(rng: random.Random) -> Iterator[object]:
    """300 fractions in each record, one in twenty of which is zero with a sign."""
    names = [f"sensor_{number}" for number in range(300)]
    while True:
        yield {name: -0.0 if rng.random() < 0.05 else rng.random() for name in names}


def types(rng: random.Random) -> Iterator[object]:
    """Records of 50 types, each with fields of its own, nested, names in camel case."""
    while True:
        kind = rng.randrange(50)
        own = {f"Field{kind}x{number}": rng.randrange(1000) for number in range(5)}
        yield {"Type": f"t{kind}", "Id": rng.randrange(10**6), f"Payload{kind}": own, "Meta": {"Source": "x", "Seq": 7}}


def new_keys(rng: random.Random) -> Iterator[object]:
    """A field in each record that none before has had, beside some that all have."""
    number = 0
    while True:
        number += 1
        yield {"id": number, "name": "x", "value": rng.random(), f"attribute_{number}": 1}


def sparse(rng: random.Random) -> Iterator[object]:
    """Ten of 2,400 fields in each record."""
    names = [f"field_{number}" for number in range(2_400)]
    while True:
        yield {name: rng.randrange(1000) for name in rng.sample(names, 10)}


def new_keys_exploded(rng: random.Random) -> Iterator[object]:
    """Two elements in each record, ten new fields in all."""
    number = 0
    while True:
        number += 10
        yield {
            "items": [{"id": number, **{f"a{number + other + 5 * half}": 1 for other in range(5)}} for half in (0, 1)]
        }


CASES: Final = {
    "plain": Case("plain, 7 fields", orders),
    "lower": Case("plain, 7 fields, lower case", orders, ShapeSettings(lowercase=True)),
    "nanos": Case("int64 beyond 2^53 or fractions, half each", metrics),
    "few-nanos": Case("int64 beyond 2^53 in 1 % of records, else fractions", few_times),
    "zeros": Case("-0.0 in 5 % of records, among 300 fractions", negative_zeros, block=1_000),
    "zeros-all": Case("-0.0 in 5 % of 300 fractions, in all records", negative_zeros_everywhere, block=1_000),
    "types": Case("50 nested types", types, ShapeSettings(flatten=False)),
    "types-lower": Case("50 nested types, lower case", types, ShapeSettings(flatten=False, lowercase=True)),
    "new-keys": Case("a new key in each record", new_keys),
    "sparse": Case("2,400 fields, 10 present", sparse),
    "explode": Case("exploded, 10 new keys in each record", new_keys_exploded, ShapeSettings(explode=True), 1_000),
}


def main(names: list[str]) -> int:
    """Measures the cases that are named, or all; the exit status."""
    unknown = [name for name in names if name not in CASES]
    if unknown:
        print(f"cliffs: no case {', '.join(unknown)}; there are {', '.join(CASES)}", file=sys.stderr)
        return 2
    print(f"µs CPU per record (least of {ROUNDS}), runs in {BLOCKS} blocks")
    for name in names or CASES:
        case = CASES[name]
        us, runs = measure(case)
        print(f"{name:12} {us:8.2f} µs  {runs:6,} runs  {case.title}", flush=True)
    return 0


def measure(case: Case) -> tuple[float, int]:
    """µs of CPU time per record, and runs."""
    blocks = list(_blocks(case))
    found = [_once(case, blocks) for _ in range(ROUNDS)]
    return min(us for us, _ in found), found[0][1]


def _once(case: Case, blocks: list[RecordBatch]) -> tuple[float, int]:
    shaper = RowBuilder(case.settings)
    runs = 0
    began = time.process_time()
    for block in blocks:
        runs += sum(1 for _ in shaper.shape(block))
    return (time.process_time() - began) / (case.block * len(blocks)) * 1e6, runs


def _blocks(case: Case) -> Iterator[RecordBatch]:
    records = case.records(random.Random(7))
    for number in range(BLOCKS):
        offsets = range(number * case.block, (number + 1) * case.block)
        values = [orjson.dumps(next(records)) for _ in offsets]
        yield RecordBatch.of("metrics", 0, list(offsets), [1_700_000_000_000] * case.block, values)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
