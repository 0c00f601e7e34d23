"""The driver's side: which ranges are due, recorded, committed and tried again."""
