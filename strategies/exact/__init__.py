"""The calculus in ball arithmetic: exact gradients of one matrix.

Formulas raise ZeroDivisionError or UnresolvedError where more bits are needed, or where a matrix is
more singular than declared, and ValueError where its rank is certainly higher than declared.
"""
