"""Likelihoods of linear_operator and GPyTorch by a factor, beside their own."""

import contextlib

import pytest
import torch

from strategies.integration.gaussian_likelihood import replace_linear_operator

linear_operator = pytest.importorskip("linear_operator")
close = torch.testing.assert_close


def covariance(batch=(), n=260):
    A = torch.randn(*batch, n, n, dtype=torch.float64)
    return (A @ A.mT + torch.eye(n, dtype=torch.float64)).requires_grad_()


def both(compute, *inputs):
    """What is computed and its gradients, by linear_operator and by a factor."""
    found = []
    for way in (contextlib.nullcontext(), replace_linear_operator()):
        with way:
            outputs = compute()
        total = sum(each.sin().sum() for each in outputs)
        found.append([*outputs, *torch.autograd.grad(total, inputs)])
    return found


@pytest.mark.parametrize("reduce", [True, False])
@pytest.mark.parametrize("batch", [(), (3,)], ids=str)
def test_quadratic_form_and_determinant_are_those_of_linear_operator(batch, reduce):
    K, y = covariance(batch), torch.randn(*batch, 260, 2, dtype=torch.float64, requires_grad=True)

    def compute():
        operator = linear_operator.to_linear_operator(K)
        return operator.inv_quad_logdet(y, logdet=True, reduce_inv_quad=reduce)

    close(*both(compute, K, y))


def test_small_matrices_are_left_to_linear_operator():
    K, y = covariance(n=6), torch.ones(6, 1, dtype=torch.float64)
    with replace_linear_operator():
        found = linear_operator.to_linear_operator(K).inv_quad_logdet(y, logdet=True)
    assert "Determinant" not in found[1].grad_fn.name()


def test_what_is_not_positive_definite_is_left_to_linear_operator():
    K = torch.ones(300, 300, dtype=torch.float64)
    operator, y = linear_operator.to_linear_operator(K), torch.ones(300, 1, dtype=torch.float64)
    with pytest.warns(RuntimeWarning, match="jitter"), replace_linear_operator():
        assert all(each.isfinite() for each in operator.inv_quad_logdet(y, logdet=True))


def test_the_method_is_given_back():
    before = linear_operator.LinearOperator.inv_quad_logdet
    with replace_linear_operator():
        assert linear_operator.LinearOperator.inv_quad_logdet is not before
    assert linear_operator.LinearOperator.inv_quad_logdet is before


def test_an_exact_gaussian_process_has_the_likelihood_of_gpytorch():
    gpytorch = pytest.importorskip("gpytorch")
    X = torch.rand(260, 2, dtype=torch.float64)
    y = X.sum(-1).sin()

    class Model(gpytorch.models.ExactGP):
        def __init__(self):
            super().__init__(X, y, gpytorch.likelihoods.GaussianLikelihood())
            self.mean = gpytorch.means.ConstantMean()
            self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=2))

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    model = Model().double()
    likelihood = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
    close(*both(lambda: [likelihood(model(X), y)], *model.parameters()))
