"""Readers of published weight files."""
