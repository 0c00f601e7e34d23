"""Requests between the workers of a group: their form, and who sends them on and verifies them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from parquet_sink.worker.herder.errors import Elsewhere
from parquet_sink.worker.rest.call import Reply, RestError

SIGNATURE: Final = "X-Parquet-Sink-Signature"
"""Header that only another worker of the group can make; `authentication.Authentication` verifies it."""
ROLE_HEADER: Final = "X-Parquet-Sink-Role"
"""Header of a signed request: the role of the other worker's client, which is signed, too; absent for admins."""
NOT_BELIEVED: Final = "The signature is not of a worker of this group, or was used before."


@dataclass(frozen=True)
class Forwarded:
    """A request as it is sent on to the leader, or to the worker that has the connector.

    target: path and query, as they came. headers: by name in lower case. role: of who asked, "" for an admin.
    """

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    role: str = ""


class Peers(Protocol):
    """The other workers of the group."""

    def forward(self, elsewhere: Elsewhere, request: Forwarded) -> Reply:
        """Return the answer of the worker that does it. Raise RestError if there is none."""

    def believes(self, request: Forwarded) -> bool:
        """Return True if another worker of the group signed the request and it comes for the first time."""


class NoPeers:
    """The peers of a worker that is alone, whose herder refers to no other."""

    def forward(self, elsewhere: Elsewhere, request: Forwarded) -> Reply:
        raise RestError(409, str(elsewhere), {"Retry-After": "1"})

    def believes(self, request: Forwarded) -> bool:
        return False
