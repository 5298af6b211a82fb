"""Diagnosis of one step: where a format goes wrong, and a remedy that was tried."""
