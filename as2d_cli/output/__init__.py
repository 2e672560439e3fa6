"""Renderers, siblings behind one small interface, and the live dashboard. Knows no engine."""
