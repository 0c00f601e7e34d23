"""Requests that a worker sends on to the leader, over real sockets: signed, believed once, and never sent on twice."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from parquet_sink.addons.devkit.ports import free_port
from parquet_sink.config.secret import Secret
from parquet_sink.distributed.calls import FORWARDED_BY
from parquet_sink.distributed.records import SessionKey
from parquet_sink.worker.herder.errors import NotLeader
from parquet_sink.worker.herder.values import ConnectorInfo
from parquet_sink.worker.rest.peers import ROLE_HEADER, SIGNATURE
from parquet_sink.worker_config.rest.roles import Role
from parquet_sink.worker_config.rest.settings import RestSettings
from tests.worker.rest.fake_herder import FakeHerder, Kept
from tests.worker.rest.peer import Peer
from tests.worker.rest.serving import GOOD, LOOPBACK, Client, serving

USERS = RestSettings(listeners=LOOPBACK, users=(("ann", Secret("secret")),))
SIGNED_IN = {"Authorization": "Basic YW5uOnNlY3JldA=="}


@contextmanager
def group(peer: Peer, settings: RestSettings | None = None) -> Iterator[tuple[FakeHerder, Client, Client]]:
    """The leader's herder, a client of the leader, and one of a follower, whose side of the group is `peer`."""
    leader, follower = FakeHerder(), FakeHerder()
    with (
        serving(leader, settings, peers=Peer()) as at_leader,
        serving(follower, settings, peers=peer) as at_follower,
    ):
        follower.fails = NotLeader(f"http://127.0.0.1:{at_leader.port}")
        yield leader, at_leader, at_follower
    peer.close()


@pytest.fixture
def peer() -> Peer:
    """One that signs as the leader believes."""
    return Peer()


def test_the_leader_s_answer_comes_back_as_it_is(peer: Peer) -> None:
    """Status, body, error and query."""
    with group(peer) as (leader, _, follower):
        made = follower.ask("POST", "/connectors", {"name": "a/b", "config": GOOD})
        assert (made.status, made.json["name"]) == (201, "a/b")
        assert set(leader.kept) == {"a/b"}
        assert follower.ask("POST", "/connectors", {"name": "a/b", "config": GOOD}).status == 409
        assert follower.ask("PUT", "/connectors/a%2Fb/pause").status == 202
        assert follower.ask("POST", "/connectors/a%2Fb/restart?includeTasks=true").status == 202
        assert follower.ask("PUT", "/connectors/none/pause").status == 404
        assert follower.ask("DELETE", "/connectors/a%2Fb").status == 204
        assert not leader.kept


def test_without_a_leader_nothing_is_done_and_it_is_said_when_to_try_again(peer: Peer) -> None:
    """No leader, one that nobody listens for, one that does not lead itself, and one that does not know the key yet."""
    with group(peer) as (leader, _, follower), group(Peer(SessionKey(b"x", "HmacSHA256", 0))) as (_, _, stranger):
        leader.fails = NotLeader("http://127.0.0.1:1")
        for client in (follower, stranger):
            answer = client.ask("PUT", "/connectors/one/pause")
            assert (answer.status, answer.headers["Retry-After"]) == (409, "1")
            assert b"rebalance" in answer.raw
    for url in (None, f"http://127.0.0.1:{free_port()}"):
        alone = FakeHerder()
        with serving(alone, peers=peer) as client:
            alone.fails = NotLeader(url)
            assert client.ask("PUT", "/connectors/one/pause").status == 409


def test_a_request_is_sent_on_once(peer: Peer) -> None:
    """A worker that gets one from another refers to nobody."""
    with group(peer) as (_, _, follower):
        answer = follower.ask("PUT", "/connectors/one/pause", headers={FORWARDED_BY: "another:1"})
        assert answer.status == 409


def test_who_signed_in_at_one_worker_needs_not_at_the_leader(peer: Peer) -> None:
    """Passwords do not travel; what is not signed, or not by the group, gets nowhere."""
    with group(peer, USERS) as (leader, at_leader, follower):
        assert follower.ask("POST", "/connectors", {"name": "one", "config": GOOD}).status == 401
        made = follower.ask("POST", "/connectors", {"name": "one", "config": GOOD}, SIGNED_IN)
        assert (made.status, set(leader.kept)) == (201, {"one"})
        signed = peer.signed("", "PUT", "/connectors/one/pause", b"")
        assert at_leader.ask("PUT", "/connectors/one/pause", headers=signed).status == 202
        assert at_leader.ask("PUT", "/connectors/one/pause", headers=signed).status == 403
        for wrong in ("", "HmacSHA256 1 n x", "rubbish"):
            assert at_leader.ask("DELETE", "/connectors/one", headers={SIGNATURE: wrong}).status == 403
        other = peer.signed("", "DELETE", "/connectors/two", b"")
        assert at_leader.ask("DELETE", "/connectors/one", headers=other).status == 403
        assert set(leader.kept) == {"one"}


def test_a_worker_that_is_alone_believes_no_signature(peer: Peer) -> None:
    """It would let in whoever has one."""
    with serving(FakeHerder(), USERS) as client:
        signed = peer.signed("", "GET", "/connectors", b"")
        assert client.ask("GET", "/connectors", headers=signed).status == 403


def test_a_role_goes_on_with_its_request(peer: Peer) -> None:
    """It is decided where one signs in; the leader does what that role may, and believes no other."""
    users = (("ann", Secret("secret")), ("bob", Secret("secret")))
    settings = RestSettings(listeners=LOOPBACK, users=users, roles=(("ann", Role.OPERATOR), ("bob", Role.VIEWER)))
    bob = {"Authorization": "Basic Ym9iOnNlY3JldA=="}
    with group(peer, settings) as (leader, at_leader, follower):
        leader.kept["one"] = Kept(GOOD)
        assert follower.ask("PUT", "/connectors/one/pause", headers=SIGNED_IN).status == 202
        assert follower.ask("PUT", "/connectors/one/pause", headers=bob).status == 403
        signed = peer.signed("", "DELETE", "/connectors/one", b"", "operator")
        refused = at_leader.ask("DELETE", "/connectors/one", headers=signed)
        assert (refused.status, "admin" in refused.json["message"]) == (403, True)
        raised = {**peer.signed("", "DELETE", "/connectors/one", b"", "operator"), ROLE_HEADER: "admin"}
        without = {name: text for name, text in raised.items() if name != ROLE_HEADER}
        for headers in (raised, without):
            assert at_leader.ask("DELETE", "/connectors/one", headers=headers).status == 403
        hidden = at_leader.ask(
            "GET", "/connectors/one", headers=peer.signed("", "GET", "/connectors/one", b"", "viewer")
        )
        assert hidden.json["config"]["topics"] == "orders"
        assert set(leader.kept) == {"one"}


def test_whether_there_is_such_a_connector_the_leader_says(peer: Peer) -> None:
    """A follower may not have read yet what was made; a change goes on to the leader all the same."""
    leader, follower = FakeHerder(), FakeHerder()
    with serving(leader, peers=Peer()) as at_leader, serving(follower, peers=peer) as at_follower:
        assert at_leader.ask("POST", "/connectors", {"name": "new", "config": GOOD}).status == 201
        elsewhere = NotLeader(f"http://127.0.0.1:{at_leader.port}")

        def patch(name: str, changes: Mapping[str, str | None]) -> ConnectorInfo:
            raise elsewhere

        follower.patch = patch  # type: ignore[method-assign]
        assert at_follower.ask("PATCH", "/connectors/new/config", {"a": "b"}).status == 200
        assert leader.info("new").config["a"] == "b"
        assert at_follower.ask("PATCH", "/connectors/none/config", {"name": "other"}).status == 404
