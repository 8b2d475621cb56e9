"""Queries to ranked documents: by words, by vectors, and by both."""
