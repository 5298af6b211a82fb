"""Emulation of trainings over several ranks."""
