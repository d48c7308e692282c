"""Members of a domain have the singular values of what they are made from; parts are projections."""

import pytest
import torch

from strategies.formulas.domains import GENERAL, LOWER_TRIANGULAR, POSITIVE_DEFINITE

DOMAINS = {"general": GENERAL, "positive": POSITIVE_DEFINITE, "lower": LOWER_TRIANGULAR}


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize("name", DOMAINS)
def test_members_keep_singular_values_and_lie_in_their_span(name, dtype):
    domain = DOMAINS[name]
    for shape in ((0, 0), (1, 1), (2, 4, 4)):
        matrix = torch.randn(shape, dtype=dtype)
        member = domain.member(matrix)
        torch.testing.assert_close(*map(torch.linalg.svdvals, (member, matrix)))
        torch.testing.assert_close(domain.part(member), member)
        part = domain.part(matrix)
        torch.testing.assert_close(domain.part(part), part)
        # What is projected away is orthogonal to the rest.
        assert ((matrix - part).conj() * part).real.sum().abs() < 1e-12


def test_members_have_a_cholesky_factorization_or_are_one():
    matrix = torch.randn(3, 5, 5, dtype=torch.complex128)
    L = LOWER_TRIANGULAR.member(matrix)
    torch.testing.assert_close(torch.linalg.cholesky(L @ L.mH), L)
    assert not torch.linalg.cholesky_ex(POSITIVE_DEFINITE.member(matrix)).info.any()
