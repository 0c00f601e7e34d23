"""`make soak`: mixed faults at half of the peak load; what the sink takes must stay flat, and nothing be lost."""
