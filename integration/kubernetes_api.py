"""As much of Kubernetes' API as Spark's driver asks for to have executors: objects are kept, and nothing runs."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

_KINDS: Final = {"pods": "Pod", "configmaps": "ConfigMap", "persistentvolumeclaims": "PersistentVolumeClaim"}


@dataclass
class Api:
    """pod: the driver's own. made: what was created. asked: verbs and resources, as a Role names them."""

    pod: str
    url: str = ""
    made: list[dict[str, Any]] = field(default_factory=list)
    asked: set[tuple[str, str]] = field(default_factory=set)
    ended: Event = field(default_factory=Event)

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [one for one in self.made if one["kind"] == kind]

    def create(self, body: dict[str, Any]) -> dict[str, Any]:
        """As it is told back."""
        self.made.append(json.loads(json.dumps(body)))
        body["metadata"] |= {"uid": f"{len(self.made):08}-0000-0000-0000-000000000000", "resourceVersion": "2"}
        return body | ({"status": {"phase": "Pending"}} if body["kind"] == "Pod" else {})

    def driver(self) -> dict[str, Any]:
        spec = {"containers": [{"name": "parquet-sink", "image": "parquet-sink"}]}
        about = {"name": self.pod, "namespace": "default", "uid": "11111111-1111-1111-1111-111111111111"}
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec, "status": status}


@contextmanager
def serving(pod: str) -> Iterator[Api]:
    """An API on loopback."""
    api = Api(pod)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"api": api}))
    server.daemon_threads = True
    api.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield api
    finally:
        api.ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: Api

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """Nothing is told."""

    def do_GET(self) -> None:
        *_, resource, name = ["", *self._parts()]
        if name in _KINDS:
            if "watch" in parse_qs(urlsplit(self.path).query):
                self._watch(name)
                return
            self.api.asked.add(("list", name))
            about = {"apiVersion": "v1", "kind": f"{_KINDS[name]}List", "metadata": {"resourceVersion": "1"}}
            self._answer(200, {**about, "items": []})
        else:
            self.api.asked.add(("get", resource))
            self._answer(200, self.api.driver())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.api.asked.add(("create", self._parts()[-1]))
        self._answer(201, self.api.create(body))

    def do_DELETE(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        *_, resource, name = self._parts()
        self.api.asked.add(("deletecollection", name) if name in _KINDS else ("delete", resource))
        self._answer(200, {"apiVersion": "v1", "kind": "Status", "status": "Success"})

    def _watch(self, resource: str) -> None:
        self.api.asked.add(("watch", resource))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.api.ended.wait()

    def _parts(self) -> list[str]:
        return urlsplit(self.path).path.strip("/").split("/")

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
