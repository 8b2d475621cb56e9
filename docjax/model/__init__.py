"""A trained model and all its uses."""
