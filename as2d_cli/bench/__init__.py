"""Strategies compared on the same audio: what they say, and how long they take."""
