"""Training-time versions of a document, one kind per file."""
