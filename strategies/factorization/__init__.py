"""Factorizations to hold: one of a matrix, for all that is computed of it, and one pullback."""
