"""How many examples a test of a property tries: a fifth in each run, others in the next; all with THOROUGH=1.

`make slow` sets it.
"""

import os
from typing import Final

from hypothesis import HealthCheck

THOROUGH: Final = os.environ.get("THOROUGH", "") not in {"", "0"}
SHARE: Final = 0.2
FEWEST: Final = 6
FIXTURES_SHARED: Final = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow)
"""Not asked of a test whose examples share what its fixtures made; a busy machine is no defect."""


def examples(number: int) -> int:
    """Of so many that a thorough run tries: of a property, or of a simulation."""
    return number if THOROUGH else min(number, max(round(number * SHARE), FEWEST))
