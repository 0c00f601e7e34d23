"""python -m integration.connect theirs|ours: plays the script to one side, and shows or keeps what it answered.

python -m integration.connect theirs --keep    record Kafka Connect's answers anew
python -m integration.connect ours             differences between our worker and the recording
"""

import argparse
import sys
import tempfile
from pathlib import Path

from integration.connect import ours, recording, theirs
from integration.connect.compare import differences, unknown, unused
from integration.connect.known import KNOWN
from integration.connect.play import play
from integration.connect.script import TOPICS, script
from parquet_sink.devkit.broker import Broker


def main() -> int:
    """0 when nothing differs but for what is known."""
    parser = argparse.ArgumentParser(prog="python -m integration.connect", description=__doc__)
    parser.add_argument("side", choices=("theirs", "ours"))
    parser.add_argument("--keep", action="store_true", help="theirs: write the recording")
    parser.add_argument("--all", action="store_true", help="ours: known differences as well")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="judge-") as folder, Broker() as broker:
        for topic, partitions in TOPICS.items():
            broker.create_topic(topic, partitions)
        start = theirs.kafka_connect if args.side == "theirs" else ours.our_worker
        with start(broker, Path(folder)) as side:
            found = recording.entries(play(script(side), side, broker, print), side)
    if args.keep:
        recording.write(found, recording.FILE if args.side == "theirs" else Path("/tmp/ours.json"))
    different = differences(recording.read(), found)
    told = different if args.all else unknown(different, KNOWN)
    for one in told:
        print(one)
    print(f"{len(found)} answers, {len(different)} differences, {len(told)} of them told")
    for one in unused(different, KNOWN):
        print("unused:", one)
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
