"""`connectors pause`, `resume`, `stop`, `restart` and `delete`, and waiting until the worker reports it."""

import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from parquet_sink.addons.commands.connectors.printing import print_json, print_lines, print_trouble, status_text
from parquet_sink.cli.worker_api.api import WorkerApi
from parquet_sink.errors import SetupError, SinkError, WorkerRefused
from parquet_sink.worker.herder.values import State

LOOK_S: Final = 0.25
STALE_S: Final = 5.0
"""How long after a restart a FAILED may be the one from before."""
_SAID: Final = {
    "pause": "asked to pause",
    "resume": "asked to resume",
    "stop": "asked to stop",
    "restart": "asked to restart",
}
Outcome = dict[str, Any]


def wait_until(
    api: WorkerApi,
    name: str,
    wanted: State,
    most_s: float,
    *,
    stale: bool = False,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> Mapping[str, Any]:
    """The status, once connector and tasks are so. Raises WorkerRefused when it failed, or after that many seconds.

    stale: it may have failed before, and be reported so for a moment.
    """
    start = clock()
    while True:
        status = _status(api, name)
        if status is not None and _is_as_wanted(status, wanted):
            return status
        waited = clock() - start
        if status is not None and not (stale and waited < STALE_S) and (why := _why_failed(status)) is not None:
            raise WorkerRefused(f"it failed: {why}")
        if waited >= most_s:
            raise WorkerRefused(f"it is not {wanted} after {most_s:g} s, but {_states(status)}{_reason(api, name)}")
        pause(min(LOOK_S, most_s))


def wait_until_gone(api: WorkerApi, name: str, most_s: float) -> None:
    """Until the worker has no status of it. Raises WorkerRefused after that many seconds."""
    start = time.monotonic()
    while (status := _status(api, name)) is not None:
        if time.monotonic() - start >= most_s:
            raise WorkerRefused(f"it is not gone after {most_s:g} s, but {_states(status)}")
        time.sleep(min(LOOK_S, most_s))


def _status(api: WorkerApi, name: str) -> Mapping[str, Any] | None:
    """None while the worker has none, or none yet."""
    try:
        found: Mapping[str, Any] = api.get("connectors", name, "status")
    except WorkerRefused as error:
        if error.status == 404:
            return None
        raise
    return found


def _reason(api: WorkerApi, name: str) -> str:
    """What it waits for, of a worker that says so: those of Kafka Connect do not."""
    with suppress(WorkerRefused, KeyError, TypeError):
        for one in api.get("progress"):
            if one["status"]["name"] == name and one["status"]["waits_for"]:
                return f": {one['status']['waits_for']}"
    return ""


def _is_as_wanted(status: Mapping[str, Any], wanted: State) -> bool:
    if status["connector"]["state"] != wanted:
        return False
    if wanted is State.STOPPED:
        return not status["tasks"]
    return bool(status["tasks"]) and all(task["state"] == wanted for task in status["tasks"])


def _why_failed(status: Mapping[str, Any]) -> str | None:
    """The first line of why connector or task failed; None when none did."""
    return next((_first_line(one) for one in _all(status) if one["state"] == "FAILED"), None)


def _first_line(one: Mapping[str, Any]) -> str:
    lines = str(one.get("trace", "")).splitlines()
    return lines[0] if lines else "no trace; see its status"


def _states(status: Mapping[str, Any] | None) -> str:
    if status is None:
        return "unknown to the worker"
    return ", ".join(dict.fromkeys(str(one["state"]) for one in _all(status)))


def _all(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield status["connector"]
    yield from status["tasks"]


_WANTED: Final = {
    "pause": State.PAUSED,
    "resume": State.RUNNING,
    "stop": State.STOPPED,
    "restart": State.RUNNING,
}


def change(args: Namespace, api: WorkerApi) -> bool:
    """Tells each connector; whether all was done."""
    names = sorted(api.get("connectors")) if args.all else args.targets

    def act(name: str) -> Outcome:
        if args.action == "restart" and args.only_failed and not _failed(args, api, name):
            return {"name": name, "action": args.action, "restarted": False}
        status = _tell(args, api, name)
        if args.wait is not None:
            status = wait_until(api, name, _WANTED[args.action], args.wait, stale=args.action == "restart")
        return {"name": name, "action": args.action, **({} if status is None else {"status": status})}

    return each(args, names, act, _said)


def _tell(args: Namespace, api: WorkerApi, name: str) -> Any:
    """The status, where the worker answers with one."""
    if args.action != "restart":
        return api.ask("PUT", ("connectors", name, args.action))
    if args.task is not None:
        return api.ask("POST", ("connectors", name, "tasks", str(args.task), "restart"))
    flags = {"includeTasks": str(args.include_tasks).lower(), "onlyFailed": str(args.only_failed).lower()}
    return api.ask("POST", ("connectors", name, "restart"), flags)


def _failed(args: Namespace, api: WorkerApi, name: str) -> bool:
    """Whether there is anything that failed, of what the options mean."""
    status = api.get("connectors", name, "status")
    tasks = status["tasks"] if args.include_tasks else ()
    return any(one["state"] == "FAILED" for one in (status["connector"], *tasks))


def _said(done: Outcome) -> str:
    if done.get("restarted") is False:
        return f"connector {done['name']}: not restarted: nothing failed"
    return f"connector {done['name']}: {_SAID[done['action']]}{status_text(done.get('status'))}"


def delete(args: Namespace, api: WorkerApi) -> bool:
    """Removes each connector; whether all are removed."""

    def remove(name: str) -> Outcome:
        answer = api.ask("DELETE", ("connectors", name), {"purge": "true"} if args.purge else None)
        if args.wait is not None:
            wait_until_gone(api, name, args.wait)
        return {"name": name, "action": "delete", **(_purged(answer) if args.purge else {})}

    return each(args, args.targets, remove, _removed)


def _purged(answer: Any) -> Outcome:
    """What stays of a connector that was purged. Raises WorkerRefused of a worker that cannot do it."""
    if answer is None:
        raise WorkerRefused("it is deleted, and what it left is not removed: only workers of parquet-sink do that")
    return {"left": answer["left"], **({"warnings": found} if (found := answer.get("warnings")) else {})}


def _removed(done: Outcome) -> str:
    where = " on workers that answered" if done.get("warnings") else ""
    purged = "" if "left" not in done else f", and so is what it left{where}"
    stays = f", and so do {', '.join(done['left'])}" if done.get("left") else ""
    return f"connector {done['name']}: deleted{purged}; its offsets stay{stays}"


def each(args: Namespace, names: list[str], do: Callable[[str], Outcome], words: Callable[[Outcome], str]) -> bool:
    """Does it for each; one's trouble does not keep others from their turn, unless no worker answers at all."""
    done = []
    for name in dict.fromkeys(names):
        try:
            done.append(do(name))
        except SetupError:
            raise
        except SinkError as error:
            print_trouble(name, error)
            done.append({"name": name, "action": args.action, "error": str(error)})
            continue
        if not args.json:
            print_lines([words(done[-1]), *(f"  {warning}" for warning in done[-1].get("warnings", ()))])
    if args.json:
        print_json(done)
    return not any("error" in one for one in done)
