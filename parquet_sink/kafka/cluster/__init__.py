"""What the cluster tells through an admin client: topics, topic-partitions, first and last offsets."""
