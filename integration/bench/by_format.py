"""Each format by itself: throughput and CPU time of the whole program, and what its steps cost in one process."""

from contextlib import ExitStack
from typing import Any, Final

from integration.bench import figures, load, stages, throughput, transforms
from integration.bench.formats import FORMATS, REGISTRY_URL
from integration.bench.named_transforms import keys_of, record_of
from integration.bench.parts import Stand, Work, report
from integration.registry import RegistryServer

PARTITIONS: Final = 4
MOST_BYTES: Final = 400_000_000
"""Of one pass: large records are measured with fewer of them."""


def run(stand: Stand) -> dict[str, Any]:
    """Measures the formats that are asked for; figures by format, as the last line has them."""
    found: dict[str, Any] = {}
    with ExitStack() as stack:
        asked = [FORMATS[name] for name in stand.sizes.formats]
        url = stack.enter_context(RegistryServer()).url if any(one.uses_registry for one in asked) else ""
        for name, one in zip(stand.sizes.formats, asked, strict=True):
            values = one.values(url, load.POOL)
            size = sum(map(len, values)) / len(values)
            report(f"format {name}: {size:.0f} bytes a record")
            names = stand.sizes.transforms
            keys = {**one.keys, **({REGISTRY_URL: url} if one.uses_registry else {}), **keys_of(names)}
            records = min(stand.sizes.records, int(MOST_BYTES / size))
            work = Work(f"bench-{name.replace('_', '-')}", PARTITIONS, records, values, keys, record_of(names))
            found[name] = {"bytes_per_record": round(size), **throughput.run(stand, work)}
            found[name]["stages_us"] = stages.run(stand, work)
            if names:
                found[name]["transforms_us"] = transforms.run(stand, work)
    report(_table(found))
    return found


def _table(found: dict[str, Any]) -> str:
    columns = ("bytes_per_record", "cpu_us_per_record", "records_per_second", "peak_rss_mb")
    rows = [[name, *(f"{one[column]:,}" for column in columns)] for name, one in found.items()]
    return figures.table(["format", "bytes", "µs CPU per record", "records/s", "MB at most"], rows)
