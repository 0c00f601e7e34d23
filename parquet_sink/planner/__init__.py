"""The driver's side: which ranges are due, put down, committed and tried again."""
