"""What the worker file says about its REST API: keys, settings, and what is wrong with them. Pure."""
