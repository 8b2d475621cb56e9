"""Figures and HTML pages that show what a run did and why documents are similar."""
