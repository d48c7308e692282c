#pragma once

#include "../functions_manual.h"

namespace torch::autograd::generated::details {

// The gradient of the packed factors of A = PLU. What dX = -A^{-1} dA X and
// the like for A^H make of dA = P (dL U + L dU) are products of rank k, for k
// right-hand sides, and all before them are solves with k columns:
//   A X = B:    gU = -triu(V X^H),   gL = -tril(W Y^H, -1),
//     with V = U^{-H} gX,  W = L^{-H} V,  Y = U X;
//   A^H X = B:  gU = -triu(T W^H),   gL = -tril(Z V^H, -1),
//     with Z = P^T X,  T = L^H Z,  V = L^{-1} P^T gX,  W = U^{-1} V.
// X A = B is A^H X^H = B^H. For many right-hand sides, the second product is
// had from the first.
Tensor linalg_lu_solve_factors_backward(
    const Tensor& gX,
    const Tensor& LU,
    const Tensor& pivots,
    const Tensor& X,
    bool left,
    bool adjoint) {
  at::NoTF32Guard disable_tf32;
  if (!left) {
    return linalg_lu_solve_factors_backward(
        gX.mH(),
        LU,
        pivots,
        X.mH(),
        /*left=*/true,
        !adjoint);
  }
  const auto [P, L, U] = at::lu_unpack(
      LU,
      pivots,
      /*unpack_data=*/true,
      /*unpack_pivots=*/adjoint);
  const auto solve_L = [&L = L](const Tensor& B, bool adjoint) {
    return at::linalg_solve_triangular(
        adjoint ? L.mH() : L,
        B,
        /*upper=*/adjoint,
        /*left=*/true,
        /*unitriangular=*/true);
  };
  const auto solve_U = [&U = U](const Tensor& B, bool adjoint) {
    return at::linalg_solve_triangular(
        adjoint ? U.mH() : U,
        B,
        /*upper=*/!adjoint);
  };
  const bool has_few = 2 * X.sym_size(-1) <= X.sym_size(-2);
  if (adjoint) {
    const auto Z = P.mT().matmul(X);
    const auto V = solve_L(P.mT().matmul(gX), /*adjoint=*/false);
    const auto gL = Z.matmul(V.mH());
    const auto gU =
        has_few ? L.mH().matmul(Z).matmul(solve_U(V, /*adjoint=*/false).mH())
                : at::linalg_solve_triangular(
                      U.mH(),
                      L.mH().matmul(gL),
                      /*upper=*/false,
                      /*left=*/false);
    return -(gL.tril(-1) + gU.triu());
  }
  const auto V = solve_U(gX, /*adjoint=*/true);
  const auto gU = V.matmul(X.mH());
  const auto gL = has_few
                      ? solve_L(V, /*adjoint=*/true).matmul(U.matmul(X).mH())
                      : solve_L(gU.matmul(U.mH()), /*adjoint=*/true);
  return -(gL.tril(-1) + gU.triu());
}

} // namespace torch::autograd::generated::details
