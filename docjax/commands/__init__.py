"""What each command of `docjax` takes and prints; the work is done elsewhere."""
