"""Weights from and to Hugging Face folders."""
