"""Training steps: hooks of optimizers and scalers, records, run folders, state to bring back."""
