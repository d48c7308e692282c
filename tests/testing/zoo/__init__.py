"""Strategies that are wrong, each in one way, and the check that is meant to notice."""

from zoo import conduct, exponents, inverses, memory, methods, ranks, resources, sizes
from zoo.register import ZOO

__all__ = [
    "ZOO",
    "conduct",
    "exponents",
    "inverses",
    "memory",
    "methods",
    "ranks",
    "resources",
    "sizes",
]
