"""Arenas of glibc, which keep what short-lived threads needed."""

import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from typing import Final

import pytest

PROGRAM: Final = """
import ctypes, re, threading
{before}
libc = ctypes.CDLL(None)
libc.malloc.argtypes, libc.malloc.restype, libc.free.argtypes = [ctypes.c_size_t], ctypes.c_void_p, [ctypes.c_void_p]
together = threading.Barrier(12)

def need():
    together.wait()
    block = libc.malloc(100_000)  # below what gets a mapping of its own
    together.wait()
    libc.free(block)

threads = [threading.Thread(target=need) for _ in range(12)]
for one in threads: one.start()
for one in threads: one.join()
libc.fopen.restype, libc.fclose.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
libc.malloc_info.argtypes = [ctypes.c_int, ctypes.c_void_p]
file = libc.fopen(b"/dev/stdout", b"w")
libc.malloc_info(0, file)
libc.fclose(file)
"""
OF_THE_PROGRAM: Final = "from parquet_sink.cli import main as cli; cli.main(['run', '/nowhere.properties'])"
OF_A_CHECK: Final = OF_THE_PROGRAM.replace("'run'", "'check'")
WITHOUT: Final = ("MALLOC_ARENA_MAX", "GLIBC_TUNABLES")

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of glibc")


def arenas(before: str, given: Mapping[str, str] | None = None) -> int:
    """How many there are after a dozen threads needed memory at once. given: of the environment."""
    environment = {name: text for name, text in os.environ.items() if name not in WITHOUT} | dict(given or {})
    command = [sys.executable, "-c", PROGRAM.format(before=before)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=environment)
    return done.stdout.count("<heap nr=")


def test_many_threads_share_two() -> None:
    """Without the bound there are some for each core; each would keep the most that it ever needed."""
    assert arenas("") > 2
    assert arenas(OF_THE_PROGRAM) <= 2


@pytest.mark.parametrize("given", [{"MALLOC_ARENA_MAX": "5"}, {"GLIBC_TUNABLES": "glibc.malloc.arena_max=5"}])
def test_the_operator_has_the_last_word(given: Mapping[str, str]) -> None:
    """A bound that is set for the process stays."""
    assert arenas(OF_THE_PROGRAM, given) == 5


def test_commands_that_end_are_not_bound() -> None:
    """`check` and its like use all cores for moments, and end."""
    assert arenas(OF_A_CHECK) > 2
