"""What all parts of a worker know of its group: as which member it is there, what the topics say, how it reports."""

from dataclasses import dataclass

from parquet_sink.distributed.assignment import Assignment, free
from parquet_sink.distributed.log import StatusWriter, TopicReader
from parquet_sink.distributed.membership import Membership
from parquet_sink.distributed.state import ConfigState, StatusState


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

    def is_free(self, name: str, assignment: Assignment) -> bool:
        """Whether nobody else can still be running a connector of this assignment, by what was released."""
        return free(assignment, name, self.status.state.releases.get(name))
