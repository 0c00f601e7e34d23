"""`make crash`: kill -9 under load, and an oracle outside the sink that compares identities."""
