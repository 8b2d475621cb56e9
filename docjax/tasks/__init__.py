"""Turns vectors into metrics that users care about, one task per file."""
