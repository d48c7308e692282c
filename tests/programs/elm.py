"""Learns the hidden layer of an extreme learning machine through the pseudoinverse of its last one."""

import torch

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
samples, features, hidden = 400, 3, 24
X = torch.rand(samples, features) * 2 - 1
Y = torch.stack((torch.sin(3 * X[:, 0]) * X[:, 1], X.square().sum(1)), 1)
weights = torch.randn(features, hidden, requires_grad=True)
biases = torch.randn(hidden, requires_grad=True)
for _ in range(15):
    H = torch.tanh(X @ weights + biases)
    train, test = H[: samples // 2], H[samples // 2 :]
    readout = torch.linalg.pinv(train) @ Y[: samples // 2]
    loss = (test @ readout - Y[samples // 2 :]).square().mean()
    loss.backward()
    with torch.no_grad():
        weights -= 0.1 * weights.grad
        biases -= 0.1 * biases.grad
    weights.grad = biases.grad = None
    print(f"{loss.item():.17g}")
