"""From text to batches: documents, segments, tokens, graphs, batches."""
