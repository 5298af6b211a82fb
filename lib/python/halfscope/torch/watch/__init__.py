"""Watch of a training in its own format."""
