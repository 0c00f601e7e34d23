"""Requests of an admin client: waiting for answers, what the client logs, failures, brokers and missing rights."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclOperation,
    AdminClient,
    MemberDescription,
)

from parquet_sink.errors import KafkaFailed, TopicGone
from parquet_sink.kafka.client import errors as client_errors
from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.client.causes import UNKNOWN
from parquet_sink.kafka.client.log import ClientLog
from parquet_sink.kafka.client.renewal import Renewal
from parquet_sink.kafka.client.rights import Right, missing, to_commit, to_read, to_see, to_see_group, to_write
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.process.threads import in_thread

log = logging.getLogger(__name__)

TIMEOUT_S: Final = 10.0
GRACE_S: Final = 5.0
"""Beyond which a request counts as lost, although the client promised an answer by then."""
HEAR_S: Final = 0.25
"""How often what the client says is taken while a request waits."""
SOON_S: Final = 2.0
LATE_S: Final = 4.0
"""After how long `on_wait` is called, with a known cause and without one."""
NOTHING_SAID: Final = "The connection stands, or is being made, and nothing comes"
CHECK: Final = "Check [bootstrap.servers] and the broker"
SILENT: Final = KafkaError(KafkaError._TIMED_OUT)  # noqa: SLF001 - the client's public name
T = TypeVar("T")
_OPERATIONS: Final[Mapping[str, AclOperation]] = {"Read": AclOperation.READ, "Write": AclOperation.WRITE}


class AdminRequests:
    """One admin client.

    client_log: takes what it logs. on_wait: called with the cause, once a request, when no broker answers soon. prefix:
    of its settings, for messages; "" for bare ones of the worker file. build: makes the client.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        client_log: ClientLog | None = None,
        on_wait: Callable[[str], None] = lambda why: None,
        prefix: str = "consumer.",
        build: client_options.Build | None = None,
    ) -> None:
        self._kafka, self._on_wait = kafka, on_wait
        self._client_log = client_log or ClientLog(kafka.whose)
        self._servers = str(kafka.client.get("bootstrap.servers", ""))
        self._prefix, self._renewal, self._build = prefix, Renewal(), build or client_options.build
        self._admin, self._one_at_a_time = self._made(), threading.Lock()
        self._timeout_s = min(TIMEOUT_S, client_options.seconds(kafka, "default.api.timeout.ms", TIMEOUT_S))

    def _made(self) -> AdminClient:
        options = client_options.admin_options(self._kafka, self._prefix)
        keys = f"{self._prefix}override.*" if self._prefix else client_options.OWN_KEYS
        made: AdminClient = self._build(AdminClient, options, self._client_log, keys)
        return made

    def poll(self) -> None:
        """Takes what the client logs."""
        self._admin.poll(0)

    def _answer(self, future: "Future[T]", *, report_wait: bool = True) -> T:
        """What a request gets. Takes what the client logs meanwhile; calls `on_wait` when it takes long.

        Raises KafkaRefused when all who answer refuse us: the client itself would try again until the time is over.
        """
        self._renewal.asked()
        asked = [self._admin]
        try:
            found = self._waited_for(future, report_wait=report_wait)
        except KafkaException as error:
            # After each that timed out: librdkafka (2.16) aborts the process when it finds the coordinator of a group,
            # as after the loss of a broker, for a request that has timed out by then (librdkafka#4605, #5397). So no
            # other request may keep the client that it was asked by.
            if self._renewal.is_due(code := error.args[0].code()) or code == SILENT.code():
                log.debug("%s: no answer; a new client", self._client_log.whose)
                self._admin = self._made()
            raise
        finally:
            if not future.done():
                in_thread(partial(_let_go, asked, self._timeout_s + GRACE_S))
            elif asked[0] is not self._admin:
                in_thread(asked.clear)  # its end may take long
        self._renewal.answered()
        self._client_log.clear()
        return found

    def _waited_for(self, future: "Future[T]", *, report_wait: bool) -> T:
        asked, reported = time.monotonic(), not report_wait
        while not future.done():
            self.poll()
            with suppress(TimeoutError):
                future.exception(HEAR_S)
            waited = time.monotonic() - asked
            if waited >= self._timeout_s + GRACE_S:
                raise KafkaException(SILENT)
            cause = self._client_log.cause()
            if cause.lasting and waited >= LATE_S:
                raise client_errors.not_let_in(self._servers, self._client_log.cause_of_silence())
            if not reported and waited >= (SOON_S if cause.words else LATE_S):
                reported, cause = True, self._client_log.cause_of_silence()
                if cause.lasting:
                    raise client_errors.not_let_in(self._servers, cause)
                words, cure = cause.words or NOTHING_SAID, cause.cure or CHECK
                self._on_wait(f"No answer from {self._servers} yet. {words}. {cure}.")
        return future.result()

    def _members(self, group: str) -> "list[MemberDescription]":
        """Who is in a group; nobody where there is none. Raises KafkaException, KafkaRefused."""
        with self._one_at_a_time:
            (future,) = self._admin.describe_consumer_groups([group], request_timeout=self._timeout_s).values()
            try:
                return list(self._answer(future).members)
            except KafkaException as error:
                if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
                    return []
                raise

    def _failed(self, error: Any, what: str, topic: str | None = None) -> KafkaFailed:
        """topic: which the request was about, if it was about one."""
        code = error.code()
        if code in client_errors.UNKNOWN:
            return TopicGone(f"{what} does not exist on {self._servers}. Create the topic, or correct [topics].")
        needs = () if topic is None else (to_see(topic),)
        cause = self._client_log.cause_of_silence() if code in client_errors.PASSING else UNKNOWN
        return client_errors.failure(error, what, asked=self._servers, cause=cause, ending=CHECK, needs=needs)


def _let_go(clients: list[AdminClient], after_s: float) -> None:
    """Keeps clients until requests that nobody waits for have ended.

    librdkafka aborts the process when a client is destroyed in its own background thread. That thread runs the callback
    of an answer, and there Python's garbage collector, which may find the client in the traceback of an error.
    """
    time.sleep(after_s)
    clients.clear()


class Brokers(AdminRequests):
    """Of one connector."""

    def count_and_cluster(self) -> tuple[int, str]:
        """How many brokers there are, and the id of their cluster. Raises BrokerAway, KafkaRefused, KafkaFailed."""
        try:
            found = self._answer(in_thread(lambda: self._admin.list_topics(timeout=self._timeout_s)))
        except KafkaException as error:
            raise self._failed(error.args[0], "The list of brokers") from None
        return len(found.brokers), str(found.cluster_id)


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
