"""A source connector's run on Spark: its tasks are polled, records are encoded and sent, positions are stored."""
