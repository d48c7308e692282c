// Derivatives of inverses and adjugates from LU factors.
#include "../include/determinant.hpp"
#include "table.hpp"

namespace bs {
namespace {

// Entries of R⁻¹ up to which products with it lose no digits that the result has.
constexpr double MOST_GROWTH = 1024;

// V = L⁻¹ and W = R⁻ᴴ of packed factors L diag(s) Rᴴ; whether no entry of W is large.
template <class T>
bool invert_triangles(Columns<T> LU, Columns<T> V, Columns<T> W) {
  const Int n = LU.n;
  fill_with_identity(V);
  fill_with_zeros(W);
  for (Int i = 0; i < n; ++i) W(i, i) = LU(i, i);
  if (n <= MOST_SMALL) {
    substitute<Lower | UnitDiagonal>(LU, V);
    substitute<Upper>(LU, W);
  } else {
    invert_lower(LU, V);
    each_block(n, [&](Int first, Int last) {
      lapack::solve_triangle("LUNN", LU.part(0, last, 0, last), W.part(0, last, first, last));
    });
  }
  bool is_small = true;
  each_entry(W, [&](Int i, Int j) { is_small &= modulus(W(i, j)) <= MOST_GROWTH; });
  return is_small;
}

// The derivative of A⁻ᴴ or, `OF_ADJUGATE`, of adj(A)ᴴ along C, by packed factors and, of the latter, det A; whether it
// is right; and tr(A⁻¹C) or tr(adj(A) C). `strategies.factors.inverse_derivatives` derives them: V = L⁻¹, W = R⁻ᴴ, and
// P = V C W.
template <bool OF_ADJUGATE, class T>
void derivative_by_lu(Task task, Arena& arena) {
  const auto factors = task.argument<T>(0), C = task.argument<T>(2), dets = task.argument<T>(3);
  const auto result = task.argument<T>(3 + OF_ADJUGATE);
  const auto pivots = task.argument<Pivot>(1);
  const auto trace = task.argument<T>(4 + OF_ADJUGATE);
  const auto is_right = task.argument<bool>(5 + OF_ADJUGATE);
  const Int n = C.n;
  const auto V = arena.columns<T>(n, n), W = arena.columns<T>(n, n), other = arena.columns<T>(n, n);
  auto P = arena.columns<T>(n, n);
  auto *reciprocals = arena.take<T>(n), *diagonal = arena.take<T>(n);
  task.each(arena, [&](Int matrix) {
    const auto LU = factors.columns(matrix);
    const T det = OF_ADJUGATE ? dets.number(matrix) : T(1);
    const bool is_small = invert_triangles(LU, V, W);
    for (Int i = 0; i < n; ++i) reciprocals[i] = T(1) / LU(i, i);
    copy(P, C[matrix]);
    swap_rows<true>(P, pivots.vector(matrix));
    each_block(n, [&](Int first, Int last) {
      lapack::multiply("NN", 1, 0, other.part(first, last, 0, n), V.part(first, last, 0, last), P.part(0, last, 0, n));
    });
    each_block(n, [&](Int first, Int last) {
      lapack::multiply("NN", 1, 0, P.columns(first, last), other.columns(0, last), W.part(0, last, first, last));
    });
    T of_C(0);
    for (Int j = 0; j < n; ++j) {
      T sum(0);
      of_C += det * reciprocals[j] * P(j, j);
      for (Int i = 0; i < n; ++i) {
        if (OF_ADJUGATE && i == j) continue;
        const T quotient = det * reciprocals[i] * reciprocals[j];
        if (OF_ADJUGATE) sum += P(i, i) * quotient;
        P(i, j) *= -quotient;
      }
      diagonal[j] = sum;
    }
    for (Int i = 0; OF_ADJUGATE && i < n; ++i) P(i, i) = diagonal[i];
    // The transpose of W P V.
    each_block(n, [&](Int first, Int last) {
      lapack::multiply("TT", 1, 0, other.columns(first, last), P.part(first, n, 0, n), W.part(first, last, first, n));
    });
    each_block(n, [&](Int first, Int last) {
      lapack::multiply(
          "TN", 1, 0, P.part(first, last, 0, n), V.part(first, n, first, last), other.part(first, n, 0, n));
    });
    swap_rows<false>(P, pivots.vector(matrix));
    conjugate(P);
    copy(result[matrix], P);
    const bool is_near = 1 / FAR<T> < modulus(det) && modulus(det) < FAR<T>, has_trace = of_C == of_C;
    trace.number(matrix) = of_C;
    is_right.number(matrix) = is_small && is_near && has_trace && is_finite(P);
    return true;
  });
}

}  // namespace
}  // namespace bs

BS_DEFINE_FAMILY(
    inverse_derivatives, BS_NAMED("derivative_of_inverse", derivative_by_lu<false, T>),
    BS_NAMED("derivative_of_adjugate", derivative_by_lu<true, T>))
