"""What many topic-partitions cost: the same records in as many files, on many topic-partitions and on four."""

from dataclasses import replace
from typing import Any, Final

from integration.bench import throughput
from integration.bench.parts import Stand, report

FEW: Final = 4
EACH: Final = 4_000
"""Records of one of the many topic-partitions, which become one file."""


def run(stand: Stand) -> dict[str, Any]:
    """Measures both, prints and returns their figures and ratios: of CPU time per record, and of rates.

    Raises KafkaFailed, SetupError.
    """
    records = stand.sizes.wide_records
    many = max(records // EACH, 2 * FEW) // FEW * FEW
    each = min(EACH, records // many)
    sizes = replace(stand.sizes, records=many * each, commit_records=each)
    wide = replace(stand, sizes=sizes)
    found = {}
    for partitions in (many, FEW):
        report(f"wide: {partitions:,} topic-partitions, {many * each:,} records a pass in {many:,} files")
        found[partitions] = throughput.run(wide, wide.orders(partitions))
    cpu, rate = (_ratio(found, figure, many) for figure in ("cpu_us_per_record", "records_per_second"))
    report(f"wide: {cpu:.2f} times the CPU time per record, {rate:.2f} times the rate of {FEW} topic-partitions\n")
    return {"cpu_ratio": cpu, "rate_ratio": rate, **{str(partitions): one for partitions, one in found.items()}}


def _ratio(found: dict[int, dict[str, Any]], figure: str, many: int) -> float:
    return round(found[many][figure] / found[FEW][figure], 3)
