"""`make faults` itself: rows that hold, a row that does not, and the words around them."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import requests

from integration import scripted_target as script
from integration.faults import report
from integration.faults.__main__ import chosen, stages
from integration.faults.answers import HTTP, UNKNOWN, Answer
from integration.faults.front import Front
from integration.faults.http import PARTS, SMALL, AttemptAct
from integration.faults.rows import BROKE, HELD, NOT_RUN, Outcome, Row
from integration.faults.scenes import SCENES
from integration.faults.stage import Stage
from integration.faults.world import Topic, World
from integration.oracle.oracle import Findings
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess
from tests.messages import assert_says

TABLE = [
    "| http: 503 | attempt 1; attempt 3 | 2 of 2 | 600 | 0 | 200 | seen |",
    "| disk: full; read-only |  | not run | 0 | 0 | 0 | why |",
]
"""Lines of a table in Markdown, as docs/explanation/reliability.md has them."""


@pytest.fixture
def world(broker: Broker, target: TargetProcess, tmp_path: Path) -> World:
    """What rows share, without certificates."""
    return World(broker, target, tmp_path, tmp_path / "certificates")


@pytest.mark.slow
def test_rows_hold_or_not(world: World, tmp_path: Path) -> None:
    """A passing fault and a refusal hold; a lost file, a refusal that is none and a pause too short do not."""
    topic = Topic(world.broker, "attempts-of-tests")
    topic.produce(300)

    def act(fault: str, answer: Answer, attempt: int = 1) -> AttemptAct:
        return AttemptAct(Row("http", fault, f"attempt {attempt}"), world, topic, answer, attempt, SMALL)

    taken_and_lost = Answer(script.accept, UNKNOWN, whole=False)
    acts = [
        act("503", HTTP["503"]),
        act("404", HTTP["404"], 3),
        act("a file that the target lost", taken_and_lost),
        act("a refusal that is none", replace(HTTP["503"], kind="refused", words=("answered 404",))),
        act("a pause too short", replace(HTTP["429"], wait_s=30)),
    ]
    Stage(acts, tmp_path / "stage").run()
    found = {one.row.fault: one for one in (act.outcome for act in acts)}
    assert [one.status for one in found.values()] == [HELD, HELD, BROKE, BROKE, BROKE], report.lines(
        list(found.values())
    )
    assert found["503"].findings.repeated == 100, "the target kept the file and was sent it again"
    assert found["a file that the target lost"].findings.missing == 100
    assert "Retry-After was not waited for" in found["a pause too short"].troubles[0]


def outcome(status: str, missing: int = 0, how: str = "attempt 1") -> Outcome:
    """Of a row with 300 records."""
    return Outcome(Row("http", "503", how), status, "seen", Findings(missing=missing, repeated=100), 300, 3)


def test_the_last_line_counts_what_was_run() -> None:
    """Rows that were not run are counted apart, and everything that was run must have held."""
    rows = [outcome(HELD), outcome(BROKE, 2), Outcome(Row("disk", "full"), NOT_RUN, "no mount")]
    assert json.loads(report.summary(rows)) == {
        "faults": 2,
        "held": 1,
        "not_run": 1,
        "records": 600,
        "missing": 2,
        "altered": 0,
        "invented": 0,
        "repeated": 200,
    }
    assert [report.passed(some) for some in (rows, rows[:1], rows[2:], [])] == [False, True, False, False]


def test_the_table_has_a_line_for_faults_with_the_same_figures() -> None:
    """Rows of one fault are summed, of a row that came again the last result counts, and what was not run says so."""
    rows = [
        outcome(BROKE, 5),
        outcome(HELD),
        outcome(HELD, how="attempt 3"),
        Outcome(Row("disk", "full"), NOT_RUN, "why"),
        Outcome(Row("disk", "read-only"), NOT_RUN, "why"),
    ]
    assert report.markdown(map(report.result, rows))[2:] == TABLE


def test_every_row_is_documented() -> None:
    """docs/explanation/reliability.md says what happens at each fault that there is, and at no other."""
    page = (Path(__file__).parents[1] / "docs" / "explanation" / "reliability.md").read_text(encoding="utf-8")
    cells = [
        line.split(" | ")[0].removeprefix("| ") for line in page.partition("## Faults and what to do")[2].splitlines()
    ]
    told = {f"{cell.partition(': ')[0]}: {name}" for cell in cells for name in cell.partition(": ")[2].split("; ")}
    nowhere = World(*[cast("Any", None)] * 4)
    rows = {f"{act.row.part}: {act.row.fault}" for scenes in SCENES.values() for act in scenes(nowhere)}
    rows |= {f"{part}: {fault}" for part, table in PARTS.items() for fault in table}
    assert rows <= told
    alone = {"http: 422, error.policy=CONTINUE", "http: 429, Retry-After of a day", "connection: unknown host name"}
    assert {one for one in told - rows if ": " in one and one.split(": ")[0] in {*PARTS, *SCENES}} == alone


def test_an_unknown_part_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Status 2, before anything is started."""
    with pytest.raises(SystemExit) as ended:
        chosen("http,disc")
    assert ended.value.code == 2
    assert_says(capsys.readouterr().err, "unknown disc", "known", "http, connection, tls, disk")
    assert chosen(" disk,") == {"disk"}


def test_rows_can_be_chosen(world: World) -> None:
    """`ONLY` takes rows by a part of their names; what needs a program of its own has one."""
    fault = "topic: deleted and created again"
    assert [[str(act.row) for act in acts] for acts in stages(world, {"disk", "topic"}, "created again")] == [
        [f"{fault}, while running", f"{fault}, while stopped"]
    ]
    assert [len(acts) for acts in stages(world, {"disk", "broker"}, "")] == [1] * 9
    assert list(stages(world, {"disk"}, "no such row")) == []


@pytest.fixture
def front(target: TargetProcess) -> Iterator[Front]:
    """A front before the target that answers 503 first."""
    with Front(int(target.url.rpartition(":")[2]), [script.answer(503)]) as started:
        yield started


@pytest.mark.parametrize("size", [0, 1, 50, 300_000, 5_000_000])
def test_the_front_notes_names_and_contents(front: Front, size: int) -> None:
    """Whatever the boundary is, the same file has the same digest, that of its bytes."""
    content, name = bytes(range(256)) * (size // 256 + 1), f"file-{size}.parquet"
    for _ in range(2):
        requests.post(
            f"{front.endpoint}?targetName=T",
            files={"file": (name, content[:size])},
            headers={"Authorization": "AppKey demo"},
            timeout=20,
        )
    digest = hashlib.sha256(content[:size]).hexdigest()
    assert [(one.name, one.digest) for one in front.attempts] == [(name, digest)] * 2
