"""What many topic-partitions cost: the same records in as many files, on many topic-partitions and on four."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from integration.bench import figures, throughput
from integration.bench.parts import Stand, report
from integration.bench.throughput import Measured

FEW: Final = 4
EACH: Final = 4_000
"""Records of one of the many topic-partitions, which become one file."""
ROUNDS: Final = 2
"""The second in the other order: where others use the machine, too, it is now quicker, now slower."""


def run(stand: Stand) -> dict[str, Any]:
    """Measures both by turns, prints and returns their figures and ratios: of CPU time per record, and of rates.

    Raises KafkaFailed, SetupError.
    """
    records = stand.sizes.wide_records
    many = max(records // EACH, 2 * FEW) // FEW * FEW
    each = min(EACH, records // many)
    sizes = replace(stand.sizes, records=many * each, commit_records=each)
    wide = replace(stand, sizes=sizes)
    found: dict[int, list[Measured]] = {many: [], FEW: []}
    for number in range(ROUNDS):
        for partitions in (many, FEW) if number % 2 == 0 else (FEW, many):
            report(
                f"wide, round {number + 1} of {ROUNDS}: {partitions:,} topic-partitions, {many * each:,} records a "
                f"pass in {many:,} files"
            )
            work = wide.orders(partitions)
            found[partitions].append(throughput.measured(wide, replace(work, name=f"{work.name}-{number + 1}")))
    of_all = {partitions: _of_all(rounds) for partitions, rounds in found.items()}
    cpu, rate = (
        round(of_all[many][figure] / of_all[FEW][figure], 3) for figure in ("cpu_us_per_record", "records_per_second")
    )
    report(
        f"wide: {cpu:.2f} times the CPU time per record, {rate:.2f} times the rate of {FEW} topic-partitions; "
        f"medians of {ROUNDS * sizes.passes} passes each\n"
    )
    return {"cpu_ratio": cpu, "rate_ratio": rate, **{str(partitions): one for partitions, one in of_all.items()}}


def _of_all(rounds: Sequence[Measured]) -> dict[str, Any]:
    """Medians over the passes of all rounds; the earliest first file, and the most memory."""
    passes = [one for found in rounds for one in found.passes]
    return figures.of_passes(passes, min(one.first_file_s for one in rounds), max(one.peak_bytes for one in rounds))
