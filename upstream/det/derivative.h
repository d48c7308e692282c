#pragma once

#include "../functions_manual.h"

namespace torch::autograd::generated::details {

// adj(A)^H, differentiable at any A. With the left and right singular vectors
// U, V of the two smallest singular values of A C, C a scaling of columns, and
// s the third smallest, let W = s V^H C^{-1}. All these are constants. Then
//   M = A + U W,   S = I - W M^{-1} U,
//   det A = det M det S,
//   adj(A) = det M (det S M^{-1} + M^{-1} U adj(S) W M^{-1}),
// and M is as well conditioned as a matrix is whose two smallest singular
// values are s. Where s vanishes, too, adj(A) and its first derivative are
// zero.
static Tensor smooth_adjugate_adjoint(const Tensor& A) {
  const auto n = A.sym_size(-1);
  const auto constant = A.detach();
  const auto largest = constant.abs().amax(-2, /*keepdim=*/true);
  const auto scale = at::where(largest == 0, 1, largest);
  const auto [left, sigma, right] = at::linalg_svd(constant / scale);
  const auto s = sigma.narrow_symint(-1, n > 2 ? n - 3 : c10::SymInt(0), 1);
  const auto eps = at::native::_get_epsilon(sigma.scalar_type());
  const auto vanishes = (n > 2 ? s <= sigma.narrow(-1, 0, 1) * (n * eps)
                               : at::zeros_like(s, at::kBool))
                            .unsqueeze(-1);
  const auto U = left.narrow_symint(-1, n - 2, 2);
  const auto W = right.narrow_symint(-2, n - 2, 2) *
                 (at::where(s == 0, 1, s).unsqueeze(-1) * scale);

  const auto M =
      at::where(vanishes, at::eye_symint(n, A.options()), A + U.matmul(W));
  const auto inverse = std::get<0>(at::linalg_inv_ex(M));
  const auto MU = inverse.matmul(U), WM = W.matmul(inverse);
  const auto I = at::eye(2, A.options());
  const auto S = I - W.matmul(MU);
  const auto trace = S.diagonal(0, -2, -1).sum(-1);
  const auto adj_S = trace.unsqueeze(-1).unsqueeze(-1) * I - S;
  const auto det_S = (S.select(-2, 0) * adj_S.select(-1, 0)).sum(-1);
  const auto adj =
      det_S.unsqueeze(-1).unsqueeze(-1) * inverse + MU.matmul(adj_S).matmul(WM);
  return (at::linalg_det(M).unsqueeze(-1).unsqueeze(-1) * adj)
      .masked_fill(vanishes, 0)
      .mH();
}

// grad adj(A)^H, which is grad conj(det A) A^{-H} where A is nonsingular.
Tensor linalg_det_adjugate_backward(
    const Tensor& grad,
    const Tensor& det,
    const Tensor& A,
    const Tensor& LU,
    const Tensor& pivots) {
  at::NoTF32Guard disable_tf32;
  if (A.sym_numel() == 0) {
    return at::zeros_like(A);
  }
  const auto n = A.sym_size(-1);
  if (n == 1) {
    return grad.unsqueeze(-1).unsqueeze(-1);
  }
  const auto eps =
      at::native::_get_epsilon(c10::toRealValueType(LU.scalar_type()));
  const auto u = LU.diagonal(0, -2, -1);
  const auto sizes = LU.triu().abs();
  const auto scaled_identity = [&u](const Tensor& scale) {
    return at::diag_embed(scale.unsqueeze(-1).expand_as(u)).mT();
  };

  if (!at::GradMode::is_enabled()) {
    // LU is exact for a matrix nearby, and so it is with roundoff for zero
    // pivots: as adj(A) is smooth, det(LU) (LU)^{-H} is near adj(A)^H. Two zero
    // rows or columns make it zero.
    const auto zeros = [&sizes](int64_t dim) {
      return (sizes.amax(dim) == 0).sum(-1);
    };
    const auto vanishes = at::maximum(zeros(-1), zeros(-2)) > 1;
    const auto is_singular = u == 0;
    const auto roundoff =
        eps * at::where(is_singular, 1, u.abs()).amin(-1, /*keepdim=*/true);
    const auto nonzero = at::where(is_singular, roundoff, u);
    const auto swaps = (pivots != at::ones_like(pivots).cumsum(-1)).sum(-1);
    const auto product = (1 - 2 * (swaps % 2)) * nonzero.prod(-1);
    return at::linalg_lu_solve(
        LU + at::diag_embed(nonzero - u),
        pivots,
        scaled_identity(grad * product.conj().masked_fill(vanishes, 0)),
        /*left=*/true,
        /*adjoint=*/!(A.is_contiguous() && !A.is_complex()));
  }

  const auto singular =
      [](const Tensor& A, const Tensor& /*scale*/, const Tensor& grad) {
        return grad.unsqueeze(-1).unsqueeze(-1) * smooth_adjugate_adjoint(A);
      };
  if (areAnyTensorSubclassLike({A, det, grad})) {
    return singular(A, Tensor(), grad);
  }
  const auto non_singular =
      [](const Tensor& A, const Tensor& d, const Tensor& /*grad*/) {
        return at::linalg_solve(A.mH(), d);
      };
  // Otherwise, derivatives divide by the smallest singular value twice, where
  // it cancels.
  const auto is_near_singular =
      (u.abs() <= std::pow(eps, 0.25) * sizes.amax(-2)).any(-1);
  return masked_fmap(
      is_near_singular,
      singular,
      non_singular,
      A,
      scaled_identity(grad * det.conj()),
      grad);
}

} // namespace torch::autograd::generated::details
