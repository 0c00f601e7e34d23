"""docs/how-to/config-providers.md: its package is installed and run as a user would."""

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.docs.program import EXAMPLES, ROOT, install, run
from tests.messages import assert_says

EXAMPLE = EXAMPLES / "own-config-provider"
PAGE = (ROOT / "docs" / "how-to" / "config-providers.md").read_text(encoding="utf-8")
TOKEN = {"VAULT_TOKEN": "canary-token"}
CONNECTOR = """
name=orders
topics=orders
value.converter=org.apache.kafka.connect.json.JsonConverter
value.converter.schemas.enable=false
connect.ems.endpoint=https://team.realm.celonis.cloud/continuous-batch-processing/api/v1/p/items
connect.ems.authorization.key=${vault:secret/data/sink:ems-key}
connect.ems.target.table=ORDERS
connect.ems.commit.size.bytes=10000000
connect.ems.commit.records=1000
connect.ems.commit.interval.ms=30000
"""


def block(language: str) -> str:
    """The page's block in a language."""
    found = re.search(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder that the package is installed to, with its entry points."""
    return install(tmp_path_factory.mktemp("packages"), "own-config-provider")


class Vault(BaseHTTPRequestHandler):
    """Has a key that no header can carry for who asks for `bad`, and a good one for all else."""

    def do_GET(self) -> None:
        assert self.headers["X-Vault-Token"] == "canary-token"
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"data": {"data": {"ems-key": "AppKey canary-key", "bad": "canary-bad"}}}')

    def log_message(self, *said: object) -> None:
        """Says nothing."""


@pytest.fixture
def vault() -> Iterator[str]:
    """Its address."""
    with HTTPServer(("127.0.0.1", 0), Vault) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_its_own_tests_pass() -> None:
    """The example's tests are run as its author runs them."""
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", str(EXAMPLE), path=str(EXAMPLE))
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout


def test_page_has_the_entry_points() -> None:
    """What the page says of pyproject.toml stands there."""
    assert block("toml") in (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["com.example.VaultConfigProvider", "Vault", "shop_secrets.VaultConfigProvider"])
def test_check_with_the_pages_worker_file(name: str, installed: str, tmp_path: Path, vault: str) -> None:
    """The key comes from Vault, whose token comes from the environment; neither is said anywhere."""
    settings = block("properties").replace("com.example.VaultConfigProvider", name).replace("https://vault:8200", vault)
    worker, file = tmp_path / "worker.properties", tmp_path / "orders.properties"
    worker.write_text(f"bootstrap.servers=localhost:9092\n{settings}", encoding="utf-8")
    file.write_text(CONNECTOR, encoding="utf-8")
    check = ("-m", "parquet_sink", "check", str(file), "--worker", str(worker))
    good = run(*check, path=installed, env=TOKEN)
    assert (good.returncode, "OK (connector orders" in good.stdout) == (0, True), good.stdout + good.stderr
    file.write_text(CONNECTOR.replace("ems-key", "bad"), encoding="utf-8")
    wrong = run(*check, path=installed, env=TOKEN)
    assert wrong.returncode == 2
    assert_says(wrong.stdout + wrong.stderr, "${vault:secret/data/sink:bad}", "breaks the rule")
    assert "canary" not in good.stdout + good.stderr + wrong.stdout + wrong.stderr
