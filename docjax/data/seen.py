"""Which names were met before, in memory that does not grow with their number."""

import sqlite3


class Seen:
    """A set of names; beyond two megabytes they lie in a temporary file."""

    def __init__(self) -> None:
        # Whichever thread drops a half-read source closes this.
        self._names = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        for line in ("PRAGMA journal_mode = OFF", "PRAGMA cache_size = -2048", "BEGIN"):
            self._names.execute(line)
        self._names.execute("CREATE TABLE names (name BLOB PRIMARY KEY) WITHOUT ROWID")

    def add(self, name: str) -> bool:
        """Whether the name is new."""
        line = "INSERT OR IGNORE INTO names VALUES (?)"
        return self._names.execute(line, (name.encode(),)).rowcount == 1

    def close(self) -> None:
        self._names.close()
