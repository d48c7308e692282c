#pragma once

#include "../functions_manual.h"

namespace torch::autograd::generated::details {

// The gradient of P = A^+ at constant rank [Golub & Pereyra, 1973, (4.12)].
// With W = grad^H and K = P W
//   gA = -P^H K^H + (I - A P) W (P P^H) + P^H K (I - P A).
// For tall A all products are of A or P with n x n matrices, and none has more
// than two factors of the size of P, since gA is of the size of P P.
// A projection by A P leaves roundoff of the size of cond(A) in the range of
// A, which P P^H magnifies; projected once more, nothing of it is left there.
Tensor linalg_pinv_backward(
    const Tensor& grad, const Tensor& pinvA, const Tensor& A) {
  at::NoTF32Guard disable_tf32;
  if (A.sym_size(-2) < A.sym_size(-1)) {
    return linalg_pinv_backward(grad.mH(), pinvA.mH(), A.mH()).mH();
  }
  const auto W = grad.mH();
  const auto K = pinvA.matmul(W);
  auto N = W - A.matmul(K);
  N = N - A.matmul(pinvA.matmul(N));
  const auto row_projector = pinvA.matmul(A);
  auto M = K - K.matmul(row_projector);
  M = M - M.matmul(row_projector);
  return pinvA.mH().matmul(M - K.mH()) + N.matmul(pinvA.matmul(pinvA.mH()));
}

} // namespace torch::autograd::generated::details
