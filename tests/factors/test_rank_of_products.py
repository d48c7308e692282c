"""The rank that the gradient of LU is taken at, of many products A = C F of known rank.

`pytest -m slow -s tests/factors/test_rank_of_products.py` draws 10 000 for each dtype and prints counts.
"""

from collections import Counter

import pytest
import torch
from comparison import drawn

from strategies.accuracy import gradient
from strategies.errors import LinAlgError
from strategies.factors.pivots import inverse_order
from strategies.linalg import lu_factor_ex

STRATEGIES = ["triangular_solve", "blocked_lu", "batch_last"]
DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]
MEMBERS = 25
"""Products of one shape."""


def one_nearly_parallel(matrices, dim, digits, generator):
    """One column (dim −1) or row (−2) all but a multiple of another: condition numbers 1 to 1/√ε."""
    if matrices.shape[dim] < 2:
        return matrices
    columns = matrices if dim == -1 else matrices.mT
    size = len(matrices)
    distance = 10 ** (-digits * torch.rand(size, 1, generator=generator, dtype=torch.float64))
    scale = torch.randn(size, 1, generator=generator, dtype=torch.float64)
    first, second = torch.randperm(columns.shape[-1], generator=generator)[:2]
    columns = columns.clone()
    columns[..., second] = scale * columns[..., first] + distance * columns[..., second]
    return columns if dim == -1 else columns.mT


def draws(dtype, count, seed):
    """C, (25, m, r), and F, (25, r, n), rounded: square, tall and wide, of sizes 2 to 40, r < min(m, n)."""
    generator = torch.Generator().manual_seed(seed)
    wide = torch.promote_types(dtype, torch.float64)
    digits = 8 if dtype == wide else 4
    for i in range(count // MEMBERS):
        m, n = torch.randint(2, 41, (2,), generator=generator).tolist()
        n = m if i % 3 == 0 else n
        r = int(torch.randint(0, min(m, n), (), generator=generator))
        shapes = (MEMBERS, m, r), (MEMBERS, r, n)
        C, F = (torch.randn(each, generator=generator, dtype=wide) for each in shapes)
        ill_conditioned = i // 3 % 6
        if ill_conditioned in (1, 4, 5):
            C = one_nearly_parallel(C, -1, digits, generator)
        if ill_conditioned in (2, 4):
            F = one_nearly_parallel(F, -1, digits, generator)
        if ill_conditioned in (3, 5):
            F = one_nearly_parallel(F, -2, digits, generator)
        yield C.to(dtype), F.to(dtype)


def is_settled(C, F, LU, inverse_order):
    """Whether roundoff hides neither the rank of the product nor that its leading block is regular.

    Not where forming it has left errors greater than those of an elimination, ε|L||U|; nor where
    such errors may make the leading block singular: they cannot while ρ(|A₁₁⁻¹| ε|L||U|) < 1.
    """
    r, precision = C.shape[-1], torch.finfo(C.dtype).eps
    C, F, LU = (t.to(torch.promote_types(t.dtype, torch.float64)) for t in (C, F, LU))
    k = min(LU.shape[-2:])
    L = LU[..., :k].tril(-1) + torch.eye(LU.shape[-2], k)
    errors = precision * L.abs() @ LU[..., :k, :].triu().abs()
    rows = inverse_order.argsort(-1).unsqueeze(-1).expand(C.shape)
    C = C.gather(-2, rows)
    formed = precision / 2 * (C.abs().square() @ F.abs().square()).sqrt()
    leading = torch.linalg.inv_ex(C[:, :r] @ F[..., :r])[0].abs()
    relative = (leading.square() @ errors[:, :r, :r].square()).sum(-1).sqrt()
    is_regular = relative.amax(-1) < 0.3 if r else torch.tensor([True])
    by_lines = [(formed.norm(dim=d) <= 2 * errors.norm(dim=d)).all(-1) for d in (-1, -2)]
    return is_regular & by_lines[0] & by_lines[1]


def outcome(A, strategy, rank):
    """What the public function makes of one product, by the gradient."""
    A = A.clone().requires_grad_()
    LU = lu_factor_ex(A, strategy=strategy).LU
    try:
        LU.real.sum().backward()
    except LinAlgError:
        return "refused"
    # In canonical form the pivots beyond the rank are zero.
    used = int((LU.diagonal() != 0).long().cumprod(0).sum())
    return "right" if used == rank else "wrong"


def counted(strategy, dtype, count, seed):
    """How often the rank is right, refused or wrong, of products that are settled and of the others."""
    found = {True: Counter(), False: Counter()}
    for C, F in draws(dtype, count, seed):
        A = C @ F
        LU, pivots, _ = torch.linalg.lu_factor_ex(A)
        settled = is_settled(C, F, LU, inverse_order(pivots, A.shape[-2]))
        for one, known in zip(A, settled.expand(MEMBERS).tolist(), strict=True):
            found[known][outcome(one, strategy, C.shape[-1])] += 1
    return found.values()


def check(strategy, dtype, count, seed):
    settled, others = counted(strategy, dtype, count, seed)
    print(f"\n{strategy} {dtype}: settled {dict(settled)}, others {dict(others)}")
    assert settled.total() > 0.7 * count
    assert settled["wrong"] == 0
    assert settled["refused"] <= 0.001 * settled.total()
    assert others["wrong"] <= 0.02 * count


# The strategies share it: one of them stands for all.
@pytest.mark.parametrize(
    "strategy",
    ["triangular_solve", *(pytest.param(x, marks=pytest.mark.slow) for x in STRATEGIES[1:])],
)
def test_the_rank_of_some_products(strategy):
    for dtype in DTYPES:
        check(strategy, dtype, 100, 3)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_rank_of_ten_thousand_products(dtype):
    check("triangular_solve", dtype, 10_000, 1)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_gradients_of_products_of_ill_conditioned_factors(strategy):
    generator = torch.Generator().manual_seed(2)
    for m, n, rank in ((12, 12, 6), (10, 40, 4), (30, 8, 5)):
        shapes = (m, rank), (rank, n)
        C, F = (torch.randint(-9, 10, each, generator=generator).double() for each in shapes)
        # Of integers, so that the product is exact and has that rank.
        C[:, 1] = 2**10 * C[:, 0] + C[:, 1]
        F[:, 1] = 2**10 * F[:, 0] + F[:, 1]
        A, G = (C @ F).requires_grad_(), torch.randn(m, n, generator=generator).double()
        LU, pivots, _ = lu_factor_ex(A, strategy=strategy)
        (found,) = torch.autograd.grad(LU, A, G)
        (expected,) = gradient("lu_factor", (A,), (G,), rank=rank, pivots=pivots).gradients
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5 * expected.abs().max())


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_products_whose_leading_columns_are_parallel_to_roundoff_are_refused(strategy):
    for dtype in DTYPES:
        C, F = drawn(8, 4, dtype=dtype, seed=4), drawn(4, 8, dtype=dtype, seed=5)
        F[:, 1] = F[:, 0] / 3
        A = (C @ F).requires_grad_()
        LU = lu_factor_ex(A, strategy=strategy).LU
        with pytest.raises(LinAlgError, match="rank is not determined"):
            LU.sum().abs().backward()
