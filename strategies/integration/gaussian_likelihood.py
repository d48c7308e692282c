"""Likelihoods of linear_operator and GPyTorch by one factor, on request.

linear_operator computes yᵀK⁻¹y and log det K from a Cholesky factor where K is small, by its
`max_cholesky_size`, and PyTorch pulls the gradient back through `cholesky`, two triangular solves and the
diagonal. By `strategies.factor` that is K̄ = c K⁻¹ − q̄ K⁻¹y (K⁻¹y)ᵀ.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

from torch import Tensor

from strategies.errors import LinAlgError
from strategies.factorization.choice import factor

_LEAST = 256
"""Rows from which it takes less time, as measured."""


@contextlib.contextmanager
def replace_linear_operator() -> Iterator[None]:
    """Lets `LinearOperator.inv_quad_logdet` use `strategies.factor`, and so GPyTorch's exact likelihoods.

    For the whole process, within the `with` block. Left to linear_operator are matrices of fewer than 256
    rows, those for which it takes no Cholesky factor or has a method of its own, and those that are not
    positive definite, to whose diagonal it adds.

    Raises:
        ImportError: linear_operator is not installed.

    Example:
        >>> with replace_linear_operator():  # doctest: +SKIP
        ...     loss = -marginal_log_likelihood(model(x), y)
    """
    from linear_operator import LinearOperator, settings

    original = LinearOperator.inv_quad_logdet

    def inv_quad_logdet(
        self: Any,
        inv_quad_rhs: Tensor | None = None,
        logdet: bool | None = False,
        reduce_inv_quad: bool | None = True,
    ) -> Any:
        has_factor = (
            settings.fast_computations.log_prob.off()
            or self.size(-1) <= settings.max_cholesky_size.value()
        )
        is_large = self.is_square and self.size(-1) >= _LEAST
        if has_factor and is_large and logdet and inv_quad_rhs is not None:
            with contextlib.suppress(LinAlgError):
                f = factor(self.to_dense(), "spd")
                of_columns = (inv_quad_rhs * f.solve(inv_quad_rhs)).sum(-2)
                return of_columns.sum(-1) if reduce_inv_quad else of_columns, f.logdet()
        return original(self, inv_quad_rhs, logdet, reduce_inv_quad)

    LinearOperator.inv_quad_logdet = inv_quad_logdet
    try:
        yield
    finally:
        LinearOperator.inv_quad_logdet = original
