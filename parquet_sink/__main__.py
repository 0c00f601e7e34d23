"""`python -m parquet_sink`, and the command `parquet-sink`."""

import signal
import sys


def main() -> int:
    """Runs a command; the exit status. While modules load, Ctrl-C ends the process without a trace."""
    python = signal.getsignal(signal.SIGINT)
    if python is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from parquet_sink.cli.main import main as run

    signal.signal(signal.SIGINT, python)
    return run()


if __name__ == "__main__":
    sys.exit(main())
