"""Spark's parent of Python workers (`pyspark.daemon`), deaf to signals that are meant for the program.

A service manager signals every process of a service, and workers must finish the flush in progress all the same. Spark
ends them by other means: the parent by its closed input, workers by SIGHUP and SIGKILL.
"""

import os
import signal
from typing import Any

from pyspark import daemon

import parquet_sink.net.session  # noqa: F401 - what each worker would load for itself, in about 10 MB
from parquet_sink.process.signals import DEAF


class _Deaf:
    """The module `signal`, by which nobody comes to hear SIGTERM or SIGINT."""

    def __getattr__(self, name: str) -> Any:
        return getattr(signal, name)

    def signal(self, number: int, handler: Any) -> Any:
        unheard = number in {signal.SIGTERM, signal.SIGINT}
        return signal.signal(number, signal.SIG_IGN if unheard else handler)


if __name__ == "__main__":
    os.environ[DEAF] = "1"
    vars(daemon)["signal"] = _Deaf()
    daemon.manager()
