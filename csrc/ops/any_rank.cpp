// Pseudo-inverses and least squares of matrices of any rank r, from A = U C Vᴴ with orthonormal columns in U and V and
// a nonsingular r×r matrix C: that of a truncated SVD, or of a complete orthogonal decomposition. Kept are U and Vᴴ by
// columns, min(m, n) of each, of which the first r are meant.
#include "../include/decompositions.hpp"
#include "../include/rows.hpp"
#include "table.hpp"

namespace bs {
namespace {

// A⁺ of tall A, row after row; U, Vᴴ, C and the rank.
template <template <class> class By, class T>
void pinv(Task task, Arena& arena) {
  using Core = typename By<T>::Core;
  const auto A = task.argument<T>(0), X = task.argument<T>(1), U = task.argument<T>(2), V = task.argument<T>(3);
  const auto C = task.argument<typename Core::Number>(4);
  const auto rank = task.argument<Int>(5);
  By<T> by(task, arena, A.m, A.n);
  auto scaled = arena.columns<T>(A.m, std::min(A.m, A.n));
  task.each(arena, [&](Int i) {
    const Int r = rank.number(i) = by.decompose(A[i], U.columns(i), C, i, V.columns(i));
    if (r == UNDECIDED) return false;
    const auto left = scaled.columns(0, r);
    copy(left, U.columns(i).columns(0, r));
    Core(C, i, r, false).solve("RC", left);
    lapack::multiply("NN", 1, 0, X.columns(i), left, V.columns(i).part(0, r, 0, A.n));
    conjugate(X.columns(i));
    return true;
  });
}

// X = A⁺B, row after row, the rank, C, U and Vᴴ; of tall matrices the squared residuals, too, before the rank.
template <template <class> class By, bool IS_TALL, class T>
void lstsq(Task task, Arena& arena) {
  using Core = typename By<T>::Core;
  constexpr int next = IS_TALL;
  const auto A = task.argument<T>(0), B = task.argument<T>(1), X = task.argument<T>(2);
  const auto residuals = task.argument<Real<T>>(3);
  const auto C = task.argument<typename Core::Number>(4 + next);
  const auto rank = task.argument<Int>(3 + next);
  const auto U = task.argument<T>(5 + next), V = task.argument<T>(6 + next);
  const Int m = A.m, n = A.n, k = B.n;
  By<T> by(task, arena, m, n);
  auto Y = arena.columns<T>(m, k), coordinates = arena.columns<T>(std::min(m, n), k), solution = arena.columns<T>(n, k);
  task.each(arena, [&](Int i) {
    copy(Y, B[i]);
    const Int r = rank.number(i) = by.decompose(A[i], U.columns(i), C, i, V.columns(i));
    if (r == UNDECIDED || (r > 0 && !are_safe_sides(Y, by.norm * by.norm))) return false;
    const auto along = coordinates.part(0, r, 0, k);
    lapack::multiply("CN", 1, 0, along, U.columns(i).columns(0, r), Y);
    Core(C, i, r, m < n).solve("LN", along);
    lapack::multiply("CN", 1, 0, solution, V.columns(i).part(0, r, 0, n), along);
    copy(X[i], solution);
    if constexpr (IS_TALL) {  // of matrices of full rank alone there are residuals
      if (r == n) {
        copy(by.F, A[i]);
        lapack::multiply("NN", -1, 1, Y, by.F, solution);
      }
      for (Int j = 0; j < k; ++j) residuals.vector(i)[j] = r < n ? 0 : Real<T>(sum_of_squares(Y.column(j), m));
    }
    return true;
  });
}

// The formula of `strategies.formulas.pinv`, row after row: with P = G U, Q = VᴴG, H = VᴴG U and E = C⁻ᴴH,
// Āᴴ = V C⁻¹ (C⁻ᴴQ − (E + Eᴴ) Uᴴ) + (P − V H) C⁻ᴴC⁻¹ Uᴴ.
template <class Core>
void pinv_backward(Task task, Arena& arena) {
  using T = typename Core::Matrix;
  const auto U = task.argument<T>(0), V = task.argument<T>(1), G = task.argument<T>(4), result = task.argument<T>(5);
  const auto C = task.argument<typename Core::Number>(2);
  const auto rank = task.argument<Int>(3);
  const Int n = G.m, m = G.n, k = std::min(m, n);
  auto W = arena.columns<T>(n, m), of_P = arena.columns<T>(n, k), of_Q = arena.columns<T>(k, m);
  auto of_H = arena.columns<T>(k, k), both = arena.columns<T>(k, k);
  task.each(arena, [&](Int i) {
    copy(W, G[i]);
    const double power = normalize(W);
    if (power == 0) return false;
    const Int r = rank.number(i);
    const Core core(C, i, r, false);
    const auto left = U.columns(i).columns(0, r), right = V.columns(i).part(0, r, 0, n), t = result.columns(i);
    const auto P = of_P.columns(0, r), Q = of_Q.part(0, r, 0, m), H = of_H.part(0, r, 0, r), E = both.part(0, r, 0, r);
    lapack::multiply("NN", 1, 0, P, W, left);
    lapack::multiply("NN", 1, 0, Q, right, W);
    lapack::multiply("NN", 1, 0, H, right, P);
    // What is out of a range that is everything is zero, and not roundoff.
    if (r == n) fill_with_zeros(P);
    else lapack::multiply("CN", -1, 1, P, right, H);
    core.solve("RC", P);
    core.solve("RN", P);
    core.solve("LC", Q);
    core.solve("LC", H);
    each_entry(E, [&](auto a, auto j) { E(a, j) = (r == m ? T(0) : H(a, j)) + conj(H(j, a)); });
    lapack::multiply("NC", -1, r < m, Q, E, left);
    core.solve("LN", Q);
    lapack::multiply("CN", 1, 0, t, right, Q);
    lapack::multiply("NC", 1, 1, t, P, left);
    conjugate(t);
    multiply_by(t, power);
    return true;
  });
}

// The formula of `strategies.formulas.lstsq`, row after row: B̄ = Z = A⁺ᴴG and Ā = −Z Xᴴ + (B − A X) wᴴ + Y Nᴴ with
// w = A⁺Z, N = G − A⁺A G and Y = A⁺ᴴX.
template <class Core>
void lstsq_backward(Task task, Arena& arena) {
  using T = typename Core::Matrix;
  const auto B = task.argument<T>(0), X = task.argument<T>(1), U = task.argument<T>(4), V = task.argument<T>(5);
  const auto G = task.argument<T>(6), result = task.argument<T>(8), rhs_result = task.argument<T>(9);
  const auto of_residuals = task.argument<Real<T>>(7);
  const auto rank = task.argument<Int>(2);
  const auto C = task.argument<typename Core::Number>(3);
  const Int n = X.m, m = B.m, k = B.n;
  auto N = arena.columns<T>(n, k), w = arena.columns<T>(n, k), turned = arena.columns<T>(k, n);
  auto Z = arena.columns<T>(m, k), residual = arena.columns<T>(m, k), Y = arena.columns<T>(m, k);
  auto coordinates = arena.columns<T>(std::min(m, n), k);
  task.each(arena, [&](Int i) {
    const auto g = of_residuals.if_given(i);
    copy(N, G[i]);
    const double power = normalize(N);
    if (power == 0 || (g.data && power != 1)) return false;
    const Int r = rank.number(i);
    const Core core(C, i, r, m < n);
    const auto left = U.columns(i).columns(0, r), right = V.columns(i).part(0, r, 0, n), t = result.columns(i);
    const auto along = coordinates.part(0, r, 0, k);
    lapack::multiply("NN", 1, 0, along, right, N);
    if (r == n) fill_with_zeros(N);
    else lapack::multiply("CN", -1, 1, N, right, along);
    core.solve("LC", along);
    lapack::multiply("NN", 1, 0, Z, left, along);
    core.solve("LN", along);
    lapack::multiply("CN", 1, 0, w, right, along);
    copy(residual, B[i]);
    lapack::multiply("CN", 1, 0, along, left, residual);
    if (r == m) fill_with_zeros(residual);
    else lapack::multiply("NN", -1, 1, residual, left, along);
    add_of_residuals(Z, residual, g);
    copy(rhs_result[i], Z);
    copy(turned, w.t());
    lapack::multiply("CT", 1, 0, t, turned, residual);
    lapack::multiply("CT", -1, 1, t, X.columns(i), Z);
    copy(w, X[i]);
    lapack::multiply("NN", 1, 0, along, right, w);
    core.solve("LC", along);
    lapack::multiply("NN", 1, 0, Y, left, along);
    copy(turned, N.t());
    lapack::multiply("CT", 1, 1, t, turned, Y);
    multiply_by(rhs_result[i], power);
    multiply_by(t, power);
    return true;
  });
}

}  // namespace
}  // namespace bs

#define BS_BY(suffix, By)                                                                                  \
  BS_NAMED("pinv_" suffix, pinv<By, T>), BS_NAMED("pinv_" suffix "_backward", pinv_backward<By<T>::Core>), \
      BS_NAMED("lstsq_" suffix, lstsq<By, true, T>),                                                       \
      BS_NAMED("lstsq_" suffix "_without_residuals", lstsq<By, false, T>),                                 \
      BS_NAMED("lstsq_" suffix "_backward", lstsq_backward<By<T>::Core>)

BS_DEFINE_FAMILY(any_rank, BS_BY("svd", Svd), BS_BY("cod", Cod))
