"""A set of names in memory that does not grow with the number of names."""

import sqlite3


class Seen:
    """A set of names; above two megabytes it lies in a temporary file."""

    def __init__(self) -> None:
        # Any thread may drop a half-read source, and so close this connection.
        self._names = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        for sql in ("PRAGMA journal_mode = OFF", "PRAGMA cache_size = -2048", "BEGIN"):
            self._names.execute(sql)
        self._names.execute("CREATE TABLE names (name BLOB PRIMARY KEY) WITHOUT ROWID")

    def add(self, name: str) -> bool:
        """Adds a name; returns whether it is new."""
        sql = "INSERT OR IGNORE INTO names VALUES (?)"
        return self._names.execute(sql, (name.encode(),)).rowcount == 1

    def close(self) -> None:
        self._names.close()
