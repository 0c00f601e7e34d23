"""What all parts of a worker know of its group: as which member it is there, what the topics say, how it reports."""

from dataclasses import dataclass

from parquet_sink.distributed.assignment import Assignment, Placement, free
from parquet_sink.distributed.log import StatusWriter, TopicReader
from parquet_sink.distributed.membership import Membership
from parquet_sink.distributed.records import ConnectorReport
from parquet_sink.distributed.state import ConfigState, StatusState
from parquet_sink.worker.herder.values import State


@dataclass(frozen=True)
class Group:
    """Of one worker, while it runs. reports: to the status topic; the config topic is the leader's alone."""

    worker_id: str
    membership: Membership
    config: TopicReader[ConfigState]
    status: TopicReader[StatusState]
    reports: StatusWriter

    @property
    def member_id(self) -> str:
        """Raises as `Membership.now`."""
        return self.membership.now().member_id

    @property
    def assignment(self) -> Assignment:
        """The last one that was read."""
        return self.config.state.assignment

    @property
    def leaving(self) -> set[str]:
        """Workers that were asked to stop."""
        said = self.status.state.leaving
        return {one.worker_id for one in self.assignment.members.values() if said.get(one.worker_id) == one.member_id}

    @property
    def others_stay(self) -> bool:
        """Whether another worker is there that was not asked to stop."""
        return bool(self.assignment.members.keys() - self.leaving - {self.worker_id})

    def is_free(self, name: str, assignment: Assignment) -> bool:
        """Whether nobody else can still be running a connector of this assignment, by what was released."""
        return free(assignment, name, self.status.state.releases.get(name))


def is_of(said: ConnectorReport, placement: Placement) -> bool:
    """Whether a worker said this since it has the connector."""
    return said.worker_id == placement.worker and said.generation >= placement.epoch


def begun(assignment: Assignment, status: StatusState) -> set[str]:
    """Connectors of this assignment that their workers have begun with, by their own word."""
    said = status.connectors
    return {
        name
        for name, one in assignment.placements.items()
        if name in said and is_of(said[name], one) and said[name].state != State.UNASSIGNED
    }
