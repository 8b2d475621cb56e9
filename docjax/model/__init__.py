"""A trained model and everything that is done with one."""
