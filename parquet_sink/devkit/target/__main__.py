"""`python -m parquet_sink.devkit.target`: the same as `parquet-sink target`."""

import sys

from parquet_sink.devkit.target.command import main

sys.exit(main())
