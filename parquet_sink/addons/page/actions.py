"""What one does to a connector from its page: each action says what will happen, then what happened."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from parquet_sink.addons.page import words
from parquet_sink.addons.page.acts import ACTS, Act
from parquet_sink.addons.page.connector import ONE, ConnectorScreens, address, rest
from parquet_sink.addons.page.frame import Done, Shown, View, Visit, does, shows
from parquet_sink.worker.herder.values import OFFSET, PARTITION, TOPIC
from parquet_sink.worker.rest.call import RestError

_as_json: Final = partial(json.dumps, ensure_ascii=False)
_REST: Final = "/connectors/{connector}"
_BEGINS: Final = {False: "it begins where consumer.auto.offset.reset says", True: "its source is read from its start"}


class Actions:
    """screens: those of a connector, which these stand beside."""

    def __init__(self, screens: ConnectorScreens) -> None:
        self._screens = screens

    @shows(f"{ONE}/do/{{action}}")
    def ask(self, visit: Visit) -> View:
        """What will happen, with a button that does it."""
        act, context = _act(visit), self._screens.head(visit, "stands")
        facts = []
        if act.name == "flush":
            lag = sum(part.lag for part in context["one"].partitions)
            parts = sum(1 for part in context["one"].partitions if part.lag)
            facts.append(f"{words.counted(lag, 'record')} wait in {words.counted(parts, 'topic-partition')}.")
        began_s = context["known"].get("began_s")
        if act.name == "restart" and began_s is not None:
            facts.append(f"It was started {words.age(context['now_s'] - began_s)} ago, for the last time.")
        return View("ask.html", {**context, "act": act, "facts": facts})

    @does(f"{ONE}/do/{{action}}")
    def act(self, visit: Visit) -> Done:
        act = _act(visit)
        target = rest(visit, f"/{act.name}{act.query}")
        done = _done(address(visit.connector), lambda: _said(act, visit.api.ask(act.method, target)))
        self._screens.changed()
        return done

    @shows(f"{ONE}/offsets")
    def offsets(self, visit: Visit) -> View:
        """Where it stands; fields to move it where the connector is stopped."""
        context, may = self._screens.head(visit, "offsets"), visit.api.may("PATCH", f"{_REST}/offsets")
        moves = may and context["state"] == "stopped"
        stands = _stands(visit, context)
        return View("offsets.html", {**context, "stands": stands, "moves": moves, "may_move": may})

    @does(f"{ONE}/offsets")
    def move(self, visit: Visit) -> Shown:
        """Asks what is to become of it, and at the second time moves it."""
        context = self._screens.head(visit, "offsets")
        moves = list(_moves(_stands(visit, context), visit.form))
        back = f"{address(visit.connector)}/offsets"
        if not moves:
            return Done(back, "No offset differs from where it stands, so nothing was changed.")
        as_seen = all(visit.form.get(f"was.{one['id']}") == str(one["at"]) for one in moves)
        if visit.form.get("sure") != "yes" or not as_seen:
            return View("offsets_ask.html", {**context, "moves": moves})
        body = {"offsets": [one["entry"] for one in moves]}
        said = f"{words.counted(len(moves), 'offset')} moved. Resume the connector, and it goes on from there."
        return _done(back, lambda: (visit.api.ask("PATCH", rest(visit, "/offsets"), body), said)[1])

    @does(f"{ONE}/diverted/replay")
    def replay_parked(self, visit: Visit) -> Done:
        """Of all, or of those of a topic; dry: nothing is sent."""
        body = {"dry_run": visit.form.get("dry") == "yes"} | _given(visit, "topic")
        return self._job(visit, "/parked/replay", body, "diverted")

    @shows(f"{ONE}/replay")
    def range(self, visit: Visit) -> View:
        """A form for a range of what was delivered, tried without sending."""
        context = self._screens.head(visit, "replay")
        topics = sorted({part.topic for part in context["one"].partitions})
        jobs: list[Any] = []
        with suppress(RestError):
            jobs = visit.api.ask("GET", rest(visit, "/jobs"))
        return View("replay.html", {**context, "topics": topics, "jobs": jobs[-10:][::-1], "given": visit.query})

    @does(f"{ONE}/replay")
    def try_range(self, visit: Visit) -> Done:
        numbers: dict[str, Any] = {}
        for name in ("partition", "from", "to"):
            if text := visit.form.get(name, "").strip():
                if not (text.isascii() and text.isdigit()):
                    return Done(
                        f"{address(visit.connector)}/replay", f"{text[:40]} is not a whole number; write one.", True
                    )
                numbers[name] = int(text)
        return self._job(visit, "/replay", {**_given(visit, "topic"), **numbers, "dry_run": True}, "replay")

    def _job(self, visit: Visit, path: str, body: Mapping[str, Any], back: str) -> Done:
        try:
            job = visit.api.ask("POST", rest(visit, path), body)
        except RestError as error:
            return Done(f"{address(visit.connector)}/{back}", error.message, failed=True)
        return Done(f"{address(visit.connector)}/jobs/{job['id']}", "It has begun; what it finds appears here.")

    @shows(f"{ONE}/jobs/{{job}}", live=("job",))
    def job(self, visit: Visit) -> View:
        """What a job says, as it says it."""
        context = self._screens.head(visit, "replay")
        job = visit.api.ask("GET", rest(visit, f"/jobs/{quote(visit.path['job'], safe='')}"))
        return View("job.html", {**context, "job": job, "dry": "--dry-run" in job["command"]})

    @does(f"{ONE}/jobs/{{job}}/stop")
    def stop_job(self, visit: Visit) -> Done:
        job = quote(visit.path["job"], safe="")
        to = f"{address(visit.connector)}/jobs/{job}"
        said = "It was asked to stop, as by Ctrl-C; it says what it has done by then."
        return _done(to, lambda: (visit.api.ask("DELETE", rest(visit, f"/jobs/{job}")), said)[1])


def _act(visit: Visit) -> Act:
    found = next((one for one in ACTS if one.name == visit.path["action"]), None)
    if found is None:
        raise RestError(404, "The page has no such action.")
    return found


def _done(to: str, do: Any) -> Done:
    """What an action says, or what kept it from being done."""
    try:
        return Done(to, do())
    except RestError as error:
        return Done(to, error.message, failed=True)


def _said(act: Act, answer: Any) -> str:
    if act.name != "flush":
        return act.done
    parts = answer["partitions"]
    files, rows, records = (sum(one[name] for one in parts) for name in ("files", "rows", "records"))
    went = f"{words.counted(files, 'file')}, {words.counted(rows or records, 'row' if rows else 'record')}"
    if answer["state"] == "done":
        return f"Flushed: {went} went out." if files or records else "Flushed: nothing waited, so no file was made."
    return f"The flush is under way and goes on; so far {went} went out. {answer['waits_for']}".rstrip()


def _given(visit: Visit, *names: str) -> dict[str, str]:
    return {name: text for name in names if (text := visit.form.get(name, "").strip())}


def _stands(visit: Visit, context: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Topic-partitions of its group, or partitions of its source. at: the offset, a source's as JSON, None for none."""
    source = context["one"].kind == "source"
    return [_row(one, source) for one in visit.api.ask("GET", rest(visit, "/offsets?ends=true"))["offsets"]]


def _row(one: Mapping[str, Any], source: bool) -> dict[str, Any]:
    partition, offset, end = one["partition"], one["offset"], one["end"]
    if source:
        names = {"id": _as_json(partition), "name": _as_json(partition), "number": ""}
        at = None if offset is None else _as_json(offset)
    else:
        topic, number = partition[TOPIC], partition[PARTITION]
        names, at = {"id": f"{topic}:{number}", "name": topic, "number": number}, offset and offset[OFFSET]
    lag = None if at is None or end is None else max(end - at, 0)
    return {**names, "partition": partition, "at": at, "end": end, "lag": lag, "source": source}


def _moves(stands: Iterable[Mapping[str, Any]], form: Mapping[str, str]) -> Iterable[dict[str, Any]]:
    """Those that are to be elsewhere, with what that means. Raises RestError."""
    for one in stands:
        text = form.get(f"to.{one['id']}", "").strip()
        if text not in ("", str(one["at"])):
            offset, means = (None, _BEGINS[one["source"]]) if text == "none" else _wanted(one, text)
            entry = {"partition": one["partition"], "offset": offset}
            yield {**one, "to": text, "skips": "never sent" in means, "means": means, "entry": entry}


def _wanted(one: Mapping[str, Any], text: str) -> tuple[dict[str, Any], str]:
    """An offset, and what it means to go on there. Raises RestError."""
    if one["source"]:
        with suppress(ValueError, RecursionError):
            if isinstance(found := json.loads(text), dict):
                return found, "its source is read from there"
        raise RestError(400, f"{one['id']}: {text[:40]} is not an offset; write JSON like that there, or none.")
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise RestError(400, f"{one['id']}: {text[:40]} is not an offset; write a whole number, or none.")
    by = int(text) - (one["at"] or 0)
    means = f"{words.counted(abs(by), 'record')} {'are skipped, and never sent' if by > 0 else 'are sent again'}"
    return {OFFSET: int(text)}, means
