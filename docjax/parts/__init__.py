"""Parts of a config by name: how a node becomes an object, and back."""
