"""The tree of errors: what is done about each is in its class, and crosses processes with it."""

import pickle
import re
from collections.abc import Iterator
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink import errors
from parquet_sink.errors import (
    BrokerAway,
    Defect,
    InvalidRecord,
    KafkaFailed,
    SinkError,
    TopicGone,
    UploadPostponed,
    UploadRefused,
    failure_named,
)
from parquet_sink.model.ranges import Again, Tries
from parquet_sink.model.receipts import Failure, Reaction, Restart


def classes(base: type[SinkError] = SinkError) -> Iterator[type[SinkError]]:
    """All error classes of the module."""
    yield base
    for one in base.__subclasses__():
        if one.__module__ == errors.__name__:
            yield from classes(one)


RESTARTED = {
    "BrokerAway": Restart.BOUNDED,
    "LeaseLost": Restart.BOUNDED,
    "KafkaFailed": Restart.BOUNDED,
    "RegistryAway": Restart.REGISTRY,
    "SourceAway": Restart.BOUNDED,
    "MachineBusy": Restart.MACHINE,
    "Defect": Restart.BOUNDED,
    "RunFilesLost": Restart.BOUNDED,
}


@pytest.mark.parametrize("one", [pytest.param(one, id=one.__name__) for one in classes()])
def test_the_reaction_to_each_class_is_as_promised(one: type[SinkError]) -> None:
    """What may be cured is started again; what ends a range in the same place each time delivers what came before."""
    reaction, name = one.reaction, one.__name__
    assert reaction.restart is RESTARTED.get(name, Restart.NEVER)
    assert reaction.passes == (
        name in RESTARTED or name in {"UploadExhausted", "RetryLater", "RecordSinkFailed", "BrokersGone"}
    )
    assert reaction.at_start == (name in {"MachineBusy", "Defect", "RunFilesLost"})
    assert reaction.delivers_before == (name in {"InvalidRecord", "OffsetsLost"})
    assert (reaction.range_again_s is not None) == (name == "TopicGone")
    assert reaction.range_retries == (name == "RetryLater")


def test_the_docstring_draws_every_class() -> None:
    """An error that is not in the tree at the top of the module is not known to its reader."""
    drawn = re.findall(r"[├└]── (\w+)|^    (SinkError)$", errors.__doc__ or "", re.MULTILINE)
    assert {first or second for first, second in drawn} == {one.__name__ for one in classes()}


@pytest.mark.parametrize(
    "error",
    [
        InvalidRecord("orders", 3, 7, "no field"),
        UploadRefused("the target answered 403", 403),
        UploadPostponed("not yet", None, Again(Tries(3, 12.5), 8.0)),
        TopicGone("Topic orders is gone."),
        KafkaFailed("no record came").at(("orders", 3)),
        UploadRefused("the target answered 403", 403).at(("orders", 3)),
    ],
)
def test_an_error_keeps_its_reaction_on_its_way(error: SinkError) -> None:
    """Pickled or as JSON: what another process reads of an error, its topic-partition too, is what this one knows."""
    failure = error.failure()
    assert failure.topic_partition == getattr(error, "topic_partition", None)
    assert failure.reaction == error.reaction
    assert pickle.loads(pickle.dumps(error)).failure() == failure
    assert Failure.from_json(failure.to_json()) == failure


def test_an_upload_s_failure_has_status_and_next_attempt() -> None:
    """What the target answered, and when the file is due again, cross with the failure."""
    again = Again(Tries(3, 12.5), 8.0)
    assert UploadRefused("no", 403).failure().status == 403
    assert UploadPostponed("not yet", 503, again).failure().again == again


def test_an_invalid_record_s_failure_has_its_topic_partition() -> None:
    """Who decides by it reads no message."""
    assert InvalidRecord("orders", 3, 7, "no field").failure().topic_partition == ("orders", 3)
    assert TopicGone("Topic orders is gone.").failure().topic_partition is None


def test_a_failure_that_a_version_before_wrote_is_read() -> None:
    """It has no topic-partition of its own."""
    fields = asdict(BrokerAway("away").failure())
    del fields["topic_partition"]
    assert Failure.from_dict(fields) == BrokerAway("away").failure()


def test_a_name_is_turned_back_into_its_class_s_reaction() -> None:
    """Spark passes exceptions on as text; a name that is not ours is a defect."""
    assert failure_named("BrokerAway", "away") == BrokerAway("away").failure()
    assert failure_named("ZeroDivisionError", "oh").reaction == Defect.reaction


reactions = st.builds(
    Reaction,
    st.sampled_from(Restart),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.none() | st.floats(0, 1e6),
)
agains = st.builds(Again, st.builds(Tries, st.integers(0, 99), st.floats(0, 1e6)), st.floats(0, 1e6))


keys = st.tuples(st.text(), st.integers(0, 2**31 - 1))


@given(
    st.builds(
        *(Failure, st.text(), st.text(), reactions, st.none() | st.integers(100, 599), st.none() | agains),
        st.none() | keys,
    )
)
def test_any_failure_comes_back_from_json(failure: Failure) -> None:
    """Whatever stands in it, another process reads the same."""
    assert Failure.from_json(failure.to_json()) == failure
