"""Training-time versions of a document, one a file."""
