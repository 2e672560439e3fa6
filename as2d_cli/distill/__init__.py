"""Trains a draft head for a target from unlabelled audio."""
