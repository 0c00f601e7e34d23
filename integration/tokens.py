"""A token endpoint for OAUTHBEARER: client credentials in, a token that is not signed out, over HTTP or TLS."""

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

CLIENT, SECRET = "sink", "t0ken s:cret"
TOKEN_S = 60


@dataclass
class TokenEndpoint:
    """url: of its tokens. asked: the scope of each request that was let in."""

    url: str = ""
    asked: list[str] = field(default_factory=list)

    def answer(self, authorization: str, body: str) -> tuple[int, dict[str, object]]:
        """Status and body."""
        credentials = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        if credentials != f"{CLIENT}:{SECRET}":
            return 401, {"error": "invalid_client", "error_description": "The secret is wrong."}
        form = parse_qs(body)
        if form.get("grant_type") != ["client_credentials"]:
            return 400, {"error": "unsupported_grant_type"}
        self.asked += form.get("scope", [""])
        return 200, {"access_token": token(CLIENT), "token_type": "Bearer", "expires_in": TOKEN_S}


def token(subject: str) -> str:
    """A JSON web token of nobody in particular."""
    now = int(time.time())
    parts = ({"alg": "none"}, {"sub": subject, "iat": now, "exp": now + TOKEN_S})
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."


@contextmanager
def token_endpoint(context: ssl.SSLContext | None = None) -> Iterator[TokenEndpoint]:
    """Serves on loopback."""
    endpoint = TokenEndpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            status, answer = endpoint.answer(self.headers["Authorization"] or "", body)
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        endpoint.url = f"http{'s' if context else ''}://127.0.0.1:{server.server_port}/token"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield endpoint
        server.shutdown()
        thread.join()
