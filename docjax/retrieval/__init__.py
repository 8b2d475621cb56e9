"""Ranks documents for queries: by words, by vectors, and by both."""
