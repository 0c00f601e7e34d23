"""A right that is missing is named with the resource and the command that gives it."""

import pytest
from confluent_kafka import KafkaError

from parquet_sink.errors import KafkaRefused
from parquet_sink.kafka.client.causes import Cause
from parquet_sink.kafka.client.errors import failure
from parquet_sink.kafka.client.rights import Right, missing, to_commit, to_fence, to_read, to_see, to_write
from tests.messages import assert_says


@pytest.mark.parametrize(
    ("right", "words", "arguments"),
    [
        (to_read("orders"), "Read on topic orders", "--operation Read --topic orders`"),
        (to_read("a", "b"), "Read on topics a, b", "--operation Read --topic a`"),
        (to_read(*"abcde"), "Read on topics a, b, c and 2 more", "--operation Read --topic a`"),
        (to_see("orders"), "Describe on topic orders", "--operation Read --topic orders`"),
        (to_commit("g"), "Read on group g", "--operation Read --group g`"),
        (to_commit("connect-my orders"), "Read on group connect-my orders", "--group 'connect-my orders'`"),
        (to_fence("f"), "Write on transactional-id f", "--operation Write --transactional-id f`"),
        (to_write("dead"), "Write on topic dead", "--operation Write --topic dead`"),
        (
            Right("IdempotentWrite", "cluster"),
            "IdempotentWrite on the cluster",
            "--operation IdempotentWrite --cluster`",
        ),
    ],
)
def test_a_right_is_named_with_its_command(right: Right, words: str, arguments: str) -> None:
    """By Kafka's words for it; where another right has it in it, that one is given."""
    assert right.words == words
    assert right.cure().endswith(arguments)
    assert_says(right.cure(), "Give the user", f"(ACL) {words}")
    assert ("which comes with Read" in right.cure()) is (right.operation == "Describe")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, ("(ACL) Read on topic orders", "kafka-acls --boot")),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, ("(ACL) Read on group g", "kafka-acls --boot")),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, ("Check the credentials", "rights (ACLs)")),
    ],
)
def test_a_refusal_names_the_right_that_the_answer_is_about(code: int, words: tuple[str, ...]) -> None:
    """A commit needs one on the group and one on the topics; the broker's answer tells which is missing."""
    found = failure(KafkaError(code), "Group g: offsets cannot be committed", needs=(to_commit("g"), to_read("orders")))
    assert type(found) is KafkaRefused
    assert_says(found, "Group g", *words)


def test_other_errors_are_about_no_right() -> None:
    """A topic that is not there is not a matter of rights."""
    assert missing(KafkaError.UNKNOWN_TOPIC_OR_PART, (to_read("orders"),)) is None


def test_nobody_lets_us_in() -> None:
    """When all who answer refuse us, waiting is no cure: the message has why and what to correct."""
    cause = Cause("b:9093: authentication failed: no", "Check the credentials", lasting=True)
    found = failure(KafkaError(KafkaError._TIMED_OUT), "Topic orders", asked="b:9093", cause=cause)
    assert type(found) is KafkaRefused
    assert_says(found, "Topic orders", "b:9093 does not", cause.words, cause.cure)
