"""Strategies that are wrong, each in one way, and the checks that are meant to notice."""

from zoo import conduct, exponents, inverses, memory, methods, ranks, resources, sizes  # noqa: F401
from zoo.register import ZOO

__all__ = ["ZOO"]
