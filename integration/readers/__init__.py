"""Samples of every type, written as files, and what readers other than ours find in them."""
