"""The families of segment encoders: a record in each module."""
