"""The routes of access tokens: asked for by clients, and withdrawn to order."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from parquet_sink.addons.devkit.target.app import CutResponse, Desk, Keys, bounded, guarded, misbehave
from parquet_sink.addons.devkit.target.faults import BadFault
from parquet_sink.addons.devkit.target.tokens import TOKEN_PATH, Denied, Tokens


class TokenDesk:
    """Answers clients; rules for `token` befall those that are known."""

    def __init__(self, desk: Desk, tokens: Tokens) -> None:
        self._desk, self._tokens = desk, tokens

    async def give(self, request: Request) -> Response:
        try:
            response = await self._answer(request)
        except Denied as denied:
            error = {"error": denied.code, "error_description": denied.text}
            headers = {"WWW-Authenticate": "Basic"} if denied.status == 401 else None
            response = JSONResponse(error, denied.status, headers)
        except BadFault as large:
            response = JSONResponse({"error": "invalid_request", "error_description": str(large)}, 400)
        status = "cut" if isinstance(response, CutResponse) else str(response.status_code)
        self._tokens.asked[status] += 1
        return response

    async def withdraw(self, _: Request) -> Response:
        return JSONResponse({"withdrawn": self._tokens.withdraw()})

    async def _answer(self, request: Request) -> Response:
        given = self._tokens.give(request.headers.get("authorization"), await bounded(request))
        good = JSONResponse(given, headers={"Cache-Control": "no-store"})
        fault = self._desk.choose_fault("", "", "token")
        return good if fault is None else await misbehave(fault, good)


def token_routes(desk: Desk, guard: Keys | None) -> list[BaseRoute]:
    """None, where the target gives no tokens. guard: see `app.build`."""
    if desk.tokens is None:
        return []
    route = TokenDesk(desk, desk.tokens)
    return [
        Route(TOKEN_PATH, route.give, methods=["POST"]),
        Route("/tokens", guarded(route.withdraw, guard), methods=["DELETE"]),
    ]
