"""Builders of ONNX graphs from weights."""
