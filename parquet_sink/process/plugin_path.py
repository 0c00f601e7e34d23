"""Folders with Python packages of a user's own, for this process and all that it starts."""

import os
import sys
from collections.abc import Sequence


def add_plugin_path(folders: Sequence[str]) -> list[str]:
    """Adds them behind what is installed, each once. Those that are no folders, which are left out."""
    missing = [folder for folder in folders if not os.path.isdir(folder)]
    found = [os.path.abspath(folder) for folder in folders if folder not in missing]
    sys.path += [folder for folder in found if folder not in sys.path]
    before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if found:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, dict.fromkeys([*before, *found])))
    return missing
