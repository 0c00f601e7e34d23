"""Records of each format, and the rows and reasons that they are expected to become."""
