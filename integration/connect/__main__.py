"""python -m integration.connect theirs|ours: plays the script to one side, and shows or keeps what it answered.

python -m integration.connect theirs --keep    record Kafka Connect's answers anew
python -m integration.connect ours             differences between our worker and the recording
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from integration.connect import ours, recording, theirs
from integration.connect.compare import differences, unknown, unused
from integration.connect.known import KNOWN
from integration.connect.play import play
from integration.connect.recording import Entry
from integration.connect.script import TOPICS, script
from integration.connect.steps import Side
from parquet_sink.addons.devkit.broker import Broker

Start = Callable[[Broker, Path], AbstractContextManager[Side]]


def main() -> int:
    """0 when nothing differs but for what is known."""
    parser = argparse.ArgumentParser(prog="python -m integration.connect", description=__doc__)
    parser.add_argument("side", choices=("theirs", "ours"))
    parser.add_argument("--keep", action="store_true", help="theirs: write the recording")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the answers, in the form of the recording")
    parser.add_argument("--all", action="store_true", help="known differences as well")
    args = parser.parse_args()
    late: list[str] = []
    found = _played(theirs.kafka_connect if args.side == "theirs" else ours.our_worker, late)
    if args.out:
        recording.write(found, args.out)
    if args.keep and args.side == "theirs" and not late:
        recording.write(found)
    different = differences(recording.read(), found)
    told = different if args.all else unknown(different, KNOWN)
    for line in [*told, *(f"unused: {one}" for one in unused(different, KNOWN))]:
        print(line)
    print(f"{len(found)} answers, {len(different)} differences, {len(told)} of them told, {len(late)} waits in vain")
    return 1 if told or late else 0


def _played(start: Start, late: list[str]) -> list[Entry]:
    """The answers of one side; `late` gets what was waited for in vain."""
    with tempfile.TemporaryDirectory(prefix="judge-") as folder, Broker() as broker:
        for topic, partitions in TOPICS.items():
            broker.create_topic(topic, partitions)
        with start(broker, Path(folder)) as side:

            def missed(what: str) -> None:
                print(f"late: {what}")
                late.append(what)

            return recording.entries(play(script(side), side, broker, print, missed), side)


if __name__ == "__main__":
    sys.exit(main())
