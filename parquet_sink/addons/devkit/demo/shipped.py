"""The connector and worker files that the project ships, and the copy of one for this demo's addresses.

`config` beside this module is a symbolic link to the folder at the root of the repository; building a wheel makes it a
folder with the files. So an installed demo runs the very files that a checkout has.
"""

import re
from pathlib import Path
from typing import Final

from parquet_sink.errors import SetupError

FOLDER: Final = Path(__file__).with_name("config")
WORKER: Final = "worker.properties"
CONNECTOR: Final = "orders.properties"
_TOMBSTONES: Final = re.compile(r"^connect\.ems\.tombstones=.*$", re.MULTILINE)
_ENDPOINT: Final = re.compile(r"^connect\.ems\.endpoint=.*$", re.MULTILINE)


def shipped(name: str) -> Path:
    """The file of this name. Raises SetupError when the package was installed without it."""
    path = FOLDER / name
    if not path.is_file():
        raise SetupError(
            f"The shipped file {name} was not found at {path}. Run from a checkout, or install the package anew."
        )
    return path.resolve()


def ordered_by(connector: str, column: str, name: str, table: str, records: int) -> str:
    """The text of a connector file under another name, for another table, ordered by a column; deletions are left out.

    records: the most in a file. Raises ValueError when the text does not have name, table and records once.
    """
    changed = {"name": name, "connect.ems.target.table": table, "connect.ems.commit.records": str(records)}
    for key, value in changed.items():
        connector, found = re.subn(rf"^{re.escape(key)}=.*$", f"{key}={value}", connector, flags=re.MULTILINE)
        if found != 1:
            raise ValueError(f"{key} stands {found} times in the connector file, and must stand once")
    return f"{_TOMBSTONES.sub('', connector)}\nconnect.ems.order.field.name={column}\n"


def with_endpoint(connector: str, endpoint: str) -> str:
    """The text of a connector file with another `connect.ems.endpoint`, and nothing else changed.

    Raises ValueError when the text does not have exactly one.
    """
    text, found = _ENDPOINT.subn(lambda _: f"connect.ems.endpoint={endpoint}", connector)
    if found != 1:
        raise ValueError(f"connect.ems.endpoint stands {found} times in the connector file, and must stand once")
    return text
