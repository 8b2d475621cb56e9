"""Vectors of the views (and labels) to a loss; one loss per file."""
