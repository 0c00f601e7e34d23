"""How a topic-partition is named."""

PartitionKey = tuple[str, int]
"""topic, partition"""
