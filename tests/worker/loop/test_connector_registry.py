"""A worker's connectors by request: what is stored, what runs, and the states that are told."""

from collections.abc import Callable

import pytest

from parquet_sink.connectors.hidden import HIDDEN
from parquet_sink.errors import failure_named
from parquet_sink.model.events import ConnectorRunning, ConnectorWaiting
from parquet_sink.model.ranges import Accepted
from parquet_sink.state.store import SLOTS
from parquet_sink.worker.herder.errors import (
    ConnectorExists,
    InvalidConnector,
    NotStopped,
    OffsetsBusy,
    StoreFailed,
    TimedOut,
    UnknownConnector,
    UnknownTask,
)
from parquet_sink.worker.herder.store import ConfigStore, StoredConnector
from parquet_sink.worker.herder.values import State, TargetState
from parquet_sink.worker.loop.status import Status
from tests.factories import Clock
from tests.messages import assert_says, saying
from tests.worker.loop.doubles import Group, Query
from tests.worker.loop.worker_doubles import BROKEN, SPARK, Loop


def fail(loop: Loop, name: str, launched: list[Query], kind: str = "UploadRefused") -> None:
    """The query that was started last fails, for a reason that needs a hand."""
    state = loop.run(name).state
    assert state is not None
    state.record_failure(failure_named(kind, "the target answered 403"))
    launched[-1].fail()
    loop.settle()


def test_a_new_connector_runs(loop: Loop, launched: list[Query]) -> None:
    """It is stored with its name, has no tasks until it begins, then as many as tasks.max."""
    info = loop.requests.create("one", {"tasks": "3"})
    assert (info.config, info.tasks) == ({"tasks": "3", "name": "one"}, 0)
    assert loop.registry.store.connectors() == {"one": StoredConnector({"tasks": "3", "name": "one"})}
    assert loop.state("one") is State.UNASSIGNED
    loop.settle()
    status = loop.registry.snapshot().statuses["one"]
    assert (status.state, status.worker_id, status.trace) == (State.RUNNING, "localhost:8083", "")
    assert [(task.id, task.state, task.worker_id) for task in status.tasks] == [
        (number, State.RUNNING, "localhost:8083") for number in range(3)
    ]
    assert len(launched) == 1


def state_and_reason(loop: Loop) -> tuple[State, str, int]:
    """Of connector one: its state, what it waits for, its tasks."""
    status = loop.registry.snapshot().statuses["one"]
    return status.state, status.waits_for, len(status.tasks)


@pytest.mark.parametrize("target", [TargetState.STARTED, TargetState.PAUSED])
def test_it_runs_once_the_checks_of_its_start_are_done(loop: Loop, launched: list[Query], target: TargetState) -> None:
    """Until then it is UNASSIGNED, with what is being done, and what is away; so it is when it is started again."""
    there = State.PAUSED if target is TargetState.PAUSED else State.RUNNING
    loop.checks = False
    loop.requests.create("one", {}, target)
    assert state_and_reason(loop)[1].startswith("It starts next")
    loop.supervisor.step()
    loop.requests.publish()
    state, reason, tasks = state_and_reason(loop)
    assert (state, tasks) == (State.UNASSIGNED, 0)
    assert_says(reason, "Spark is up", "connectors before it")
    loop.settle()
    state, reason, tasks = state_and_reason(loop)
    assert (state, tasks, len(launched)) == (State.UNASSIGNED, 0, 1)
    assert_says(reason, "start", "being checked")
    store = loop.run("one").state
    assert store is not None
    store.append_events([ConnectorWaiting("one", loop.clock.seconds, "No broker answers.")])
    loop.settle()
    assert state_and_reason(loop) == (State.UNASSIGNED, "No broker answers.", 0)
    loop.checks = True
    store.append_events([ConnectorRunning("one", loop.clock.seconds)])
    loop.settle()
    assert state_and_reason(loop) == (there, "", 1)
    loop.checks = False
    loop.requests.restart("one", include_tasks=True, only_failed=False)
    loop.settle()
    assert (loop.state("one"), len(launched)) == (State.RESTARTING, 2)
    loop.checks = True
    loop.settle()
    assert state_and_reason(loop) == (there, "", 1)


def test_a_query_that_is_started_again_runs_once_its_checks_are_done(loop: Loop, launched: list[Query]) -> None:
    """After a failure that may pass it is RESTARTING until then."""
    loop.requests.create("one", {})
    loop.settle()
    loop.checks = False
    fail(loop, "one", launched, "KafkaFailed")
    loop.round(40)
    assert (loop.state("one"), len(launched)) == (State.RESTARTING, 2)
    assert_says(state_and_reason(loop)[1], "start", "being checked")
    loop.checks = True
    loop.settle()
    assert state_and_reason(loop) == (State.RUNNING, "", 1)


def test_one_that_fails_in_the_checks_never_ran(loop: Loop, launched: list[Query]) -> None:
    """A topic that is not there is told by FAILED, and by no RUNNING before it."""
    loop.checks = False
    loop.requests.create("one", {})
    loop.settle()
    assert loop.state("one") is State.UNASSIGNED
    fail(loop, "one", launched, "TopicGone")
    assert loop.state("one") is State.FAILED


@pytest.mark.parametrize("target", [TargetState.PAUSED, TargetState.STOPPED])
def test_a_new_connector_may_begin_paused_or_stopped(loop: Loop, launched: list[Query], target: TargetState) -> None:
    """Stopped, it takes no resources; paused, its processes are there and admit nothing."""
    loop.requests.create("one", {}, target)
    loop.settle()
    assert loop.state("one") is State(target)
    assert len(launched) == (target is TargetState.PAUSED)
    if target is TargetState.PAUSED:
        assert loop.paused("one")
        assert [task.state for task in loop.registry.snapshot().statuses["one"].tasks] == [State.PAUSED]
    else:
        assert loop.registry.snapshot().statuses["one"].tasks == ()


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"bad": "x"}, ("[bad]",)),
        ({"name": "two"}, ("[name]", '"two" is not "one"')),
        ({"group": "connect-other"}, ("[consumer.override.group.id]", "connect-other", "connector one", "its own")),
        ({"connect.ems.authorization.key": HIDDEN}, ("[connect.ems.authorization.key]", HIDDEN, "stands for")),
    ],
)
def test_a_wrong_connector_is_refused_whole(loop: Loop, config: dict[str, str], problem: tuple[str, ...]) -> None:
    """Nothing is stored, nothing is started."""
    loop.requests.create("other", {})
    with pytest.raises(InvalidConnector, match=saying(*problem)):
        loop.requests.create("one", config)
    assert list(loop.registry.store.connectors()) == ["other"]
    with pytest.raises(UnknownConnector):
        loop.requests.delete("one")


@pytest.mark.parametrize("name", [" one", "one ", " ", ""])
def test_a_name_without_its_blanks_is_another(loop: Loop, name: str) -> None:
    """Names of groups and folders have none at their ends."""
    with pytest.raises(InvalidConnector, match=r"Invalid \[name\]"):
        loop.requests.put(name, {})
    assert loop.registry.store.connectors() == {}


def test_how_a_stopped_connector_stood_is_not_told(loop: Loop) -> None:
    """Nobody looks any more; what came meanwhile is not known."""
    loop.requests.create("one", {})
    loop.settle()
    assert [one.lag for one in loop.requests.progress()[0].partitions] == [10]
    loop.requests.set_target("one", TargetState.STOPPED)
    loop.settle()
    assert loop.requests.progress()[0].partitions == ()


def test_a_name_is_had_once(loop: Loop) -> None:
    """The one that is there stays as it is."""
    loop.requests.create("one", {"records": "1"})
    with pytest.raises(ConnectorExists, match="Connector one already exists"):
        loop.requests.create("one", {"records": "2"})
    assert loop.registry.store.connectors()["one"].config["records"] == "1"


@pytest.mark.parametrize("name", ["a/b", "100 %", "…", "x" * 200, "..", "-"])
def test_odd_names(loop: Loop, launched: list[Query], name: str) -> None:
    """Run as any other, each in a folder of its own."""
    loop.requests.create(name, {})
    loop.settle()
    assert loop.state(name) is State.RUNNING
    loop.requests.delete(name)
    loop.settle()
    assert loop.registry.runs == []
    assert launched[0].stopped


def test_another_configuration_takes_effect_after_the_flush(loop: Loop, launched: list[Query], clock: Clock) -> None:
    """What runs finishes its flush and commits; then the new one begins where the group stands. Others run on."""
    loop.requests.create("one", {})
    loop.requests.create("other", {})
    loop.settle()
    loop.drains = False
    info, new = loop.requests.put("one", {"records": "7"})
    assert (info.config["records"], new) == ("7", False)
    loop.round(4)
    status = loop.registry.snapshot().statuses["one"]
    assert status.state is State.RESTARTING
    assert_says(status.waits_for, "flush in progress", "first")
    assert not launched[0].stopped
    state = loop.run("one").state
    assert state is not None
    state.record_accepted([Accepted("orders", 0, 100, 0, 100, "records")])
    loop.drains = True
    loop.settle()
    assert (launched[0].stopped, launched[1].stopped, len(launched)) == (True, False, 3)
    assert Group.advanced == [({("orders", 0): 100}, {})]
    assert loop.run("one").settings.flush.commit_records == 7
    assert (loop.state("one"), loop.state("other")) == (State.RUNNING, State.RUNNING)


def test_a_wrong_change_lets_the_old_one_run_on(loop: Loop, launched: list[Query]) -> None:
    """It is refused whole, by PUT and by PATCH."""
    loop.requests.create("one", {"records": "1"})
    loop.settle()
    for change in (
        lambda: loop.requests.put("one", {"bad": "x"}),
        lambda: loop.requests.patch("one", {"bad": "x", "records": "2"}),
    ):
        with pytest.raises(InvalidConnector):
            change()
        loop.settle()
    assert loop.registry.store.connectors()["one"].config == {"name": "one", "records": "1"}
    assert (loop.state("one"), len(launched), launched[0].stopped) == (State.RUNNING, 1, False)


def test_the_same_configuration_again_changes_nothing(loop: Loop, launched: list[Query]) -> None:
    """What runs, runs on; a key without meaning is stored all the same."""
    loop.requests.create("one", {})
    loop.settle()
    loop.requests.put("one", {"comment": "x"})
    loop.settle()
    assert (len(launched), launched[0].stopped) == (1, False)
    assert loop.registry.store.connectors()["one"].config == {"comment": "x", "name": "one"}


def test_a_patch_changes_and_removes_keys(loop: Loop) -> None:
    """As a merge: None removes, the rest stays, a hidden password stays what it was."""
    key = "connect.ems.authorization.key"
    loop.requests.create("one", {"records": "1", "tasks": "2", key: "AppKey k"})
    info = loop.requests.patch("one", {"records": "5", "tasks": None, key: HIDDEN})
    assert info.config == {"name": "one", "records": "5", key: "AppKey k"}
    with pytest.raises(UnknownConnector):
        loop.requests.patch("none", {})


def test_a_failed_connector_is_started_by_a_corrected_configuration(loop: Loop, launched: list[Query]) -> None:
    """Also by the same one again: its operator mended something else."""
    loop.requests.create("one", {})
    loop.settle()
    fail(loop, "one", launched)
    status = loop.registry.snapshot().statuses["one"]
    trace = "parquet_sink.errors.UploadRefused: the target answered 403"
    assert (status.state, status.trace, status.tasks[0].trace) == (State.FAILED, trace, trace)
    loop.requests.put("one", {})
    loop.settle()
    assert (loop.state("one"), len(launched)) == (State.RUNNING, 2)


def test_pause_and_resume(loop: Loop, launched: list[Query]) -> None:
    """The same query goes on: a pause keeps processes and position."""
    loop.requests.create("one", {})
    loop.settle()
    loop.requests.set_target("one", TargetState.PAUSED)
    loop.settle()
    assert (loop.state("one"), loop.paused("one")) == (State.PAUSED, True)
    loop.requests.set_target("one", TargetState.STARTED)
    loop.settle()
    assert (loop.state("one"), loop.paused("one")) == (State.RUNNING, False)
    assert (len(launched), launched[0].stopped) == (1, False)


def test_stop_gives_up_resources_and_resume_begins_anew(loop: Loop, launched: list[Query]) -> None:
    """Not STOPPED before the flush in progress is done; then without tasks, files and processes."""
    loop.requests.create("one", {})
    loop.settle()
    folder, loop.drains = loop.run("one").folder, False
    loop.requests.set_target("one", TargetState.STOPPED)
    loop.round(4)
    assert loop.state("one") is State.RUNNING
    loop.drains = True
    loop.settle()
    assert (loop.state("one"), launched[0].stopped, folder.exists()) == (State.STOPPED, True, False)
    loop.requests.set_target("one", TargetState.STARTED)
    loop.settle()
    assert (loop.state("one"), len(launched)) == (State.RUNNING, 2)


def test_a_stop_that_is_taken_back_is_followed_by_a_new_run(loop: Loop, launched: list[Query]) -> None:
    """The stop in progress goes on to its end; nothing is left hanging between."""
    loop.requests.create("one", {})
    loop.settle()
    loop.drains = False
    loop.requests.set_target("one", TargetState.STOPPED)
    loop.round(2)
    loop.requests.set_target("one", TargetState.STARTED)
    loop.round(2)
    loop.drains = True
    loop.settle()
    assert (loop.state("one"), len(launched), launched[0].stopped) == (State.RUNNING, 2, True)


def test_a_failed_connector_can_be_stopped(loop: Loop, launched: list[Query]) -> None:
    """And resumed: it is tried again. A pause does not hide that it failed."""
    loop.requests.create("one", {})
    loop.settle()
    fail(loop, "one", launched)
    loop.requests.set_target("one", TargetState.PAUSED)
    loop.settle()
    assert loop.state("one") is State.FAILED
    loop.requests.set_target("one", TargetState.STOPPED)
    loop.settle()
    assert loop.state("one") is State.STOPPED
    loop.requests.set_target("one", TargetState.STARTED)
    loop.settle()
    assert loop.state("one") is State.RUNNING


@pytest.mark.parametrize(
    ("failed", "only_failed", "restarts"), [(False, False, True), (False, True, False), (True, True, True)]
)
def test_restart(loop: Loop, launched: list[Query], failed: bool, only_failed: bool, restarts: bool) -> None:
    """The answer says RESTARTING of what is started again."""
    loop.requests.create("one", {})
    loop.settle()
    if failed:
        fail(loop, "one", launched)
    status = loop.requests.restart("one", include_tasks=True, only_failed=only_failed)
    expected = State.RESTARTING if restarts else State.RUNNING
    assert (status.state, [task.state for task in status.tasks]) == (expected, [expected])
    loop.settle()
    assert (loop.state("one"), len(launched)) == (State.RUNNING, 1 + restarts)


@pytest.mark.parametrize("target", [TargetState.PAUSED, TargetState.STOPPED])
def test_a_restart_changes_no_wish(loop: Loop, launched: list[Query], target: TargetState) -> None:
    """What is paused is paused afterwards, what is stopped stays so."""
    loop.requests.create("one", {}, target)
    loop.settle()
    loop.requests.restart("one", include_tasks=False, only_failed=False)
    loop.settle()
    assert loop.state("one") is State(target)
    assert len(launched) == (2 if target is TargetState.PAUSED else 0)


def test_a_restart_reads_the_configuration_again(loop: Loop, launched: list[Query]) -> None:
    """A secret that is gone by now is the connector's failure with cause and cure; once it is back, a restart helps."""
    loop.requests.create("one", {})
    loop.settle()
    loop.broken.add("one")
    loop.requests.restart("one", include_tasks=True, only_failed=False)
    loop.settle()
    status = loop.registry.snapshot().statuses["one"]
    assert (status.state, status.trace, status.tasks) == (State.FAILED, BROKEN, ())
    assert launched[0].stopped
    loop.broken.clear()
    loop.requests.restart("one", include_tasks=True, only_failed=True)
    loop.settle()
    assert loop.state("one") is State.RUNNING


def test_restarts_of_tasks_are_one(loop: Loop, launched: list[Query]) -> None:
    """Clients restart one task after the other; all are one query here."""
    loop.requests.create("one", {"tasks": "3"})
    loop.settle()
    for task in range(3):
        loop.requests.restart_task("one", task)
    with pytest.raises(UnknownTask, match="Unknown task: one-3"):
        loop.requests.restart_task("one", 3)
    loop.settle()
    assert (loop.state("one"), len(launched)) == (State.RUNNING, 2)


def test_a_deleted_connector_ends_in_order_and_its_name_is_free(loop: Loop, launched: list[Query]) -> None:
    """It is not told of any more while it still ends; the next of its name begins after that."""
    loop.requests.create("one", {})
    loop.settle()
    loop.drains = False
    loop.requests.delete("one")
    assert loop.registry.snapshot().statuses == {}
    loop.requests.create("one", {"records": "5"})
    loop.round(8)
    assert (loop.state("one"), len(launched), launched[0].stopped) == (State.UNASSIGNED, 1, False)
    loop.drains = True
    loop.settle()
    assert (loop.state("one"), len(launched), launched[0].stopped) == (State.RUNNING, 2, True)


def test_a_group_is_free_once_its_connector_has_ended(loop: Loop, launched: list[Query]) -> None:
    """Two queries never commit to one group, whatever their names."""
    loop.requests.create("one", {"group": "g"})
    loop.settle()
    loop.drains = False
    loop.requests.delete("one")
    loop.requests.create("two", {"group": "g"})
    loop.round(8)
    assert len(launched) == 1
    loop.drains = True
    loop.settle()
    assert loop.state("two") is State.RUNNING


def test_connectors_come_back_as_they_were(make_loop: Callable[..., Loop], launched: list[Query]) -> None:
    """After a restart of the worker: running, paused and stopped; one that is wrong by now fails alone."""
    store = ConfigStore(
        {
            "runs": StoredConnector({"name": "runs"}),
            "paused": StoredConnector({"name": "paused"}, TargetState.PAUSED),
            "stopped": StoredConnector({"name": "stopped"}, TargetState.STOPPED),
            "wrong": StoredConnector({"name": "wrong", "bad": "x"}),
        }
    )
    loop = make_loop(store)
    loop.round(20)
    assert {name: one.state for name, one in loop.registry.snapshot().statuses.items()} == {
        "paused": State.PAUSED,
        "runs": State.RUNNING,
        "stopped": State.STOPPED,
        "wrong": State.FAILED,
    }
    assert loop.supervisor.failed


def test_what_cannot_be_stored_is_not_done(loop: Loop, launched: list[Query], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was asked for: nothing changes."""
    loop.requests.create("one", {})
    loop.settle()

    def full(*words: object) -> None:
        raise StoreFailed("no room")

    monkeypatch.setattr(ConfigStore, "put", full)
    monkeypatch.setattr(ConfigStore, "delete", full)
    for act in (
        lambda: loop.requests.create("two", {}),
        lambda: loop.requests.put("one", {"records": "5"}),
        lambda: loop.requests.delete("one"),
        lambda: loop.requests.set_target("one", TargetState.STOPPED),
    ):
        with pytest.raises(StoreFailed):
            act()
    loop.settle()
    assert list(loop.registry.snapshot().statuses) == ["one"]
    assert (loop.state("one"), len(launched), launched[0].stopped) == (State.RUNNING, 1, False)


def test_unknown_names(loop: Loop) -> None:
    """Each request about one connector says so."""
    for act in (
        lambda: loop.requests.delete("x"),
        lambda: loop.requests.set_target("x", TargetState.PAUSED),
        lambda: loop.requests.restart("x", include_tasks=True, only_failed=False),
        lambda: loop.requests.restart_task("x", 0),
        lambda: loop.requests.reset_topics("x"),
        lambda: loop.registry.begin_alter("x", object()),
    ):
        with pytest.raises(UnknownConnector, match="Unknown connector x"):
            act()


def test_offsets_are_changed_while_nothing_runs(loop: Loop, launched: list[Query]) -> None:
    """Not before it is STOPPED, one request at a time, and it does not start meanwhile."""
    loop.requests.create("one", {})
    loop.settle()
    with pytest.raises(NotStopped, match="must be in the STOPPED state"):
        loop.registry.begin_alter("one", object())
    loop.requests.set_target("one", TargetState.STOPPED)
    with pytest.raises(NotStopped):
        loop.registry.begin_alter("one", object())
    loop.settle()
    mine, other = object(), object()
    assert loop.registry.begin_alter("one", mine).kafka.group == "connect-one"
    with pytest.raises(OffsetsBusy, match="by another request"):
        loop.registry.begin_alter("one", other)
    loop.registry.end_alter(other)
    loop.requests.set_target("one", TargetState.STARTED)
    loop.settle()
    assert len(launched) == 1
    loop.registry.end_alter(mine)
    loop.settle()
    assert (loop.state("one"), len(launched)) == (State.RUNNING, 2)


def test_a_connector_begins_after_the_one_before(loop: Loop, launched: list[Query]) -> None:
    """Forty at once would keep each other from it."""
    for name in ("one", "two", "three"):
        loop.requests.create(name, {})
    loop.round()
    assert [run.status for run in loop.registry.runs] == [Status.RUNNING, Status.STARTING, Status.STARTING]
    loop.settle()
    assert [run.status for run in loop.registry.runs] == [Status.RUNNING] * 3


def test_slots_are_shared_anew(loop: Loop) -> None:
    """What runs has its new share at once; who failed or stopped has none."""
    for name in ("one", "two"):
        loop.requests.create(name, {})
    loop.settle()
    assert loop.supervisor.sharers() == 2
    loop.requests.set_target("two", TargetState.STOPPED)
    loop.settle()
    assert loop.supervisor.sharers() == 1
    loop.supervisor.share(9)
    state = loop.run("one").state
    assert state is not None
    assert state.get(SLOTS) == 9


def test_active_topics_are_kept_until_they_are_reset(loop: Loop, make_loop: Callable[..., Loop]) -> None:
    """Also over a restart of the worker."""
    loop.requests.create("one", {})
    loop.aggregator.snapshot("one").topics.add("orders")
    loop.settle()
    again = make_loop(ConfigStore(loop.registry.store.connectors()))
    assert again.registry.snapshot().topics == {"one": ("orders",)}
    again.requests.reset_topics("one")
    again.settle()
    assert again.registry.snapshot().topics == {"one": ()}


def test_a_stop_of_the_worker_ends_all_and_begins_none(loop: Loop, launched: list[Query], clock: Clock) -> None:
    """Those that were still to begin do not."""
    loop.requests.create("one", {})
    loop.settle()
    loop.requests.create("two", {})
    loop.supervisor.step()
    loop.supervisor.step(clock.seconds)
    loop.supervisor.step(clock.seconds)
    for _ in range(4):
        clock.sleep(30)
        loop.run("one").poll(SPARK)
    assert {run.status for run in loop.registry.runs} == {Status.DONE}
    assert len(launched) == 1


def test_a_change_of_another_is_not_lost(loop: Loop) -> None:
    """A patch that was validated on what somebody changed meanwhile is validated again."""
    loop.requests.create("one", {"records": "1", "tasks": "1"})
    loop.queue.before = lambda: loop.requests.patch("one", {"tasks": "2"}) and None
    info = loop.requests.patch("one", {"records": "5"})
    assert info.config == {"name": "one", "records": "5", "tasks": "2"}


def test_a_connector_that_is_deleted_meanwhile_is_not_changed(loop: Loop) -> None:
    """Nor made anew by a patch; a PUT makes it."""
    loop.requests.create("one", {"records": "1"})
    loop.queue.before = lambda: loop.requests.delete("one")
    with pytest.raises(UnknownConnector):
        loop.requests.patch("one", {"records": "5"})
    loop.requests.create("one", {"records": "1"})
    loop.queue.before = lambda: loop.requests.delete("one")
    assert loop.requests.put("one", {"records": "5"})[1]


def test_who_is_always_outrun_is_told(loop: Loop) -> None:
    """After some tries: nothing was done."""
    loop.requests.create("one", {"records": "1"})
    count = iter(range(1_000))

    def outrun() -> None:
        loop.requests.put("one", {"comment": str(next(count))})
        loop.queue.before = outrun

    loop.queue.before = outrun
    with pytest.raises(TimedOut, match="It was not done"):
        loop.requests.patch("one", {"records": "5"})
