"""The reader in C under AddressSanitizer and UndefinedBehaviorSanitizer, on records of random sizes and headers."""

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

PACKAGE = Path(parquet_sink.__file__).parent
READ = """
import random, sys
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
print("read", total)
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
@pytest.mark.parametrize("sanitizer", ["address", "undefined"])
def test_memory_is_used_as_it_may_be(
    broker: Broker, topic: TopicFactory, producer: Producer, tmp_path: Path, sanitizer: str
) -> None:
    """Ranges, bounds and parts at random, batches left in the middle, a consumer that is given up."""
    shutil.copytree(PACKAGE, tmp_path / "parquet_sink", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    built = tmp_path / "parquet_sink" / "kafka" / "_native_reader.abi3.so"
    source = tmp_path / "parquet_sink" / "kafka" / "native_reader.c"
    strict = ("-g", "-O1", "-shared", "-fPIC", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all")
    subprocess.run(["gcc", *strict, f"-I{sysconfig.get_paths()['include']}", str(source), "-o", str(built)], check=True)
    library = subprocess.run(
        ["gcc", f"-print-file-name={'libasan.so' if sanitizer == 'address' else 'libubsan.so'}"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip

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
    environment = {
        **os.environ, "PYTHONPATH": str(tmp_path), "LD_PRELOAD": library, "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0", "PARQUET_SINK_NATIVE": "1",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", READ, broker.bootstrap_servers, "1", *names],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert (done.returncode, done.stdout.startswith("read ")) == (0, True), done.stderr[-4_000:]
    assert "Sanitizer" not in done.stderr
    assert "runtime error" not in done.stderr
