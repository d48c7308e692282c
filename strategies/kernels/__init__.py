"""Typed kernels for CPU and CUDA."""
