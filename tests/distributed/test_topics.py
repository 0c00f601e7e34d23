"""distributed/topics.py: which topic takes what a connector learned. With brokers: integration."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from parquet_sink.distributed.topics import state_topic_of
from tests.factories import settings

GROUP = cast(Any, SimpleNamespace(state_topic="workers-state", kafka={"bootstrap.servers": "127.0.0.1:9092"}))


def test_a_sink_keeps_its_state_however_it_spells_its_brokers(tmp_path: Path) -> None:
    """The same cluster may have several addresses, and another one has a topic of its own."""
    sink = settings(tmp_path)
    for servers in ("127.0.0.1:9092", "localhost:9092", "other:9092"):
        spelled = replace(sink, kafka=replace(sink.kafka, client={"bootstrap.servers": servers}))
        assert state_topic_of(spelled, GROUP) == "workers-state"


def test_a_source_has_no_state_there() -> None:
    """It keeps positions in the offset storage."""
    assert state_topic_of(cast(Any, SimpleNamespace()), GROUP) is None
