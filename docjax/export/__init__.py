"""A trained model becomes a folder for other libraries."""
