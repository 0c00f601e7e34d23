"""Whether what serves the REST API is installed. Imports nothing of it."""

from importlib.util import find_spec
from typing import Final

from parquet_sink.errors import SetupError, install

_NEEDED: Final = ("starlette", "uvicorn", "prometheus_client")


def require(who: str) -> None:
    """Raises SetupError, naming the first Python package of the extra `worker` that is not there, and the cure."""
    for package in _NEEDED:
        if find_spec(package) is None:
            raise SetupError(f"{who} needs the Python package {package}. {install('worker')}")
