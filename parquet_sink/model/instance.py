"""Who runs a connector."""

import os
import socket
import time
import uuid
from dataclasses import dataclass


@dataclass(frozen=True)
class Instance:
    """Who runs a connector: unique for each start of it."""

    id: str
    host: str
    pid: int
    started: str

    @classmethod
    def new(cls) -> "Instance":
        started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        return cls(uuid.uuid4().hex[:12], socket.gethostname(), os.getpid(), started)
