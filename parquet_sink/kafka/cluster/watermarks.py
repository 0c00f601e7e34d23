"""Where topic-partitions begin and end: one request for all of them, never one each."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final, NamedTuple

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import ListOffsetsResultInfo, OffsetSpec  # type: ignore[attr-defined]

from parquet_sink.errors import KafkaFailed
from parquet_sink.kafka.client import errors as client_errors
from parquet_sink.kafka.client.log import ClientLog
from parquet_sink.kafka.client.options import Build
from parquet_sink.kafka.cluster.requests import SILENT, AdminRequests
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.partitions import PartitionKey

NONE_SO_LATE: Final = -1
"""What a broker answers when no record has such a timestamp, and never otherwise."""


class End(NamedTuple):
    """An offset, and the epoch of the leader that told it; None where it tells none."""

    offset: int
    epoch: int | None


class Watermarks(AdminRequests):
    """First and last offsets. `epochs`: of the leaders, as they came with the ends that were taken last."""

    def __init__(
        self,
        kafka: KafkaSettings,
        client_log: ClientLog | None = None,
        on_wait: Callable[[str], None] = lambda why: None,
        build: Build | None = None,
    ) -> None:
        super().__init__(kafka, client_log, on_wait, build=build)
        committed = kafka.isolation_level == "read_committed"
        self._isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        self._reasons: dict[PartitionKey, str] = {}
        self.epochs: dict[PartitionKey, int] = {}

    def end_offsets(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
        """Where each topic-partition ends, exclusive; one request. Unavailable ones are absent.

        The last stable offset; the high watermark when uncommitted records are read. Raises BrokerAway when none
        answers, KafkaFailed.
        """
        return self.take_ends(self._list(keys, OffsetSpec.latest(), self._isolation))  # type: ignore[no-untyped-call]

    def ends_if_available(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, End]:
        """As `end_offsets`, for unavailable ones, from any thread: for `take_ends`, when they are made use of.

        `on_wait` is not called, and no answer is no failure.
        """
        try:
            return self._list(keys, OffsetSpec.latest(), self._isolation, report_wait=False)  # type: ignore[no-untyped-call]
        except KafkaFailed:
            return {}

    def take_ends(self, found: Mapping[PartitionKey, End]) -> dict[PartitionKey, int]:
        """The offsets; from now on `epochs` has what came with them, and none where none came."""
        for key, (_, epoch) in found.items():
            self.epochs.pop(key, None)
            if epoch is not None:
                self.epochs[key] = epoch
        return {key: offset for key, (offset, _) in found.items()}

    def high_watermarks(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
        """The high watermarks, whatever is read; otherwise as `end_offsets`."""
        found = self._list(keys, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED)  # type: ignore[no-untyped-call]
        return {key: offset for key, (offset, _) in found.items()}

    def beginning_offsets(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
        """The first offset that Kafka still holds; otherwise as `end_offsets`."""
        found = self._list(keys, OffsetSpec.earliest(), self._isolation)  # type: ignore[no-untyped-call]
        return {key: offset for key, (offset, _) in found.items()}

    def offsets_since(self, keys: Sequence[PartitionKey], at_ms: int) -> dict[PartitionKey, int | None]:
        """The first offset whose record has this Kafka timestamp or a later one, None where there is none.

        at_ms: epoch milliseconds. Otherwise as `end_offsets`.
        """
        spec = OffsetSpec.for_timestamp(at_ms)
        found = self._list(keys, spec, self._isolation, least=NONE_SO_LATE)
        return {key: None if offset == NONE_SO_LATE else offset for key, (offset, _) in found.items()}

    def unavailable_reason(self, key: PartitionKey) -> str:
        """Why the last request got no answer for a topic-partition."""
        return self._reasons.get(key, "its leader does not answer")

    def _list(
        self,
        keys: Sequence[PartitionKey],
        spec: Any,
        isolation: IsolationLevel,
        *,
        report_wait: bool = True,
        least: int = 0,
    ) -> dict[PartitionKey, End]:
        """Of each; absent: unavailable ones. least: offset that an answer may have."""
        if not keys:
            return {}
        asked = {TopicPartition(t, p): spec for t, p in keys}
        futures = self._admin.list_offsets(asked, isolation_level=isolation, request_timeout=self._timeout_s)
        out: dict[PartitionKey, End] = {}
        first: KafkaFailed | None = None
        for tp, future in futures.items():
            key = (tp.topic, tp.partition)
            found = self._offset(future, report_wait=report_wait, least=least)
            if isinstance(found, End):
                out[key] = found
                continue
            failed = self._failed(found, f"Topic {tp.topic}, topic-partition {tp.partition}", tp.topic).at(key)
            if found.code() not in client_errors.PASSING:
                raise failed
            self._reasons[key] = found.str()
            first = first or failed
        if first is not None and not out:
            raise first
        return out

    def _offset(self, future: "Future[ListOffsetsResultInfo]", *, report_wait: bool, least: int) -> End | KafkaError:
        try:
            answer = self._answer(future, report_wait=report_wait)
        except KafkaException as error:
            failed: KafkaError = error.args[0]
            return failed
        if (
            answer.offset < least
        ):  # what the client says, as no error, of a leader that kept silent while others answered
            return SILENT
        return End(answer.offset, answer.leader_epoch)
