"""What is in C under AddressSanitizer and UndefinedBehaviorSanitizer: records of random sizes and headers, odd JSON."""

import os
import random
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from confluent_kafka import Producer

import parquet_sink
from integration.conftest import TopicFactory
from integration.raw_producer import send_with_header
from parquet_sink.addons.devkit.broker import Broker
from tests.addons.formats.protobuf import damaged as damaged_protobuf
from tests.convert.json import damaged

PACKAGE = Path(parquet_sink.__file__).parent
READ = """
import random, sys
from confluent_kafka.admin import AdminClient
from parquet_sink.kafka import native, native_batches
from parquet_sink.kafka.consumer_cache import consumers
from parquet_sink.kafka.range_reader import RangeReader
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.records import RecordParts

servers, seed, *topics = sys.argv[1:]
assert native.why_not() == "", native.why_not()
source = random.Random(int(seed))
total = 0
for turn in range(60):
    topic = source.choice(topics)
    native_batches.BATCH_RECORDS = source.choice((1, 7, 10_000))
    native_batches.BATCH_BYTES = source.choice((1, 3_000, 4 << 20))
    parts = RecordParts(*(source.random() < 0.5 for _ in range(3)), timestamp_types=source.random() < 0.5)
    settings = KafkaSettings((topic,), None, "connect-memory", {"bootstrap.servers": servers})
    start = source.randrange(500)
    batches = RangeReader(settings, topic, 0, start, source.randrange(start + 1, 501), parts=parts).batches()
    for batch in batches:
        total += len(batch)
        for array in (batch.values, batch.keys, batch.headers):
            if array is not None:
                array.validate(full=True)
        if parts.single:
            batch.key_of(0), batch.headers_of(len(batch) - 1)
        if source.random() < 0.02:
            batches.close()
            break
consumers.sweep(float("inf"))
admin, extension = AdminClient({"bootstrap.servers": servers}), native.extension()
for turn in range(20):
    some = source.sample([*topics, "not-there", "no name!"], source.randrange(5))
    extension.describe(admin, some, 10_000)
    keys = [(topic, number) for topic in some for number in range(source.randrange(1, 3))]
    extension.list_offsets(admin, keys, source.choice((-2, -1, 0, 1 << 60)), source.randrange(2), 10_000)
for wrong in ([("a",)], [("a", "b")], [7], [("a", 1), ("a", 1)]):
    try:
        extension.list_offsets(admin, wrong, -1, 1, 10_000)
    except (TypeError, ValueError, SystemError):
        pass
away = AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
extension.describe(away, topics, 100), extension.list_offsets(away, [(topics[0], 0)], -1, 5, 100)
print("read", total)
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
@pytest.mark.parametrize("sanitizer", ["address", "undefined"])
def test_memory_is_used_as_it_may_be(
    broker: Broker, topic: TopicFactory, producer: Producer, tmp_path: Path, sanitizer: str
) -> None:
    """Ranges, bounds and parts at random, batches left in the middle, a consumer that is given up."""
    environment = built(tmp_path, "kafka/native_reader.c", sanitizer)
    chance, names = random.Random(3), [topic(), topic()]
    for number in range(1_000):
        headers = [
            (chance.choice(("", "a", "größe")), chance.choice((None, b"", bytes(chance.randrange(300)))))
            for _ in range(chance.choice((0, 0, 1, 9)))
        ]
        value = chance.choice(
            (None, b"", bytes(chance.randrange(5_000)), bytes(chance.randrange(200_000)) if number % 50 == 0 else b"v")
        )
        producer.produce(names[number % 2], value, chance.choice((None, b"", b"key")), headers=headers)
        if number % 100 == 0:
            assert producer.flush(30) == 0
            send_with_header(
                broker.bootstrap_servers, names[number // 100 % 2], bytes(chance.randrange(1, 256) for _ in range(9))
            )
    assert producer.flush(30) == 0
    run(environment, tmp_path, "-c", READ, broker.bootstrap_servers, "1", *names)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
@pytest.mark.parametrize("sanitizer", ["address", "undefined"])
def test_damaged_json_is_read_within_its_bounds(tmp_path: Path, sanitizer: str) -> None:
    """Whole and damaged records, each as by Arrow's reader or not at all."""
    run(built(tmp_path, "convert/json/native_json.c", sanitizer), tmp_path, damaged.__file__, "2")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
@pytest.mark.parametrize("sanitizer", ["address", "undefined"])
def test_damaged_protobuf_is_read_within_its_bounds(tmp_path: Path, sanitizer: str) -> None:
    """Whole and damaged messages of fields of all kinds."""
    source = "addons/formats/protobuf/native_protobuf.c"
    run(built(tmp_path, source, sanitizer), tmp_path, damaged_protobuf.__file__, "2")


def built(folder: Path, name: str, sanitizer: str) -> dict[str, str]:
    """A copy of the package in a folder with one part in C, checked by a sanitizer; the environment to run it in."""
    shutil.copytree(PACKAGE, folder / "parquet_sink", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    source = folder / "parquet_sink" / name
    library = source.with_name(f"_{source.stem}.abi3.so")
    strict = ("-g", "-O1", "-shared", "-fPIC", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all")
    subprocess.run(
        ["gcc", *strict, f"-I{sysconfig.get_paths()['include']}", str(source), "-o", str(library)], check=True
    )
    preloaded = subprocess.run(
        ["gcc", f"-print-file-name={'libasan.so' if sanitizer == 'address' else 'libubsan.so'}"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    return {
        **os.environ, "PYTHONPATH": str(folder), "LD_PRELOAD": preloaded, "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0", "PARQUET_SINK_NATIVE": "1",
    }  # fmt: skip


def run(environment: dict[str, str], folder: Path, *arguments: str) -> None:
    """A program that says in the end what it read, and that no sanitizer ended."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env=environment, cwd=folder, capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert (done.returncode, done.stdout.startswith("read ")) == (0, True), done.stderr[-4_000:]
    assert "Sanitizer" not in done.stderr
    assert "runtime error" not in done.stderr
