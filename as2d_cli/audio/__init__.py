"""Any file or stream -> 16 kHz mono float32 -> windows. Knows no model."""
