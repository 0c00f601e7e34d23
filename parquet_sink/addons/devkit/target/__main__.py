"""`python -m parquet_sink.addons.devkit.target`: the same as `parquet-sink target`."""

import sys

from parquet_sink.addons.devkit.target.command import main

sys.exit(main())
