"""Compiled code for the operations on small matrices: loops for the CPU, Triton kernels for CUDA."""
