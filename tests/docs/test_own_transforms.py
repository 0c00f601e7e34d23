"""docs/how-to/own-transforms.md: its package is installed and run as a user would."""

import re
from pathlib import Path

import pytest

from tests.docs.program import EXAMPLES, ROOT, install, run
from tests.messages import assert_says

EXAMPLE = EXAMPLES / "own-transform"
PAGE = (ROOT / "docs" / "how-to" / "own-transforms.md").read_text(encoding="utf-8")
CONNECTOR = """
name=orders
topics=orders
value.converter=org.apache.kafka.connect.json.JsonConverter
value.converter.schemas.enable=false
connect.ems.endpoint=https://team.realm.celonis.cloud/continuous-batch-processing/api/v1/p/items
connect.ems.authorization.key=AppKey k
connect.ems.target.table=ORDERS
connect.ems.commit.size.bytes=10000000
connect.ems.commit.records=1000
connect.ems.commit.interval.ms=30000
connect.ems.embed.kafka.metadata=false
"""
ROW = '{"id": 1, "first": "Ada", "last": "L", "amount": 119.0, "name": "Ada L"}'
"""As `try` prints JSON."""


def block(language: str) -> str:
    """The page's block in a language."""
    found = re.search(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder that the package is installed to, with its entry points."""
    return install(tmp_path_factory.mktemp("packages"), "own-transform")


def test_its_own_tests_pass() -> None:
    """The example's tests are run as its author runs them."""
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", str(EXAMPLE), path=str(EXAMPLE))
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout


def test_page_has_the_entry_points() -> None:
    """What the page says of pyproject.toml stands there."""
    assert block("toml") in (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("by_path", [False, True], ids=["entry point", "path"])
def test_run_from_a_connector_file(installed: str, tmp_path: Path, by_path: bool) -> None:
    """The page's settings change a record, found by their entry points or as `module.Class`."""
    settings = block("properties")
    if by_path:
        settings = settings.replace("com.example.", "shop_transforms.")
    file, value = tmp_path / "orders.properties", tmp_path / "value.json"
    file.write_text(CONNECTOR + settings, encoding="utf-8")
    value.write_text('{"id": 1, "first": "Ada", "last": "L", "amount": 100.0}', encoding="utf-8")
    folder = str(EXAMPLE) if by_path else installed
    done = run("-m", "parquet_sink", "try", str(file), "--value", str(value), path=folder)
    assert done.returncode == 0, done.stderr
    assert ROW in done.stdout


def test_wrong_settings_are_told(installed: str, tmp_path: Path) -> None:
    """`check` tells what the class says, by the key."""
    file = tmp_path / "orders.properties"
    file.write_text(CONNECTOR + block("properties").replace("=2024-01-01", "=soon"), encoding="utf-8")
    done = run("-m", "parquet_sink", "check", str(file), path=installed)
    assert done.returncode == 2
    assert_says(done.stdout + done.stderr, "Invalid [predicates.new.from]", '"soon"', "not a date", "write 2024-01-01")


@pytest.mark.parametrize("asked", ["com.example.Scale", "com.example.Scale$Value", "Scale", "transforms.N.percent"])
def test_explain_knows_an_installed_transform(installed: str, asked: str) -> None:
    """By its names and by its keys, with what the class's docstring says."""
    done = run("-m", "parquet_sink", "explain", asked, path=installed)
    assert done.returncode == 0, done.stderr
    assert "transforms.N.percent" in done.stdout
    assert "By how much" in done.stdout
    assert ("Multiplies a number" in done.stdout) == (asked != "transforms.N.percent")
