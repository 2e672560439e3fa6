"""What this machine does with a target and a drafter: measured, simulated, planned.

Importing this package loads neither numpy nor ONNX Runtime.
"""
