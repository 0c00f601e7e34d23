"""The screens of one connector: how it stands, its files, what was diverted, its configuration, its tuning."""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from parquet_sink.addons.page import words
from parquet_sink.addons.page.acts import offered
from parquet_sink.addons.page.charts import timeline
from parquet_sink.addons.page.facts import Facts
from parquet_sink.addons.page.frame import File, Shown, View, Visit, link, shows
from parquet_sink.addons.page.overview import oldest, trouble, whole_trouble
from parquet_sink.config.properties import as_properties
from parquet_sink.process.lru_cache import LruCache
from parquet_sink.worker.herder.protocol import Herder
from parquet_sink.worker.herder.values import ConnectorProgress
from parquet_sink.worker.rest.call import RestError, as_rest_errors

ONE: Final = "/ui/connectors/{connector}"
SPANS: Final = {"1h": 3_600_000, "6h": 21_600_000, "24h": 86_400_000, "7d": 604_800_000}
_MOST_FILES: Final = 400
_PAGE: Final = 100
_LATEST: Final = 8
_MOST_PARTITIONS: Final = 200
_FILES_KEPT_S: Final = 1.2
_NOT_ACCEPTED: Final = ("refused", "passed_over", "exhausted", "waiting", "failed")
_PLACES: Final = {
    "no row": "Delivered, and no file has it: it is not a record (a transaction's marker, compacted), or one without a "
    "row (a tombstone, dropped, diverted).",
    "under way": "Not delivered yet: its range is under way.",
    "later": "Not delivered yet: it is behind all that the history has.",
    "earlier": "Not in the history, which begins later.",
    "gap": "Not in the history, which has offsets before and behind it: the group's offsets were set, records were "
    "lost, or the history was off.",
    "nothing": "The history has nothing of this topic-partition.",
}
_OUTCOMES: Final = {
    "accepted": "accepted",
    "refused": "refused",
    "passed_over": "refused, its records diverted",
    "exhausted": "not accepted within its retries",
    "waiting": "waits to be tried again",
    "failed": "could not be sent",
}
Json = Mapping[str, Any]


def address(name: str) -> str:
    """Where a connector's screens begin."""
    return f"/ui/connectors/{quote(name, safe='')}"


def rest(visit: Visit, path: str = "") -> str:
    """The connector's address in REST."""
    return f"/connectors/{quote(visit.connector, safe='')}{path}"


def stored(visit: Visit) -> dict[str, str]:
    """Its configuration, passwords hidden."""
    return dict(visit.api.ask("GET", rest(visit, "/config")))


class ConnectorScreens:
    """clock: epoch seconds."""

    def __init__(self, herder: Herder, facts: Facts, clock: Callable[[], float] = time.time) -> None:
        self._herder, self._facts, self._clock = herder, facts, clock
        self._kept: LruCache[str, tuple[float, Json]] = LruCache(64)

    @shows(ONE, live=("badge", "acts", "fault", "tiles", "partitions", "sent"))
    def stands(self, visit: Visit) -> View:
        """span: how much time the files are shown of."""
        context = self.head(visit, "stands")
        one, known, now_ms = context["one"], context["known"], int(self._clock() * 1000)
        span = visit.query.get("span", "1h")
        span = span if span in SPANS else "1h"
        files, why = self._files(visit)
        shown = [file for file in files if file["at_ms"] >= now_ms - SPANS[span]]
        base = f"{context['address']}/files"
        to = {file["file_name"]: f"{base}/{quote(file['file_name'], safe='')}" for file in files}
        context |= {
            "partitions": _partitions(one, known, files, now_ms),
            "left": max(len(one.partitions) - _MOST_PARTITIONS, 0),
            "chart": timeline(shown, now_ms - SPANS[span], now_ms, to) if shown else None,
            "span": span,
            "spans": tuple(SPANS),
            "cut": len(files) == _MOST_FILES and len(shown) == len(files),
            "files": shown[:_LATEST],
            "to": to,
            "why": why,
            "hour": known.get("hour") or {"slots": (), "files": 0, "failed": 0, "p50": None, "p99": None},
            "lag": sum(part.lag for part in one.partitions),
            "rate": sum(part.records_per_s for part in one.partitions),
            "oldest": oldest(one),
        }
        return View("connector.html", context)

    def changed(self) -> None:
        """What is shown next is as it is now."""
        self._facts.changed()

    def head(self, visit: Visit, tab: str) -> dict[str, Any]:
        """What each screen of a connector begins with. Raises RestError, HerderError where there is none."""
        look = self._facts.look(visit.api)
        one = look.progress.get(visit.connector) or self._of_new(visit.connector)
        state, known = words.state_of(one), look.known.get(visit.connector, {})
        error = one.last_error
        now_s = self._clock()
        message = trouble(one, state) if state in ("retrying", "starting", "late") else ""
        if state == "failed" or (not message and error is not None and error.healed_s is None):
            message = whole_trouble(one, state)
        cause, cure = words.cause_and_cure(message)
        return {
            "name": visit.connector,
            "address": address(visit.connector),
            "tab": tab,
            "one": one,
            "known": known,
            "state": state,
            "state_text": words.STATES[state],
            "message": message,
            "cause": cause,
            "cure": cure,
            "healed": None if error is None or error.healed_s is None else now_s - error.healed_s,
            "error_ago": None if error is None else now_s - error.at_s,
            "warnings": words.other_warnings(one),
            "now_s": now_s,
            "acts": offered(visit.api, state, one.kind),
            "may": visit.api.may,
        }

    def _of_new(self, name: str) -> ConnectorProgress:
        """Of a connector that is not among what was published last. Raises UnknownConnector."""
        with as_rest_errors():
            return ConnectorProgress(self._herder.status(name), 0, 0, 0, 0, None, None, ())

    def _files(self, visit: Visit) -> tuple[Sequence[Json], str]:
        """The latest files, the latest first; why there are none where that is known."""
        kept_s, found = self._kept.get(visit.connector) or (-_FILES_KEPT_S, {})
        if time.monotonic() - kept_s >= _FILES_KEPT_S:
            found = self._history(visit, limit=_MOST_FILES)
            self._kept.put(visit.connector, (time.monotonic(), found))
        return found["files"], found["why"]

    def _history(self, visit: Visit, **query: object) -> dict[str, Any]:
        """Files by REST; what is no defect of the page is said where they would be."""
        more = [("outcome", one) for one in _NOT_ACCEPTED] if query.pop("outcome", "") == "failed" else []
        try:
            target = link(rest(visit, "/history"), **query)
            for name, text in more:
                target += f"{'&' if '?' in target else '?'}{name}={text}"
            found = visit.api.ask("GET", target)
        except RestError as error:
            if error.status == 404:
                raise
            return {"files": [], "next": None, "why": error.message}
        off = "" if found["enabled"] else "connect.ems.history.enable is false, so no file is remembered."
        return {"files": found["files"], "next": found["next"], "why": off}

    @shows(f"{ONE}/files")
    def files(self, visit: Visit) -> View:
        """topic, partition, outcome: of these alone; after: where the page before ended. at: an offset to look for."""
        context = self.head(visit, "files")
        given = {name: visit.query.get(name, "").strip() for name in ("topic", "partition", "outcome", "at", "after")}
        location = why = None
        chosen = {name: given[name] for name in ("topic", "partition", "outcome", "after")}
        found = self._history(visit, **chosen, limit=_PAGE)
        if given["at"]:
            try:
                location = self._where(visit, given["topic"], given["partition"], given["at"])
            except RestError as error:
                why = error.message
        base = f"{context['address']}/files"
        older = link(base, **{**chosen, "after": found["next"]}) if found["next"] else ""
        topics = sorted({part.topic for part in context["one"].partitions})
        context |= {
            **found,
            "others": _find_other_holders(visit),
            "command": "history",
            "given": given,
            "older": older,
            "topics": topics,
            "location": location,
            "where_why": why,
            "outcomes": _OUTCOMES,
            "places": _PLACES,
            "base": base,
        }
        return View("files.html", context)

    def _where(self, visit: Visit, topic: str, partition: str, offset: str) -> Json:
        """Of one topic that is named, or of the only one."""
        target = link(rest(visit, "/history/where"), topic=topic, partition=partition, offset=offset)
        found = visit.api.ask("GET", target)
        location: Json = found["location"] or {"place": "nothing", "file": None, "delivered": False, "bounds": None}
        return location

    @shows(f"{ONE}/files/{{file}}")
    def file(self, visit: Visit) -> View:
        """All uploads of one file name."""
        context = self.head(visit, "files")
        found = self._history(visit, file=visit.path["file"], limit=20)
        if not found["files"]:
            raise RestError(404, found["why"] or f"The history has no file {visit.path['file']} any more.")
        return View("file.html", {**context, "file": visit.path["file"], **found, "outcomes": _OUTCOMES})

    @shows(f"{ONE}/diverted")
    def diverted(self, visit: Visit) -> View:
        context = self.head(visit, "diverted")
        try:
            found = visit.api.ask("GET", rest(visit, "/parked"))
        except RestError as error:
            if error.status == 404:
                raise
            return View("diverted.html", {**context, "found": None, "why": error.message})
        others = _find_other_holders(visit)
        return View("diverted.html", {**context, "found": found, "why": "", "others": others, "command": "parked list"})

    @shows(f"{ONE}/diverted/record")
    def record(self, visit: Visit) -> View:
        """topic, partition, offset: which."""
        context = self.head(visit, "diverted")
        wanted = {name: visit.query.get(name, "") for name in ("topic", "partition", "offset")}
        found = visit.api.ask("GET", link(rest(visit, "/parked/content"), **wanted, limit=5))
        if not found["records"]:
            raise RestError(404, "This record is not parked any more; it was replayed, or dropped.")
        return View("record.html", {**context, "records": [_record(one) for one in found["records"]], **wanted})

    @shows(f"{ONE}/config")
    def config(self, visit: Visit) -> View:
        """as: `properties` or `json`."""
        context = self.head(visit, "config")
        config = stored(visit)
        form = "json" if visit.query.get("as") == "json" else "properties"
        text = as_json(config) if form == "json" else as_properties(config)
        pairs = [line.partition("=") for line in text.splitlines()] if form == "properties" else []
        return View("config.html", {**context, "form": form, "text": text, "pairs": pairs, "count": len(config)})

    @shows(f"{ONE}/config/download")
    def download(self, visit: Visit) -> Shown:
        config = stored(visit)
        if visit.query.get("as") == "json":
            whole = json.dumps({"name": visit.connector, "config": config}, indent=2, ensure_ascii=False) + "\n"
            return File(f"{visit.connector}.json", whole, "application/json")
        return File(f"{visit.connector}.properties", as_properties(config), "text/plain; charset=utf-8")

    @shows(f"{ONE}/tuning")
    def tuning(self, visit: Visit) -> View:
        """aim, value: what matters, as `parquet-sink tune` takes it; without them nothing is computed yet."""
        context = self.head(visit, "tuning")
        aim, value = visit.query.get("aim", "freshness"), visit.query.get("value", "").strip()
        context |= {"aim": aim, "value": value, "report": None, "why": "", "points": ()}
        if "aim" in visit.query:
            try:
                report = self._facts.tuning(visit.api, visit.connector, aim, value)
                context |= {"report": report, "points": _points(report)}
            except RestError as error:
                context["why"] = error.message
        return View("tuning.html", context)


def as_json(config: Mapping[str, str]) -> str:
    """A configuration as REST takes it."""
    return json.dumps(config, indent=2, ensure_ascii=False)


def _partitions(one: ConnectorProgress, known: Json, files: Iterable[Json], now_ms: int) -> list[dict[str, Any]]:
    """Each topic-partition with how full its thresholds are; of very many those that are the fullest."""
    last: dict[tuple[str, int], Json] = {}
    for file in files:
        if file["outcome"] == "accepted":
            last.setdefault((file["topic"], file["partition"]), file)
    heavy = [file["size_bytes"] / file["records"] for file in last.values() if file["records"]]
    usual = sum(heavy) / len(heavy) if heavy else None
    rows: list[dict[str, Any]] = []
    for part in one.partitions:
        latest = last.get((part.topic, part.partition))
        each = latest["size_bytes"] / latest["records"] if latest and latest["records"] else usual
        fills = {
            "records": (part.lag, known.get("records")),
            "bytes": (None if each is None else part.lag * each, known.get("bytes")),
            "age": (part.oldest_s, known.get("interval_s")),
        }
        shares = {name: None if of is None or not most else of / most for name, (of, most) in fills.items()}
        ago = None if latest is None else (now_ms - latest["at_ms"]) / 1000
        rows.append({"part": part, "fills": fills, "shares": shares, "file": latest, "ago": ago})
    if len(rows) > _MOST_PARTITIONS:
        rows.sort(key=lambda row: -max((share or 0.0 for share in row["shares"].values()), default=0.0))
    return rows[:_MOST_PARTITIONS]


def _record(one: Json) -> dict[str, Any]:
    """A parked record; values that are JSON are set out in lines."""
    found = dict(one)
    for name in ("key", "value"):
        text = one.get(name)
        try:
            found[f"{name}_shown"] = json.dumps(json.loads(text), indent=2, ensure_ascii=False) if text else text
        except (ValueError, RecursionError):
            found[f"{name}_shown"] = text
    return found


def _points(report: Json) -> list[dict[str, Any]]:
    """Settings as the chart has them."""
    named = [("now", report["present"]), ("chosen", report["recommended"])]
    others = [("other", one) for one in report["front"]]
    return [
        {
            "kind": kind,
            "files_per_hour": one["files_per_hour"],
            "freshness_s": one["freshness"]["p99_s"],
            "about": f"{', '.join(f'{key}={number}' for key, number in one['keys'].items())}: "
            f"{one['files_per_hour']:.1f} files an hour, p99 {words.age(one['freshness']['p99_s'])}",
        }
        for kind, one in [*others, *named]
        if one is not None and one["freshness"] is not None and one["keeps_up"]
    ]


def _find_other_holders(visit: Visit) -> list[str]:
    """Return the workers beside the one that runs the connector which may have files of it. Raise RestError."""
    holders = visit.api.ask("GET", rest(visit, "/workers"))["workers"]
    return [holder["worker_id"] for holder in holders if not holder["runs"]]
