"""HTTP connections: TLS, proxies, deadlines, and texts fit for a log; shared by targets and the schema registry."""
