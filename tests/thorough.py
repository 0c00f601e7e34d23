"""What one run of `make test` leaves to others: four fifths of the examples of properties, and long tests in turn.

`make slow` runs all of it.
"""

import os
import subprocess
from pathlib import Path
from typing import Final

from hypothesis import HealthCheck

from parquet_sink.process.cache import cache_folder

os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(cache_folder() / "hypothesis"))
"""What hypothesis finds in a module's source is kept for all copies of the repository on this machine."""
THOROUGH: Final = os.environ.get("THOROUGH", "") not in {"", "0"}
SHARE: Final = 0.2
FEWEST: Final = 6
FIXTURES_SHARED: Final = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow)
"""Not asked of a test whose examples share what its fixtures made; a busy machine is no defect."""


def examples(number: int) -> int:
    """Of so many that a thorough run tries: of a property, or of a simulation."""
    return number if THOROUGH else min(number, max(round(number * SHARE), FEWEST))


TURNS: Final = 4
IN_TURN: Final = "in_turn"
"""The mark of long tests, of which each commit runs a quarter: the next commit probably has others."""


def turn_of(commit: str) -> int:
    """From 0: which quarter that is. commit: its id in hexadecimal, '' where there is none."""
    return int(commit or "0", 16) % TURNS


def turn() -> int:
    """That of the commit that is checked out."""
    here = Path(__file__).parent
    found = subprocess.run(["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, check=False)
    return turn_of(found.stdout.strip() if found.returncode == 0 else "")
