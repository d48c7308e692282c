"""`python -m benchmarks.coverage`: every public call in every mode of differentiation, beside PyTorch."""
