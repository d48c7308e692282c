"""Kernels for the CPU: one compiled call for an operation on small matrices, or one for a step."""
