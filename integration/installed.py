"""An installed package moves records from a real broker to a real target: `python -m integration.installed PYTHON`.

PYTHON is that of the environment in which the package is installed without the development extras. Broker and target
run from the environment that this module runs in.
"""

import os
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Final

from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess

COUNT: Final = 1_000
TIMEOUT_S: Final = 180
WORKER: Final = "value.converter=JsonConverter\nvalue.converter.schemas.enable=false\n"
CONNECTOR: Final = """name=installed
topics=numbers
connect.ems.endpoint={endpoint}
connect.ems.authorization.key=AppKey demo
connect.ems.target.table=NUMBERS
connect.ems.commit.size.bytes=1000000
connect.ems.commit.records=300
connect.ems.commit.interval.ms=1000
connect.ems.data.primary.key=n
"""


def run(python: str, folder: Path, broker: Broker, target: TargetProcess) -> None:
    """Runs the connector until it has caught up. Raises CalledProcessError, TimeoutExpired."""
    worker, connector = folder / "worker.properties", folder / "numbers.properties"
    worker.write_text(WORKER)
    connector.write_text(CONNECTOR.format(endpoint=target.endpoint()))
    words = ["run", "--until-caught-up", "--bootstrap-servers", broker.bootstrap_servers, "--worker", str(worker)]
    without = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [python, "-m", "parquet_sink", *words, str(connector)]
    subprocess.run(command, check=True, timeout=TIMEOUT_S, cwd=folder, env=without, stdin=subprocess.DEVNULL)


def arrived(target: TargetProcess) -> list[int]:
    """The numbers that the target's table has."""
    with closing(target.client) as client:
        client.sync()
        return sorted(row["n"] for row in client.table("NUMBERS").to_pylist())


def main(python: str) -> int:
    """0 when all records have arrived, each once."""
    with tempfile.TemporaryDirectory(prefix="parquet-sink-") as folder, Broker() as broker, TargetProcess() as target:
        broker.create_topic("numbers", partitions=2)
        broker.produce("numbers", [(b"%d" % number, b'{"n":%d}' % number) for number in range(COUNT)])
        run(python, Path(folder), broker, target)
        found = arrived(target)
    whole = found == list(range(COUNT))
    print(f"{len(found)} of {COUNT} records arrived" + ("" if whole else ", and not each once"))
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
