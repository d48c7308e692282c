#pragma once

#include "../functions_manual.h"

namespace torch::autograd::generated::details {

// The gradient of P^T A = LU by halves, the last rows and columns first. With
// F = L + U - I, as packed, and
//   [A11 A12]   A12 = L11 U12,   A21 = L21 U11,
//   [A21 A22]   A22 = L21 U12 + L22 U22,
// and gA22 the gradient of the trailing block, finished,
//   gF12 <- gF12 - L21^H gA22,   gF21 <- gF21 - gA22 U12^H,
//   gA12 = L11^{-H} gF12,        gA21 = gF21 U11^{-H},
//   gF11 <- gF11 - tril(gA12 U12^H, -1) - triu(L21^H gA21).
// That is 5/3 n^3 operations where the formula for the whole matrix, used for
// the last blocks, takes 6 n^3:
//   gA = L^{-H} (gU + tril(L^H gL - gU U^H, -1) U^{-H}).
// A tall or a wide matrix has no trailing block beside its square one.
static Tensor lu_reverse(const Tensor& gF, const Tensor& F) {
  constexpr int64_t kLargestBlock = 128;
  const auto m = F.sym_size(-2), n = F.sym_size(-1);
  const auto solve_L = [](const Tensor& L, const Tensor& B) {
    return at::linalg_solve_triangular(
        L.mH(),
        B,
        /*upper=*/true,
        /*left=*/true,
        /*unitriangular=*/true);
  };
  const auto solve_U = [](const Tensor& U, const Tensor& B) {
    return at::linalg_solve_triangular(
        U.mH(),
        B,
        /*upper=*/false,
        /*left=*/false);
  };
  const bool is_square = m == n;
  const auto size = n.maybe_as_int();
  if (is_square && (!size || *size <= kLargestBlock)) {
    const auto L = F.tril(-1), gL = gF.tril(-1), gU = gF.triu();
    const auto lower = gL + L.mH().matmul(gL) - gU.matmul(F.triu().mH());
    return solve_L(F, gU + solve_U(F, lower.tril(-1)));
  }
  const auto n1 = is_square ? c10::SymInt(*size / 2) : std::min(m, n);
  const auto block = [&](const Tensor& X, int64_t i, int64_t j) {
    return X.narrow_symint(-2, i ? n1 : 0, i ? m - n1 : n1)
        .narrow_symint(-1, j ? n1 : 0, j ? n - n1 : n1);
  };
  const auto F11 = block(F, 0, 0), U12 = block(F, 0, 1), L21 = block(F, 1, 0);
  auto gF11 = block(gF, 0, 0), gF12 = block(gF, 0, 1), gF21 = block(gF, 1, 0);
  auto gA22 = block(gF, 1, 1);
  if (is_square) {
    gA22 = lu_reverse(gA22, block(F, 1, 1));
    gF12 = gF12 - L21.mH().matmul(gA22);
    gF21 = gF21 - gA22.matmul(U12.mH());
  }
  const auto gA12 = solve_L(F11, gF12), gA21 = solve_U(F11, gF21);
  gF11 = gF11 - gA12.matmul(U12.mH()).tril(-1) - L21.mH().matmul(gA21).triu();
  const auto gA11 = lu_reverse(gF11, F11);
  return at::cat({at::cat({gA11, gA12}, -1), at::cat({gA21, gA22}, -1)}, -2);
}

// P gA without the product: the rows in the order of A.
static Tensor lu_rows(const Tensor& P, const Tensor& gA) {
  if (gA.sym_numel() == 0) {
    return gA;
  }
  const auto order = at::real(P).argmax(-1).unsqueeze(-1);
  return gA.gather(-2, order.expand_symint(gA.sym_sizes()));
}

Tensor linalg_lu_factor_ex_backward(
    const Tensor& gLU, const Tensor& LU, const Tensor& pivots, bool pivot) {
  at::NoTF32Guard disable_tf32;
  const auto gA = lu_reverse(gLU, LU);
  return pivot ? lu_rows(std::get<0>(at::lu_unpack(LU, pivots)), gA) : gA;
}

Tensor linalg_lu_halves_backward(
    const Tensor& gL,
    const Tensor& gU,
    const Tensor& P,
    const Tensor& L,
    const Tensor& U,
    bool pivot) {
  at::NoTF32Guard disable_tf32;
  if (!gL.defined() && !gU.defined()) {
    return {};
  }
  const auto m = L.sym_size(-2), n = U.sym_size(-1);
  const auto gA = lu_reverse(
      lu_unpack_backward(gL, gU, m, n),
      lu_unpack_backward(L, U, m, n));
  return pivot ? lu_rows(P, gA) : gA;
}

} // namespace torch::autograd::generated::details
