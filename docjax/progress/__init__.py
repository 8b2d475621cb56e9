"""What a user sees of a run while it works, and how she ends it: lines, bars, signals."""
