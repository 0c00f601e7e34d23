"""Files to the push API: HTTP contract, retries, order."""
