"""What holds for all unit tests."""

import os

from hypothesis import settings

settings.register_profile("house", deadline=None)  # no test asserts on time: a busy machine is no defect
settings.load_profile("house")

os.environ["PARQUET_SINK_NATIVE"] = "0"  # they have doubles of Kafka's consumer, whose memory has no client
