"""Which records a replay is to send: as an operator chose them, not looked up anywhere yet."""

from dataclasses import dataclass

MOST_OFFSET = 2**63 - 2


@dataclass(frozen=True)
class Selection:
    """None: whichever. first, last: offsets, both included. since_ms, until_ms: Kafka's timestamps, until excluded.

    newest: the last so many files of the history. files: those of these names. Of offsets, times, newest and files at
    most one way is used. skip_missing: what Kafka no longer has is left out; else nothing is sent.
    """

    topic: str | None = None
    partition: int | None = None
    first: int | None = None
    last: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    newest: int | None = None
    files: tuple[str, ...] = ()
    skip_missing: bool = False

    @property
    def by_offsets(self) -> bool:
        return self.first is not None or self.last is not None

    @property
    def by_time(self) -> bool:
        return self.since_ms is not None or self.until_ms is not None

    @property
    def by_files(self) -> bool:
        """Whether the history alone knows what is meant."""
        return self.newest is not None or bool(self.files)

    @property
    def named(self) -> bool:
        """Whether its begin was named, so that what is missing from there on is missing from what was asked for."""
        return self.first is not None or self.by_files

    def has(self, topic: str, partition: int) -> bool:
        """Whether a topic-partition is meant."""
        return self.topic in (None, topic) and self.partition in (None, partition)


def problems(one: Selection) -> list[str]:
    """What is wrong with a selection by itself, each with its cure."""
    found = [*_numbers(one), *_orders(one)]
    ways = [
        name
        for name, given in (
            ("--from and --to", one.by_offsets),
            ("--since and --until", one.by_time),
            ("--last", one.newest is not None),
            ("--file", bool(one.files)),
        )
        if given
    ]
    if len(ways) > 1:
        found.append(f"Invalid [{ways[-1]}]. Records are chosen by {' and by '.join(ways)}; keep one of them.")
    if one.files and (one.topic is not None or one.partition is not None):
        found.append("Invalid [--file]. A file's name tells its topic-partition; remove --topic and --partition.")
    return found


def _numbers(one: Selection) -> list[str]:
    limits = (
        ("--partition", one.partition, 0, 2**31 - 1),
        ("--from", one.first, 0, MOST_OFFSET),
        ("--to", one.last, 0, MOST_OFFSET),
        ("--last", one.newest, 1, 1_000_000),
    )
    return [
        f"Invalid [{name}]. {number} is not between {least} and {most}; give a number that is."
        for name, number, least, most in limits
        if number is not None and not least <= number <= most
    ]


def _orders(one: Selection) -> list[str]:
    found = []
    if one.first is not None and one.last is not None and one.first > one.last:
        found.append(f"Invalid [--to]. {one.last} is below --from, {one.first}; both are included, exchange them.")
    if one.since_ms is not None and one.until_ms is not None and one.since_ms >= one.until_ms:
        found.append("Invalid [--until]. It is not after --since; exchange them.")
    return found
