#pragma once

#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/native/LinearAlgebraUtils.h>

#include "../functions_manual.h"

namespace torch::autograd::generated::details {

// The gradient of X = A^+ B at constant rank, that of the solution itself
// [Golub & Pereyra, 1973, (4.12)]. With R = B - A X and Z = A^{+H} gX
//   gB = Z,   gA = -Z X^H + R (A^+ Z)^H + A^{+H} X ((I - A^+ A) gX)^H.
// All terms are of the size of gA; those of the gradient of A^+ times B are
// larger by cond(A) and more, and cancel. At full rank A^+ is in the factors of
// A or A^H = Q R, and either the last term or the residual is zero. Without it,
// or where tensors have no data that could tell, A^+ is formed.
std::tuple<Tensor, Tensor> linalg_lstsq_factors_backward(
    const Tensor& gX_,
    const Tensor& gL,
    const Tensor& A,
    const Tensor& B_,
    const Tensor& X_,
    const Tensor& rank,
    const std::array<bool, 2>& grad_input_mask) {
  at::NoTF32Guard disable_tf32;
  const bool is_vector = at::native::linalg_solve_is_vector_rhs(A, B_);
  const auto matrix = [is_vector](const Tensor& X) {
    return is_vector ? X.unsqueeze(-1) : X;
  };
  const auto X = matrix(X_), B = matrix(B_);
  Tensor gA, gB;
  if (gX_.defined()) {
    const auto gX = matrix(gX_);
    const bool is_tall = A.sym_size(-2) >= A.sym_size(-1);
    // The driver gels, which takes full rank for granted, returns no rank, and
    // that of empty matrices is not initialized.
    const auto shorter = is_tall ? A.sym_size(-1) : A.sym_size(-2);
    const bool is_full =
        rank.sym_numel() == 0 || A.sym_numel() == 0 ||
        (!at::areAnyTensorSubclassLike({A, rank}) &&
         rank.eq(shorter.guard_int(__FILE__, __LINE__)).all().item<bool>());
    if (is_full) {
      const auto [Q, R] = at::linalg_qr(is_tall ? A : A.mH());
      const auto solve = [&R = R](const Tensor& C) {
        return at::linalg_solve_triangular(R, C, /*upper=*/true);
      };
      if (is_tall) {
        const auto Y = at::linalg_solve_triangular(R.mH(), gX, /*upper=*/false);
        gB = Q.matmul(Y);
        if (grad_input_mask[0]) {
          gA = (B - A.matmul(X)).matmul(solve(Y).mH()) - gB.matmul(X.mH());
        }
      } else {
        const auto QHgX = Q.mH().matmul(gX);
        gB = solve(QHgX);
        if (grad_input_mask[0]) {
          gA = solve(Q.mH().matmul(X)).matmul((gX - Q.matmul(QHgX)).mH()) -
               gB.matmul(X.mH());
        }
      }
    } else {
      const auto pinvA = at::linalg_pinv(A);
      gB = pinvA.mH().matmul(gX);
      if (grad_input_mask[0]) {
        const auto null = gX - pinvA.matmul(A.matmul(gX));
        gA = (B - A.matmul(X)).matmul(pinvA.matmul(gB).mH()) +
             pinvA.mH().matmul(X).matmul(null.mH()) - gB.matmul(X.mH());
      }
    }
  }
  if (gL.defined() && gL.sym_numel() > 0) {
    // R is orthogonal to what X moves it by: dL = 2 Re R^H (dB - dA X).
    const auto gR = 2 * (B - A.matmul(X)) * gL.unsqueeze(-2);
    gB = gB.defined() ? gB + gR : gR;
    if (grad_input_mask[0]) {
      const auto gRA = -gR.matmul(X.mH());
      gA = gA.defined() ? gA + gRA : gRA;
    }
  }
  if (is_vector && gB.defined()) {
    gB = gB.squeeze(-1);
  }
  return std::make_tuple(gA, gB);
}

} // namespace torch::autograd::generated::details
