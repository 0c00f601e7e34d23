"""The pure parts of the benchmark: figures, sizes, and how processes are counted."""

import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

import parquet_sink
from integration.bench import connectors, figures, job, processes, start
from integration.bench.figures import Accepted, Pass
from integration.bench.formats import FORMATS, REGISTRY_URL
from integration.bench.load import pool as load_pool
from integration.bench.named_transforms import TRANSFORMS, keys_of, record_of
from integration.bench.parts import Stand
from integration.bench.processes import Usage
from integration.bench.sampler import Graves
from integration.bench.sizes import Sizes, from_environment
from integration.bench.start import Seen
from integration.registry import RegistryServer
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess
from parquet_sink.connectors.loading import load
from parquet_sink.convert.decoders import decoder_for
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.model.records import RecordBatch
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.transform.building import chain_for
from parquet_sink.worker_config.worker_file import load_worker
from tests.factories import accepted
from tests.messages import saying

CONNECTOR = {
    "name": "bench",
    "connector.class": "com.celonis.kafka.connect.ems.sink.EmsSinkConnector",
    "topics": "t",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    "connect.ems.endpoint": "http://127.0.0.1:8085/x",
    "connect.ems.authorization.key": "AppKey k",
    "connect.ems.target.table": "t",
    "connect.ems.data.primary.key": "order_id",
    "connect.ems.commit.size.bytes": "1000000",
    "connect.ems.commit.records": "1000",
    "connect.ems.commit.interval.ms": "1000",
}


def _file(partition: int, first: int, last: int, at: float) -> Accepted:
    return Accepted(partition, first, last, last - first + 1, 100, at)


@pytest.mark.parametrize(("share", "expected"), [(0.5, 2.0), (0.9, 4.0), (0.99, 4.0), (0.25, 1.0), (0.0, 1.0)])
def test_percentile_is_a_value_that_occurred(share: float, expected: float) -> None:
    """A percentile is the smallest value that at least that share of all values do not exceed."""
    assert figures.percentile([4.0, 1.0, 3.0, 2.0], share) == expected


def test_no_values_have_no_percentile() -> None:
    """Without values there is an error, and no invented figure."""
    with pytest.raises(ValueError, match="no percentile"):
        figures.percentile([], 0.5)


def test_age_is_counted_to_the_file_that_holds_the_record() -> None:
    """A record's age ends at the acceptance of its file; a file sent again does not make it older."""
    files = [_file(0, 0, 9, 5.0), _file(0, 0, 9, 50.0), _file(1, 0, 9, 7.0)]
    assert figures.ages({(0, 9): 4.0, (1, 0): 4.0, (1, 1): 1.0}, files, since=2.0) == [1.0, 3.0]


def test_a_record_in_no_file_fails_the_measurement() -> None:
    """A record that was never accepted is an error, not a gap in the figures."""
    with pytest.raises(ValueError, match="topic-partition 0, offset 10 "):
        figures.ages({(0, 10): 4.0}, [_file(0, 0, 9, 5.0)], since=0.0)


def test_pass_counts_from_visible_to_last_accepted() -> None:
    """The rate of a pass has all of its records and all of its time; CPU time is per record."""
    one = Pass(20, 100.0, (_file(0, 0, 9, 102.0), _file(0, 10, 19, 104.0)), 0.00008, 5_000_000)
    assert one.records_per_second == 5.0
    assert one.cpu_us_per_record == pytest.approx(4.0)
    assert one.sustained_per_second == 5.0


def test_sustained_rate_begins_when_every_topic_partition_has_a_file() -> None:
    """Files that were accepted before the last topic-partition's first one count neither records nor time."""
    files = (_file(0, 0, 9, 1.0), _file(0, 10, 19, 2.0), _file(1, 0, 9, 3.0), _file(1, 10, 19, 5.0))
    assert Pass(40, 0.0, files, 1.0, 1).sustained_per_second == 5.0
    assert Pass(20, 0.0, (files[0], files[2]), 1.0, 1).sustained_per_second is None


def test_last_line_has_the_figures_of_each_topic() -> None:
    """The last line is one line of JSON with the four figures of a topic, peaks in millions of bytes."""
    passes = [Pass(10, 0.0, (_file(0, 0, 9, at),), cpu, 1) for at, cpu in ((1.0, 1e-5), (2.0, 3e-5), (5.0, 9e-5))]
    line = figures.last_line({"4": figures.of_passes(passes, 7.25, 2_400_000_000)})
    assert "\n" not in line
    assert json.loads(line)["4"] == {
        "records_per_second": 5,
        "sustained_records_per_second": None,
        "cpu_us_per_record": 3.0,
        "peak_rss_mb": 2400,
        "first_file_s": 7.2,
        "files": 1,
    }


def test_what_json_cannot_say_is_refused() -> None:
    """A figure that is not a number never reaches the last line."""
    with pytest.raises(ValueError, match="JSON"):
        figures.last_line({"p50": float("nan")})


def test_peaks_fall_into_the_tenth_that_was_under_way() -> None:
    """Between two acceptances work is taken to go on evenly, so each tenth of a backlog gets its own peak."""
    samples = [(0.5, 1), (1.5, 7), (9.9, 3), (20.0, 2)]
    peaks = figures.deciles(samples, [(0.0, 0), (5.0, 50), (10.0, 100)], 100)
    assert peaks == [1, 7, 0, 0, 0, 0, 0, 0, 0, 3]


def test_cpu_time_between_snapshots_adds_up_when_processes_end() -> None:
    """What an ended process took before the first snapshot is not counted, what it took after is."""
    before = {1: Usage("driver", 1.0, 0.0, {}), 2: Usage("reading workers", 3.0, 0.0, {})}
    after = {1: Usage("driver", 1.5, 5.0, {}), 3: Usage("writing workers", 4.0, 0.0, {"writing workers: x": 1.0})}
    spent = processes.between(before, after)
    expected = {"driver": 0.5, "processes that ended": 2.0, "writing workers": 3.0, "writing workers: x": 1.0}
    assert spent == pytest.approx(expected)


def test_a_process_that_nobody_waited_for_still_counts() -> None:
    """CPU time of a child whose parent ignores its children's end is kept from the last look at it."""
    script = "import os, signal, time; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.fork(); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", script], start_new_session=True) as parent:
        try:
            while len(members := processes.tree(parent.pid)) < 2:
                assert parent.poll() is None
            graves = Graves()
            graves.look([replace(process, cpu_seconds=2.0) for process in members])
            child = next(process.pid for process in members if process.parent == parent.pid)
            os.kill(child, signal.SIGKILL)
            graves.look([process for process in members if process.pid != child])
            assert graves.seconds == 2.0
        finally:
            os.killpg(parent.pid, signal.SIGKILL)


def test_every_file_of_a_pass_is_full() -> None:
    """Records are rounded so that no file of a pass has to wait for the commit interval."""
    sizes = Sizes(records=1_000_003, commit_records=150_000)
    share = sizes.per_partition(sizes.records, 4)
    assert share % sizes.per_file(share) == 0
    assert sizes.per_file(share) <= 150_000
    assert 1_000_003 - 4 * share < 16


def test_sizes_come_from_the_environment() -> None:
    """Variables override the defaults, and ONLY chooses parts."""
    sizes = from_environment({"RECORDS": "5000", "ONLY": "idle, 4", "PASSES": ""})
    assert (sizes.records, sizes.passes, sizes.parts) == (5000, 3, ("4", "idle"))
    assert "backlog" in from_environment({"BACKLOG": "1000"}).parts


def test_formats_come_from_the_environment() -> None:
    """With FORMAT only formats are measured, unless ONLY or BACKLOG ask for more."""
    sizes = from_environment({"FORMAT": "protobuf, avro"})
    assert (sizes.formats, sizes.parts) == (("avro", "protobuf"), ())
    sizes = from_environment({"FORMAT": "all", "ONLY": "idle"})
    assert (sizes.formats, sizes.parts) == (tuple(FORMATS), ("idle",))
    with pytest.raises(InvalidConfiguration, match=saying("[FORMAT]", "'arvo'", "none of", "all, json, avro")):
        from_environment({"FORMAT": "arvo"})


def test_transforms_come_from_the_environment() -> None:
    """Transforms are measured in the order of their table, with a format of each sort unless formats are named."""
    sizes = from_environment({"TRANSFORMS": "mask, insert"})
    assert (sizes.transforms, sizes.formats, sizes.parts) == (("insert", "mask"), ("json", "avro"), ())
    assert from_environment({"TRANSFORMS": "mask", "FORMAT": "nested"}).formats == ("nested",)
    with pytest.raises(InvalidConfiguration, match=saying("[TRANSFORMS]", "'musk'", "none of", "insert, origin, mask")):
        from_environment({"TRANSFORMS": "musk"})


@pytest.mark.parametrize("name", TRANSFORMS)
def test_every_transform_of_the_benchmark_gives_rows(name: str) -> None:
    """Each has settings that its class takes, and orders as rows in the end: what is measured is no failure."""
    record = record_of([name])
    values = FORMATS["json"].values("", 50)
    worker = load_worker({}, source="none", bootstrap_option="localhost:9092").require()
    settings = load({**CONNECTOR, **keys_of([name])}, worker, source="bench").require()
    keys, headers = [record.get("key")] * 50, [record.get("headers", ())] * 50
    shaper = RowBuilder(settings.shape, None, decoder_for(settings.value), chain_for(settings.transforms, settings.key))
    (run,) = accepted(shaper, RecordBatch.of("t", 0, range(50), [1] * 50, values, keys, headers))
    assert run.records == 50


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_of_the_benchmark_is_read(name: str, registry: RegistryServer) -> None:
    """Each format has valid records: what the benchmark measures are rows, and as many as records."""
    one = FORMATS[name]
    values = one.values(registry.url, 50)
    properties = {**CONNECTOR, **one.keys, **({REGISTRY_URL: registry.url} if one.uses_registry else {})}
    worker = load_worker({}, source="none", bootstrap_option="localhost:9092").require()
    settings = load(properties, worker, source="bench").require()
    shaper = RowBuilder(settings.shape, None, decoder_for(settings.value))
    (run,) = accepted(shaper, RecordBatch.of("t", 0, range(50), [0] * 50, values))
    assert run.records == 50
    hidden = settings.shape.obfuscation is not None
    assert ("customer" in run.rows.schema.names) == (name != "string")
    if hidden:
        assert not any(text.startswith("customer-") for text in run.rows.column("customer").to_pylist())


def test_all_wrong_variables_are_told_at_once() -> None:
    """Wrong sizes and unknown parts are named, each with its value."""
    with pytest.raises(InvalidConfiguration) as caught:
        from_environment({"RECORDS": "many", "PASSES": "0", "ONLY": "speed"})
    assert [problem.split("]")[0] for problem in caught.value.problems] == [
        "Invalid [RECORDS",
        "Invalid [PASSES",
        "Invalid [ONLY",
    ]


def test_this_process_can_be_seen() -> None:
    """The tree of a process holds the process itself, with memory and CPU time."""
    assert os.getpid() in [process.pid for process in processes.tree(os.getpid())]
    assert processes.memory_bytes(os.getpid()) > 1_000_000


def test_milestones_are_told_once() -> None:
    """The first line that tells a milestone counts; other lines and levels do not."""
    text = (
        "2026-01-02 03:04:05,500 DEBUG start: Java answers\n"
        "2026-01-02 03:04:06,500 DEBUG start: Java answers\n"
        "2026-01-02 03:04:07,000 INFO start: the session is ready\n"
        "Traceback\n"
        "2026-01-02 03:04:08,250 DEBUG connector x: start: the first ranges are planned\n"
    )
    found = start.milestones(text)
    assert found.keys() == {"Java answers", "first ranges planned"}
    assert found["first ranges planned"] - found["Java answers"] == 2.75


def test_each_milestone_is_told_by_the_program() -> None:
    """A milestone whose words the program no longer says would be missing from the figures."""
    package = Path(parquet_sink.__file__).parent
    source = "".join(path.read_text() for path in package.rglob("*.py"))
    assert [words for words in start.MILESTONES.values() if f'log.debug("{words}")' not in source] == []


def test_phases_count_from_the_start_of_the_program() -> None:
    """A group of processes is there when its first process is; the first file is the first that was accepted."""
    seen = {5: Seen("JVM", 101.0, 110.0, 1.5), 6: Seen("JVM", 100.5, 100.9, 0.2), 7: Seen("driver", 100.0, 110.0, 0.01)}
    found = start.phases(100.0, {"Java answers": 103.0}, seen, [108.0, 107.0])
    expected = {"Java answers": 3.0, "Java started": 0.5, "first file accepted": 7.0, "last file accepted": 8.0}
    assert found == expected
    assert start.rows(100.0, seen) == [
        ["JVM", "0.5", "0.9", "0.20"],
        ["JVM", "1.0", "", "1.50"],
        ["all", "", "", "1.71"],
    ]


def test_the_parts_of_a_start_lie_between_its_phases() -> None:
    """One after the other, from the start of the program to the first file; what was not seen has no length."""
    ends = list(start.PARTS.values())
    assert [begin for begin, _ in ends] == ["", *(end for _, end in ends[:-1])]
    assert ends[-1][1] == "first file accepted"
    known = {*start.MILESTONES, *start.APPEARANCES, "first file accepted"}
    assert {end for _, end in ends} <= known
    found = {"Java started": 0.5, "Java answers": 2.0}
    assert start.part(found, "", "Java started") == 0.5
    assert start.part(found, "Java started", "Java answers") == 1.5
    assert start.part(found, "Java answers", "context ready") is None


@pytest.mark.in_turn(seconds=60)
def test_connectors_are_measured_idle_and_busy(broker: Broker, target: TargetProcess, tmp_path: Path) -> None:
    """The last line has the figures of each size, and no record of the busy connectors is missing."""
    sizes = Sizes(connectors=(3,), kafka_connect=0, busy_connectors=2, settle_s=1, look_s=2, trickle_s=5)
    with closing(target.client) as client:
        measured = connectors.run(Stand(sizes, broker, target, client, tmp_path, load_pool(100)))
    assert measured.keys() == {"3", "busy_2"}
    assert measured["3"].keys() == {"cpu_percent", "pss_mb", "processes", "delivered_s", "rest_ms", "page_ms"}
    assert measured["3"]["pss_mb"] > 50
    assert measured["3"]["delivered_s"] > 0
    assert measured["busy_2"]["cores"] > 0
    assert 1 < measured["busy_2"]["age_p95_s"] < 60


@pytest.mark.in_turn(seconds=20)
def test_a_job_is_measured(broker: Broker, target: TargetProcess, tmp_path: Path) -> None:
    """A job that ends with all its records delivered has a duration."""
    sizes = Sizes(passes=1, job_records=500)
    with closing(target.client) as client:
        measured = job.run(Stand(sizes, broker, target, client, tmp_path, load_pool(500)))
    assert measured["records"] == 500
    assert measured["seconds"] > 0


def test_the_age_of_a_file_is_that_of_its_oldest_record() -> None:
    """Files whose first record was written before the measurement are left out."""
    files = [_file(0, 0, 4, 5.0), _file(0, 5, 9, 9.0), _file(1, 0, 9, 7.0)]
    assert connectors.find_file_ages(files, {(0, 5): 6.5, (0, 6): 8.0, (1, 0): 4.0}) == [2.5, 3.0]


def test_numbers_of_connectors_come_from_the_environment() -> None:
    """CONNECTORS lists sizes, and 0 leaves out Kafka Connect or the busy connectors."""
    sizes = from_environment({"ONLY": "connectors", "CONNECTORS": "60, 300", "KAFKA_CONNECT": "0", "BUSY": "0"})
    assert (sizes.connectors, sizes.kafka_connect, sizes.busy_connectors) == ((60, 300), 0, 0)
    with pytest.raises(InvalidConfiguration, match=saying("[CONNECTORS]", "'sixty'", "CONNECTORS=60,300")):
        from_environment({"CONNECTORS": "sixty"})
