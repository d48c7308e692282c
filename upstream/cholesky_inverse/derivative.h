#pragma once

#include "../functions_manual.h"

namespace torch::autograd::generated::details {

// X = (L L^H)^{-1} reads one triangle of L, to which a gradient and a tangent
// belong. As dX = L^{-H} (K + K^H) L^{-1} with K = -L^{-1} dL,
//   gL = -tril(L^{-H} L^{-1} (gX + gX^H) L^{-H}),
// where all inverses stay factors, since X has larger errors than they cause;
// for X = (U^H U)^{-1}, of which L is U^H, the adjoint of that.
Tensor cholesky_inverse_factor_backward(
    const Tensor& gX, const Tensor& factor, bool upper) {
  at::NoTF32Guard disable_tf32;
  const auto L = upper ? factor.mH() : factor;
  const auto solve = [](const Tensor& L, const Tensor& B, bool upper) {
    return at::linalg_solve_triangular(L, B, upper);
  };
  const auto half = solve(L, gX + gX.mH(), /*upper=*/false);
  const auto gL =
      -solve(L.mH(), solve(L, half.mH(), false).mH(), /*upper=*/true).tril();
  return upper ? gL.mH() : gL;
}

Tensor cholesky_inverse_factor_jvp(
    const Tensor& factor, const Tensor& tangent, bool upper, const Tensor& X) {
  at::NoTF32Guard disable_tf32;
  const auto K = at::linalg_solve_triangular(
      factor,
      upper ? tangent.triu().matmul(X) : X.matmul(tangent.tril()),
      upper,
      /*left=*/upper);
  return -(K + K.mH());
}

} // namespace torch::autograd::generated::details
