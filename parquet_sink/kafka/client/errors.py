"""What an error of the Kafka client or of a broker means: it passes, it will not, or nobody can say."""

import logging
from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from confluent_kafka import KafkaError

from parquet_sink.errors import BrokerAway, KafkaFailed, KafkaRefused
from parquet_sink.kafka.client.causes import UNKNOWN as UNKNOWN_CAUSE
from parquet_sink.kafka.client.causes import Cause
from parquet_sink.kafka.client.log import ClientLog
from parquet_sink.kafka.client.rights import Right, missing

log = logging.getLogger(__name__)

MEMBERS_ONLY: Final = frozenset(
    {
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.STALE_MEMBER_EPOCH,
        KafkaError.FENCED_MEMBER_EPOCH,
    }
)
"""Answers to a commit from outside to a group that has members: the connector still runs in Kafka Connect."""

UNKNOWN: Final = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}  # noqa: SLF001
)
"""Answers that say: there is no such topic."""

PASSING: Final = frozenset(
    {
        KafkaError._TRANSPORT,  # noqa: SLF001 - the client's public names for its own errors, here and below
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
        KafkaError._TIMED_OUT,  # noqa: SLF001
        KafkaError._TIMED_OUT_QUEUE,  # noqa: SLF001
        KafkaError._MSG_TIMED_OUT,  # noqa: SLF001
        KafkaError._RESOLVE,  # noqa: SLF001
        KafkaError._FAIL,  # noqa: SLF001
        KafkaError._BAD_MSG,  # noqa: SLF001
        KafkaError._WAIT_COORD,  # noqa: SLF001
        KafkaError._WAIT_CACHE,  # noqa: SLF001
        KafkaError._IN_PROGRESS,  # noqa: SLF001
        KafkaError._RETRY,  # noqa: SLF001
        KafkaError._OUTDATED,  # noqa: SLF001
        KafkaError._NODE_UPDATE,  # noqa: SLF001
        KafkaError._INTR,  # noqa: SLF001
        KafkaError._UNKNOWN_BROKER,  # noqa: SLF001
        KafkaError._DESTROY_BROKER,  # noqa: SLF001
        KafkaError._NOENT,  # noqa: SLF001 - of topic-partitions none of which has a leader
        KafkaError.INVALID_MSG,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.CONCURRENT_TRANSACTIONS,
        KafkaError.TRANSACTION_ABORTABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KafkaError.NOT_CONTROLLER,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.REASSIGNMENT_IN_PROGRESS,
        KafkaError.FETCH_SESSION_ID_NOT_FOUND,
        KafkaError.INVALID_FETCH_SESSION_EPOCH,
        KafkaError.LISTENER_NOT_FOUND,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.PREFERRED_LEADER_NOT_AVAILABLE,
        KafkaError.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
        KafkaError.THROTTLING_QUOTA_EXCEEDED,
        KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError.INCONSISTENT_TOPIC_ID,
        KafkaError.REBOOTSTRAP_REQUIRED,
    }
)
"""Brokers that do not answer, start, are no leader any more, or throttle: waiting cures these."""

_RIGHTS: Final = "Check the credentials and rights (ACLs): it must be let in, to read and describe its topics and group"
_TOO_OLD: Final = "Run brokers that know this request: Kafka 0.11 or newer"
_NOT_DECOMPRESSED: Final = (
    "A batch of records is damaged, or has more than 2 GiB once it is decompressed, or more than "
    "[consumer.override.receive.message.max.bytes] where that is set; remove that key, or reset the group's offset "
    "behind the batch with kafka-consumer-groups"
)
_TOO_LARGE: Final = "Raise message.max.bytes of the brokers"

REFUSALS: Final[Mapping[int, str]] = {
    KafkaError._BAD_COMPRESSION: _NOT_DECOMPRESSED,  # noqa: SLF001
    KafkaError._AUTHENTICATION: _RIGHTS,  # noqa: SLF001
    KafkaError._SSL: "Check security.protocol and the ssl.* settings",  # noqa: SLF001
    KafkaError._UNSUPPORTED_FEATURE: _TOO_OLD,  # noqa: SLF001
    KafkaError._NOT_IMPLEMENTED: _TOO_OLD,  # noqa: SLF001
    KafkaError.SASL_AUTHENTICATION_FAILED: _RIGHTS,
    KafkaError.UNSUPPORTED_SASL_MECHANISM: "Set sasl.mechanism to one that the brokers have",
    KafkaError.ILLEGAL_SASL_STATE: "Check security.protocol",
    KafkaError.SECURITY_DISABLED: "Check security.protocol",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: _RIGHTS,
    KafkaError.GROUP_AUTHORIZATION_FAILED: _RIGHTS,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: _RIGHTS,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: _RIGHTS,
    KafkaError.DELEGATION_TOKEN_AUTHORIZATION_FAILED: _RIGHTS,
    KafkaError.DELEGATION_TOKEN_EXPIRED: _RIGHTS,
    KafkaError.UNACCEPTABLE_CREDENTIAL: _RIGHTS,
    KafkaError.PRINCIPAL_DESERIALIZATION_FAILURE: _RIGHTS,
    KafkaError.UNSUPPORTED_VERSION: _TOO_OLD,
    KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT: _TOO_OLD,
    KafkaError.TOPIC_EXCEPTION: "Correct [topics]: no topic can have such a name",
    KafkaError.INVALID_GROUP_ID: "Correct the connector's name, or [consumer.override.group.id]",
    KafkaError.INVALID_REQUEST: "Look in the brokers' logs",
    KafkaError.INVALID_CONFIG: "Look in the brokers' logs",
    KafkaError.POLICY_VIOLATION: "Look in the brokers' logs",
    KafkaError.OFFSET_METADATA_TOO_LARGE: "Raise offset.metadata.max.bytes of the brokers (4,096 by default)",
    KafkaError.INVALID_COMMIT_OFFSET_SIZE: _TOO_LARGE,
    KafkaError.MSG_SIZE_TOO_LARGE: _TOO_LARGE,
    KafkaError.RECORD_LIST_TOO_LARGE: _TOO_LARGE,
    KafkaError.UNSUPPORTED_COMPRESSION_TYPE: "Let producers compress with gzip, snappy, lz4 or zstd",
}
"""Waiting does not cure these; what does."""


class Error(Protocol):
    """What is asked of a KafkaError."""

    def code(self) -> int: ...
    def str(self) -> str: ...


def failure(
    error: Error,
    what: str,
    *,
    asked: str = "the broker",
    cause: Cause = UNKNOWN_CAUSE,
    ending: str = "Nothing is lost",
    needs: Iterable[Right] = (),
) -> KafkaFailed:
    """The failure of a request. what: was tried, without a full stop. asked: who answered. needs: rights for it.

    BrokerAway if it passes: `cause` says more than the error does, if known, and `ending` ends the message where there
    is no cure. KafkaRefused if it does not pass, also because nobody lets us in; KafkaFailed if nobody can say: that is
    tried again some times.
    """
    code, said = error.code(), error.str().rstrip(".")
    if code in PASSING and cause.lasting:
        return not_let_in(f"{what}: {asked}", cause)
    if code in PASSING:
        return BrokerAway(f"{what}: no answer from {asked}. {cause.words or said}. {cause.cure or ending}.")
    if right := missing(code, needs):
        return KafkaRefused(f"{what}: {asked} refuses. {said}. {right.cure()}.")
    if cure := REFUSALS.get(code):
        return KafkaRefused(f"{what}: {asked} refuses. {said}. {cure}.")
    return KafkaFailed(f"{what}: {asked} failed. {said} (code {code}). Look in the brokers' logs.")


def not_let_in(asked: str, cause: Cause) -> KafkaRefused:
    """Somebody answers, and refuses us."""
    return KafkaRefused(f"{asked} does not let us in. {cause.words}. {cause.cure}.")


class Trouble:
    """Is logged when it begins and when it is over, however often it is met. needs: rights to do what."""

    def __init__(self, what: str, client_log: ClientLog, *needs: Right) -> None:
        self._what, self._client_log, self._needs, self._lasts = what, client_log, needs, False

    def met(self, failure: KafkaFailed) -> None:
        if not self._lasts:
            self._lasts = True
            log.warning("%s", failure)

    def over(self) -> None:
        if self._lasts:
            self._lasts = False
            log.info("%s: that is over.", self._what)
            self._client_log.clear()

    def failure(self, error: KafkaError) -> KafkaFailed:
        """What an error of a client means."""
        cause = self._client_log.cause_of_silence() if error.code() in PASSING else UNKNOWN_CAUSE
        return failure(error, self._what, cause=cause, needs=self._needs)
