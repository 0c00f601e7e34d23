"""The target as a process of its own, over real sockets."""

import http.client
import io
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import requests

from parquet_sink.addons.devkit.target.client import TargetClient
from parquet_sink.addons.devkit.target.process import TargetProcess
from parquet_sink.errors import SetupError

KEY = {"Authorization": "AppKey demo"}
KEYED = {"primaryKeys": "id", "duplicateRemovalOrderColumn": "o"}


@pytest.fixture(scope="module")
def running() -> Iterator[TargetProcess]:
    """One target for all tests of this module that leave it alive."""
    with TargetProcess() as process:
        yield process


@pytest.fixture
def target(running: TargetProcess) -> TargetProcess:
    """A target that holds nothing and misbehaves in nothing."""
    running.client.reset()
    return running


def parquet(**columns: Any) -> bytes:
    """The bytes of a Parquet file."""
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


def upload(target: TargetProcess, name: str, data: bytes, **more: Any) -> requests.Response:
    """One upload as the sink makes it; query parameters and headers can be replaced."""
    query = more.pop("query", {"targetName": "orders", "clientId": "test", **KEYED})
    headers = more.pop("headers", KEY)
    files = {"file": (name, data)}
    return requests.post(target.endpoint(), params=query, headers=headers, files=files, timeout=30, **more)


def test_a_target_never_outlives_who_started_it() -> None:
    """After kill -9 of the program that started it, the target is gone within seconds."""
    program = (
        "import time\n"
        "from parquet_sink.addons.devkit.target.process import TargetProcess\n"
        "target = TargetProcess(discard=True)\n"
        "target.start()\n"
        "print(target.url, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        client = TargetClient(started.stdout.readline().strip())
        assert client.healthy()
        started.kill()
    deadline = time.monotonic() + 20
    while client.healthy():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    client.close()


def test_an_upload_is_answered_stored_and_upserted(target: TargetProcess, tmp_path: Path) -> None:
    """The whole way: answer, journal, table, export, and the file byte for byte."""
    data = parquet(id=[1, 2, 1], o=[1, 1, 2], v=["a", "b", "c"])
    query = {"targetName": "a+b", "clientId": "Kafka2Ems 1", "fallbackVarcharLength": "80", **KEYED}
    answer = upload(target, "f_rows-3.parquet", data, query=query)
    assert answer.status_code == 200
    told = answer.json()
    assert (told["fileName"], told["flushStatus"]) == ("f_rows-3.parquet", "NEW")
    assert (told["clientId"], told["fallbackVarcharLength"]) == ("Kafka2Ems 1", 80)
    client = target.client
    client.sync()
    assert client.tables() == {"a+b": 2}
    assert client.rows("a+b", order_by="-id") == [{"id": 2, "o": 1, "v": "b"}, {"id": 1, "o": 2, "v": "c"}]
    assert client.table("a+b").sort_by("id").to_pydict() == {"id": [1, 2], "o": [2, 1], "v": ["c", "b"]}
    described = client.describe("a+b")
    assert (described["primary_keys"], described["order_column"], described["rows"]) == (["id"], "o", 2)
    [file] = client.files()
    assert (file["id"], file["rows"], file["bytes"], file["upsert_state"]) == (told["id"], 3, len(data), "upserted")
    client.download(file["id"], tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == data
    statistics = client.statistics()
    assert (statistics["files"], statistics["rows"], statistics["by_status"]) == (1, 3, {"200": 1})


def test_a_repeated_name_does_no_harm(target: TargetProcess) -> None:
    """Answered with the same id, counted, and not appended again."""
    query = {"targetName": "log"}
    ids = {upload(target, "f", parquet(v=[1]), query=query).json()["id"] for _ in range(3)}
    target.client.sync()
    statistics = target.client.statistics()
    assert (len(ids), target.client.tables()) == (1, {"log": 1})
    assert (statistics["files"], statistics["repeated"], statistics["altered"]) == (1, 2, 0)


def test_no_row_vanishes_when_a_topic_is_made_anew(target: TargetProcess) -> None:
    """The new topic's first file has the old one's name: its rows arrive, and the read-outs tell of it."""
    query = {"targetName": "log"}
    first = upload(target, "f", parquet(v=[1]), query=query).json()["id"]
    other = upload(target, "f", parquet(v=[2]), query=query).json()["id"]
    target.client.sync()
    assert target.client.table("log")["v"].to_pylist() == [1, 2]
    assert [(file["id"], file["altered"]) for file in target.client.files()] == [(first, 0), (other, 1)]
    assert target.client.statistics()["altered"] == 1


def test_an_incompatible_file_is_accepted_and_its_upsert_told_as_failed(target: TargetProcess) -> None:
    """As at the real thing the answer is 200; here the failure can be seen."""
    upload(target, "1", parquet(id=[1], o=[1], v=[1]))
    assert upload(target, "2", parquet(id=[2], o=[1], v=["x"])).status_code == 200
    target.client.sync()
    assert target.client.statistics()["failed_upserts"] == 1
    assert "column v" in target.client.files()[1]["upsert_error"]


@pytest.mark.parametrize(
    "headers",
    [{}, {"Authorization": "AppKey wrong"}, {"Authorization": "AppKey demo2"}, {"Authorization": "ä".encode()}],
)
def test_a_wrong_key_is_401(target: TargetProcess, headers: dict[str, str]) -> None:
    """Nothing is stored, and the refusal is counted."""
    assert upload(target, "f", parquet(v=[1]), headers=headers).status_code == 401
    statistics = target.client.statistics()
    assert (statistics["files"], statistics["refused"], statistics["by_status"]) == (0, 1, {"401": 1})


def test_uploads_that_break_the_contract_are_400(target: TargetProcess) -> None:
    """Each names what is wrong; the connection can be used again."""
    good, endpoint = parquet(v=[1]), target.endpoint()
    with requests.Session() as session:
        session.headers.update(KEY)

        def post(query: dict[str, str], **body: Any) -> str:
            answer = session.post(endpoint, params=query, timeout=30, **body)
            assert answer.status_code == 400
            return str(answer.json()["errors"][0]["attribute"])

        orders = {"targetName": "orders"}
        assert post({}, files={"file": ("f", good)}) == "targetName"
        assert post({**orders, "fallbackVarcharLength": "x"}, files={"file": ("f", good)}) == "fallbackVarcharLength"
        assert post(orders, data=good) == "Content-Type"
        assert post(orders, files={"data": ("f", good)}) == "file"
        assert post(orders, files=[("file", ("f", good)), ("file", ("g", good))]) == "file"
        assert post(orders, files={"file": ("f", b"a,b\n1,2\n" * 100_000)}) == "file"
        assert session.post(endpoint, params=orders, files={"file": ("f", good)}, timeout=30).status_code == 200
    assert target.client.statistics()["files"] == 1


def test_other_paths_and_methods(target: TargetProcess) -> None:
    """404 for what is not there, 405 for reading where one writes; no redirects."""
    assert requests.get(target.endpoint(), timeout=30).status_code == 405
    for path in ("/", "/items", "/continuous-batch-processing/api/v1/demo/items/"):
        answer = requests.post(target.url + path, headers=KEY, timeout=30, allow_redirects=False)
        assert answer.status_code == 404
    for path in ("/tables/none", "/tables/none/rows", "/tables/none/export", "/files/none/content"):
        assert requests.get(target.url + path, timeout=30).status_code == 404


def test_read_outs_are_bounded(target: TargetProcess) -> None:
    """Limits above the bound and nonsense are refused by name."""
    upload(target, "f", parquet(id=[1], o=[1]))
    target.client.sync()
    for path in (
        "/files?limit=10001",
        "/files?offset=-1",
        "/tables/orders/rows?limit=x",
        "/tables/orders/rows?order_by=no",
    ):
        assert requests.get(target.url + path, timeout=30).status_code == 400
    for bad in ("nan", "-1", "601", "x"):
        assert requests.post(target.url + "/sync", params={"timeout_s": bad}, timeout=30).status_code == 400


def test_every_type_of_value_can_be_read_out(target: TargetProcess) -> None:
    """Bytes, decimals, dates, nested values and not-a-number have a form in JSON."""
    columns = {
        "id": [1],
        "o": [1],
        "b": [b"\xff"],
        "n": pa.array([float("nan")]),
        "d": pa.array(["1.50"]).cast(pa.decimal128(9, 2)),
        "t": pa.array([0], pa.timestamp("ms", "UTC")),
        "l": [[1, None]],
        "s": [{"a": "x"}],
    }
    upload(target, "f", parquet(**columns))
    target.client.sync()
    [row] = target.client.rows("orders")
    assert {key: row[key] for key in "bndls"} == {"b": "/w==", "n": None, "d": "1.50", "l": [1, None], "s": {"a": "x"}}
    assert row["t"].startswith("1970-01-01T00:00:00")


@pytest.mark.parametrize(
    ("rule", "stored"),
    [({"cut": "before"}, False), ({"cut": "during"}, True), ({"cut": "after"}, True)],
)
def test_a_cut_closes_the_connection(target: TargetProcess, rule: dict[str, Any], stored: bool) -> None:
    """The client gets no whole answer; a resend is answered well, and the file is there once."""
    client = target.client
    client.order_faults({**rule, "next": 1})
    data = parquet(id=[1], o=[1])
    with pytest.raises(requests.RequestException):
        upload(target, "f", data).json()
    assert client.statistics()["files"] == int(stored)
    assert upload(target, "f", data).status_code == 200
    statistics = client.statistics()
    assert (statistics["files"], statistics["repeated"]) == (1, int(stored))
    assert statistics["by_status"] == {"200": 1, "cut": 1}


def test_half_an_answer_is_half_an_answer(target: TargetProcess) -> None:
    """Cut during: the status and the first half of the body arrive, then the end."""
    target.client.order_faults({"cut": "during"})
    with pytest.raises(requests.exceptions.ChunkedEncodingError, match="IncompleteRead"):
        upload(target, "f", parquet(id=[1], o=[1]))


def test_ordered_answers_replace_the_targets_own(target: TargetProcess) -> None:
    """Status, Retry-After, HTML and redirects are sent as ordered; nothing is stored, unless ordered as well."""
    client, data = target.client, parquet(id=[1], o=[1])
    client.order_faults(
        {"status": 503, "retry_after": "2", "next": 1},
        {"body": "<html>hello</html>", "next": 1},
        {"location": "http://127.0.0.1:1/x", "next": 1},
        {"status": 429, "retry_after": "junk", "body": "slow down", "next": 1},
    )
    answers = [upload(target, "f", data, allow_redirects=False) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [503, 200, 307, 429]
    assert (answers[0].headers["Retry-After"], answers[3].headers["Retry-After"]) == ("2", "junk")
    assert (answers[1].headers["Content-Type"].split(";")[0], answers[1].text) == ("text/html", "<html>hello</html>")
    assert (answers[2].headers["Location"], answers[3].text) == ("http://127.0.0.1:1/x", "slow down")
    assert client.statistics()["files"] == 0
    client.order_faults({"status": 504, "store": True, "next": 1})
    assert upload(target, "f", data).status_code == 504
    assert client.statistics()["files"] == 1
    assert [rule["fired"] for rule in client.faults()] == [1] * 5
    client.clear_faults()
    assert client.faults() == []


def test_rules_match_by_target_or_topic_and_latency_delays(target: TargetProcess) -> None:
    """Only what matches suffers; a delayed upload is stored and answered well."""
    target.client.order_faults({"status": 500, "match": "topic-b_"}, {"latency_s": 0.2, "match": "orders"})
    data = parquet(id=[1], o=[1])
    assert upload(target, "topic-b_1", data).status_code == 500
    answer = upload(target, "topic-a_1", data)
    assert answer.status_code == 200
    assert answer.elapsed.total_seconds() >= 0.2


def test_bad_orders_are_refused(target: TargetProcess) -> None:
    """The answer names the key; no rule is kept."""
    for order in (b"{", b'{"status": 1}', json.dumps([{"status": 500}] * 101).encode()):
        answer = requests.post(target.url + "/faults", data=order, timeout=30)
        assert (answer.status_code, len(answer.json()["errors"])) == (400, 1)
    assert target.client.faults() == []


def test_a_client_that_goes_away_leaves_nothing(target: TargetProcess) -> None:
    """Half a body is not a file."""
    url = urlsplit(target.endpoint())
    with socket.create_connection((str(url.hostname), int(url.port or 0))) as connection:
        head = (
            f"POST {url.path}?targetName=t HTTP/1.1\r\nHost: x\r\nAuthorization: AppKey demo\r\n"
            "Content-Length: 100000\r\nContent-Type: multipart/form-data; boundary=b\r\n\r\n"
            '--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nPAR1'
        )
        connection.sendall(head.encode())
    client = target.client
    while "disconnected" not in client.statistics()["by_status"]:
        time.sleep(0.01)
    assert client.statistics()["files"] == 0


def test_chunked_bodies_are_read(target: TargetProcess) -> None:
    """As the reference client sends them: chunked, in small pieces, with its part headers."""
    data = parquet(id=list(range(20_000)), o=list(range(20_000)))
    head = (
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\nContent-Transfer-Encoding: binary\r\n\r\n'
    )
    body = io.BytesIO(head + data + b"\r\n--b--\r\n")
    answer = requests.post(
        target.endpoint(),
        params={"targetName": "t"},
        headers={**KEY, "Content-Type": "multipart/form-data; boundary=b"},
        data=iter(lambda: body.read(8_192), b""),
        timeout=30,
    )
    assert answer.status_code == 200
    assert target.client.files()[0]["bytes"] == len(data)


def test_parallel_uploads_of_one_name_store_one_file(target: TargetProcess) -> None:
    """Whoever comes first is stored; the others are repetitions."""
    data, answers = parquet(v=list(range(1_000))), []
    threads = [
        threading.Thread(
            target=lambda: answers.append(upload(target, "f", data, query={"targetName": "t"}).status_code)
        )
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    target.client.sync()
    statistics = target.client.statistics()
    assert (answers, statistics["files"], statistics["repeated"]) == ([200] * 8, 1, 7)
    assert target.client.tables() == {"t": 1_000}


def test_everything_answered_survives_kill_9() -> None:
    """Killed again and again under load: each accepted file is there, byte for byte, and appended exactly once."""
    accepted: list[int] = []
    stop = threading.Event()
    with TargetProcess() as target:

        def send() -> None:
            for number in range(10_000):
                data = parquet(v=[number] * 100)
                while not stop.is_set():
                    try:
                        if upload(target, f"{number}", data, query={"targetName": "log"}).ok:
                            accepted.append(number)
                            break
                    except requests.RequestException:
                        time.sleep(0.01)
                if stop.is_set():
                    return

        sender = threading.Thread(target=send)
        sender.start()
        for kills in range(1, 4):
            while len(accepted) < 15 * kills:
                time.sleep(0.005)
            target.kill()
            target.restart()
        stop.set()
        sender.join()
        client = target.client
        client.sync()
        files = client.files()
        names = [int(file["name"]) for file in files]
        assert set(accepted) <= set(names)
        assert len(names) == len(set(names))
        assert {file["upsert_state"] for file in files} == {"upserted"}
        counts = client.table("log").group_by("v").aggregate([("v", "count")])
        assert dict(zip(counts["v"].to_pylist(), counts["v_count"].to_pylist(), strict=True)) == dict.fromkeys(
            names, 100
        )


def test_sigterm_ends_cleanly_and_removes_the_temporary_folder(tmp_path: Path) -> None:
    """Exit status 0, nothing left, also with a connection held open."""
    command = [sys.executable, "-m", "parquet_sink.addons.devkit.target", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={"TMPDIR": str(tmp_path)}) as process:
        assert process.stdout is not None
        url = urlsplit(process.stdout.readline().removeprefix("target ready at ").strip())
        held = http.client.HTTPConnection(str(url.hostname), url.port)
        held.request("GET", "/healthz")
        assert held.getresponse().read() == b'{"status":"ok"}'
        assert len(list(tmp_path.iterdir())) == 1
        process.terminate()
        assert process.wait(20) == 0
        held.close()
    assert list(tmp_path.iterdir()) == []


def test_sigterm_does_not_wait_for_ordered_latency() -> None:
    """An upload that is kept waiting is cut, quietly, and the exit status is 0."""
    with TargetProcess() as target:
        target.client.order_faults({"latency_s": 3_600})
        waiting = threading.Thread(target=_cut_upload, args=(target,))
        waiting.start()
        while target.client.statistics()["files"] == 0:
            time.sleep(0.01)
        assert target.stop() == 0
        waiting.join()
        assert "Traceback" not in target.log.read_text()


def _cut_upload(target: TargetProcess) -> None:
    with pytest.raises(requests.ConnectionError):
        upload(target, "f", parquet(id=[1], o=[1]))


def test_two_targets_do_not_share_a_folder_or_a_port(tmp_path: Path) -> None:
    """The second one says so."""
    with TargetProcess(tmp_path / "data") as first:
        with pytest.raises(SetupError, match="another target uses it"), TargetProcess(tmp_path / "data"):
            pass
        with pytest.raises(SetupError, match="Name a free port"), TargetProcess(port=urlsplit(first.url).port or 0):
            pass


def test_restart_keeps_port_and_data() -> None:
    """After kill and restart the address is the same, and so are the files."""
    with TargetProcess() as target:
        upload(target, "f", parquet(id=[1], o=[1]))
        before = (target.url, target.client.files()[0]["id"])
        target.restart()
        assert (target.url, target.client.files()[0]["id"]) == before
        assert target.stop() == 0
        assert not TargetClient(before[0], timeout_s=1).healthy()


def test_discarding_remembers_and_stores_nothing() -> None:
    """Name, bytes, rows of the name and times; tables there are none; faults work the same."""
    name = "topic-a_partition-0_firstOffset-0_lastOffset-9_bytes-5_rows-10.parquet"
    with TargetProcess(discard=True) as target:
        client = target.client
        client.order_faults({"cut": "after", "next": 1})
        with pytest.raises(requests.ConnectionError):
            upload(target, name, b"x" * 1_000_000)
        assert upload(target, name, b"x" * 1_000_000).status_code == 200
        assert upload(target, name, b"x", headers={}).status_code == 401
        [file] = client.files()
        assert (file["name"], file["bytes"], file["rows"], file["repeated"]) == (name, 1_000_000, 10, 1)
        assert file["accepted_at_ms"] >= file["received_at_ms"] > 0
        client.sync()
        assert client.tables() == {}
        assert requests.get(f"{target.url}/files/{file['id']}/content", timeout=30).status_code == 404
        client.reset()
        assert client.statistics()["files"] == 0


def test_beyond_loopback_everything_but_health_needs_the_key() -> None:
    """Read-outs and faults too; only whoever runs the machine sees that it is alive."""
    command = [
        sys.executable,
        "-m",
        "parquet_sink.addons.devkit.target",
        "--port",
        "0",
        "--host",
        "0.0.0.0",
        "--allow-remote",
    ]
    with subprocess.Popen([*command, "--authorization", "AppKey s"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().removeprefix("target ready at ").strip().replace("0.0.0.0", "127.0.0.1")
            assert requests.get(url + "/healthz", timeout=30).status_code == 200
            for method, path in [("GET", "/tables"), ("GET", "/files"), ("GET", "/statistics"), ("GET", "/faults"),
                                 ("POST", "/faults"), ("DELETE", "/faults"), ("DELETE", "/reset"), ("POST", "/sync"),
                                 ("GET", "/tables/x"), ("GET", "/tables/x/rows"), ("GET", "/tables/x/export"),
                                 ("GET", "/files/x/content")]:  # fmt: skip
                assert requests.request(method, url + path, timeout=30).status_code == 401
            assert TargetClient(url, authorization="AppKey s").tables() == {}
        finally:
            process.terminate()
