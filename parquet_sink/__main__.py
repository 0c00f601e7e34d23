"""`python -m parquet_sink`, and the command `parquet-sink`."""

import signal
import sys
from contextlib import nullcontext

from parquet_sink.process.signals import StopRequest


def main() -> int:
    """Runs a command; the exit status.

    What hosts connectors is asked to stop by signals from here on, while its modules load too. Those of other commands
    are loaded without a trace of Ctrl-C.
    """
    stop_request = StopRequest()
    with stop_request.handling() if sys.argv[1:2] in (["run"], ["worker"]) else nullcontext():
        python = signal.getsignal(signal.SIGINT)
        if python is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        from parquet_sink.cli.main import main as run

        signal.signal(signal.SIGINT, python)
        return run(stop_request=stop_request)


if __name__ == "__main__":
    sys.exit(main())
