"""Numbers that the compiled loops share with what calls them."""

FEW_RIGHT_HAND_SIDES = 4
"""Up to which a product with them is written out, as measured; a library is faster with more."""
