"""Which rights (ACLs) the user that signs in has, as brokers tell it: nothing is read, written or committed for it."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]

from parquet_sink.kafka.client.rights import Right, missing, to_commit, to_read, to_see, to_see_group, to_write
from parquet_sink.kafka.cluster.requests import AdminRequests

_OPERATIONS: Final[Mapping[str, AclOperation]] = {"Read": AclOperation.READ, "Write": AclOperation.WRITE}


class Rights(AdminRequests):
    """Asks with one client's settings.

    What brokers do not tell, old ones of anything and others of absent groups, is not taken for a missing right.
    """

    def lacking_to_read(self, topics: Sequence[str]) -> list[Right]:
        """Rights on topics that are missing. Raises KafkaFailed."""
        return self._lacking({topic: (to_read(topic), to_see(topic)) for topic in topics})

    def lacking_to_write(self, topic: str) -> list[Right]:
        """Likewise, of a topic that is there."""
        return self._lacking({topic: (to_write(topic), to_write(topic))})

    def lacking_to_commit(self, group: str) -> list[Right] | None:
        """Rights on a group that are missing; None when the brokers do not tell. Raises KafkaFailed."""
        asked = self._admin.describe_consumer_groups(
            [group], include_authorized_operations=True, request_timeout=self._timeout_s
        )
        try:
            found = self._answer(asked[group]).authorized_operations
        except KafkaException as error:
            if (right := missing(error.args[0].code(), (to_see_group(group),))) is not None:
                return [right]
            if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
                return None
            raise self._failed(error.args[0], f"Group {group}") from None
        return None if not found else _lacks(found, to_commit(group))

    def _lacking(self, wanted: Mapping[str, tuple[Right, Right]]) -> list[Right]:
        """wanted: of each topic the right to have, and the one that is missing where it may not even be described."""
        if not wanted:
            return []
        asked: dict[str, Future[Any]] = self._admin.describe_topics(
            TopicCollection(list(wanted)), include_authorized_operations=True, request_timeout=self._timeout_s
        )
        lacking: list[Right] = []
        for topic, (right, to_describe) in wanted.items():
            try:
                found = self._answer(asked[topic]).authorized_operations
            except KafkaException as error:
                if missing(error.args[0].code(), (to_describe,)) is None:
                    raise self._failed(error.args[0], f"Topic {topic}", topic) from None
                lacking.append(to_describe)
            else:
                lacking += _lacks(found, right) if found else []
        return lacking


def _lacks(found: Sequence[AclOperation], right: Right) -> list[Right]:
    has = {_OPERATIONS[right.operation], AclOperation.ALL} & set(found)
    return [] if has else [right]
