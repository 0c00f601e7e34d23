"""distributed/membership.py: what a confirmation is worth, and for whom. With a coordinator: integration."""

from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.distributed.assignment import MemberInfo
from parquet_sink.distributed.membership import GroupTiming, Lease, _client_id, _named

SECOND = 1_000_000_000
DEFAULTS = GroupTiming(10_000, 3_000, 60_000)


def lease() -> tuple[Lease, list[tuple[str, int]]]:
    """A lease of member m-1, and the ends that leases had, each with its member."""
    written: list[tuple[str, int]] = []
    made = Lease(DEFAULTS, lambda member_id, until_ns: written.append((member_id, until_ns)))
    made.belongs_to("m-1")
    return made, written


def test_it_lasts_four_fifths_of_a_session_from_the_question_on() -> None:
    """Not from the answer: when the coordinator renewed the session is not known, but that it was later than asked."""
    made, written = lease()
    made.asked(100 * SECOND)
    made.answered(103 * SECOND, confirmed=True)
    assert written == [("m-1", 108 * SECOND)]
    assert made.until_ns == 108 * SECOND


def test_it_is_renewed_each_tenth_of_a_session_one_question_at_a_time() -> None:
    """While no answer came nothing is asked; after one that came late it is asked again at once."""
    made, _ = lease()
    assert made.is_due(0)
    made.asked(0)
    assert not made.is_due(5 * SECOND)
    made.answered(SECOND // 100, confirmed=True)
    assert not made.is_due(SECOND - 1)
    assert made.is_due(SECOND)


def test_a_confirmation_that_fails_leaves_the_lease_as_it_is() -> None:
    """What was confirmed before still holds; it is asked again soon, and at once after a rebalance."""
    made, written = lease()
    made.asked(0)
    made.answered(0, confirmed=True)
    made.asked(SECOND)
    made.answered(2 * SECOND, confirmed=False)
    assert written == [("m-1", 8 * SECOND)]
    assert not made.is_due(2 * SECOND + 299_999_999)
    assert made.is_due(2 * SECOND + 300_000_000)
    made.ask_soon()
    assert made.is_due(2 * SECOND)


def test_who_stood_still_asks_for_nothing_for_a_moment() -> None:
    """Unless it has become another member by then."""
    made, _ = lease()
    made.looked(60 * SECOND)
    made.looked(65 * SECOND)
    assert not made.is_due(65 * SECOND + 299_999_999)
    assert made.is_due(65 * SECOND + 300_000_000)
    made.looked(75 * SECOND)
    made.belongs_to("m-2")
    assert made.is_due(75 * SECOND)


@given(st.lists(st.integers(1, 3_900), min_size=1))
def test_who_is_slow_asks_as_soon_as_it_may(gaps_ms: list[int]) -> None:
    """However seldom a busy worker looks, short of half a lease: it asks again a tenth of a session later."""
    made, _ = lease()
    made.looked(0)
    now_ns = asked_ns = 10 * SECOND
    made.asked(now_ns)
    made.answered(now_ns, confirmed=True)
    made.looked(now_ns)
    for gap_ms in gaps_ms:
        now_ns += gap_ms * 1_000_000
        made.looked(now_ns)
        assert made.is_due(now_ns) == (now_ns - asked_ns >= SECOND)
        if made.is_due(now_ns):
            made.asked(now_ns)
            made.answered(now_ns, confirmed=True)
            asked_ns = now_ns


def test_another_member_id_ends_it() -> None:
    """The answer to what the former member asked is no confirmation for the new one."""
    made, written = lease()
    made.asked(0)
    made.answered(0, confirmed=True)
    made.asked(SECOND)
    made.belongs_to("m-2")
    assert written == [("m-1", 8 * SECOND), ("m-1", 0)]
    made.answered(2 * SECOND, confirmed=True)
    assert written == [("m-1", 8 * SECOND), ("m-1", 0)]
    made.asked(2 * SECOND)
    made.answered(2 * SECOND, confirmed=True)
    assert written[2:] == [("m-2", 10 * SECOND)]


def test_nobody_asks_for_one_who_has_not_joined() -> None:
    """Without a member id there is nothing to confirm."""
    made = Lease(DEFAULTS, lambda member_id, until_ns: None)
    assert not made.is_due(0)


def test_it_lasts_over_an_ordinary_rebalance() -> None:
    """A member hears of a rebalance within heartbeat.interval.ms, and may have asked just before."""
    timing = DEFAULTS
    assert timing.interval_ms + timing.heartbeat_ms + 2_000 < timing.lease_ms
    assert GroupTiming(10_000, 500, 60_000).interval_ms == 500


def test_a_client_id_carries_worker_and_url() -> None:
    """Those of newer versions may carry more; what is not a worker has none."""
    known = MemberInfo("a:8083", "m", "https://a:8083/", 0)
    assert _named(_client_id("a:8083", "https://a:8083/"), "m") == known
    newer = _named("parquet-sink|2|a:8083|https://a:8083/|more", "m")
    assert newer == known
    assert newer is not None
    assert newer.form == 2
    assert _named("connector-consumer-orders-0", "m") is None
    assert _named("parquet-sink|1", "m") is None
