"""What was delivered goes through the pipeline once more: selection, plan, run, comparison with the first time."""
