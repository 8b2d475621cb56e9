"""Text to batches: documents, segments, tokens, graphs, batches."""
