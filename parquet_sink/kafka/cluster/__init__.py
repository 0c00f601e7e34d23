"""What an admin client asks of the cluster: topics, topic-partitions, first and last offsets."""
