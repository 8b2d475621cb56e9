"""What survives a kill: checkpoints, manifests, shards, and where processes wait."""
