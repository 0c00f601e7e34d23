"""Sizes of a run, from the environment."""

import os
import sys


def size(name: str, default: int, least: int = 1) -> int:
    """A number of at least `least` from the environment. Ends the program when it is something else."""
    given = os.environ.get(name) or str(default)
    if not (given.isascii() and given.isdigit() and int(given) >= least):
        sys.exit(f"{name}={given}: give a whole number of at least {least}")
    return int(given)


def word(name: str, *known: str) -> str:
    """One of these words from the environment, by default the first. Ends the program when it is another."""
    given = os.environ.get(name) or known[0]
    if given not in known:
        sys.exit(f"{name}={given}: give {' or '.join(known)}")
    return given
