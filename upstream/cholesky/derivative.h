#pragma once

#include "../functions_manual.h"

namespace torch::autograd::generated::details {

// The gradient of A = LL^H by halves, the last rows first. With
//   A = [A11    .]   A21 = L21 L11^H,  A22 = L21 L21^H + L22 L22^H
//       [A21  A22]
// and gA22 the gradient of the trailing block, Hermitian and finished,
//   gA21 = (gL21 / 2 - gA22 L21) L11^{-1},   gL11 <- gL11 - 2 gA21^H L21
// [Murray, 2016, arXiv:1602.07527, section 4]. That is 5/6 n^3 operations
// where the formula for the whole matrix, used for the last blocks, takes
// 4 n^3:
//   gA = herm(L^{-H} \pi(L^H gL) L^{-1}),   herm(M) = (M + M^H) / 2,
// with \pi the lower triangle, its diagonal halved. Only lower triangles are
// read: L^H times a strictly upper triangle is strictly upper.
static Tensor cholesky_reverse(const Tensor& gL, const Tensor& L) {
  constexpr int64_t kLargestBlock = 128;
  const auto n = L.sym_size(-1).maybe_as_int();
  if (!n || *n <= kLargestBlock) {
    auto gA = L.mH().matmul(gL).tril();
    gA.diagonal(0, -2, -1).mul_(0.5);
    gA = at::linalg_solve_triangular(L.mH(), gA, /*upper=*/true);
    gA = at::linalg_solve_triangular(L, gA, /*upper=*/false, /*left=*/false);
    return 0.5 * (gA + gA.mH());
  }
  const auto n1 = *n / 2, n2 = *n - n1;
  const auto block = [n1, n2](const Tensor& X, int64_t i, int64_t j) {
    return X.narrow(-2, i * n1, i ? n2 : n1).narrow(-1, j * n1, j ? n2 : n1);
  };
  const auto L11 = block(L, 0, 0), L21 = block(L, 1, 0);
  const auto gA22 = cholesky_reverse(block(gL, 1, 1), block(L, 1, 1));
  const auto gA21 = at::linalg_solve_triangular(
      L11,
      0.5 * block(gL, 1, 0) - gA22.matmul(L21),
      /*upper=*/false,
      /*left=*/false);
  const auto gA12 = gA21.mH();
  const auto gA11 =
      cholesky_reverse(block(gL, 0, 0) - 2 * gA12.matmul(L21), L11);
  return at::cat({at::cat({gA11, gA12}, -1), at::cat({gA21, gA22}, -1)}, -2);
}

Tensor linalg_cholesky_ex_backward(
    const Tensor& gL, bool upper, const Tensor& L) {
  at::NoTF32Guard disable_tf32;
  return upper ? cholesky_reverse(gL.mH(), L.mH()) : cholesky_reverse(gL, L);
}

} // namespace torch::autograd::generated::details
