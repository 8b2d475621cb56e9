"""Where documents come from: one function a file, each gives Documents."""
