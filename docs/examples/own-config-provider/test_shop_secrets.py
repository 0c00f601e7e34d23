"""The provider by itself, against a Vault that has one secret."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from shop_secrets import VaultConfigProvider

from parquet_sink.api import ProviderError, Report, Resolved, WrongSettings, read

TOKEN = "t0ken"


class Vault(BaseHTTPRequestHandler):
    """Gives its secret to who has the token."""

    def do_GET(self):
        known = self.path == "/v1/secret/data/sink" and self.headers["X-Vault-Token"] == TOKEN
        self.send_response(200 if known else 403)
        self.end_headers()
        if known:
            self.wfile.write(json.dumps({"data": {"data": {"ems-key": "AppKey k", "other": "x"}}}).encode())

    def log_message(self, *args):
        pass


@pytest.fixture
def vault():
    """Its address."""
    with HTTPServer(("127.0.0.1", 0), Vault) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def make(address, token=TOKEN):
    """A provider with these params."""
    report, texts = Report(), {"address": address, "token": token}
    values = read(VaultConfigProvider.keys, Resolved(texts, texts), report)
    assert report.problems == []
    return VaultConfigProvider(values)


def test_fields_of_a_secret(vault):
    """Those that are there."""
    assert make(vault).get("secret/data/sink", ["ems-key", "no"]) == {"ems-key": "AppKey k"}


def test_what_is_not_ours_is_told(vault):
    """With Vault's status."""
    with pytest.raises(ProviderError, match="Vault answers 403 to secret/data/sink"):
        make(vault, "wrong").get("secret/data/sink", ["ems-key"])


def test_a_vault_that_is_away_is_told():
    """In place of an error of the network."""
    with pytest.raises(ProviderError, match="Vault cannot be reached"):
        make("http://127.0.0.1:1").get("secret/data/sink", ["ems-key"])


def test_an_address_without_tls_is_refused():
    """The token would travel in clear."""
    with pytest.raises(WrongSettings):
        make("http://vault:8200")
