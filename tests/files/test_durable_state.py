"""The table of a connector's durable state is what ARCHITECTURE.md shows, and what the package writes."""

from pathlib import Path

import parquet_sink
from parquet_sink.files import naming
from parquet_sink.files.durable_state import DURABLE_STATE, AtMove, count_files, is_own_file

PACKAGE = Path(parquet_sink.__file__).parent


def test_the_table_stands_in_architecture() -> None:
    """Each line of it does, as it is here."""
    lines = (PACKAGE.parent / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines()
    assert [item.row for item in DURABLE_STATE if item.row not in lines] == []


def test_each_name_of_a_connectors_folder_has_a_line() -> None:
    """Names of files and folders in `naming` are those of the table, and their writers exist."""
    names = {value for key, value in vars(naming).items() if key.endswith(("_FILE", "_FOLDER")) and key.isupper()}
    assert {item.name for item in DURABLE_STATE} == names
    assert [item.writer for item in DURABLE_STATE if not (PACKAGE / item.writer).exists()] == []


def test_files_are_counted_without_locks(tmp_path: Path) -> None:
    """Items that have no file are absent."""
    for name in (naming.HISTORY_FILE, ".parked/orders/0/a", ".parked/.lock", ".replayed/.lock"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert count_files(str(tmp_path)) == {naming.HISTORY_FILE: 1, naming.PARKED_FOLDER: 1}


def test_files_beside_one_are_its_own() -> None:
    """SQLite's, and one that is being replaced; a Parquet file is not."""
    assert is_own_file(f"{naming.HISTORY_FILE}-wal")
    assert is_own_file(f"{naming.SOURCE_MEMORY_FILE}.new")
    assert not is_own_file("kept.parquet")
    assert {item.at_move for item in DURABLE_STATE} == set(AtMove)
