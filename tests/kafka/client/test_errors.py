"""What an error of Kafka means: it is waited for, it ends the connector, or it is tried again some times."""

import pytest
from confluent_kafka import KafkaError

from parquet_sink.errors import BrokerAway, KafkaFailed, KafkaRefused
from parquet_sink.kafka.client.errors import MEMBERS_ONLY, PASSING, REFUSALS, UNKNOWN, failure
from parquet_sink.model.receipts import Restart
from tests.messages import assert_says


@pytest.mark.parametrize("code", sorted(PASSING))
def test_what_passes_is_waited_for(code: int) -> None:
    """A broker that is away, starts or leads no more may come back."""
    assert type(failure(KafkaError(code), "It")) is BrokerAway


@pytest.mark.parametrize("code", sorted(REFUSALS))
def test_what_stays_ends_the_connector(code: int) -> None:
    """A refusal that would come again has a class of its own, which starts nothing again, and tells the cure."""
    found = failure(KafkaError(code), "The offsets", asked="host:1")
    assert type(found) is KafkaRefused
    assert found.reaction.restart is Restart.NEVER
    assert_says(found, "The offsets", "host:1 refuses", REFUSALS[code])


@pytest.mark.parametrize("code", [KafkaError.UNKNOWN, KafkaError.INVALID_PARTITIONS, KafkaError._STATE, 4_711])
def test_what_nobody_knows_is_tried_again_some_times(code: int) -> None:
    """An error that is in no table is neither waited for without an end, nor the end: restarts are counted."""
    found = failure(KafkaError(code), "The offsets")
    assert type(found) is KafkaFailed
    assert found.reaction.restart is Restart.BOUNDED
    assert f"(code {code})" in str(found)


def test_no_error_has_two_meanings() -> None:
    """Each code is in one table at most."""
    tables = [set(PASSING), set(REFUSALS), set(UNKNOWN), set(MEMBERS_ONLY)]
    assert sum(map(len, tables)) == len(set.union(*tables))
