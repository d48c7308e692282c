"""Accuracy: certified reference gradients, a gallery of hard matrices, error measures."""

from strategies.accuracy import gallery, measures
from strategies.accuracy.cache import Cache, clear
from strategies.accuracy.certified import Certified
from strategies.accuracy.reference import OPERATIONS, gradient, lu_gradient_at_factors

__all__ = [
    "OPERATIONS",
    "Cache",
    "Certified",
    "clear",
    "gallery",
    "gradient",
    "lu_gradient_at_factors",
    "measures",
]
