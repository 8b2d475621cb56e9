"""The trainer: loop, step, gradient cache, optimizer, sharding, metrics."""
