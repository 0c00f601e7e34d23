"""Rights (ACLs) of the user that signs in: what a request needs, and how an operator gives it."""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from confluent_kafka import KafkaError

Resource = Literal["topic", "group", "cluster", "transactional-id"]

REFUSED: Final[dict[int, Resource]] = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "group",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "cluster",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional-id",
}
"""Answers of brokers for want of a right, and on what."""
MOST_NAMED: Final = 3
_TOOL: Final = "kafka-acls --bootstrap-server HOST:PORT --add --allow-principal User:NAME"


@dataclass(frozen=True)
class Right:
    """An operation by Kafka's name (`Read`) on a resource. names: of topics, or of a group; of the cluster none.

    included: the right that has it in it and is wanted anyway, by its operation; "" where it is wanted itself.
    """

    operation: str
    resource: Resource
    names: tuple[str, ...] = ()
    included: str = ""

    @property
    def words(self) -> str:
        """`Read on topic orders`."""
        listed = ", ".join(self.names[:MOST_NAMED])
        more = f" and {len(self.names) - MOST_NAMED} more" if len(self.names) > MOST_NAMED else ""
        plural = "s" if len(self.names) > 1 else ""
        return f"{self.operation} on {self._the}{plural}{f' {listed}{more}' if self.names else ''}"

    def cure(self, who: str = "the user that signs in") -> str:
        """What to give to whom, with the tool's arguments."""
        operation = self.included or self.operation
        named = f" {shlex.quote(self.names[0])}" if self.names else ""
        tool = f"{_TOOL} --operation {operation} --{self.resource}{named}"
        comes = f", which comes with {operation}," if self.included else ""
        return f"Give {who} the right (ACL) {self.words}{comes} by `{tool}`"

    @property
    def _the(self) -> str:
        return "the cluster" if self.resource == "cluster" else self.resource


def name_lacking(rights: Iterable[Right]) -> str:
    """Return what is missing, with the cure of each."""
    return " ".join(f"{right.words} is missing. {right.cure()}." for right in rights)


def missing(code: int, needs: Iterable[Right]) -> Right | None:
    """The right that a broker missed when it gave this answer; None where it is about no right."""
    resource = REFUSED.get(code)
    return next((right for right in needs if right.resource == resource), None)


def to_see(topic: str) -> Right:
    """To ask where a topic's topic-partitions begin and end."""
    return Right("Describe", "topic", (topic,), included="Read")


def to_read(*topics: str) -> Right:
    """To read records, and to commit offsets of them."""
    return Right("Read", "topic", topics)


def to_see_group(group: str) -> Right:
    """To ask for the offsets of a group."""
    return Right("Describe", "group", (group,), included="Read")


def to_write(topic: str) -> Right:
    """To write records."""
    return Right("Write", "topic", (topic,))


def to_create(topic: str) -> Right:
    """To make a topic."""
    return Right("Create", "topic", (topic,))


def to_commit(group: str) -> Right:
    """To commit offsets of a group."""
    return Right("Read", "group", (group,))


def to_fence(transactional_id: str) -> Right:
    """To commit offsets in transactions."""
    return Right("Write", "transactional-id", (transactional_id,))
