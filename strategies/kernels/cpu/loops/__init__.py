"""The loops of the kernels, as Numba compiles them: one function for each kernel, of the same name."""
