"""Emulation of a training in other formats."""
