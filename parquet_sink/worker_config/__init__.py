"""The worker file: its keys, and what they come to."""
