"""Observers of a step that is computed in a format and in FP32 side by side."""
