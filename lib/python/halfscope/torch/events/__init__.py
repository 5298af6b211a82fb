"""Events of a step: the node, and the line of the source, of an operation."""
