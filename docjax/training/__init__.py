"""The trainer: loop, step, gradient cache, optimizers, sharding, memory."""
