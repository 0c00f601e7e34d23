"""The target's read-outs: tables, files, statistics. Answers are bounded; whole tables and files stream from disk."""

import asyncio
import base64
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

from parquet_sink.addons.devkit.target.app import CutResponse, Desk, Handler, Keys, guarded, refusal
from parquet_sink.addons.devkit.target.contract import Ledger
from parquet_sink.addons.devkit.target.digest import MOST_PARTS, Asked, Digests, UnknownColumn
from parquet_sink.addons.devkit.target.store import FileStore
from parquet_sink.addons.devkit.target.tables import Tables
from parquet_sink.addons.devkit.target.upsert import Upserter

MAX_ROWS: Final = 10_000
MAX_OFFSET: Final = 10**12
MAX_SYNC_S: Final = 600.0
_SYNC_CHECK_S: Final = 0.02
_PARQUET: Final = "application/vnd.apache.parquet"


class Unanswerable(Exception):
    """A read-out was asked for that cannot be given."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(status, text)
        self.status, self.text = status, text


class Books:
    """Read-outs of what was accepted; all that a discarding target has."""

    def __init__(self, desk: Desk, ledger: Ledger) -> None:
        self._desk, self._ledger = desk, ledger

    def routes(self, guard: Keys | None) -> list[BaseRoute]:
        return [
            Route("/healthz", self.health),
            _get("/files", self.files, guard),
            _get("/files/{id}/content", self.content, guard),
            _get("/statistics", self.statistics, guard),
            _get("/tables", self.tables, guard),
            _get("/tables/{name:path}/rows", self.rows, guard),
            _get("/tables/{name:path}/export", self.export, guard),
            _get("/tables/{name:path}/digest", self.digest, guard),
            _get("/tables/{name:path}/digests", self.digests, guard),
            _get("/tables/{name:path}", self.table, guard),
            Route("/sync", guarded(_with_refusals(self.sync), guard), methods=["POST"]),
            Route("/reset", guarded(_with_refusals(self.reset), guard), methods=["DELETE"]),
        ]

    async def health(self, _: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def files(self, request: Request) -> Response:
        limit, offset = _page(request)
        found = self._ledger.files(limit, offset, request.query_params.get("target"))
        return JSONResponse({"files": [file.as_json() for file in found]})

    async def content(self, _: Request) -> Response:
        raise Unanswerable(404, "this target discards files")

    async def statistics(self, _: Request) -> Response:
        totals = self._ledger.totals()
        return JSONResponse(
            {
                "files": totals.files,
                "rows": totals.rows,
                "bytes": totals.bytes,
                "repeated": totals.repeated,
                "repeated_rows": totals.repeated_rows,
                "recognised": totals.recognised,
                "recognised_rows": totals.recognised_rows,
                "altered": totals.altered,
                "refused": self._desk.refused,
                "upserted": totals.upserts.get("upserted", 0),
                "waiting_upserts": totals.upserts.get("waiting", 0),
                "failed_upserts": totals.upserts.get("failed", 0),
                "by_status": dict(sorted(self._desk.by_status.items())),
                "tokens_by_status": dict(sorted(self._desk.tokens.asked.items())) if self._desk.tokens else {},
            }
        )

    async def tables(self, _: Request) -> Response:
        return JSONResponse({"tables": []})

    async def table(self, request: Request) -> Response:
        raise Unanswerable(404, f"there is no table {request.path_params['name']}")

    async def rows(self, request: Request) -> Response:
        return await self.table(request)

    async def export(self, request: Request) -> Response:
        return await self.table(request)

    async def digest(self, request: Request) -> Response:
        return await self.table(request)

    async def digests(self, request: Request) -> Response:
        return await self.table(request)

    async def sync(self, _: Request) -> Response:
        return JSONResponse({"synced": True, "waiting_upserts": 0})

    async def reset(self, _: Request) -> Response:
        self._ledger.clear()
        self._forget()
        return Response(status_code=204)

    def _forget(self) -> None:
        self._desk.faults = ()
        self._desk.by_status.clear()


class Warehouse(Books):
    """Read-outs of a target that stores and upserts."""

    def __init__(self, desk: Desk, store: FileStore, tables: Tables, upserter: Upserter) -> None:
        super().__init__(desk, store.journal)
        self._store, self._tables, self._upserter = store, tables, upserter
        self._digests = Digests(tables)

    async def content(self, request: Request) -> Response:
        file = self._store.journal.file(request.path_params["id"])
        if file is None:
            raise Unanswerable(404, "there is no file with this id")
        return FileResponse(self._store.path(file), media_type=_PARQUET, filename=file.name)

    async def tables(self, _: Request) -> Response:
        return JSONResponse({"tables": await asyncio.to_thread(self._summaries)})

    async def table(self, request: Request) -> Response:
        name, columns = await self._columns(request)
        count = await asyncio.to_thread(self._tables.count, name)
        latest = self._store.journal.last_of(name)
        return JSONResponse(
            {
                "name": name,
                "columns": [{"name": column, "type": type_} for column, type_ in columns.items()],
                "rows": count,
                "deleted": await asyncio.to_thread(self._tables.deleted, name),
                "primary_keys": list(latest.parameters.primary_keys) if latest else [],
                "order_column": latest.parameters.order_column if latest else None,
                "received": self._store.journal.totals(name).received(),
            }
        )

    async def rows(self, request: Request) -> Response:
        name, columns = await self._columns(request)
        limit, offset = _page(request)
        order, descending = _order(request.query_params.get("order_by"), columns)
        rows = await asyncio.to_thread(self._tables.rows, name, limit, offset, order, descending)
        return Response(orjson.dumps({"rows": rows}, default=_as_text), media_type="application/json")

    async def export(self, request: Request) -> Response:
        name, _ = await self._columns(request)
        return await self._passing(partial(self._tables.export, name))

    async def digest(self, request: Request) -> Response:
        asked = await self._asked(request)
        found = await asyncio.to_thread(self._digests.of_table, asked)
        return JSONResponse({"name": asked.table, "columns": list(asked.columns), **found})

    async def digests(self, request: Request) -> Response:
        asked, query = await self._asked(request), request.query_params
        parts = _count("parts", query.get("parts", "1"), MOST_PARTS)
        part = _count("part", query.get("part", "0"), MOST_PARTS)
        if part >= parts:
            raise Unanswerable(400, f"part must be less than parts, {parts}: the first one is 0")
        return await self._passing(partial(self._digests.write_part, asked, part, parts))

    async def sync(self, request: Request) -> Response:
        limit_s = _seconds(request.query_params.get("timeout_s", "30"))
        last, end = self._store.journal.last(), time.monotonic() + limit_s
        while (first := self._store.journal.first_waiting()) is not None and first <= last:
            if time.monotonic() >= end:
                waiting = self._store.journal.totals().upserts.get("waiting", 0)
                return JSONResponse({"synced": False, "waiting_upserts": waiting}, 504)
            self._upserter.hurry()
            await asyncio.sleep(_SYNC_CHECK_S)
        return JSONResponse({"synced": True, "waiting_upserts": 0})

    async def reset(self, _: Request) -> Response:
        await asyncio.to_thread(self._clear)
        self._forget()
        return Response(status_code=204)

    def _clear(self) -> None:
        with self._upserter.paused():
            self._store.clear()
            self._tables.clear()

    async def _asked(self, request: Request) -> Asked:
        name, _ = await self._columns(request)
        query = request.query_params
        chosen = [query.getlist(one) for one in ("column", "key", "also")]
        try:
            return await asyncio.to_thread(self._digests.asked, name, *chosen)
        except UnknownColumn as column:
            raise Unanswerable(400, f"there is no column {column}") from None

    async def _passing(self, write: Callable[[Path], None]) -> Response:
        """The answer with a Parquet file that is written for it, and goes with it."""
        path = self._store.scratch_path()
        try:
            await asyncio.to_thread(write, path)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return FileResponse(path, media_type=_PARQUET, background=BackgroundTask(path.unlink, missing_ok=True))

    def _summaries(self) -> list[dict[str, Any]]:
        names, tables = self._tables.names()[:MAX_ROWS], self._tables
        return [{"name": name, "rows": tables.count(name), "deleted": tables.deleted(name)} for name in names]

    async def _columns(self, request: Request) -> tuple[str, dict[str, str]]:
        name = str(request.path_params["name"])
        columns = await asyncio.to_thread(self._tables.columns, name)
        if columns is None:
            raise Unanswerable(404, f"there is no table {name}")
        return name, columns


def _get(path: str, handler: Handler, guard: Keys | None) -> Route:
    return Route(path, guarded(_with_refusals(handler), guard), methods=["GET"])


def _with_refusals(handler: Handler) -> Handler:
    async def answered(request: Request) -> Response:
        try:
            return await handler(request)
        except Unanswerable as reason:
            return refusal(reason.status, reason.text)
        except asyncio.CancelledError:
            return CutResponse()  # the target stops: the client gets no answer

    return answered


def _page(request: Request) -> tuple[int, int]:
    query = request.query_params
    return _count("limit", query.get("limit", "100"), MAX_ROWS), _count("offset", query.get("offset", "0"), MAX_OFFSET)


def _count(name: str, text: str, high: int) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(high)) or int(text) > high:
        raise Unanswerable(400, f"{name} must be an integer from 0 to {high}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= MAX_SYNC_S:
        raise Unanswerable(400, f"timeout_s must be a number of seconds from 0 to {MAX_SYNC_S:g}")
    return seconds


def _order(asked: str | None, columns: Mapping[str, str]) -> tuple[str | None, bool]:
    if not asked:
        return None, False
    if asked in columns:
        return asked, False
    if asked.startswith("-") and asked[1:] in columns:
        return asked[1:], True
    raise Unanswerable(400, f"order_by: there is no column {asked}; put a minus before the name to sort downwards")


def _as_text(value: object) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
