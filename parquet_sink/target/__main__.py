"""`python -m parquet_sink.target`: the same as `parquet-sink target`."""

import sys

from parquet_sink.target.command import main

sys.exit(main())
