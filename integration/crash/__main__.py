"""`python -m integration.crash`: sizes by the environment variables KILLS, RECORDS and SEED; MODE=raw; TARGET=s3.

With ARCHIVE=required or ARCHIVE=behind connectors have an archive, which must hold exactly the accepted files then.
Ends with 0 when every record arrived unaltered, nothing else did, and all kills were done; with 1 otherwise.
"""

import random
import sys
import tempfile
import traceback
from pathlib import Path

from integration.crash.campaign import Campaign
from integration.crash.report import Report, Sizes
from integration.oracle.trial import Failed
from integration.s3.site import S3Site
from integration.sink_process import LOG
from integration.sizes import size, word
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess

KILLS, RECORDS = 30, 300_000


def main() -> int:
    """Runs, prints, and returns the exit status."""
    sizes = Sizes(
        kills=size("KILLS", KILLS),
        records=size("RECORDS", RECORDS),
        seed=size("SEED", random.randrange(1, 1_000_000)),
        raw=word("MODE", "shaped", "raw") == "raw",
        archive=word("ARCHIVE", "none", "required", "behind"),
    )
    bucket = word("TARGET", "push", "s3") == "s3"
    if bucket and (sizes.raw or sizes.archive != "none"):
        sys.exit("TARGET=s3: its files are judged as shaped ones of no archive; leave MODE and ARCHIVE away")
    print(
        f"{sizes.kills} kills, {sizes.records} records or more at {sizes.per_second:.0f}/s, SEED={sizes.seed}",
        flush=True,
    )
    with (
        tempfile.TemporaryDirectory(prefix="parquet-sink-crash-") as folder,
        Broker() as broker,
        S3Site() if bucket else TargetProcess(Path(folder) / "target", deleted_column="__deleted") as target,
    ):
        report = campaign(sizes, broker, target, Path(folder))
        if not report.passed:
            with tempfile.NamedTemporaryFile(prefix="parquet-sink-crash-", suffix=".log", delete=False) as kept:
                kept.write((Path(folder) / LOG).read_bytes())
            report.troubles.append(f"the sink's log is kept as {kept.name}")
    for line in report.lines():
        print(line)
    print(report.summary())
    return 0 if report.passed else 1


def campaign(sizes: Sizes, broker: Broker, target: TargetProcess | S3Site, folder: Path) -> Report:
    """One run; what goes wrong with the run itself is a trouble of its report."""
    run = Campaign(sizes, broker, target, folder)
    try:
        return run.run()
    except Exception as error:  # noqa: BLE001 - whatever it is, the run has failed, and its figures are still told
        run.trial.nothing_judged(str(error) if isinstance(error, Failed) else traceback.format_exc())
        return run.report
    finally:
        run.trial.close()


if __name__ == "__main__":
    sys.exit(main())
