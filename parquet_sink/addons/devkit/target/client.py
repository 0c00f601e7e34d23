"""A small client of the target's read-outs and faults: for the demo, the benchmark, the crash oracle and tests."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import requests

_PAGE: Final = 10_000
_BLOCK_BYTES: Final = 1 << 20
_DOWNLOAD_S: Final = 180.0
"""A table of a gigabyte takes so long before its first byte, on a busy machine."""


class TargetClient:
    """Talks to one target. Any answer other than 2xx raises requests.HTTPError.

    authorization: needed only for a target that can be reached from other machines. timeout_s bounds each wait for
    bytes, in seconds; of a file or a table it may take longer.
    """

    def __init__(self, base_url: str, authorization: str | None = None, timeout_s: float = 30.0) -> None:
        self._base = base_url.rstrip("/")
        self._timeout_s = timeout_s
        self._session = requests.Session()
        self._session.trust_env = False  # the environment's proxy knows nothing of a loopback address
        if authorization is not None:
            self._session.headers["Authorization"] = authorization

    def close(self) -> None:
        self._session.close()

    def healthy(self) -> bool:
        """Whether the target answers."""
        try:
            return self._session.get(f"{self._base}/healthz", timeout=self._timeout_s).ok
        except requests.RequestException:
            return False

    def tables(self) -> dict[str, int]:
        """Row count by table."""
        return {table["name"]: table["rows"] for table in self._json("GET", "/tables")["tables"]}

    def describe(self, table: str) -> dict[str, Any]:
        """Columns, row count, primary keys and order column of a table."""
        return self._json("GET", f"/tables/{quote(table, safe='')}")

    def rows(self, table: str, limit: int = 100, offset: int = 0, order_by: str | None = None) -> list[dict[str, Any]]:
        """Some rows, as JSON gives them. order_by: a column, with a minus before it to sort downwards."""
        query: dict[str, Any] = {"limit": limit, "offset": offset, "order_by": order_by}
        found: list[dict[str, Any]] = self._json("GET", f"/tables/{quote(table, safe='')}/rows", params=query)["rows"]
        return found

    def table(self, table: str) -> Any:
        """The whole table as a pyarrow.Table."""
        import pyarrow.parquet as pq

        with tempfile.TemporaryDirectory(prefix="parquet-sink-export-") as folder:
            path = Path(folder) / "table.parquet"
            self._download(f"/tables/{quote(table, safe='')}/export", path)
            return pq.read_table(path, memory_map=False)

    def digest(self, table: str, columns: Sequence[str] = ()) -> dict[str, Any]:
        """One digest of all rows, deleted ones included: of these columns, or of all."""
        return self._json("GET", f"/tables/{quote(table, safe='')}/digest", params={"column": list(columns)})

    def files(self, target: str | None = None) -> list[dict[str, Any]]:
        """Every accepted file, in order of acceptance."""
        found: list[dict[str, Any]] = []
        while True:
            query: dict[str, Any] = {"limit": _PAGE, "offset": len(found), "target": target}
            page = self._json("GET", "/files", params=query)["files"]
            found += page
            if len(page) < _PAGE:
                return found

    def download(self, file_id: str, path: Path) -> None:
        """Save the accepted file with this id, byte for byte."""
        self._download(f"/files/{file_id}/content", path)

    def statistics(self) -> dict[str, Any]:
        """Sums over all files, upserts by state, answers by status."""
        return self._json("GET", "/statistics")

    def sync(self, timeout_s: float = 60.0) -> None:
        """Wait until every file accepted so far is upserted or failed. Raises TimeoutError."""
        url = f"{self._base}/sync"
        answer = self._session.post(url, params={"timeout_s": timeout_s}, timeout=timeout_s + self._timeout_s)
        if answer.status_code == 504:
            raise TimeoutError(f"{answer.json()['waiting_upserts']} files are not upserted after {timeout_s} s")
        answer.raise_for_status()

    def order_faults(self, *rules: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Add rules, such as {"status": 503, "next": 2}; all rules as they stand then."""
        return self._faults("POST", list(rules))

    def faults(self) -> list[dict[str, Any]]:
        """All rules, with how often each fired."""
        return self._faults("GET", None)

    def clear_faults(self) -> None:
        """Withdraw all rules."""
        self._faults("DELETE", None)

    def withdraw_tokens(self) -> int:
        """No access token given so far is good any more; how many those were."""
        return int(self._json("DELETE", "/tokens")["withdrawn"])

    def reset(self) -> None:
        """Forget all files, tables, rules and counts."""
        self._session.delete(f"{self._base}/reset", timeout=self._timeout_s).raise_for_status()

    def _faults(self, method: str, rules: Sequence[Mapping[str, Any]] | None) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._json(method, "/faults", json=rules)["faults"]
        return found

    def _json(
        self, method: str, path: str, params: Mapping[str, Any] | None = None, json: object = None
    ) -> dict[str, Any]:
        answer = self._session.request(method, self._base + path, params=params, json=json, timeout=self._timeout_s)
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found

    def _download(self, path: str, to: Path) -> None:
        with (
            self._session.get(self._base + path, timeout=_DOWNLOAD_S, stream=True) as answer,
            to.open("wb") as file,
        ):
            answer.raise_for_status()
            for block in answer.iter_content(_BLOCK_BYTES):
                file.write(block)
