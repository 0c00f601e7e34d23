"""An S3 server for tests, benchmarks and campaigns: moto's, in a process of its own, and what stands before it."""
