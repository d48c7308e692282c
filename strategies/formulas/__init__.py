"""The calculus: one file an operation, plain functions over a `PseudoInverse`.

Nothing here knows a strategy or autograd. Conventions: ᴴ conjugate transpose, ⁺ Moore–Penrose;
a cotangent is the gradient as PyTorch returns it (conjugate Wirtinger for complex dtypes); batch
dimensions come first.
"""
