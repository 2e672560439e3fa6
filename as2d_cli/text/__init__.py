"""Token ids <-> text, and what a prompt is made of."""
