"""Counts the instructions of each stage for each record, and compares them with what is kept beside this file.

    python -m integration.instructions            # count, and compare
    python -m integration.instructions --record   # keep what is counted; say in the commit why it changed

Valgrind counts; two runs of a stage that differ by some rounds leave out what a process costs by itself.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from integration.instructions.work import RECORDS, WRITE
from integration.registry import RegistryServer

STAGES: Final = ("json", "nested", "json_envelope", "avro", "json_schema", "protobuf", WRITE)
KEPT: Final = Path(__file__).with_name("instructions.json")
TOLERANCE: Final = 0.03
"""Three counts of the same code differed by 0.3 % at most."""
LIBRARIES: Final = ("pyarrow", "orjson", "numpy", "protobuf")
_ROUNDS: Final = (1, 6)
_COUNTED: Final = re.compile(r"I\s+refs:\s+([\d,]+)")
_TIMEOUT_S: Final = 900


def missing() -> str:
    """Why nothing can be counted here; empty when it can."""
    return "" if shutil.which("valgrind") else "valgrind is not installed"


def built_with() -> dict[str, str]:
    """What the counts depend on beside our code."""
    return {
        "machine": platform.machine(),
        "python": platform.python_version(),
        **{one: version(one) for one in LIBRARIES},
    }


def count(stages: tuple[str, ...] = STAGES) -> dict[str, int]:
    """Instructions for each record, by stage."""
    with RegistryServer() as registry, ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = {
            (stage, rounds): pool.submit(_instructions, stage, rounds, registry.url)
            for stage in stages
            for rounds in _ROUNDS
        }
        few, many = _ROUNDS
        records = (many - few) * RECORDS
        return {one: round((runs[one, many].result() - runs[one, few].result()) / records) for one in stages}


def _instructions(stage: str, rounds: int, registry_url: str) -> int:
    with TemporaryDirectory() as folder:
        work = [sys.executable, "-m", "integration.instructions.work", stage, str(rounds), registry_url, folder]
        # The system's allocator, since valgrind has its own in the place of others; hashes and threads do not vary.
        fixed = {"PYTHONHASHSEED": "0", "ARROW_DEFAULT_MEMORY_POOL": "system", "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(
            ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", *work],
            env={**os.environ, **fixed},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    found = _COUNTED.search(done.stderr)
    if done.returncode or found is None:
        raise RuntimeError(f"{stage}: valgrind ended with {done.returncode}:\n{done.stderr[-3_000:]}")
    return int(found[1].replace(",", ""))


def kept() -> dict[str, Any]:
    """What was counted last, and with what."""
    found: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8"))
    return found


def main() -> int:
    """The exit status: 1 when a stage takes more than the tolerance allows."""
    if why := missing():
        print(f"{why}; Debian and Ubuntu: apt install valgrind", file=sys.stderr)
        return 2
    found = count()
    if sys.argv[1:] == ["--record"]:
        text = json.dumps({"built_with": built_with(), "instructions_per_record": found}, indent=1)
        KEPT.write_text(f"{text}\n", encoding="utf-8")
    before = kept()["instructions_per_record"]
    for stage, each in found.items():
        print(f"{stage:14} {each:8,} {each / before[stage] - 1:+7.1%}")
    return int(any(each > before[stage] * (1 + TOLERANCE) for stage, each in found.items()))


if __name__ == "__main__":
    sys.exit(main())
