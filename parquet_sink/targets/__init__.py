"""Where files go: order, retries, receipts; each target in a package of its own."""
