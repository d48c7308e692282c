"""What the functions that can be replaced are called with."""

import torch

A = torch.tensor([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 5.0]], dtype=torch.float64)
B = torch.ones(3, 1, dtype=torch.float64)
_REST = {
    "cholesky_solve": (torch.linalg.cholesky(A),),
    "lu_solve": (torch.tensor([1, 2, 3], dtype=torch.int32), B),
    "matrix_power": (-2,),
    **dict.fromkeys(("lstsq", "solve", "solve_ex", "solve_triangular"), (B,)),
    "tensorinv": (1,),
    "tensorsolve": (B.squeeze(-1),),
}
"""What functions take besides A, which most take first."""
_OPTIONS = {"solve_triangular": {"upper": True}}


def there(function):
    return getattr(function.owner, function.name)


def called(function, matrix):
    """What the function that is there now returns."""
    rest, options = _REST.get(function.name, ()), _OPTIONS.get(function.name, {})
    return there(function)(matrix, *rest, **options)
