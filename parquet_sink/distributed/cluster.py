"""A worker's part in its group: what it reads and writes, its membership, and the threads that follow both.

Order at the start: the topics are made or checked and read to their ends, then the worker joins; where others run
connectors already, not before its Spark is up, since what moves to it rests until then. Order at the end: the
leader hears at once that this worker stops, others begin with one connector after the other as this worker ends it,
then the rest ends at once, and the worker leaves.
"""

import logging
import os
import ssl
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import quote

from parquet_sink.connectors.loading import Loaded
from parquet_sink.distributed import signing
from parquet_sink.distributed.assignment import Assignment, MemberInfo
from parquet_sink.distributed.calls import WorkerCalls
from parquet_sink.distributed.caretaker import LOOK_S as CARE_S
from parquet_sink.distributed.group import Group, begun
from parquet_sink.distributed.herder import DistributedHerder
from parquet_sink.distributed.leader import LOOK_S, Leader
from parquet_sink.distributed.log import ConfigWriter, StatusWriter, TopicReader
from parquet_sink.distributed.membership import GroupTiming, Membership
from parquet_sink.distributed.owned import OwnedConnectors
from parquet_sink.distributed.records import LOGGER
from parquet_sink.distributed.secrets import ConfigSecrets
from parquet_sink.distributed.signing import Verifier
from parquet_sink.distributed.state import ConfigState, StatusState
from parquet_sink.distributed.topics import InternalTopics, fence_of, leaders_id, state_topic_of
from parquet_sink.distributed.watch import LOOK_S as WATCH_S
from parquet_sink.distributed.watch import Watch
from parquet_sink.errors import SetupError, SinkError
from parquet_sink.files.settings import TMP_DIR
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.process.lease import LeaseFolder
from parquet_sink.process.signals import StopRequest
from parquet_sink.settings.connector import with_cluster
from parquet_sink.worker.herder import log_levels
from parquet_sink.worker.herder.errors import Elsewhere, HerderError, UnknownLogger
from parquet_sink.worker.herder.values import State, TargetState
from parquet_sink.worker.loop.connector_registry import ConnectorRegistry
from parquet_sink.worker.loop.herder import LocalHerder
from parquet_sink.worker.loop.request_queue import RequestQueue
from parquet_sink.worker.rest.call import Reply
from parquet_sink.worker.rest.peers import Forwarded
from parquet_sink.worker_config.distributed import DistributedSettings

READ_S: Final = 15.0
"""How long the topics may take to be read to their ends when the worker starts."""
STEP_S: Final = 0.2
"""How often a worker looks at what it is to run, where nothing wakes it."""
HAND_OVER_S: Final = 20.0
"""How long a worker that stops hands connectors over in turn; then it ends the rest at once."""
LEAST_S: Final = 0.02
"""From one look to the next: what comes together is looked at together."""
log = logging.getLogger(__name__)


class Cluster:
    """This worker's part in its group, while it is `running`; the registry loads configurations by `load`.

    Implements `worker.rest.app.Peers`. url: of this worker's REST API for others. folder: of this worker alone, for its
    leases. load: validates a connector's configuration. context: of TLS towards other workers. executors_elsewhere: of
    Spark, on other machines.
    """

    def __init__(
        self,
        settings: DistributedSettings,
        worker_id: str,
        url: str,
        folder: Path,
        load: Callable[[Mapping[str, str], str], Loaded],
        context: Callable[[], ssl.SSLContext],
        stop_request: StopRequest,
        *,
        executors_elsewhere: bool = False,
    ) -> None:
        self._settings, self._worker_id, self._url = settings, worker_id, url
        self._load_plain, self._stop_request = load, stop_request
        self._leases = LeaseFolder(folder)
        self._calls = WorkerCalls(worker_id, context, self._signature)
        self._verifier = Verifier(settings.verification_algorithms)
        self._executors_elsewhere = executors_elsewhere
        self._group: Group | None = None
        self._owned: OwnedConnectors | None = None
        self._ends, self._spark_is_up = threading.Event(), threading.Event()
        self._news, self._leader_news = threading.Event(), threading.Event()
        self._failure: SinkError | None = None

    def load(self, config: Mapping[str, str], name: str) -> Loaded:
        """A configuration that this worker is to run: with its lease, and the fence of the connector's commits."""
        loaded = replace(self._load_plain(self._with_own_folder(config), name), properties=config)
        member_id = None if self._owned is None else self._owned.member_of(name)
        if loaded.settings is None or member_id is None:
            return loaded
        lease, fence = self._leases.path(member_id), fence_of(loaded.settings)
        state_topic = state_topic_of(loaded.settings, self._settings)
        return replace(
            loaded, settings=with_cluster(loaded.settings, fence=fence, lease=lease, state_topic=state_topic)
        )

    def _with_own_folder(self, config: Mapping[str, str]) -> Mapping[str, str]:
        """Several workers on one machine may be given the connector one after the other, a frozen one among them."""
        given = config.get(TMP_DIR, "").strip()
        return {**config, TMP_DIR: os.path.join(given, quote(self._worker_id, safe=""))} if given else config

    def _signature(self, url: str, request: Forwarded) -> Mapping[str, str]:
        """Headers by which the worker at a URL believes a request to be of its group."""
        key = None if self._group is None else self._group.config.state.session_key
        if self._group is None or key is None:
            return {}
        to = next((one.member_id for one in self._group.assignment.members.values() if one.url == url), "")
        return signing.headers(to, request, key, self._settings.signature_algorithm)

    def forward(self, elsewhere: Elsewhere, request: Forwarded) -> Reply:
        return self._calls.forward(elsewhere, request)

    def believes(self, request: Forwarded) -> bool:
        if self._group is None:
            return False
        self._verifier.renew(self._group.config.state.session_key)
        try:
            self._verifier.verify(self._group.member_id, request)
        except (signing.NotBelieved, SinkError) as error:
            log.warning("REST API: a signed request was refused: %s", error)
            return False
        return True

    def spark_waits(self) -> bool:
        """Whether others take connectors over, which need the cores now. Until then this worker joins nobody."""
        group = self._group
        if group is None or group.membership.found_others is False:
            return False
        with suppress(SinkError):  # it ends
            return takeover_lasts(self._worker_id, group.member_id, group.config.state, group.status.state)
        return False

    def hands_over(self) -> bool:
        """Whether this worker goes on, though it is to stop, until others have what it runs; HAND_OVER_S at most."""
        asked_s, group, owned = self._stop_request.requested_at_s, self._group, self._owned
        if asked_s is None or group is None or owned is None or self._failure is not None:
            return False
        return time.monotonic() - asked_s < HAND_OVER_S and owned.has_any and group.others_stay

    def spark_is_up(self) -> None:
        """What this worker is given begins at once from now on: it joins, where it waited for that."""
        self._spark_is_up.set()

    def _wake(self) -> None:
        """A topic has something new, or the group: what follows of it is looked at now."""
        self._news.set()
        self._leader_news.set()

    @contextmanager
    def running(
        self, registry: ConnectorRegistry, local: LocalHerder, queue: RequestQueue
    ) -> Iterator[DistributedHerder]:
        """Within, this worker is a member of its group, and the registry has what the assignment gives it.

        Raises SetupError, KafkaFailed.
        """
        settings, kafka = self._settings, KafkaSettings(client=self._settings.kafka, group=self._settings.group_id)
        topics = InternalTopics(settings)
        topics.ensure_all()
        with ExitStack() as parts:
            ended = parts.enter_context(self._leases.prepared())
            group = self._group = self._joined(kafka, topics, parts)
            leader = Leader(group, ConfigWriter(kafka, settings.config_topic, leaders_id(settings)), settings)
            parts.callback(leader.stand_down)
            owned = self._owned = OwnedConnectors(group, registry, local, queue, self.load)
            owned.earlier = self._ended_life(group.assignment, ended)
            session_s = settings.session_ms / 1_000
            watch = Watch(group.membership.members, topics.shared_counts, lambda: group.config.state.foreign, session_s)
            with self._threads(leader, owned, queue, watch):
                yield DistributedHerder(
                    group,
                    local,
                    owned,
                    leader,
                    self._load_plain,
                    ConfigSecrets(settings).stored,
                    settings.group_id,
                    self._calls.progress,
                    lambda: watch.warnings,
                )
            group.reports.flush()
        if self._failure is not None:
            raise self._failure

    def _joined(self, kafka: KafkaSettings, topics: InternalTopics, parts: ExitStack) -> Group:
        """A member of the group, or one that waits to be, which has read what the topics say.

        parts: ends what began here. Raises SetupError, KafkaFailed.
        """
        settings = self._settings
        config = parts.enter_context(closing(TopicReader(kafka, settings.config_topic, ConfigState(), self._wake)))
        status = parts.enter_context(closing(TopicReader(kafka, settings.status_topic, StatusState(), self._wake)))
        reports = parts.enter_context(closing(StatusWriter(kafka, settings.status_topic)))
        parts.callback(self._calls.close)
        if not config.read_to_end(READ_S) or not status.read_to_end(READ_S):
            raise SetupError(f"The topics of the workers were not read to their ends within {READ_S:g} s.")
        if config.state.cluster:
            topics.refuse_other_cluster(config.state.cluster)

        def holds_back(members: Collection[MemberInfo]) -> bool:
            return not self._spark_is_up.is_set() and others_run(members, config.state, status.state)

        membership = Membership(
            kafka,
            config_topic=settings.config_topic,
            worker_id=self._worker_id,
            url=self._url,
            timing=GroupTiming(settings.session_ms, settings.heartbeat_ms, settings.rebalance_ms),
            lease=self._leases.write,
            position=lambda: config.state.offset,
            holds_back=holds_back,
            on_change=self._wake,
        )
        parts.callback(membership.leave)
        return Group(self._worker_id, membership, config, status, reports)

    def _ended_life(self, assignment: Assignment, ended: Collection[str]) -> str | None:
        """The member as which an earlier life of this worker is assigned to, where it is known to have ended.

        ended: paths of leases. Elsewhere executors go on for a while without a lease: their session is waited for.
        """
        known = assignment.members.get(self._worker_id)
        if known is None or self._executors_elsewhere:
            return None
        return known.member_id if self._leases.path(known.member_id) in ended else None

    @contextmanager
    def _threads(self, leader: Leader, owned: OwnedConnectors, queue: RequestQueue, watch: Watch) -> Iterator[None]:
        """In the end the leader hears of what this worker has released by then."""
        threads = [
            threading.Thread(target=self._lead, args=(leader,), name="leader", daemon=True),
            threading.Thread(target=self._follow, args=(owned, queue), name="owned", daemon=True),
            threading.Thread(target=self._watch, args=(watch,), name="watch", daemon=True),
            threading.Thread(target=self._care, args=(owned,), name="caretaker", daemon=True),
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._ends.set()
            self._wake()
            for thread in threads:
                thread.join(READ_S)
            if self._failure is None:
                self._try(leader.step)
                self._try(owned.release_ended)

    def _lead(self, leader: Leader) -> None:
        while not self._ends.is_set():
            self._try(leader.step)
            self._ends.wait(LEAST_S)
            self._leader_news.wait(LOOK_S)
            self._leader_news.clear()

    def _watch(self, watch: Watch) -> None:
        while not self._ends.wait(WATCH_S):
            self._try(watch.look)

    def _care(self, owned: OwnedConnectors) -> None:
        while not self._ends.wait(CARE_S):
            if not self._stop_request:
                self._try(lambda: owned.caretaker.step(owned.group.config.state.connectors))
        owned.caretaker.close()

    def _follow(self, owned: OwnedConnectors, queue: RequestQueue) -> None:
        leaving, levels_read = False, 0
        while not self._ends.is_set():
            levels_read = set_levels(owned.group.config.state, levels_read)
            if self._stop_request and not leaving:
                leaving = True
                queue.wake()
                self._try(owned.leave)
            if queue.closed:
                self._try(owned.release_ended)
            elif not self._stop_request or self.hands_over():
                self._try(owned.step)
            self._rest(leaving)

    def _rest(self, leaving: bool) -> None:
        """Until there is news, a stop is asked for, or it is time to look again."""
        self._ends.wait(LEAST_S)
        until_s = time.monotonic() + (LEAST_S if leaving else STEP_S)
        while not self._news.wait(2 * LEAST_S) and time.monotonic() < until_s:
            if self._stop_request:
                return
        self._news.clear()

    def _try(self, act: Callable[[], None]) -> None:
        """What fails is tried again, but for a worker that is not a member any more: it ends."""
        try:
            act()
        except HerderError as error:
            log.debug("the worker ends, or is busy: %s", error)
        except SinkError as error:
            if self._failure is None:
                self._failure = error
                self._stop_request.request()
        except Exception:
            log.exception("what the workers are to run could not be looked at; it is tried again")


def set_levels(config: ConfigState, since: int) -> int:
    """Sets in this process levels that were written at this offset or later, in order; the next offset.

    Those of loggers that are none of this program's, as Kafka Connect's are, change nothing.
    """
    written = sorted((config.offset_of(LOGGER, logger), logger, level) for logger, level in config.of(LOGGER).items())
    for offset, logger, level in written:
        if offset >= since and level in log_levels.LEVELS:
            with suppress(UnknownLogger):
                log_levels.set_level(logger, level, time.time_ns() // 1_000_000)
                log.info("logger %s: its level is %s now", logger, level)
    return config.offset


def others_run(members: Collection[MemberInfo], config: ConfigState, status: StatusState) -> bool:
    """Whether one of these members runs a connector, by its own word."""
    known = {one.member_id for one in config.assignment.members.values()}
    there = {one.worker_id for one in members if one.member_id in known}
    return any(one.state == State.RUNNING and one.worker_id in there for one in status.connectors.values())


def takeover_lasts(worker_id: str, member_id: str, config: ConfigState, status: StatusState) -> bool:
    """Whether other workers are to begin with connectors now: this worker's own of an earlier stay, or others'."""
    assignment = config.assignment
    if assignment.members.keys() <= {worker_id}:
        return False
    former = assignment.members.get(worker_id)
    mine = former is not None and former.member_id != member_id
    begins = begun(assignment, status)
    return any(
        mine if one.worker == worker_id else name not in begins
        for name, one in assignment.placements.items()
        if config.target_of(name) is TargetState.STARTED and name in config.connectors
    )
