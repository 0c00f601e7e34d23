"""What a reader does when it hears nothing, or hears of a log that was cut back."""

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException

from parquet_sink.errors import KafkaFailed, OffsetsLost, TopicGone
from parquet_sink.kafka.client import renewal
from parquet_sink.kafka.range_reader import ASK_AFTER_S, ReaderChecks
from parquet_sink.kafka.settings import KafkaSettings
from tests.messages import assert_line_says, saying

TRUNCATED = (
    "Partition log truncation detected at offset 100 (leader epoch 2): broker end offset is 60 (offset leader epoch 0)"
)


class Asked:
    """A consumer that counts how often it is asked, and answers with an error, or not."""

    def __init__(self, code: int | None = None) -> None:
        self.code, self.times = code, 0

    def get_watermark_offsets(self, tp: object, timeout: float) -> tuple[int, int]:
        self.times += 1
        if self.code is not None:
            raise KafkaException(KafkaError(self.code))
        return 0, 10


@pytest.fixture
def checks() -> ReaderChecks:
    """Of a range that begins at 100."""
    return ReaderChecks(KafkaSettings(), "orders", 0, 100)


def test_silence_is_looked_into_now_and_then(checks: ReaderChecks) -> None:
    """A topic is asked for after some seconds without a record, not at each poll, and anew when records came since."""
    consumer = Asked()
    for tenths in range(int(ASK_AFTER_S * 25)):
        checks.on_silence(consumer, tenths / 10)  # type: ignore[arg-type]
    assert consumer.times == 2
    for silent_s in (0.1, ASK_AFTER_S - 0.1, ASK_AFTER_S + 0.1):
        checks.on_silence(consumer, silent_s)  # type: ignore[arg-type]
    assert consumer.times == 3


@pytest.mark.parametrize("code", [KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION])
def test_a_topic_that_is_gone_ends_the_range(checks: ReaderChecks, code: int) -> None:
    """The client goes on waiting for a topic that was deleted; a reader does not."""
    with pytest.raises(TopicGone, match=saying("orders, topic-partition 0", "was deleted")):
        checks.on_silence(Asked(code), ASK_AFTER_S)  # type: ignore[arg-type]


def test_a_broker_that_is_away_is_waited_for(checks: ReaderChecks) -> None:
    """No answer says nothing of the topic."""
    consumer = Asked(KafkaError._TIMED_OUT)
    for looks in (1, 2):
        checks.on_silence(consumer, ASK_AFTER_S * looks)  # type: ignore[arg-type]
        assert consumer.times == looks


def test_a_consumer_without_an_answer_is_replaced(checks: ReaderChecks, monkeypatch: pytest.MonkeyPatch) -> None:
    """When none came for long; one that answers is kept, although it has no record."""
    monkeypatch.setattr(renewal, "RENEW_S", 0.0)
    for looks, (code, replaced) in enumerate([(None, False), (KafkaError._TRANSPORT, True), (None, False)], 1):
        assert checks.on_silence(Asked(code), ASK_AFTER_S * looks) is replaced  # type: ignore[arg-type]


def test_a_cut_below_the_range_is_a_loss(checks: ReaderChecks) -> None:
    """Records that were delivered are others now: it stops, and names them."""
    with pytest.raises(OffsetsLost, match=saying("stands at offset 100", "from 60 to 99")):
        checks.on_truncation(TRUNCATED, 100)
    with pytest.raises(OffsetsLost, match="stands at offset 100"):
        checks.on_truncation(TRUNCATED, 130)


def test_an_accepted_cut_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """With CONTINUE the log names what is passed over."""
    ReaderChecks(KafkaSettings(lost_offsets="CONTINUE"), "orders", 0, 100).on_truncation(TRUNCATED, 100)
    assert_line_says(caplog.text, "from 60 to 99 are others", "Going on at 100")


@pytest.mark.parametrize("stop", [True, False])
def test_a_cut_within_the_range_is_read_again(stop: bool) -> None:
    """Nothing below the range's start differs: the range is repeated, whatever the policy."""
    with pytest.raises(KafkaFailed, match="cut back to 60") as found:
        ReaderChecks(KafkaSettings(lost_offsets="STOP" if stop else "CONTINUE"), "orders", 0, 50).on_truncation(
            TRUNCATED, 100
        )
    assert not isinstance(found.value, OffsetsLost)
    assert found.value.topic_partition == ("orders", 0)


@pytest.mark.parametrize("say", [lambda: "No epoch found", lambda: TRUNCATED.replace(" 60", " -1")])
def test_what_cannot_be_told_is_said(
    checks: ReaderChecks, caplog: pytest.LogCaptureFixture, say: Callable[[], str]
) -> None:
    """Where the cluster keeps no epochs nothing is known, and nothing is stopped."""
    checks.on_truncation(say(), 100)
    assert_line_says(caplog.text, "unknown", "cut back below 100")
