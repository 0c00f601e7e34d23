"""The demo's second half: all that was delivered is sent again, twice and out of order, and the tables are compared.

Two scenes. The shipped connector names no order column, so the sink adds the offset: nothing may change. The other one
orders by `created_at`, which all changes of an order share, so that nothing tells new from old: rows go back in time,
and each is named.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from parquet_sink.addons.devkit.demo.expected import Comparison, Delivered
from parquet_sink.addons.devkit.demo.proof import Check
from parquet_sink.addons.devkit.demo.show import Show
from parquet_sink.errors import DemoFailed
from parquet_sink.process.signals import ParentDeathGuard

UNORDERED: Final = "ORDERS_BY_CREATION"
TIMES: Final = 2
SHOWN: Final = 3
_UNCHANGED: Final = re.compile(r"table (\S+): unchanged: ([\d,]+) rows, ([\d,]+) repeated rows absorbed")
LIMIT_S: Final = 600.0
_STOP_S: Final = 10.0
_LAST_CHARACTERS: Final = 4_000


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it printed."""

    status: int
    lines: tuple[str, ...]
    words: str


def command_line(words: Sequence[str]) -> str:
    """What a user would type."""
    return shlex.join(("parquet-sink", *words))


def run_to_end(words: Sequence[str], tmp: Path) -> Ended:
    """Run `parquet-sink WORDS`, its temporary files in `tmp`. Raises DemoFailed when it takes too long."""
    process = subprocess.Popen(
        [sys.executable, "-m", "parquet_sink", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp)},
        start_new_session=True,  # Ctrl-C is for the demo to handle, in order
    )
    guard = ParentDeathGuard(process.pid)
    try:
        printed, told = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        raise DemoFailed(f"{command_line(words)}: it did not end within {LIMIT_S:.0f} s.") from None
    finally:
        _end(process)
        guard.release()
    return Ended(process.returncode, tuple(printed.splitlines()), told[-_LAST_CHARACTERS:])


def _end(process: "subprocess.Popen[str]") -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.communicate(timeout=_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


@dataclass(frozen=True)
class Where:
    """What replays are told on the command line, and where their files go."""

    worker: Path
    bootstrap_servers: str
    folder: Path
    tmp: Path


@dataclass(frozen=True)
class Half:
    """One replay of half of the records. differences: each row that the command says differs."""

    ended: Ended
    differences: tuple[Mapping[str, Any], ...]

    @property
    def absorbed(self) -> tuple[int, int] | None:
        """Rows of the table, and repeated rows that it absorbed; None when it was not unchanged."""
        found = next(filter(None, map(_UNCHANGED.search, self.ended.lines)), None)
        return None if found is None else (_number(found[2]), _number(found[3]))


class Replays:
    """Runs the commands that a user would, and shows them with what they say."""

    def __init__(self, show: Show, where: Where) -> None:
        self._show, self._where = show, where

    def deliver(self, connector: Path) -> None:
        """Deliver all that is in Kafka by another connector. Raises DemoFailed."""
        self._show.step("delivering the same topic with another connector, without an order column:")
        ended = self._run(
            "run", "--worker", str(self._where.worker), *self._servers(), "--until-caught-up", str(connector)
        )
        if ended.status != 0:
            raise DemoFailed(f"It ended with exit status {ended.status}.\n{ended.words}")

    def out_of_order(self, connector: Path, at_ms: int) -> tuple[Half, Half]:
        """All of it twice, the half from `at_ms` on first, then the older half."""
        return self._half(connector, "--since", at_ms), self._half(connector, "--until", at_ms)

    def _half(self, connector: Path, option: str, at_ms: int) -> Half:
        differences = self._where.folder / f"{connector.stem}{option}.jsonl"
        chosen = (option, str(at_ms), "--times", str(TIMES), "--verify", "--differences", str(differences))
        files = ("--connector", str(connector), "--worker", str(self._where.worker))
        ended = self._run("replay", *files, *self._servers(), *chosen)
        if ended.status not in (0, 1) or not ended.lines:
            raise DemoFailed(f"It ended with exit status {ended.status}.\n{ended.words}")
        rows = tuple(json.loads(line) for line in differences.read_text().splitlines())
        return Half(ended, rows)

    def _servers(self) -> tuple[str, str]:
        return "--bootstrap-servers", self._where.bootstrap_servers

    def _run(self, *words: str) -> Ended:
        self._show.note(command_line(words))
        ended = run_to_end(words, self._where.tmp)
        for line in ended.lines:
            self._show.print(f"            {line}")
        return ended


def judge_ordered(halves: Sequence[Half], table: str) -> Check:
    """The table did not change, though all of it came twice more."""
    absorbed = [half.absorbed for half in halves]
    rows = [found[0] for found in absorbed if found is not None]
    ok = len(rows) == len(halves) and all(half.ended.status == 0 for half in halves)
    repeated = sum(found[1] for found in absorbed if found is not None)
    figures = f"{rows[-1]:,} rows, {repeated:,} repeated rows absorbed" if rows else "see above"
    return Check(f"all of it replayed {TIMES} times, the newer half first, leaves {table} unchanged", ok, figures)


def judge_table(found: Comparison, table: str) -> Check:
    """It still is what was sent."""
    figures = f"{found.rows:,} rows x {found.columns} columns compared, {found.differences:,} differences"
    name = f"after the replays {table} still equals the last state of each key"
    return Check(name, found.differences == 0 and found.rows > 0, figures, found.examples)


def judge_unordered(
    halves: Sequence[Half], last: Mapping[int, Delivered], now: Mapping[int, Mapping[str, Any]], table: str
) -> Check:
    """Rows went back, each of them is named, and none is named that did not.

    last: the last value of each order that was sent and not cancelled. now: the table's rows by order.
    """
    newer, older = halves
    named = {int(one["key"]["order_id"]): one for one in older.differences}
    truly = {order for order, row in now.items() if order in last and int(row["kafkaOffset"]) < last[order].offset}
    right = all(_went_back(one, last.get(order), now[order]) for order, one in named.items())
    ok = newer.ended.status == 0 and older.ended.status == 1 and right and bool(truly) and truly <= named.keys()
    figures = f"{len(named):,} of {len(now):,} rows went back in time, each named"
    shown = [_told(order, last[order], now[order]) for order in sorted(truly)[:SHOWN]]
    return Check(f"without an order column, {table} shows it", ok, figures, tuple(shown))


def _went_back(one: Mapping[str, Any], last: Delivered | None, now: Mapping[str, Any]) -> bool:
    """Whether what was said of a row is true."""
    if one["became"] != "back" or one["after"]["offset"] != now["kafkaOffset"]:
        return False
    return one["after"]["offset"] < one["before"]["offset"] and (last is None or one["before"]["offset"] == last.offset)


def _told(order: int, last: Delivered, now: Mapping[str, Any]) -> str:
    was = json.loads(last.value)["status"]
    return f"order {order}: was {was} (offset {last.offset:,}), is {now['status']} (offset {now['kafkaOffset']:,})"


def _number(text: str) -> int:
    return int(text.replace(",", ""))
