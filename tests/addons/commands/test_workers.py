"""`parquet-sink workers`: a group in words."""

import json
from dataclasses import replace
from typing import Any

import pytest

from parquet_sink.cli.main import main
from tests.messages import assert_says
from tests.worker.rest.fake_herder import FakeHerder
from tests.worker.rest.serving import serving

ODD = "2 workers of the group have the address a:8083; end one\x1b[1m."


class OddHerder(FakeHerder):
    """Of a group in which something is odd, and one connector has no worker."""

    def workers(self) -> Any:
        return replace(super().workers(), waiting=("payments",), warnings=(ODD,))


def test_what_is_odd_about_the_group_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Behind the workers and what has none, without what moves a cursor; `--json` has it as it came."""
    with serving(OddHerder()) as client:
        url = f"http://127.0.0.1:{client.port}"
        assert main(["workers", "--url", url]) == 1
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith("1 worker, assignment 1 of ")
        assert "leader" in lines[1]
        assert lines[-2] == "  no worker has payments"
        assert_says(lines[-1], "warning", "2 workers", "a:8083", "end one")
        assert "\x1b" not in lines[-1]
        assert main(["workers", "--json", "--url", url]) == 1
        assert json.loads(capsys.readouterr().out)["warnings"] == [ODD]


def test_a_group_in_order_has_no_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    """And each connector has a worker."""
    with serving(FakeHerder()) as client:
        assert main(["workers", "--url", f"http://127.0.0.1:{client.port}"]) == 0
    assert "warning" not in capsys.readouterr().out
