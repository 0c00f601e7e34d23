"""The side of a worker that signs requests to the others of its group, and verifies theirs."""

import ssl
from collections.abc import Mapping
from contextlib import suppress

from parquet_sink.distributed import signing
from parquet_sink.distributed.calls import WorkerCalls
from parquet_sink.distributed.records import SessionKey
from parquet_sink.distributed.signing import NotBelieved, Verifier
from parquet_sink.worker.herder.errors import Elsewhere
from parquet_sink.worker.rest.call import Reply
from parquet_sink.worker.rest.peers import Forwarded

KEY = SessionKey(b"k" * 32, "HmacSHA256", 0)


class Peer:
    """Peers of a worker in a group whose members all have the same member id. key: the one it signs with."""

    def __init__(self, key: SessionKey = KEY) -> None:
        self._key, self._verifier = key, Verifier(["HmacSHA256"])
        self._verifier.renew(KEY)
        self._calls = WorkerCalls("follower:1", ssl.create_default_context, self.signs)

    def signs(self, url: str, request: Forwarded) -> Mapping[str, str]:
        return signing.headers("member", request, self._key, "HmacSHA256")

    def signed(self, url: str, method: str, target: str, body: bytes, role: str = "") -> Mapping[str, str]:
        return self.signs(url, Forwarded(method, target, {}, body, role))

    def forward(self, elsewhere: Elsewhere, request: Forwarded) -> Reply:
        return self._calls.forward(elsewhere, request)

    def believes(self, request: Forwarded) -> bool:
        with suppress(NotBelieved):
            self._verifier.verify("member", request)
            return True
        return False

    def close(self) -> None:
        self._calls.close()
