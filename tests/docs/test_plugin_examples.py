"""Packages of the examples that are plug-ins, built, installed and used by the program's own commands."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.connectors.ems.connector_files import GOOD
from tests.docs.program import EXAMPLES, ROOT, install, run

PAGES = {"own-command": "plugins", "own-converter": "own-converters"}


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
    page = (ROOT / "docs" / f"{PAGES[example]}.md").read_text(encoding="utf-8")
    (module,) = (EXAMPLES / example).glob("shop_*.py")
    project = (EXAMPLES / example / "pyproject.toml").read_text(encoding="utf-8")
    declared = re.search(r"^\[project\.entry-points.*?\n\n", project, re.MULTILINE | re.DOTALL)
    assert declared is not None
    assert f"```python\n{module.read_text(encoding='utf-8')}```" in page
    assert f"```toml\n{declared[0].strip()}\n```" in page


def test_the_command_is_listed_and_runs(site: str, tmp_path: Path) -> None:
    """Beside ours, with its options and its exit status."""
    pq.write_table(pa.table({"a": [1, 2, 3]}), tmp_path / "a.parquet")
    assert "count rows and files below a folder" in typed(site, "--help")[1]
    assert "--suffix" in typed(site, "report", "--help")[1]
    assert typed(site, "report", str(tmp_path)) == (0, "1 files, 3 rows\n")
    assert typed(site, "report", str(tmp_path), "--suffix", ".csv") == (1, "0 files, 0 rows\n")


def test_the_converter_is_checked_and_described(site: str, tmp_path: Path) -> None:
    """A connector file names it; what is wrong with its settings is told as of any key."""
    file = tmp_path / "lines.properties"
    good = [f"{name}={text}" for name, text in GOOD.items() if not name.startswith("value.converter")]
    good += ["value.converter=com.example.Lines", "value.converter.columns=id,name"]
    file.write_text("\n".join(good), encoding="utf-8")
    words = ("check", "--bootstrap-servers", "b:1", str(file))
    assert typed(site, *words)[0] == 0
    file.write_text("\n".join([*good, "value.converter.separator=ab"]), encoding="utf-8")
    status, said = typed(site, *words)
    assert status == 2
    assert 'Invalid [value.converter.separator]. "ab" is no single character; write one.' in said
