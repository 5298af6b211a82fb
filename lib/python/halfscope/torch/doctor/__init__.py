"""The doctor: a step is run again and again with changes, and the change that heals it is printed."""
