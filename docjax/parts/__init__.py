"""Parts of a config: how a config node becomes an object, and the reverse."""
