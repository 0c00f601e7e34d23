"""What befalls the sink from outside: between two of its effects, or while it does nothing.

Each is a function of the world, the machine with the sink, and a number that was drawn; it gives what happens at a
gate.
"""

import shutil
from collections.abc import Callable

from parquet_sink.model.partitions import PartitionKey
from tests.life.effects import Dies, Incident
from tests.life.promises import Hand
from tests.life.records import Kind
from tests.life.sink import Sink
from tests.life.world import World

Befalls = Callable[[World, Sink, int], Incident]
MOST_PARTITIONS = 3


def always(act: Callable[[], object]) -> Incident:
    """At any gate."""

    def happens(gate: str) -> bool:
        act()
        return True

    return happens


def between_look_and_commit(gate: str) -> bool:
    """Kafka knows no commit on condition: what other hands set there is overwritten, which no promise excludes."""
    return gate == "before commit"


def a_key(world: World, number: int) -> PartitionKey:
    """One of the topic-partitions that there are."""
    keys = world.kafka.partitions()
    return keys[number % len(keys)]


def killed(who: Dies) -> Befalls:
    """A process dies."""

    def befalls(world: World, sink: Sink, number: int) -> Incident:
        def die(gate: str) -> bool:
            world.promises.touched.add(Hand.PROCESSES)
            world.promises.interruptions += 1
            return world.effects.kill(who)

        return die

    return befalls


def state_lost(world: World, sink: Sink, number: int) -> Incident:
    """Somebody removes files of the connector's state, or all of its folder."""
    what = [(".state.db",), (".state.db-wal",), (".state.db", ".state.db-wal", ".state.db-shm"), (".lock",), ()]
    names = what[number % len(what)]

    def lose() -> None:
        world.promises.may_cut_anew()
        world.promises.touched.add(Hand.FILES)
        world.promises.interruptions += 1
        world.promises.memory_lost |= ".state.db" in names or not names
        for name in names:
            (sink.own_folder / name).unlink(missing_ok=True)
        if not names:
            shutil.rmtree(sink.own_folder, ignore_errors=True)

    return always(lose)


def retention(world: World, sink: Sink, number: int) -> Incident:
    """Kafka deletes the beginning of a topic-partition."""

    def delete() -> None:
        key = a_key(world, number)
        log = world.kafka.log(key)
        world.promises.may_cut_anew([key])
        world.promises.touched.add(Hand.TOPICS)
        log.delete_before(log.first + number % 7)

    return always(delete)


def topic_made_anew(world: World, sink: Sink, number: int) -> Incident:
    """A topic is deleted, and another one of its name is there at once."""

    def make() -> None:
        name = a_key(world, number)[0]
        world.kafka.make_anew(name)
        world.promises.may_cut_anew()
        world.promises.touched.add(Hand.TOPICS)

    return always(make)


def group_reset(world: World, sink: Sink, number: int) -> Incident:
    """An operator sets the group to another offset."""

    def happens(gate: str) -> bool:
        key = a_key(world, number)
        log, before = world.kafka.log(key), world.kafka.committed(key)
        if between_look_and_commit(gate) or key not in world.kafka.offsets:
            return key not in world.kafka.offsets
        offset = log.first + number % (log.end - log.first + 1)
        world.promises.passed_over(key, before, offset)
        world.promises.drain_ends.pop(key, None)
        world.promises.may_cut_anew([key])
        world.promises.touched.add(Hand.GROUP)
        world.kafka.offsets[key] = (offset, "")
        return True

    return happens


def group_forgotten(world: World, sink: Sink, number: int) -> Incident:
    """The brokers forget the group's offsets, as after `offsets.retention.minutes`."""

    def happens(gate: str) -> bool:
        if not between_look_and_commit(gate):
            world.promises.group_forgotten()
        return not between_look_and_commit(gate)

    return happens


def partition_added(world: World, sink: Sink, number: int) -> Incident:
    """A topic gets one more topic-partition, and records at once."""

    def add() -> None:
        if len(world.kafka.partitions()) < MOST_PARTITIONS:
            world.produce(world.kafka.add_partition(a_key(world, number)[0]), [Kind.GOOD] * (number % 3))

    return always(add)


def transaction_opened(world: World, sink: Sink, number: int) -> Incident:
    """A producer opens a transaction, writes, and does not end it."""

    def begin() -> None:
        key = a_key(world, number)
        world.promises.touched.add(Hand.TRANSACTIONS)
        world.kafka.log(key).begin_transaction()
        world.produce(key, [Kind.GOOD])

    return always(begin)


def transaction_ended(world: World, sink: Sink, number: int) -> Incident:
    """A producer commits its transaction."""
    return always(lambda: world.kafka.log(a_key(world, number)).end_transaction())


def registered(world: World, sink: Sink, number: int) -> Incident:
    """The schemas of the records that there are, so that these have rows from now on."""

    def register() -> None:
        world.registry.registered = world.produced
        world.promises.may_cut_anew()

    return always(register)


def late_arrival(world: World, sink: Sink, number: int) -> Incident:
    """Files that the target has not answered for arrive there."""
    return always(world.target.take_late)


def nothing(world: World, sink: Sink, number: int) -> Incident:
    """Which is most likely."""
    return always(lambda: None)


def looked_after(world: World, sink: Sink, number: int) -> Incident:
    """The program looks after its connector meanwhile."""
    return always(sink.look)


def brokers_away(world: World, sink: Sink, number: int) -> Incident:
    """The next requests get no answer; a commit may have been made all the same."""

    def leave() -> None:
        world.promises.touched.add(Hand.BROKERS)
        world.kafka.away, world.kafka.silent_commits = 1 + number % 9, number % 2 == 0

    return always(leave)


BEFALLS: dict[str, Befalls] = {
    "nothing": nothing,
    "task killed": killed(Dies.TASK),
    "query killed": killed(Dies.QUERY),
    "program killed": killed(Dies.PROGRAM),
    "state lost": state_lost,
    "retention": retention,
    "topic made anew": topic_made_anew,
    "group reset": group_reset,
    "group forgotten": group_forgotten,
    "partition added": partition_added,
    "transaction opened": transaction_opened,
    "transaction ended": transaction_ended,
    "schema registered": registered,
    "late arrival": late_arrival,
    "looked after": looked_after,
    "brokers away": brokers_away,
}
