"""`parquet-sink replay --verify`: the target's tables before and after a replay, and the result as lines and JSON."""

import argparse
import json
import logging
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parquet_sink.addons.replay.copies import ReplayFile
from parquet_sink.addons.replay.differences import difference_rows
from parquet_sink.addons.replay.plan import ReplayPlan
from parquet_sink.addons.replay.run import Watcher
from parquet_sink.addons.replay.verify import Finding, Verification
from parquet_sink.errors import InvalidConfiguration, NotVerified
from parquet_sink.settings.sink import SinkSettings

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Proven:
    """What became of each table. sent: rows that were sent, by table.

    failure: why the tables were not compared, in words; stopped: because it was interrupted.
    """

    connector: str
    findings: Sequence[Finding]
    sent: Mapping[str, int]
    failure: str | None = None
    stopped: bool = False

    @property
    def holds(self) -> bool:
        """Whether something was sent, and every table is shown to be unchanged."""
        return self.failure is None and sum(self.sent.values()) > 0 and all(one.unchanged for one in self.findings)

    def lines(self) -> Iterator[str]:
        """In words."""
        if self.failure is not None:
            yield f"connector {self.connector}: NOT PROVEN: {self.failure}"
        elif not sum(self.sent.values()):
            yield f"connector {self.connector}: NOT PROVEN: no row was sent, so nothing is shown"
        for finding in self.findings:
            if self.sent.get(finding.table) or not finding.unchanged:
                first, *more = finding.lines()
                yield f"connector {self.connector}: {first}"
                yield from more

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        tables = [finding.as_json() for finding in self.findings]
        return {"unchanged": self.holds, "failure": self.failure, "tables": tables}


class Proof(Watcher):
    """Counts what is sent, by table, and compares the tables in the end."""

    def __init__(self, settings: SinkSettings, verification: Verification, differences: Path | None) -> None:
        self._settings, self._verification, self._differences = settings, verification, differences
        self._sent: Counter[str] = Counter()
        self._lock = threading.Lock()

    def sent(self, file: ReplayFile) -> None:
        with self._lock:
            self._sent[self._settings.table_of(file.topic)] += file.rows

    def result(self) -> Proven | None:
        """The comparison, or why there is none: everything was sent, whatever becomes of it."""
        name = self._settings.name
        try:
            findings = self._verification.findings(self._sent)
            if self._differences is not None:
                _write(self._differences, findings)
        except (NotVerified, InvalidConfiguration) as error:
            return Proven(name, (), self._sent, str(error))
        except OSError as error:
            return Proven(
                name, (), self._sent, f"the differences cannot be written to {self._differences}: {error.strerror}"
            )
        except KeyboardInterrupt:
            return Proven(name, (), self._sent, "stopped before the tables were compared; all was sent", stopped=True)
        return Proven(name, findings, self._sent)


class NoProof(Watcher):
    """None was asked for."""

    def result(self) -> Proven | None:
        return None


@contextmanager
def proof_for(args: argparse.Namespace, settings: SinkSettings, plan: ReplayPlan) -> Iterator[Proof | NoProof]:
    """The tables that the plan's topics go to, as they are now. Raises InvalidConfiguration, NotVerified."""
    if not args.verify:
        yield NoProof()
        return
    differences = _writable(args.differences)
    tables = [settings.table_of(one.planned.topic) for one in plan.ranges]
    tells = args.progress or sys.stderr.isatty()

    def report(table: str, done: int, of: int) -> None:
        if tells:
            log.info("connector %s: table %s: %d of %d parts of its digests read", settings.name, table, done, of)

    with Verification(settings.target, tables, report) as verification:
        yield Proof(settings, verification, differences)


def _writable(name: str | None) -> Path | None:
    """The file for differences, made empty before anything is sent."""
    if name is None:
        return None
    path = Path(name)
    try:
        path.write_text("")
    except OSError as error:
        raise InvalidConfiguration(
            [f"Invalid [--differences]. {name} cannot be written: {os.strerror(error.errno or 0)}. Name another file."]
        ) from None
    return path


def _write(path: Path, findings: Sequence[Finding]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for finding in findings:
            if finding.rows_by_key is not None:
                for row in difference_rows(finding.rows_by_key, finding.keys):
                    print(json.dumps({"table": finding.table, **row}, ensure_ascii=False, default=str), file=file)
