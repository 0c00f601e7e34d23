"""Jars of Kafka Connect and Debezium, for comparisons alone: fetched once, verified and cached like the broker's.

`connect-jars.json` beside this module is Connect's lock file; what they need besides is among the broker's jars.
Debezium's are those of its newest version, and of the last one with the keys that it had before 3.2.

    python -m integration.transforms.jars --lock          write them anew, Connect's for the broker's Kafka
"""

import sys
from pathlib import Path
from typing import Final

from parquet_sink.addons.devkit import jars
from parquet_sink.addons.devkit.ivy import Jar
from parquet_sink.addons.devkit.jars import Lock
from parquet_sink.process.java_home import find_java

LOCK_FILE: Final = Path(__file__).with_name("connect-jars.json")
_CONNECT: Final = ("connect-api", "connect-json", "connect-transforms")
_JACKSON_MODULE: Final = "jackson-module-blackbird"
"""JsonConverter asks for it; Jackson's other jars are the broker's."""
DEBEZIUM: Final = {
    "3.6.1.Final": ("api", "config", "util", "connector-common", "connect-plugins"),
    "3.1.3.Final": ("api", "core"),
}
"""By version, the modules that its transforms need."""


def debezium_lock(version: str) -> Path:
    """The lock file of Debezium's jars."""
    return LOCK_FILE.with_name(f"debezium-{version}-jars.json")


def class_path(*more: Path) -> str:
    """Connect's jars and the broker's. more: lock files of others. Raises SetupError as `jars.fetch` does."""
    locks = [jars.read_lock(file) for file in (*more, LOCK_FILE)]
    folders = [jars.fetch(lock)[0] for lock in (*locks, jars.read_lock())]
    return ":".join(f"{folder}/*" for folder in folders)


def make_lock() -> Lock:
    """Connect's jars of the broker's version, with the Jackson that the broker has."""
    broker = jars.read_lock()
    jackson = next(jar.revision for jar in broker.jars if jar.module == "jackson-databind")
    named = [Jar("org.apache.kafka", module, broker.kafka_version) for module in _CONNECT]
    named.append(Jar("com.fasterxml.jackson.module", _JACKSON_MODULE, jackson))
    return Lock(broker.kafka_version, jars.hashed(named, find_java(), jars.repository()), "connect")


def make_debezium_lock(version: str) -> Lock:
    """Debezium's jars of a version, for the broker's Kafka."""
    named = [Jar("io.debezium", f"debezium-{module}", version) for module in DEBEZIUM[version]]
    hashed = jars.hashed(named, find_java(), jars.repository())
    return Lock(jars.read_lock().kafka_version, hashed, f"debezium-{version}")


if __name__ == "__main__":
    if "--lock" in sys.argv:
        jars.write_lock(make_lock(), LOCK_FILE)
        for one in DEBEZIUM:
            jars.write_lock(make_debezium_lock(one), debezium_lock(one))
    print(class_path())
