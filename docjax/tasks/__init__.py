"""Vectors to a metric that a user cares about, one a file."""
