"""Accuracy: certified reference gradients, a gallery of hard matrices, how errors are judged."""

from strategies.accuracy import gallery, measures
from strategies.accuracy.cache import Cache
from strategies.accuracy.certified import Certified
from strategies.accuracy.reference import gradient, lu_gradient_at_factors

__all__ = ["Cache", "Certified", "gallery", "gradient", "lu_gradient_at_factors", "measures"]
