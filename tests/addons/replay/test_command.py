"""`parquet-sink replay`: options, a topic in memory, a target that is a folder; what it prints and ends with."""

import json
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from parquet_sink.addons.replay import run
from parquet_sink.addons.replay.command import flow as replay_flow
from parquet_sink.addons.replay.command import setup as replay_setup
from parquet_sink.addons.replay.plan import Held, Survey
from parquet_sink.addons.replay.selection import Selection
from parquet_sink.cli.main import main, parser_for
from parquet_sink.connectors.check import check_files
from parquet_sink.errors import KafkaFailed
from parquet_sink.history.sqlite import write_history
from parquet_sink.history.writer import HistoryWriter
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.records import RecordBatch, RecordParts
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.task.outcome import record_outcomes, sender_of
from tests.cli.connector_file import connector_lines
from tests.messages import assert_says
from tests.spark_task import flushed
from tests.task.fakes import wide

KEY = ("orders", 0)
RECORDS = 23


class Topic:
    """In memory: offsets 0 to RECORDS - 1, of which the first `low` are gone. broken_at: where reading fails."""

    def __init__(self) -> None:
        self.low, self.broken_at, self.values = 0, -1, [wide(number) for number in range(RECORDS)]
        self.on_read: Callable[[int], None] = lambda offset: None

    def read(self, kafka: KafkaSettings, planned: PlannedRange, parts: RecordParts) -> Iterator[RecordBatch]:
        for offset in range(planned.start, planned.end):
            self.on_read(offset)
            if offset == self.broken_at:
                raise KafkaFailed("The broker is on fire. Put it out.")
            yield RecordBatch.of("orders", planned.partition, [offset], [1_000], [self.values[offset]])

    def survey(self, kafka: KafkaSettings, selection: Selection, archived: Mapping[PartitionKey, int]) -> Survey:
        held = Held(self.low, RECORDS, "id", False)
        since = {} if selection.since_ms is None else {KEY: 5}
        until = {} if selection.until_ms is None else {KEY: 15}
        return Survey({KEY: held}, {KEY: RECORDS}, since, until)


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    """Behind the command."""
    found = Topic()
    monkeypatch.setattr(run, "from_kafka", found.read)
    monkeypatch.setattr(replay_setup, "survey", found.survey)
    return found


class Command:
    """A connector with its file, what it printed, and what its target has."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys
        self.out = folder / "out"
        self.out.mkdir()
        self.write()

    def write(self, **more: str) -> None:
        """The connector file; further keys with underscores for full stops."""
        lines = connector_lines(self.folder) | {name.replace("_", "."): text for name, text in more.items()}
        text = "".join(f"{key}={value}\n" for key, value in lines.items())
        (self.folder / "c.properties").write_text(text, encoding="utf-8")

    def __call__(self, *options: str) -> tuple[int, str, str]:
        """Exit status, standard output and standard error."""
        self._capsys.readouterr()
        words = ["replay", "--connector", str(self.folder / "c.properties"), "--bootstrap-servers", "b:1", *options]
        status = main(words)
        said = self._capsys.readouterr()
        return status, said.out, said.err

    @property
    def settings(self) -> SinkSettings:
        """What the file says."""
        return check_files([str(self.folder / "c.properties")], None, bootstrap_servers="b:1").require()[0]

    @property
    def files(self) -> list[str]:
        """Names of what the target has."""
        return sorted(path.name for path in self.out.rglob("*.parquet"))

    def deliver(self, topic: Topic, *spans: tuple[int, int]) -> list[str]:
        """The first time: files of these ranges, and their history. The target forgets them."""
        for start, end in spans:
            planned = PlannedRange("orders", 0, start, end, "records", start, topic_id="id")
            outcomes = tuple(flushed(self.settings, [planned], read=topic.read).values())
            history = HistoryWriter("orders", Path(self.settings.history_file), self.settings.history)
            record_outcomes(history, sender_of(self.settings), outcomes)
            history.close()
        names = self.files
        for path in self.out.rglob("*.parquet"):
            path.unlink()
        return names


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Of a connector whose files have 5 records."""
    return Command(tmp_path, capsys)


def test_everything_is_sent_and_compared(command: Command, topic: Topic) -> None:
    """The same files, in the target and in the history, where they are told as sent by a replay."""
    names = command.deliver(topic, (0, 12), (12, RECORDS))
    status, out, err = command()
    assert (status, err) == (0, "")
    assert command.files == names
    assert_says(out, "connector orders", f"{len(names)} files", "23 rows")
    assert_says(out, f"{len(names)} as the first time", "0 different", "0 that the history")
    with_history = write_history(Path(command.settings.history_file), command.settings.history)
    origins = [str(one.origin) for one in with_history.files()]
    with_history.close()
    assert sorted(origins) == sorted(["run"] * len(names) + ["replay"] * len(names))


def test_a_dry_run_foretells_from_the_history_and_sends_nothing(command: Command, topic: Topic) -> None:
    """What the history knows is not read; what it does not know is made to be told."""
    names = command.deliver(topic, (0, 12))
    reads: list[int] = []
    topic.on_read = reads.append
    status, out, _ = command("--dry-run", "--json", "--times", "2")
    found = json.loads(out)
    assert status == 0
    assert min(reads) == 12
    assert [(one["from"], one["to"], one["by"], one["rows"]) for one in found["ranges"]] == [
        (0, 11, "by the history", 12),
        (12, 21, "cut again", 10),
        (22, 22, "cut again", 1),
    ]
    assert found["ranges"][0]["files"] == len(names)
    assert command.files == []
    status, out, _ = command("--dry-run")
    assert_says(out, "would be sent once", "nothing was sent")


@pytest.mark.parametrize(
    ("options", "offsets"),
    [
        (["--from", "7", "--to", "8"], [(5, 9)]),
        (["--last", "1"], [(10, 11)]),
        (["--since", "1h", "--until", "1m"], [(5, 9), (10, 11), (12, 14)]),
    ],
)
def test_files_that_hold_what_was_chosen(
    command: Command, topic: Topic, options: Sequence[str], offsets: Sequence[tuple[int, int]]
) -> None:
    """Whole files where the history has them, else exactly what was chosen."""
    command.deliver(topic, (0, 12))
    status, out, _ = command("--json", *options)
    assert status == 0
    assert [(one["first"], one["last"]) for one in json.loads(out)["sent"]] == list(offsets)


def test_files_by_name(command: Command, topic: Topic) -> None:
    """One that was delivered; one that was not is told with its near one, and nothing is sent."""
    names = command.deliver(topic, (0, RECORDS))
    assert command("--file", names[1])[0] == 0
    assert command.files == [names[1]]
    status, out, err = command("--file", names[1], names[2].replace("bytes-", "bytes-9"))
    assert (status, out) == (2, "")
    assert_says(err, "[--file]", "no file", f"Did you mean {names[2]}?")
    assert command.files == [names[1]]


def test_what_kafka_no_longer_has_is_refused_or_left_out(command: Command, topic: Topic) -> None:
    """By name nothing is sent without --skip-missing; what is left of it differs, and says why."""
    command.deliver(topic, (0, 12))
    topic.low = 3
    status, out, err = command("--from", "0")
    assert (status, out, command.files) == (2, "", [])
    assert_says(err, "[--from]", "no longer has", "--skip-missing")
    assert_says(err, "offsets 0 to 2", "1 file with 5 rows")
    status, out, _ = command("--from", "0", "--to", "11", "--skip-missing", "--json")
    found = json.loads(out)
    assert status == 0
    assert found["missing"] == [{"topic": "orders", "partition": 0, "from": 0, "to": 2, "files": 1, "rows": 5}]
    assert found["sent"][0]["first"] == 3
    (cause,) = found["sent"][0]["causes"]
    assert_says(cause, "Kafka deleted", "offsets 0 to 2")


def test_another_target(command: Command, topic: Topic, tmp_path: Path) -> None:
    """Files go there and not to the connector's; its own key goes nowhere else."""
    (tmp_path / "new").mkdir()
    status, _, _ = command("--target", f"directory:{tmp_path / 'new'}")
    assert status == 0
    assert command.files == []
    assert len(list((tmp_path / "new").rglob("*.parquet"))) == 5
    status, _, err = command("--target", "https://elsewhere.example/x")
    assert status == 2
    assert_says(err, "[--target-key]", "missing", "the connector's own credential", "not sent")
    status, _, err = command("--target", "http://elsewhere.example/x", "--target-key", "nonsense")
    assert status == 2
    assert "Invalid [--target]" in err
    assert "Invalid [--target-key]" in err


def test_a_class_for_one_kind_of_target_takes_no_other(command: Command, topic: Topic, tmp_path: Path) -> None:
    """A folder, say, for that of buckets: it is said of the option, and nothing is sent."""
    bucket = {"connect.ems.s3.bucket": "lake", "connect.ems.s3.region": "eu-central-1"}
    command.write(**{"connector.class": "S3Sink", "connect.ems.endpoint": "", **bucket})
    status, _, err = command("--target", f"directory:{tmp_path / 'new'}")
    assert status == 2
    assert_says(err, "[--target]", "The connector's class", "give a connector file")
    assert "nonsense" not in err


@pytest.mark.parametrize(("key", "shown"), [("${env:NEW_KEY}", "'${env:NEW_KEY}'"), ("AppKey secret-canary", "KEY")])
def test_what_goes_on_names_the_key_and_does_not_show_it(key: str, shown: str) -> None:
    """The line to go on with has --target-key: a placeholder as it was written, a key itself never."""
    words = ["replay", "--connector", "a b.properties", "--target", "https://elsewhere.example/x", "--target-key", key]
    said = replay_flow.command_to_go_on(parser_for(words).parse_args(words))
    words = ["parquet-sink", "replay", "--connector", "'a b.properties'", "--target-key", shown, "--resume"]
    assert said == " ".join(words)


def test_a_failure_is_told_and_gone_on_from(command: Command, topic: Topic) -> None:
    """Status 1 with the cause; --resume sends the rest alone, then nothing is left to go on with."""
    command.deliver(topic, (0, 12), (12, RECORDS))
    topic.broken_at = 18
    status, out, _ = command()
    assert status == 1
    assert_says(out, "stopped", "The broker is on fire.", "--resume")
    before = command.files
    topic.broken_at = -1
    reads: list[int] = []
    topic.on_read = reads.append
    status, out, _ = command("--resume", "--json")
    found = json.loads(out)
    assert status == 0
    assert min(reads) == 12
    assert found["files_sent_before"] == len(before)
    assert found["files"] + len(before) == len(command.files) == 6
    assert command("--resume")[0] == 2


def test_ctrl_c_ends_it_in_order(command: Command, topic: Topic) -> None:
    """Status 130, what was sent is told, and the rest is sent by --resume; the handlers of before are back."""
    before = signal.getsignal(signal.SIGINT)
    topic.on_read = lambda offset: signal.raise_signal(signal.SIGINT) if offset == 13 else None
    status, out, _ = command()
    assert status == 130
    assert_says(out, "go on with", "parquet-sink replay --connector", "--resume")
    assert not list((command.folder / "tmp").rglob("*.part"))
    topic.on_read = lambda offset: None
    assert command("--resume")[0] == 0
    assert len(command.files) == 5
    assert signal.getsignal(signal.SIGINT) is before


def test_records_without_a_row(command: Command, topic: Topic) -> None:
    """They are named, and the status is 1 where the settings do not pass over such records."""
    topic.values[6] = b"no JSON"
    status, out, _ = command()
    assert status == 1
    assert_says(out, "left out", "1 record without a row", "topic orders, topic-partition 0, offset 6: ")
    command.write(errors_tolerance="all")
    assert command()[0] == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--times", "0"], ("[--times]", "0 is not", "1 and 1,000", "give a number")),
        (["--target-key", "AppKey x"], ("[--target-key]", "with --target alone", "its own key")),
        (["--resume", "--last", "3"], ("[--last]", "--resume", "remove one")),
        (["--resume", "--from", "3"], ("[--from]", "--resume", "remove one")),
        (["--resume", "--dry-run"], ("[--dry-run]", "--resume", "remove one")),
        (["--resume"], ("[--resume]", "connector orders", "was stopped", "leave --resume out")),
        (["--from", "9", "--to", "3"], ("[--to]", "3 is below --from", "exchange them")),
    ],
)
def test_options_that_do_not_go_together(
    command: Command, topic: Topic, options: Sequence[str], words: tuple[str, ...]
) -> None:
    """Status 2, the option and the cure; nothing is sent."""
    status, out, err = command(*options)
    assert (status, out, command.files) == (2, "", [])
    assert_says(err, *words)


@pytest.mark.parametrize(
    ("text", "expected"), [("10%", "10% of the time"), ("100%", "100% of the time"), ("500/s", "500 records/s")]
)
def test_rates(command: Command, topic: Topic, text: str, expected: str) -> None:
    """A share of the time, or records a second."""
    status, out, _ = command("--json", "--rate", text, "--to", "3")
    assert status == 0
    assert json.loads(out)["rate"] == expected


@pytest.mark.parametrize("text", ["0%", "101%", "x", "0/s", ""])
def test_wrong_rates(command: Command, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """They are told with what is meant."""
    with pytest.raises(SystemExit) as caught:
        command("--rate", text)
    assert caught.value.code == 2
    assert "share of the time" in capsys.readouterr().err


def test_beside_the_running_connector_it_takes_a_share(
    command: Command, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quarter of the time with a lower priority, unless --rate says otherwise."""
    lowered: list[tuple[Any, ...]] = []
    monkeypatch.setattr(replay_flow, "is_locked", lambda path: path.endswith("tmp/orders/.lock"))
    monkeypatch.setattr("os.setpriority", lambda *args: lowered.append(args))
    assert json.loads(command("--json", "--to", "0")[1])["rate"] == "25% of the time"
    assert json.loads(command("--json", "--to", "0", "--rate", "50%")[1])["rate"] == "50% of the time"
    assert len(lowered) == 2


@pytest.mark.parametrize("name", [".history.db", ".state.db"])
def test_a_torn_history_or_state_costs_the_comparison(
    command: Command, topic: Topic, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What is torn is told; everything is sent all the same. What only the history knows is refused."""
    command.deliver(topic, (0, 12))
    path = command.folder / "tmp" / "orders" / name
    path.write_bytes(b"torn" * 1_000)
    if name == ".history.db":
        assert command("--last", "1")[0] == 1
    assert path.read_bytes() == b"torn" * 1_000
    status, _, _ = command()
    assert status == 0
    assert name in caplog.text
    assert len(command.files) in (5, 6)


def test_nothing_to_send(command: Command, topic: Topic) -> None:
    """A choice that holds no record is told, and is no failure."""
    topic.low = RECORDS
    status, out, _ = command()
    assert status == 0
    assert_says(out, "connector orders", "nothing to replay", "no delivered record")
    assert command("--resume")[0] == 2


def test_progress_is_logged_where_it_is_asked_for(
    command: Command, topic: Topic, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Standard output stays pure JSON."""
    monkeypatch.setattr("parquet_sink.cli.progress.LOG_S", 0.0)
    caplog.set_level("INFO")
    _, out, _ = command("--progress", "--json")
    assert json.loads(out)["files"] == 5
    assert_says(caplog.text, "connector orders", "replay", "100 % of offsets")
