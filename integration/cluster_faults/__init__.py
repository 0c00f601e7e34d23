"""`make cluster-faults`: three workers of one group under load, a seeded nemesis, and the oracle's judgement."""
