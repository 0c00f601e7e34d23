"""What other workers of the group accepted of a connector, asked for so that its archive is compared once with all."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

from parquet_sink.history.records import UploadOutcome
from parquet_sink.worker.herder.errors import Elsewhere, OtherWorker
from parquet_sink.worker.herder.protocol import Herder
from parquet_sink.worker.rest.call import RestError, as_rest_errors
from parquet_sink.worker.rest.purging import AskWorker

_PAGE: Final = 1_000


class OtherHistories:
    """Of the workers beside this one. ask: asks another worker by method and path."""

    def __init__(self, herder: Herder, ask: AskWorker) -> None:
        self._herder, self._ask = herder, ask

    def gather(self, name: str, topic: str | None) -> dict[str, Any]:
        """Return `uploads` and places of `waiting` files of those that answer, and `silent`: why others do not."""
        gathered: dict[str, list[Any]] = {"uploads": [], "waiting": [], "silent": []}
        with as_rest_errors():
            holders = self._herder.find_holders(name)
            urls = {worker.worker_id: worker.url for worker in self._herder.workers().workers}
        for holder in holders:
            if holder.worker_id == self._herder.worker_id:
                continue
            other = OtherWorker(urls.get(holder.worker_id), name, holder.worker_id)
            try:
                waiting = self._get(other, name, "archive", {"worker": holder.worker_id, "limit": 1})["waiting"]
                query = {"worker": holder.worker_id, "outcome": str(UploadOutcome.ACCEPTED), "oldest": "true"}
                uploads = list(self._uploads(other, name, {**query, **({} if topic is None else {"topic": topic})}))
            except RestError as error:
                gathered["silent"].append(error.message)
            else:
                gathered["waiting"] += waiting
                gathered["uploads"] += uploads
        return gathered

    def _uploads(self, other: Elsewhere, name: str, query: Mapping[str, object]) -> Iterator[Mapping[str, Any]]:
        after: dict[str, str] = {}
        while True:
            page = self._get(other, name, "history", {**query, "limit": _PAGE, **after})
            yield from page["files"]
            if page["next"] is None:
                return
            after = {"after": page["next"]}

    def _get(self, other: Elsewhere, name: str, what: str, query: Mapping[str, object]) -> Any:
        """Return what the other worker answers. Raise RestError where it does not, or refuses."""
        reply = self._ask(other, "GET", f"/connectors/{quote(name, safe='')}/{what}?{urlencode(query)}")
        if reply.status != 200:
            raise RestError(reply.status, str(other))
        return json.loads(reply.content)
