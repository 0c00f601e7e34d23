"""Packages of the examples that are plug-ins, built, installed and used by the program's own commands."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.docs.program import EXAMPLES, ROOT, install, run
from tests.messages import assert_says

PAGES = {"own-command": "own-commands", "own-converter": "own-converters", "own-target": "own-targets"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with all of them installed."""
    return install(tmp_path_factory.mktemp("packages"), *PAGES)


def typed(site: str, *words: str) -> tuple[int, str]:
    """Exit status of the program, and what it says."""
    done = run("-m", "parquet_sink", *words, path=site)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("example", PAGES)
def test_it_is_on_its_page_word_for_word(example: str) -> None:
    """Its module, and what its pyproject.toml declares."""
    page = (ROOT / "docs" / "how-to" / f"{PAGES[example]}.md").read_text(encoding="utf-8")
    (module,) = (EXAMPLES / example).glob("shop_*.py")
    project = (EXAMPLES / example / "pyproject.toml").read_text(encoding="utf-8")
    declared = re.search(r"^\[project\.entry-points.*?\n\n", project, re.MULTILINE | re.DOTALL)
    assert declared is not None
    assert f"```python\n{module.read_text(encoding='utf-8')}```" in page
    assert f"```toml\n{declared[0].strip()}\n```" in page


def test_the_command_is_listed_and_runs(site: str, tmp_path: Path) -> None:
    """Beside ours, with its options and its exit status."""
    pq.write_table(pa.table({"a": [1, 2, 3]}), tmp_path / "a.parquet")
    assert_says(typed(site, "--help")[1], "report", "count rows and files")
    assert "--suffix" in typed(site, "report", "--help")[1]
    assert typed(site, "report", str(tmp_path)) == (0, "1 files, 3 rows\n")
    assert typed(site, "report", str(tmp_path), "--suffix", ".csv") == (1, "0 files, 0 rows\n")


SINK = """name=orders
topics=orders
connector.class=EmsSink
connect.ems.commit.size.bytes=10000000
connect.ems.commit.records=1000
connect.ems.commit.interval.ms=30000
connect.ems.embed.kafka.metadata=false
"""
CONVERTER = """value.converter=com.example.Lines
value.converter.columns=id,name
value.converter.separator=;
"""
TARGET = """connect.ems.target.type=depot
connect.ems.target.table=ORDERS
depot.path=orders.db
"""


def test_converter_and_target_are_validated_by_check(site: str, tmp_path: Path) -> None:
    """A file that names them is right, and what is wrong with their keys is told by these, as of any key."""
    file = tmp_path / "orders.properties"
    file.write_text(SINK + CONVERTER + TARGET)
    status, said = typed(site, "check", str(file))
    assert status == 0, said
    assert_says(said, "OK (connector orders", "orders -> table ORDERS", "decoded: value", "class of your own")
    file.write_text(SINK + CONVERTER.replace("=;", "=;;") + TARGET.replace("depot.path", "depot.pth"))
    status, said = typed(site, "check", str(file))
    assert status == 2
    assert_says(said, "Invalid [value.converter.separator]", '";;"', "not a single character", "write one")
    assert_says(said, "Invalid [depot.path]", "is missing", "name the file")
    assert_says(said, "Warning [depot.pth]", "unknown", "Did you mean depot.path?")


def test_a_record_goes_through_the_converter(site: str, tmp_path: Path) -> None:
    """`try` shows the row that a value becomes, and why another has none."""
    file, value = tmp_path / "orders.properties", tmp_path / "value"
    file.write_text(SINK + CONVERTER + TARGET)
    value.write_text("7;Ada")
    status, said = typed(site, "try", str(file), "--value", str(value))
    assert (status, '{"id": "7", "name": "Ada"}' in said) == (0, True), said
    value.write_text("7")
    assert_says(typed(site, "try", str(file), "--value", str(value))[1], "1 fields", "columns names 2")


def test_help_has_their_keys(site: str, tmp_path: Path) -> None:
    """Where it is asked for the keys of a file that names them."""
    file = tmp_path / "orders.properties"
    file.write_text(SINK + CONVERTER + TARGET)
    said = typed(site, "run", "--help-all", str(file))[1]
    assert "depot.path" in said


def test_the_target_keeps_an_archive(site: str, tmp_path: Path) -> None:
    """An address with its name is one of its file store, which `archive` lists."""
    file, kept = tmp_path / "orders.properties", f"depot:{tmp_path}/kept.db"
    file.write_text(f"{SINK}{CONVERTER}{TARGET}connect.ems.archive.url={kept}\n")
    status, said = typed(site, "archive", "list", str(file))
    assert status == 0
    assert_says(said, "connector orders", "0 files", "0 bytes", kept)
