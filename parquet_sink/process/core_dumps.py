"""No core dumps: the memory of the program, and of all that it starts, holds secrets and records."""

import resource
from contextlib import suppress


def forbid() -> None:
    """For this process and those that it starts from now on; an operator can raise the limit again (`prlimit`).

    systemd-coredump and the kernel's own files respect it. Where it cannot be set nothing happens.
    """
    with suppress(OSError, ValueError):
        _, most = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, most))
