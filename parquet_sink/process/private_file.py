"""Files that nobody but the user of the process may read, made before somebody else makes them with other rights."""

import os
from contextlib import suppress
from pathlib import Path


def make_private(path: Path) -> None:
    """Create the file with mode 0600 if it is missing, and take all rights of others from one that is there.

    SQLite gives the files that it makes beside it the same mode. What fails here fails again, and is reported, when
    the file is opened.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        os.chmod(path, 0o600)
