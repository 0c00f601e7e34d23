"""What the environment asks of a benchmark."""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from integration.bench.formats import FORMATS
from integration.bench.named_transforms import TRANSFORMS
from integration.bench.targets import TARGETS
from parquet_sink.errors import InvalidConfiguration

UNUSUAL: Final = ("backlog", "invalid", "replay", "wide", "trickle", "connectors", "job")
"""Parts that run only when they are named."""
PARTS: Final = ("start", "4", "1", "freshness", "idle", "stages", *UNUSUAL)
WITH_TRANSFORMS: Final = ("json", "avro")
"""Formats that transforms are measured with where none is named: one without a schema, one with it."""
MODES: Final = ("shaped", "raw")
BESIDE: Final[Mapping[str, Mapping[str, Any]]] = {
    "nothing": {},
    "key": {"key": b"order-00004711"},
    "headers": {"key": b"order-00004711", "headers": [("source", b"shop-eu-1"), ("traceparent", b"00-" + 52 * b"a")]},
}
"""What an order may have beside its value, by the words of BESIDE=."""
USUAL: Final = tuple(part for part in PARTS if part not in UNUSUAL)


@dataclass(frozen=True)
class Sizes:
    """Counts are records unless their name says otherwise."""

    records: int = 2_000_000
    wide_records: int = 4_000_000
    passes: int = 3
    warm_up_passes: int = 1
    commit_records: int = 250_000
    commit_interval_ms: int = 10_000
    commit_size_bytes: int = 100_000_000
    idle_connectors: int = 5
    trickle_per_second: int = 200
    trickle_s: int = 40
    stage_records: int = 400_000
    connectors: tuple[int, ...] = (60, 300)
    kafka_connect: int = 60
    busy_connectors: int = 60
    settle_s: int = 75
    look_s: int = 30
    job_records: int = 10_000
    backlog: int = 0
    parts: tuple[str, ...] = USUAL
    formats: tuple[str, ...] = ()
    transforms: tuple[str, ...] = ()
    mode: str = "shaped"
    beside: str = "nothing"
    target: str = "push"

    @property
    def record(self) -> Mapping[str, Any]:
        """What an order has beside its value, as a producer takes it."""
        return BESIDE[self.beside]

    def per_file(self, per_partition: int) -> int:
        """The file size nearest below COMMIT_RECORDS that divides a topic-partition's share into full files."""
        return max(per_partition // files_of(per_partition, self.commit_records), 1)

    def per_partition(self, records: int, partitions: int) -> int:
        """Records for each topic-partition, rounded down so that the last file of a pass is full too."""
        share = max(records // partitions, 1)
        return self.per_file(share) * files_of(share, self.commit_records)


def files_of(records: int, most: int) -> int:
    """Files that hold `records` at `most` each."""
    return -(-records // most)


def from_environment(environment: Mapping[str, str] = os.environ) -> Sizes:
    """The sizes that `make bench` was given. Raises InvalidConfiguration naming every wrong variable."""
    problems: list[str] = []

    def number(name: str, default: int, least: int = 1) -> int:
        text = environment.get(name, "").strip()
        if text and not (text.isascii() and text.isdigit() and int(text) >= least):
            problems.append(f"Invalid [{name}]. '{text}' is not a whole number of at least {least}; correct it.")
            return default
        return int(text) if text else default

    def word(name: str, known: Collection[str], default: str) -> str:
        text = environment.get(name, "").strip() or default
        if text not in known:
            problems.append(f"Invalid [{name}]. '{text}' is none of {', '.join(known)}.")
            return default
        return text

    base = Sizes()
    records = number("RECORDS", base.records, 1_000)
    transforms = _transforms(environment.get("TRANSFORMS", ""), problems)
    formats = _formats(environment.get("FORMAT", ""), problems) or (WITH_TRANSFORMS if transforms else ())
    backlog = number("BACKLOG", 0, 0)
    sizes = Sizes(
        records=records,
        wide_records=records if environment.get("RECORDS", "").strip() else base.wide_records,
        passes=number("PASSES", base.passes),
        warm_up_passes=number("WARM_UP_PASSES", base.warm_up_passes),
        commit_records=number("COMMIT_RECORDS", base.commit_records),
        commit_interval_ms=number("COMMIT_INTERVAL_MS", base.commit_interval_ms, 1_000),
        commit_size_bytes=number("COMMIT_SIZE_BYTES", base.commit_size_bytes, 100_000),
        idle_connectors=number("IDLE", base.idle_connectors),
        trickle_per_second=number("TRICKLE_PER_SECOND", base.trickle_per_second),
        trickle_s=number("TRICKLE_SECONDS", base.trickle_s, 12),
        stage_records=number("STAGE_RECORDS", base.stage_records, 20_000),
        connectors=_parse_counts(environment.get("CONNECTORS", ""), problems, base.connectors),
        kafka_connect=number("KAFKA_CONNECT", base.kafka_connect, 0),
        busy_connectors=number("BUSY", base.busy_connectors, 0),
        settle_s=number("SETTLE_SECONDS", base.settle_s, 0),
        look_s=number("LOOK_SECONDS", base.look_s),
        job_records=number("JOB_RECORDS", base.job_records),
        backlog=backlog,
        parts=_parts(environment.get("ONLY", ""), backlog, problems, usual=() if formats else USUAL),
        formats=formats,
        transforms=transforms,
        mode=word("MODE", MODES, base.mode),
        beside=word("BESIDE", BESIDE, base.beside),
        target=word("TARGET", TARGETS, base.target),
    )
    if sizes.mode == "raw" and (formats or "invalid" in sizes.parts):
        problems.append("Invalid [MODE]. Raw records are not decoded: FORMAT, TRANSFORMS and ONLY=invalid need shaped.")
    if sizes.target != "push" and (formats or {"invalid", "replay"} & set(sizes.parts)):
        problems.append("Invalid [TARGET]. FORMAT, TRANSFORMS, ONLY=invalid and ONLY=replay need push.")
    if problems:
        raise InvalidConfiguration(problems)
    return sizes


def _parse_counts(text: str, problems: list[str], default: tuple[int, ...]) -> tuple[int, ...]:
    """Return the numbers of connectors to measure: none for 0, the default if the text is empty."""
    words = text.replace(",", " ").split()
    if not all(word.isascii() and word.isdigit() for word in words):
        problems.append(f"Invalid [CONNECTORS]. '{text}' is not numbers of connectors; write CONNECTORS=60,300.")
        return default
    return tuple(int(word) for word in words if int(word)) if words else default


def _formats(names: str, problems: list[str]) -> tuple[str, ...]:
    """The formats to measure, `all` for each of them."""
    wanted = set(names.replace(",", " ").split())
    if "all" in wanted:
        return tuple(FORMATS)
    known = f"all, {', '.join(FORMATS)}"
    problems += [f"Invalid [FORMAT]. '{word}' is none of {known}." for word in sorted(wanted - set(FORMATS))]
    return tuple(name for name in FORMATS if name in wanted)


def _transforms(names: str, problems: list[str]) -> tuple[str, ...]:
    """The transforms to measure, in the order in which they are configured together."""
    wanted = set(names.replace(",", " ").split())
    known = ", ".join(TRANSFORMS)
    problems += [f"Invalid [TRANSFORMS]. '{word}' is none of {known}." for word in sorted(wanted - set(TRANSFORMS))]
    return tuple(name for name in TRANSFORMS if name in wanted)


def _parts(only: str, backlog: int, problems: list[str], *, usual: tuple[str, ...]) -> tuple[str, ...]:
    """The parts to run, in their order: without ONLY the usual ones, and `backlog` when it has a size."""
    wanted = set(only.replace(",", " ").split())
    problems += [f"Invalid [ONLY]. '{word}' is none of {', '.join(PARTS)}." for word in sorted(wanted - set(PARTS))]
    if "backlog" in wanted and not backlog:
        problems.append("Invalid [BACKLOG]. The part backlog needs a size, for example BACKLOG=10000000.")
    if wanted:
        return tuple(part for part in PARTS if part in wanted)
    return (*usual, "backlog") if backlog else usual
