"""What `run`, `check`, `try` and `parked` do: files are judged, what they name is tried, and all is told in words."""
