"""Every benchmark runs at its smallest sizes, so that none breaks unseen."""
