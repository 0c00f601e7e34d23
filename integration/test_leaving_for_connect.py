"""Workers of parquet-sink that were stopped at once leave their group to a worker of Kafka Connect itself."""

import time
from contextlib import closing
from pathlib import Path
from signal import SIGTERM
from typing import Final

import pytest
import requests

from integration.connect import theirs
from integration.connect.play import until_ready
from integration.worker_group import WorkerGroup
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.ports import free_port

SESSION_MS: Final = 60_000
"""Longer than a start of Kafka Connect takes: a member that stays behind would have it refused."""


@pytest.mark.in_turn(seconds=60)
def test_kafka_connect_forms_its_group_after_workers_that_were_stopped_at_once(broker: Broker, tmp_path: Path) -> None:
    """It has the group within their session, by the same worker file: no member of another kind is left."""
    with closing(WorkerGroup(tmp_path, broker, 2, {"session.timeout.ms": str(SESSION_MS)})) as group:
        group.start()
        for worker in group.workers:
            worker.command.send(SIGTERM)
        assert [worker.command.ended() for worker in group.workers] == [0, 0]
        began = time.monotonic()
        port = free_port()
        topics = {f"{what}.storage.topic": f"{group.group_id}-{what}s" for what in ("config", "offset", "status")}
        keys = {**theirs.properties(broker, port), **topics, "group.id": group.group_id}
        path, log = tmp_path / "connect.properties", tmp_path / theirs.LOG
        path.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
        with theirs.started(path, tmp_path) as process:
            url = f"http://127.0.0.1:{port}"
            until_ready(url, lambda: process.poll() is None, lambda: log.read_text(errors="replace"), theirs.START_S)
            assert requests.get(f"{url}/connectors", timeout=30).json() == []
            assert time.monotonic() - began < SESSION_MS / 1000
        said = log.read_text(errors="replace")
        assert "InconsistentGroupProtocol" not in said
        assert "Successfully joined group" in said
