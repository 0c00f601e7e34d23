"""docs/how-to/task-without-spark.md: its test is one of ours, and the places where it stops are on the way."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "task-without-spark.md").read_text(encoding="utf-8")
JOURNEY = ROOT / "tests" / "task" / "test_journey.py"
PROFILED = """
import sys
import pytest

seen = []

def note(frame, event, arg):
    if event == "call" and frame.f_globals.get("__name__", "").startswith("parquet_sink."):
        seen.append(frame.f_globals["__name__"] + ":" + frame.f_code.co_qualname)

class Profiled:
    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        sys.setprofile(note)
        try:
            return (yield)
        finally:
            sys.setprofile(None)

status = pytest.main(["-q", "-p", "no:cacheprovider", sys.argv[1]], [Profiled()])
print(*dict.fromkeys(seen), sep="\\n")
sys.exit(status)
"""


def test_the_page_shows_the_test_word_for_word() -> None:
    """What is copied from there is what is run here."""
    found = re.search(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    assert found[1] == JOURNEY.read_text(encoding="utf-8")


def test_the_journey_comes_by_each_stop_in_order() -> None:
    """Each function of the table is first called after the one above it, in the test's thread; there is no Java."""
    stops = re.findall(r"^\| `(parquet_sink\.[^`]+)` \|", PAGE, re.MULTILINE)
    words, no_java = [sys.executable, "-c", PROFILED, str(JOURNEY)], os.environ | {"PATH": "", "JAVA_HOME": "/nowhere"}
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=ROOT, env=no_java, check=False)
    assert done.returncode == 0, done.stdout
    called = done.stdout.splitlines()
    assert len(stops) > 10
    assert [one for one in called if one in stops] == stops
