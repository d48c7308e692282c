"""The four conditions that determine the pseudoinverse, as residuals."""

import torch
from torch import Tensor

from strategies.formulas.amplification import normalized

_norm = torch.linalg.matrix_norm


def penrose_residuals(matrix: Tensor, pseudo_inverse: Tensor) -> dict[str, Tensor]:
    """Return the residuals of X as the pseudoinverse of A by name, each a tensor of shape (...).

    They are ‖AXA − A‖ / (‖A‖²‖X‖), ‖XAX − X‖ / (‖X‖²‖A‖), ‖AX − (AX)ᴴ‖ / (‖A‖‖X‖) and
    ‖XA − (XA)ᴴ‖ / (‖A‖‖X‖) in Frobenius norms; a stable X has them below a few κ u.

    κ is the condition number of A and u the unit roundoff of the dtype in which X was computed.
    No m×m or n×n array is formed for the long side: AX − (AX)ᴴ = [A, −Xᴴ][Xᴴ, A]ᴴ has the norm
    of the product of the two triangular factors of the brackets.
    """
    # The residuals are homogeneous: with a and x of norm one, AXA − A becomes a x a − a/(‖A‖‖X‖).
    (a, a_power), (x, x_power) = normalized(matrix), normalized(pseudo_inverse)
    a_norm, x_norm = _norm(a)[..., None, None], _norm(x)[..., None, None]
    inverse_scale = torch.ldexp(1 / (a_norm * x_norm), -(a_power + x_power)[..., None, None])
    a, x = (t / torch.where(norm > 0, norm, 1.0) for t, norm in ((a, a_norm), (x, x_norm)))
    return {
        "inner": _norm(a @ (x @ a) - torch.where(a == 0, 0, a * inverse_scale)),
        "outer": _norm(x @ (a @ x) - torch.where(x == 0, 0, x * inverse_scale)),
        "range_symmetry": _skew_norm(a, x),
        "corange_symmetry": _skew_norm(x, a),
    }


def _skew_norm(a: Tensor, x: Tensor) -> Tensor:
    """Return ‖AX − (AX)ᴴ‖."""
    left = torch.linalg.qr(torch.cat([a, -x.mH], -1), mode="r").R
    right = torch.linalg.qr(torch.cat([x.mH, a], -1), mode="r").R
    return _norm(left @ right.mH)
