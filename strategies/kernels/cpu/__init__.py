"""Kernels for the CPU: loops over many small matrices at once, and over the blocks of one matrix."""

from strategies.kernels.cpu.kernel import watchers

__all__ = ["watchers"]
