"""The reference push target: stores, upserts, injects faults."""
