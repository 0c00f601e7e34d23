"""Kafka Connect's runtime, for the comparison alone: fetched once, verified and cached like the broker's jars.

`connect-runtime-jars.json` beside this module is the lock file; what the runtime needs besides is among the broker's
jars and those of the comparison of transforms.

    python -m integration.connect.jars --lock          write it anew for the broker's Kafka
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from integration.transforms.jars import LOCK_FILE as TRANSFORMS_LOCK
from parquet_sink.addons.devkit import jars
from parquet_sink.addons.devkit.ivy import Jar, run_ivy
from parquet_sink.addons.devkit.jars import Lock
from parquet_sink.process.java_home import find_java

LOCK_FILE: Final = Path(__file__).with_name("connect-runtime-jars.json")
_CONNECT: Final = ("connect-runtime", "connect-file", "connect-json", "connect-transforms")
_PATTERN: Final = "all/[organisation]/[module]/[revision]/[artifact].[ext]"


def class_path() -> str:
    """The runtime's jars, and those of the other two lock files. Raises SetupError as `jars.fetch` does."""
    locks = (jars.read_lock(LOCK_FILE), jars.read_lock(TRANSFORMS_LOCK), jars.read_lock())
    return ":".join(f"{jars.fetch(lock)[0]}/*" for lock in locks)


def make_lock() -> Lock:
    """All that Connect of the broker's version needs and that is in neither of the other lock files."""
    broker, transforms = jars.read_lock(), jars.read_lock(TRANSFORMS_LOCK)
    java, address = find_java(), jars.repository()
    wanted = [Jar("org.apache.kafka", module, broker.kafka_version) for module in _CONNECT]
    there = {jar.module for jar in (*broker.jars, *transforms.jars)}
    missing = [jar for jar in _resolved(wanted, java, address) if jar.module not in there]
    return Lock(broker.kafka_version, jars.hashed(missing, java, address), "connect-runtime")


def _resolved(wanted: Sequence[Jar], java: str, address: str) -> list[Jar]:
    """The jars, and all that they need."""
    with tempfile.TemporaryDirectory() as folder:
        run_ivy(java, Path(folder), wanted, address, transitive=True, pattern=_PATTERN)
        found = Path(folder, "all").glob("*/*/*/*.jar")
        return [Jar(path.parts[-4], path.parts[-3], path.parts[-2]) for path in found]


if __name__ == "__main__":
    if "--lock" in sys.argv:
        jars.write_lock(make_lock(), LOCK_FILE)
    print(class_path())
