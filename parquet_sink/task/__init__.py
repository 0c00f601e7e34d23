"""One Spark task: ranges are read, become files, and are sent; the order of effects is in `task.task`."""
