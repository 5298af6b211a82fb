"""One block of a large model: saved from a run, loaded alone, and looked at."""
