"""One record an operation."""
