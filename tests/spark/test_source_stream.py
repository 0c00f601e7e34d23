"""Step 7 of a source: what tasks reached is noted for the program and the next tick, once."""

from contextlib import closing
from pathlib import Path

import pytest

from parquet_sink.addons.sources.flow.outcome import SourceOutcome
from parquet_sink.addons.sources.flow.reached import SourceReached
from parquet_sink.addons.sources.flow.record_sender import Delivered
from parquet_sink.addons.sources.flow.stream import SourceOutcomes, SourceWriter
from parquet_sink.addons.sources.settings import SourceSettings
from parquet_sink.errors import ConnectorError
from parquet_sink.files.storage import prepare_connector
from parquet_sink.model.events import RecordsDelivered, SourcePolled
from parquet_sink.model.receipts import Failure
from parquet_sink.spark import handoff
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.state.store import SENT

PLACE = '{"filename":"a"}'


def test_a_failing_source_tells_of_its_deliveries_once(tmp_path: Path) -> None:
    """A commit that raises is followed by an abort with the same messages, in another process: nothing counts twice."""
    settings = SourceSettings("s", "m:T", ({},), "numbers", ("t",), None, tmp_dir=str(tmp_path / "tmp"))
    failure = Failure("SourceFailed", "The record cannot be sent.")
    delivered = {("t", 0): Delivered(3, 0, 2), ("u", 1): Delivered(1, 5, 5)}
    failed = SourceOutcome(0, {PLACE: {"position": 9}}, {}, 4, delivered=delivered, failure=failure, ended_at_s=1.5)
    other = SourceOutcome(1, {}, {}, 2, ended_at_s=2.5)
    messages = [SourceOutcomes((failed,)), SourceOutcomes((other,))]
    prepare_connector(settings.tmp_dir, settings.name)
    with closing(SqliteStore.for_new_run(handoff.state_path(settings))) as state:
        given = handoff.write(settings, tmp_path / "run", state.ids)
        with pytest.raises(ConnectorError, match="cannot be sent"):
            SourceWriter(given).commit(messages, 3)
        SourceWriter(given).abort(messages, 3)
        events = state.events_after(0).events
        assert [(one.records, one.at_s) for one in events if isinstance(one, RecordsDelivered)] == [(3, 1.5), (1, 1.5)]
        assert [(one.polled, one.at_s) for one in events if isinstance(one, SourcePolled)] == [(4, 1.5), (2, 2.5)]
        sent = state.get(SENT)
        assert sent is not None
        assert SourceReached.from_json(sent).places == {PLACE: {"position": 9}}
