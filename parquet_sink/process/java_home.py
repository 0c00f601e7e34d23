"""The Java that this program runs on: found, and new enough."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from parquet_sink.errors import SetupError

JAVA_MINIMUM: Final = 17


_JAVA_CURE: Final = "Install a Java runtime (OpenJDK 17 or newer) and put it on the PATH, or name it in JAVA_HOME."


def find_java(environment: Mapping[str, str] = os.environ) -> str:
    """The `java` of JAVA_HOME or else of the PATH. Raises SetupError when there is none of version 17 or newer."""
    home = environment.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin") if home else environment.get("PATH", os.defpath))
    if java is None:
        where = f"in JAVA_HOME ({home})" if home else "on the PATH"
        raise SetupError(f"Java {JAVA_MINIMUM} or newer is needed, and no java was found {where}. {_JAVA_CURE}")
    text, status = version_text(java)
    version = java_version(text)
    if version is None:
        raise SetupError(f"{java} does not print its version (exit status {status}). {_JAVA_CURE}")
    if version < JAVA_MINIMUM:
        raise SetupError(f"{java} is Java {version}, and {JAVA_MINIMUM} or newer is needed. {_JAVA_CURE}")
    return java


@cache
def version_text(java: str) -> tuple[str, int]:
    """What `java -version` writes, and its exit status; asked once, since it starts a Java."""
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    return answer.stderr + answer.stdout, answer.returncode


def java_version(text: str) -> int | None:
    """The feature release in the output of `java -version`: 17, 21, and 8 for the old form 1.8. None: not found."""
    found = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if found is None:
        return None
    return int(found[2]) if found[1] == "1" and found[2] else int(found[1])
