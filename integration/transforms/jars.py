"""Kafka Connect's jars, for the comparison alone: fetched once, verified and cached like the broker's.

`connect-jars.json` beside this module is their lock file; what they need besides is among the broker's jars.

    python -m integration.transforms.jars --lock          write it anew for the broker's Kafka
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


def class_path() -> str:
    """Connect's jars and the broker's. Raises SetupError as `jars.fetch` does."""
    folders = [jars.fetch(lock)[0] for lock in (jars.read_lock(LOCK_FILE), jars.read_lock())]
    return ":".join(f"{folder}/*" for folder in folders)


def make_lock() -> Lock:
    """Connect's jars of the broker's version, with the Jackson that the broker has."""
    broker = jars.read_lock()
    jackson = next(jar.revision for jar in broker.jars if jar.module == "jackson-databind")
    named = [Jar("org.apache.kafka", module, broker.kafka_version) for module in _CONNECT]
    named.append(Jar("com.fasterxml.jackson.module", _JACKSON_MODULE, jackson))
    return Lock(broker.kafka_version, jars.hashed(named, find_java(), jars.repository()), "connect")


if __name__ == "__main__":
    if "--lock" in sys.argv:
        jars.write_lock(make_lock(), LOCK_FILE)
    print(class_path())
