"""The push API over HTTP."""
