"""worker/rest/renderings.py: what one worker writes of its connectors, and another worker or command reads."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.errors import WorkerRefused
from parquet_sink.worker.herder.values import ConnectorProgress, LiveWarning, WarningKind
from parquet_sink.worker.rest.renderings import progress, read_progress
from tests.messages import saying

KNOWN = st.from_type(ConnectorProgress)


@given(st.lists(KNOWN, max_size=3))
def test_what_is_written_is_read_as_it_was(found: list[ConnectorProgress]) -> None:
    """Every field of it, and of what it has within."""
    written = json.dumps(progress(found))
    assert json.dumps(progress(read_progress(json.loads(written)))) == written


@given(KNOWN)
def test_live_warnings_are_of_a_kind_again(found: ConnectorProgress) -> None:
    """Also beside a worker of an earlier version, which writes none."""
    written = json.loads(json.dumps(progress([found])))
    (read,) = read_progress(written)
    assert read.live_warnings == tuple(LiveWarning(WarningKind(one.kind), one.message) for one in found.live_warnings)
    del written[0]["live_warnings"]
    (earlier,) = read_progress(written)
    assert earlier.live_warnings == ()


def test_what_is_not_understood_is_said_to_be_of_another_version() -> None:
    """With the field that is missing."""
    with pytest.raises(WorkerRefused, match=saying("status", "another version")):
        read_progress([{}])
