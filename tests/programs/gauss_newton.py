"""Fits decays by Gauss-Newton steps, and the damping of these by differentiating through them."""

import torch
from torch.func import jacfwd, vmap

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
curves = 16
time = torch.linspace(0, 3, 40)
truth = torch.rand(curves, 3) + 0.5


def model(parameters):
    amplitude, rate, offset = parameters
    return amplitude * torch.exp(-rate * time) + offset


data = vmap(model)(truth) + 0.01 * torch.randn(curves, len(time))
log_damping = torch.tensor(0.0, requires_grad=True)
for _ in range(6):
    parameters = torch.ones(curves, 3)
    for _ in range(4):
        residuals = data - vmap(model)(parameters)
        jacobians = vmap(jacfwd(model))(parameters)
        damping = (log_damping.exp() * torch.eye(3)).expand(curves, 3, 3)
        stacked = torch.cat((jacobians, damping), 1)
        zeros = torch.zeros(curves, 3)
        right = torch.cat((residuals, zeros), 1).unsqueeze(-1)
        parameters = parameters + torch.linalg.lstsq(stacked, right).solution.squeeze(-1)
    loss = (vmap(model)(parameters) - data).square().mean()
    (slope,) = torch.autograd.grad(loss, log_damping)
    with torch.no_grad():
        log_damping -= 20 * slope
    print(f"{loss.item():.17g} {log_damping.item():.17g}")
