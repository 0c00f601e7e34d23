"""A folder as a target: files are put there under the names that the push API would get."""
