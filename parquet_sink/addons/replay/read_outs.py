"""What a target says that it has: the read-outs of the reference target, asked at the address of its push API.

Only the origin of `connect.ems.endpoint` is asked, with the connector's own key, over its proxy and by its authorities.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from requests import Request

from parquet_sink import __version__
from parquet_sink.addons.replay.differences import NotUnderstood, TableState, state_of
from parquet_sink.errors import InvalidConfiguration, NotVerified
from parquet_sink.net.exchange import Answer, Limits, RequestFailed, TokenFailed
from parquet_sink.net.redaction import excerpt
from parquet_sink.net.session import session_for
from parquet_sink.plugins import named
from parquet_sink.targets.http_failures import of_failure
from parquet_sink.targets.push.authorization import authorization_of, signed
from parquet_sink.targets.push.settings import PushSettings
from parquet_sink.targets.settings import TargetSettings

PART_ROWS: Final = 250_000
MOST_PARTS: Final = 10_000
SYNC_S: Final = 600.0
_ANSWER_S: Final = 300.0
_MOST_BYTES: Final = 256 * 1024**2
_NEEDED: Final = (
    "--verify needs a target that answers GET /tables with what it has, as parquet-sink target does; leave --verify out"
)


class ReadOuts:
    """Asks one target. `report` is told what is being read: (table, parts read, of parts)."""

    def __init__(
        self,
        settings: PushSettings,
        environment: Mapping[str, str] = os.environ,
        report: Callable[[str, int, int], None] = lambda table, done, of: None,
    ) -> None:
        address = urlsplit(settings.endpoint)
        self._origin = f"{address.scheme}://{address.netloc.rpartition('@')[2]}"
        self._report, self._connect_s = report, settings.connect_timeout_ms / 1000
        self._authorization = authorization_of(settings, environment)
        self._secrets = self._authorization.secrets
        self._headers = {
            "Accept-Encoding": "identity",
            "User-Agent": f"parquet-sink/{__version__}",
        }
        self._http = session_for(settings, environment)

    def close(self) -> None:
        self._http.close()

    def names(self) -> list[str]:
        """All tables. Raises InvalidConfiguration when the target has no read-outs, NotVerified when it is away."""
        answer = self._answer("GET", "/tables")
        try:
            return [str(table["name"]) for table in json.loads(answer.body)["tables"]]
        except (ValueError, KeyError, TypeError, RecursionError):
            pass
        if answer.status in (401, 403) or answer.status >= 500:
            raise self._refused("/tables", answer)
        raise InvalidConfiguration(
            [f"Invalid [--verify]. {self._origin}/tables answers {answer.status}, not with its tables. {_NEEDED}."]
        )

    def sync(self) -> None:
        """Wait until all that was accepted is in its table. As `names`; NotVerified when that takes too long."""
        self.names()  # what has no read-outs is to be told as such
        answer = self._answer("POST", f"/sync?timeout_s={SYNC_S:g}", SYNC_S + _ANSWER_S)
        if answer.status != 200:
            raise self._refused("/sync", answer)

    def state(self, table: str, like: TableState | None = None) -> TableState:
        """A table as it is now. Raises NotVerified, and InvalidConfiguration as `names`.

        like: an earlier state to compare with: digests are of its columns, and parts are left out when they are equal.
        """
        own = next((name for name in self.names() if name.lower() == table.lower()), None)
        if own is None:
            return TableState(table)
        path = f"/tables/{quote(own, safe='')}"
        try:
            state = state_of(self._json(path))
            asked = like if like is not None and _comparable(like, state) else state
            digest = self._json(f"{path}/digest?{_query(asked)}")
            state = replace(state, table=table, digest=str(digest["digest"]), method=str(digest["method"]))
        except (NotUnderstood, KeyError) as reason:
            raise NotVerified(f"{self._origin}{path}: the answer is not understood: {reason}. {_NEEDED}.") from None
        if asked is like and (state.digest, state.method, state.all_rows) == (like.digest, like.method, like.all_rows):
            return replace(state, parts=like.parts)
        parts = len(like.parts) if asked is like else max(1, min(MOST_PARTS, ceil(state.all_rows / PART_ROWS)))
        return replace(state, keys=asked.keys, watched=asked.watched, parts=self._parts(table, path, asked, parts))

    def _parts(self, table: str, path: str, asked: TableState, parts: int) -> tuple[bytes, ...]:
        found = []
        for number in range(parts):
            self._report(table, number, parts)
            query = f"{_query(asked)}&{urlencode({'part': number, 'parts': parts})}"
            found.append(self._good("GET", f"{path}/digests?{query}").body)
        self._report(table, parts, parts)
        return tuple(found)

    def _json(self, path: str) -> Any:
        answer = self._good("GET", path)
        try:
            return json.loads(answer.body)
        except (ValueError, RecursionError):
            raise NotUnderstood("it is not JSON") from None

    def _good(self, method: str, path: str) -> Answer:
        answer = self._answer(method, path)
        if answer.status != 200 or not answer.complete:
            raise self._refused(path, answer)
        return answer

    def _answer(self, method: str, path: str, answer_s: float = _ANSWER_S) -> Answer:
        def send(header: str, seconds: float) -> Answer:
            limits = Limits(seconds, self._connect_s, answer_s, _MOST_BYTES)
            headers = {**self._headers, "Authorization": header}
            return self._http.exchange(Request(method, self._origin + path, headers=headers), limits)

        try:
            answer, header = signed(self._authorization, answer_s * 2, send)
        except TokenFailed as failed:
            raise NotVerified(f"{self._origin}: what it has could not be asked: {failed.cause}.") from None
        except RequestFailed as error:
            cause = of_failure(error.kind, error.detail, self._secrets).cause
            raise NotVerified(f"{self._origin}: what it has could not be asked: {cause}.") from None
        self._secrets = (*self._authorization.secrets, header)
        return answer

    def _refused(self, path: str, answer: Answer) -> NotVerified:
        shown = excerpt(answer.body, self._secrets) or "nothing more"
        broken = ", and broke off" if not answer.complete else ""
        place = path.partition("?")[0]
        return NotVerified(f"{self._origin}{place}: the target answered {answer.status}{broken}: {shown}.")


def open_read_outs(
    target: TargetSettings, report: Callable[[str, int, int], None] = lambda table, done, of: None
) -> ReadOuts:
    """The read-outs of a connector's target. Raises InvalidConfiguration for one that has none."""
    path = getattr(target, "read_outs", None)
    if path is None:
        raise InvalidConfiguration(
            ["Invalid [--verify]. The target is not a push API, and cannot be asked what it has. Leave it out."]
        )
    read_outs: ReadOuts = named(path)(target, report=report)
    return read_outs


def _comparable(before: TableState, now: TableState) -> bool:
    """Whether the columns that there were are there still, each of the same type."""
    columns = now.columns or {}
    return before.columns is not None and all(columns.get(name) == type_ for name, type_ in before.columns.items())


def _query(asked: TableState) -> str:
    pairs: Sequence[tuple[str, str]] = [
        *(("column", name) for name in asked.columns or ()),
        *(("key", name) for name in asked.keys),
        *(("also", name) for name in asked.watched.values()),
    ]
    return urlencode(pairs)
