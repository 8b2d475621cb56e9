"""Sources of documents: each file has a function that gives Documents."""
