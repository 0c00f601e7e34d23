"""Raw files go through the pipeline: which they are, in what order, and what was made of them."""
