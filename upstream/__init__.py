"""Derivatives for PyTorch itself, each with its diff, and a check that needs no build of PyTorch.

A folder holds one patch: the derivative in C++, `derivative.h`, as PyTorch's `FunctionsManual.cpp` would
hold it; what registers it in the place of PyTorch's own, `extension.cpp`; the diff; the cases that
`upstream.check` runs; and a page for reviewers.
"""
