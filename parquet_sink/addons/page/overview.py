"""The first screen: all connectors, those first that somebody must look at."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from jinja2 import Environment

from parquet_sink.addons.page import words
from parquet_sink.addons.page.facts import Facts
from parquet_sink.addons.page.frame import View, Visit, shows
from parquet_sink.process.lru_cache import LruCache
from parquet_sink.worker.herder.protocol import Herder
from parquet_sink.worker.herder.values import ConnectorProgress

_MOST_ROWS: Final = 4_000
"""Rows whose HTML is kept: most are as they were a second ago."""


class Overview:
    """clock: epoch seconds."""

    def __init__(self, herder: Herder, facts: Facts, env: Environment, clock: Any) -> None:
        self._herder, self._facts, self._clock = herder, facts, clock
        self._row = env.get_template("row.html")
        self._rows: LruCache[str, tuple[Any, str]] = LruCache(_MOST_ROWS)

    @shows("/ui", live=("counts", "empty"))
    def all(self, visit: Visit) -> View:
        """state: of these alone; find: names with this text in them."""
        look = self._facts.look(visit.api)
        now_s = self._clock()
        grouped = bool(self._herder.workers().group)
        found = [
            _row(one, look.known.get(name, {}), now_s, grouped=grouped) for name, one in sorted(look.progress.items())
        ]
        find, state = visit.query.get("find", "").strip(), visit.query.get("state", "")
        named = [one for one in found if find.lower() in one["name"].lower()]
        counts = Counter(one["state"] for one in named)
        order = list(words.STATES)
        chosen = [one for one in named if not state or one["state"] == state]
        chosen.sort(key=lambda one: (order.index(one["state"]), one["name"]))
        context = {
            "counts": {name: counts.get(name, 0) for name in order},
            "total": len(named),
            "all": len(found),
            "state": state if state in order else "",
            "find": find,
            "lag": sum(one["lag"] or 0 for one in chosen),
            "rate": sum(one["rate"] for one in chosen),
            "grouped": grouped,
            "states": words.STATES,
            "means": words.MEANS,
            "may": visit.api.may,
        }
        return View("overview.html", context, rows={one["id"]: self._html(one) for one in chosen})

    def _html(self, row: Mapping[str, Any]) -> str:
        kept = self._rows.get(row["name"])
        if kept is None or kept[0] != row:
            kept = row, self._row.render(one=row)
            self._rows.put(row["name"], kept)
        return kept[1]


def _row(one: ConnectorProgress, known: Mapping[str, Any], now_s: float, *, grouped: bool) -> dict[str, Any]:
    """What is shown of a connector, in words and numbers: equal while nothing of it changes."""
    state = words.state_of(one)
    oldest_s = oldest(one)
    interval_s = known.get("interval_s")
    hour = known.get("hour") or {"slots": (), "files": 0, "failed": 0, "p50": None, "p99": None}
    last = one.last_upload
    return {
        "id": f"r-{quote(one.status.name, safe='')}",
        "name": one.status.name,
        "address": f"/ui/connectors/{quote(one.status.name, safe='')}",
        "state": state,
        "state_text": words.STATES[state],
        "worker": one.status.worker_id if grouped else "",
        "lag": sum(partition.lag for partition in one.partitions) if one.partitions else None,
        "oldest": words.age(oldest_s),
        "interval": words.age(interval_s).replace(".0 s", " s"),
        "share": None if oldest_s is None or not interval_s else round(oldest_s / interval_s, 2),
        "rate": round(sum(partition.records_per_s for partition in one.partitions), 1),
        "p50": words.age(hour["p50"]),
        "p99": words.age(hour["p99"]),
        "slots": hour["slots"],
        "files": hour["files"],
        "failed": hour["failed"],
        "last_ago": "" if last is None else _ago(now_s - last.at_s),
        "last_text": "" if last is None else _last(last.rows, last.size_bytes),
        "trouble": trouble(one, state),
    }


def oldest(one: ConnectorProgress) -> float | None:
    """Age of the oldest record that waits, in seconds; None where none does."""
    return max((part.oldest_s for part in one.partitions if part.oldest_s is not None), default=None)


def trouble(one: ConnectorProgress, state: str) -> str:
    """In one line what keeps a connector from delivering; empty when nothing does."""
    if state in ("retrying", "starting"):
        return one.status.waits_for
    if state == "late":
        return words.late(one)
    healed = state != "failed" and (one.last_error is None or one.last_error.healed_s is not None)
    return "" if healed else (whole_trouble(one, state).splitlines() or [""])[0]


def whole_trouble(one: ConnectorProgress, state: str) -> str:
    """All lines of what went wrong, without the class of the error, which is for machines."""
    traces = [one.status.trace, *(task.trace for task in one.status.tasks)] if state == "failed" else []
    text = next(filter(None, traces), "") or (one.last_error.message if one.last_error else "")
    head, colon, plain = text.partition(": ")
    return plain if colon and head.startswith("parquet_sink.errors.") else text


def _ago(seconds: float) -> str:
    """Rounded so that a row is the same for a while."""
    if seconds < 60:
        return f"{max(seconds, 0) // 5 * 5:.0f} s ago" if seconds >= 5 else "now"
    return f"{words.age(seconds // 60 * 60).replace(' 0 s', '')} ago"


def _last(rows: int, size_bytes: int) -> str:
    text = words.counted(rows, "row") if rows < 10_000 else f"{words.short(rows)} rows"
    return f"{text}, {words.size(size_bytes)}" if size_bytes else text
