"""The folder that takes the files."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DirectorySettings:
    """folder: absolute, and there already. target_table: names the folder within it that the files are in."""

    folder: str
    target_table: str
