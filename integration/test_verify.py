"""The proof of a replay against a real target: uploads that repeat, and what is said of its tables afterwards."""

import io
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import requests

from parquet_sink.addons.devkit.target.process import TargetProcess
from parquet_sink.addons.replay import read_outs
from parquet_sink.addons.replay.verify import Finding, Verification
from parquet_sink.config.secret import Secret
from parquet_sink.errors import InvalidConfiguration, NotVerified
from parquet_sink.targets.directory.settings import DirectorySettings
from parquet_sink.targets.push.settings import PushSettings
from tests.messages import assert_says, saying

KEY = "AppKey demo"


@pytest.fixture(scope="module")
def forgetful() -> Iterator[TargetProcess]:
    """A target that takes a file that comes again like a new one, for all tests of this module."""
    with TargetProcess(repeats="forget", deleted_column="__deleted") as process:
        yield process


@pytest.fixture
def target(forgetful: TargetProcess) -> TargetProcess:
    """It holds nothing."""
    forgetful.client.reset()
    return forgetful


def push(target: TargetProcess, offsets: Sequence[int], keys: int | None = 10, order: str | None = "o") -> int:
    """Upload one file with a row for each offset; the primary key is the offset modulo `keys`. Returns the rows."""
    columns: dict[str, Any] = {
        "id": [offset % (keys or 10) for offset in offsets],
        "o": list(offsets),
        "same": [7] * len(offsets),
        "kafkaPartition": pa.array([0] * len(offsets), pa.int32()),
        "kafkaOffset": list(offsets),
        "__deleted": [offset % 10 == 9 for offset in offsets],
    }
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    query = {"targetName": "orders", "clientId": "test"}
    query |= {"primaryKeys": "id"} if keys else {}
    query |= {"duplicateRemovalOrderColumn": order} if keys and order else {}
    name = f"topic-t_partition-0_firstOffset-{offsets[0]}_lastOffset-{offsets[-1]}_rows-{len(offsets)}.parquet"
    files = {"file": (name, file.getvalue())}
    answer = requests.post(target.endpoint(), params=query, headers={"Authorization": KEY}, files=files, timeout=60)
    answer.raise_for_status()
    return len(offsets)


def settings(url: str, **more: Any) -> PushSettings:
    """A connector's target."""
    return PushSettings(f"{url}/continuous-batch-processing/api/v1/demo/items", Secret(KEY), "orders", **more)


def replayed(target: TargetProcess, **how: Any) -> Finding:
    """Everything delivered in two files, then all of it twice, the newer file first; what is found."""
    halves = [range(500), range(500, 1000)]
    for half in halves:
        push(target, half, **how)
    with Verification(settings(target.url), ["orders"]) as proof:
        sent = sum(push(target, half, **how) for _ in range(2) for half in halves[::-1])
        (found,) = proof.findings({"orders": sent})
    return found


def test_keys_and_an_order_column_absorb_what_comes_again(target: TargetProcess) -> None:
    """All of it twice, out of order: unchanged, with both counts; deleted keys are compared as well."""
    found = replayed(target)
    assert found.unchanged
    assert_says(found.line, "table orders", "unchanged", "9 rows", "2,000 repeated rows absorbed")
    assert_says(found.lines()[1], "4 files received", "1 deleted keys compared")


@pytest.mark.parametrize(
    ("order", "why"),
    [(None, "no order column"), ("same", "order column same is equal")],
)
def test_without_order_older_rows_win(target: TargetProcess, order: str | None, why: str) -> None:
    """Each key went back to its last row in the older file, and this is said of it."""
    found = replayed(target, order=order)
    assert found.counts == {"back": 10}
    assert len(found.examples) == 6
    assert found.rows_by_key is not None
    rows = {row["key_0"]: row for row in found.rows_by_key.to_pylist()}
    assert {key: row["after_offset"] for key, row in rows.items()} == {key: 490 + key for key in range(10)}
    assert {key: row["before_offset"] for key, row in rows.items()} == {key: 990 + key for key in range(10)}
    assert [why in one for one in found.why] == [True]


def test_without_keys_rows_are_there_more_often(target: TargetProcess) -> None:
    """Twice more each, and the cause."""
    found = replayed(target, keys=None)
    assert found.counts == {"copied": 900 + 100}
    assert "no primary key" in found.why[0]


def test_the_live_connector_beside_it_is_told_apart(target: TargetProcess) -> None:
    """Newer rows are no harm of the replay, but no proof either."""
    push(target, range(100))
    with Verification(settings(target.url), ["orders"]) as proof:
        sent = push(target, range(50))
        push(target, range(100, 105))
        (found,) = proof.findings({"orders": sent})
    assert found.counts == {"newer": 5}
    assert_says(found.why[0], "something else", "meanwhile")


def test_large_tables_are_compared_in_parts(target: TargetProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a whole when nothing changed, else part by part; each part is reported."""
    monkeypatch.setattr(read_outs, "PART_ROWS", 1_000)
    push(target, range(8_500), keys=8_500)
    seen: list[tuple[str, int, int]] = []
    with Verification(settings(target.url), ["orders"], lambda *one: seen.append(one)) as proof:
        assert seen[-1] == ("orders", 9, 9)
        push(target, range(8_500), keys=8_500)
        (same,) = proof.findings()
        assert same.unchanged
        assert len(seen) == 10
        push(target, range(8_500, 8_501), keys=8_500)
        (other,) = proof.findings()
    assert other.counts == {"newer": 1}
    assert len(seen) == 20


def test_a_target_that_knows_names_is_seen_to(tmp_path: Any) -> None:
    """What was recognised by its name was not put in again, which the finding says."""
    with TargetProcess() as target:
        found = replayed(target)
    assert found.unchanged
    assert_says(found.lines()[1], "4 files received", "4 of them known by name", "not put into")


def test_a_table_that_is_not_there_yet(target: TargetProcess) -> None:
    """A new target is filled: said, and not called a proof."""
    with Verification(settings(target.url), ["orders"]) as proof:
        (nothing,) = proof.findings({"orders": 0})
        sent = push(target, range(100))
        (found,) = proof.findings({"orders": sent})
    assert (nothing.unchanged, found.unchanged) == (False, False)
    assert found.counts == {"came": 10}
    assert "no such table" in found.why[0]


class Nothing(BaseHTTPRequestHandler):
    """A push target that takes files, and knows no other path."""

    status = 404

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(b"no")

    def log_message(self, *_: object) -> None: ...


@pytest.mark.parametrize(
    ("status", "error"), [(404, InvalidConfiguration), (200, InvalidConfiguration), (503, NotVerified)]
)
def test_a_target_without_read_outs_is_refused(status: int, error: type[Exception]) -> None:
    """Before anything is sent; what is needed is named."""
    handler = type("Handler", (Nothing,), {"status": status})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(error, match=rf"/tables.*{status}"):
            Verification(settings(f"http://127.0.0.1:{server.server_port}"), ["orders"])
        server.shutdown()


def test_a_target_that_is_away_or_is_none_to_ask(target: TargetProcess) -> None:
    """Each with its cause."""
    with pytest.raises(NotVerified, match=saying("not be asked", "no connection")):
        Verification(settings("http://127.0.0.1:9"), ["orders"])
    with pytest.raises(InvalidConfiguration, match=saying("[--verify]", "not a push API")):
        Verification(DirectorySettings("/nowhere", "orders"), ["orders"])


def test_a_target_that_refuses_repeated_names(tmp_path: Any) -> None:
    """409, in the push API's words; the first one stays, and a slow one answers later."""
    with TargetProcess(repeats="refuse", slow_s=0.2) as target:
        push(target, range(10))
        with pytest.raises(requests.HTTPError) as refused:
            push(target, range(10))
        assert refused.value.response.status_code == 409
        (problem,) = refused.value.response.json()["errors"]
        assert (problem["attribute"], problem["errorCode"]) == ("file", "duplicate")
        assert target.client.statistics()["by_status"] == {"200": 1, "409": 1}
