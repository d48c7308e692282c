"""Kernels for CUDA, in Triton: batches of small real matrices, one launch a forward or a backward."""
