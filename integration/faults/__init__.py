"""`make faults`: each fault that the promise speaks of, run against the real program over real sockets."""
