"""What a model looks at, as arrays, figures and one page."""
