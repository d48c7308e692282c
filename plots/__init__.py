"""How results look: one file a figure, rows in, Figure out."""
