"""Everything about a run directory: config, parts, parameters, metrics, report."""
