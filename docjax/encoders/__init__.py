"""Tokens to segment vectors, segment vectors to document vectors."""
