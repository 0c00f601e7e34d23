"""What the worker does not do is answered for every reason that it has."""

import pytest

from parquet_sink.worker.herder import errors
from parquet_sink.worker.herder.errors import HerderError
from parquet_sink.worker.rest.call import RestError, as_rest_errors

MADE = {
    "UnknownConnector": errors.UnknownConnector("c"),
    "UnknownLogger": errors.UnknownLogger("py4j"),
    "UnknownTask": errors.UnknownTask("c", 1),
    "ConnectorExists": errors.ConnectorExists("c"),
    "InvalidConnector": errors.InvalidConnector(["Invalid [a]. Wrong."]),
    "FlushRefused": errors.FlushRefused("it is paused; resume it"),
    "UnknownPartitions": errors.UnknownPartitions("it has orders:0"),
    "UnknownFlush": errors.UnknownFlush("c", "f"),
    "NotStopped": errors.NotStopped("c"),
    "NotPurged": errors.NotPurged("records are parked"),
    "UnknownWorker": errors.UnknownWorker("w:8083"),
    "WorkerAnswers": errors.WorkerAnswers("w:8083"),
    "NotReadable": errors.NotReadable("no provider answers"),
    "OffsetsBusy": errors.OffsetsBusy("wait"),
    "OffsetsRefused": errors.OffsetsRefused("no right"),
    "TimedOut": errors.TimedOut(),
    "ShuttingDown": errors.ShuttingDown(),
    "StoreFailed": errors.StoreFailed("the disk is full"),
}


def test_all_reasons_are_known() -> None:
    """One that is new must say what its answer is."""
    assert {one.__name__ for one in HerderError.__subclasses__()} == {*MADE, "Elsewhere"}


def test_who_has_the_whole_request_answers_for_another_leader() -> None:
    """NotLeader goes through, with the leader's address: the request is sent on."""
    with pytest.raises(errors.NotLeader) as raised, as_rest_errors():
        raise errors.NotLeader("http://leader:8083")
    assert raised.value.url == "http://leader:8083"


@pytest.mark.parametrize(
    ("name", "status"),
    [
        *(
            ("UnknownConnector", 404),
            ("UnknownTask", 404),
            ("UnknownLogger", 404),
            ("ConnectorExists", 409),
            ("InvalidConnector", 400),
        ),
        *(
            ("FlushRefused", 409),
            ("UnknownPartitions", 404),
            ("UnknownFlush", 404),
            ("NotStopped", 400),
            ("NotPurged", 409),
            ("UnknownWorker", 404),
            ("WorkerAnswers", 409),
            ("NotReadable", 409),
            ("OffsetsBusy", 409),
            ("OffsetsRefused", 500),
            ("TimedOut", 500),
            ("ShuttingDown", 503),
            ("StoreFailed", 500),
        ),
    ],
)
def test_each_has_its_status(name: str, status: int) -> None:
    """And a message."""
    with pytest.raises(RestError) as raised, as_rest_errors():
        raise MADE[name]
    assert (raised.value.status, bool(raised.value.message)) == (status, True)
