"""`python -m parquet_sink`."""

import sys

from parquet_sink.cli import main

sys.exit(main())
