"""`python -m parquet_sink`, and the command `parquet-sink`."""

import signal
import sys


def main() -> int:
    """Runs a command; the exit status. While modules load, Ctrl-C ends the process without a trace."""
    python = signal.getsignal(signal.SIGINT)
    if python is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from parquet_sink import cli

    signal.signal(signal.SIGINT, python)
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
