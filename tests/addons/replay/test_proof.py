"""`parquet-sink replay --verify`: which options go together, and what the command makes of findings."""

import argparse
import json
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from parquet_sink.addons.replay.command import proof as replay_proof
from parquet_sink.addons.replay.command.command import add_arguments, selection_of
from parquet_sink.addons.replay.command.proof import NoProof, Proof, Proven, proof_for
from parquet_sink.addons.replay.copies import ReplayFile
from parquet_sink.addons.replay.differences import Kind, Received
from parquet_sink.addons.replay.plan import ReplayPlan
from parquet_sink.addons.replay.verify import Finding, Verification
from parquet_sink.errors import InvalidConfiguration, NotVerified
from parquet_sink.settings.sink import SinkSettings
from tests.messages import assert_says, saying

UNCHANGED = Finding("T", 10, 0, Received(2, 20), 20)
SETTINGS = cast("SinkSettings", SimpleNamespace(name="c", table_of=str.upper, target=None))


def options(*argv: str) -> argparse.Namespace:
    """As the command line gives them."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(["--connector", "c.properties", *argv])


def file_of(topic: str, rows: int) -> ReplayFile:
    """One file that was accepted."""
    return ReplayFile(topic, 0, "f", 0, rows - 1, rows, rows, 1, None)


class Tables:
    """Stands for a target: answers what it is told to."""

    def __init__(self, answer: Callable[[Any], list[Finding]]) -> None:
        self.answer = answer

    def findings(self, sent: Any) -> list[Finding]:
        return self.answer(sent)


def proof(answer: Callable[[Any], list[Finding]], differences: Path | None = None) -> Proof:
    """A proof over such a target."""
    return Proof(SETTINGS, cast("Verification", Tables(answer)), differences)


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (["--differences", "d"], ("[--differences]", "with --verify", "add that")),
        (["--verify", "--dry-run"], ("[--verify]", "With --dry-run", "remove one")),
    ],
)
def test_options_that_do_not_go_together(argv: list[str], named: tuple[str, ...]) -> None:
    """Told before anything is read."""
    with pytest.raises(InvalidConfiguration, match=saying(*named)):
        selection_of(options(*argv))


def test_without_the_option_nothing_is_asked() -> None:
    """No target, no table."""
    with proof_for(options(), SETTINGS, ReplayPlan(())) as nothing:
        assert isinstance(nothing, NoProof)
        nothing.sent(file_of("t", 1))
        assert nothing.result() is None


def test_rows_are_counted_by_table_whatever_thread_sends_them() -> None:
    """The target's count is compared with that of what was sent."""
    seen: list[Any] = []

    def answer(sent: Any) -> list[Finding]:
        seen.append(dict(sent))
        return [UNCHANGED]

    def send(topic: str) -> None:
        for _ in range(500):
            counting.sent(file_of(topic, 3))

    counting = proof(answer)
    threads = [threading.Thread(target=send, args=(topic,)) for topic in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    result = counting.result()
    assert seen == [{"A": 1_500, "B": 1_500}]
    assert result is not None
    assert result.holds


@pytest.mark.parametrize(
    ("proven", "holds", "words"),
    [
        (Proven("c", [UNCHANGED], {"T": 20}), True, ("table T: unchanged", "10 rows", "20 repeated rows absorbed")),
        (Proven("c", [UNCHANGED], {"T": 0}), False, ("NOT PROVEN", "no row was sent")),
        (Proven("c", [], {}), False, ("NOT PROVEN", "no row was sent")),
        (Proven("c", [], {"T": 1}, "it is away"), False, ("NOT PROVEN", "it is away")),
        (
            Proven("c", [UNCHANGED, Finding("U", 5, 0, Received(1, 5), 5, {Kind.BACK: 2}, why=("so",))], {"T": 25}),
            False,
            ("table U: CHANGED", "5 rows now", "2 went back in time"),
        ),
    ],
)
def test_only_unchanged_tables_that_got_something_are_a_proof(
    proven: Proven, holds: bool, words: tuple[str, ...]
) -> None:
    """In words and as JSON."""
    assert proven.holds is holds
    (line,) = [told for told in proven.lines() if words[0] in told]
    assert_says(line, "connector c", *words)
    assert json.loads(json.dumps(proven.to_dict()))["unchanged"] is holds


def _raises(error: BaseException) -> Callable[[Any], list[Finding]]:
    def answer(_: Any) -> list[Finding]:
        raise error

    return answer


@pytest.mark.parametrize(
    ("error", "said", "stopped"),
    [
        (NotVerified("it is away"), "it is away", False),
        (InvalidConfiguration(["it has no tables any more"]), "it has no tables any more", False),
        (KeyboardInterrupt(), "before the tables were compared", True),
    ],
)
def test_what_keeps_the_tables_from_being_compared_is_told(error: BaseException, said: str, stopped: bool) -> None:
    """All was sent by then, so the command still says what it did."""
    result = proof(_raises(error)).result()
    assert result is not None
    assert (result.holds, result.stopped) == (False, stopped)
    assert said in str(result.failure)


def test_each_difference_is_written(tmp_path: Path) -> None:
    """One JSON object a line, with key, what became of it, and both moments."""
    rows = pa.table(
        {
            "key_0": [7, 8],
            **{f"{side}_offset": [100, None] for side in ("before", "after")},
            "before_deleted": [False, None],
            "after_deleted": [False, False],
            "before_there": [True, False],
            "after_there": [True, True],
            "kind": ["back", "came"],
        }
    )
    finding = Finding("T", 5, 0, Received(1, 5), 5, {Kind.BACK: 1, Kind.CAME: 1}, rows_by_key=rows, keys=("id",))
    path = tmp_path / "d.jsonl"
    proof(lambda _: [finding], path).result()
    first, second = map(json.loads, path.read_text().splitlines())
    moment = {"offset": 100, "deleted": False}
    assert first == {"table": "T", "key": {"id": 7}, "became": "back", "before": moment, "after": moment}
    assert (second["before"], second["after"]) == (None, {"offset": None, "deleted": False})


def test_differences_that_cannot_be_written_are_told_before_anything_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is made first."""
    monkeypatch.setattr(replay_proof, "Verification", None)
    args = options("--verify", "--differences", str(tmp_path / "no" / "d"))
    with (
        pytest.raises(InvalidConfiguration, match=saying("[--differences]", "No such file or directory")),
        proof_for(args, SETTINGS, ReplayPlan(())),
    ):
        pass
