// Substitution with triangles.
#pragma once

#include "lapack.hpp"

namespace bs {

enum Triangle : int { Lower = 0, Upper = 1, UnitDiagonal = 2, Adjoint = 4, Transpose = 8, Conjugate = 12 };
constexpr Triangle operator|(Triangle a, Triangle b) { return Triangle(int(a) | int(b)); }

// X ← op(A)⁻¹ X of a triangle of A, by columns of A: of those that follow, multiples are subtracted, or, if op
// transposes, products with those before. `Conjugate` conjugates without transposing.
template <Triangle KIND, class M, class R>
BS_INLINE void substitute(const M& A, R&& X) {
  using T = Entry<R>;
  constexpr int op = KIND & 12;
  constexpr bool is_upper = KIND & Upper, is_transposed = op == Adjoint || op == Transpose;
  constexpr bool conjugates = op == Adjoint || op == Conjugate;
  constexpr bool is_downward = is_upper == is_transposed;  // the first unknown is found first
  const auto n = known(A.height(), X.height());
  loop(X.width(), [&](auto j) BS_LAMBDA {
    const auto step = [&](auto k) BS_LAMBDA {
      T x = X(k, j);
      // Entries of column k of the triangle beside the diagonal: what is above it, or below.
      const auto others = [&](auto body) BS_LAMBDA {
        if constexpr (is_upper) loop(k, body);
        else loop(next(k), n, body);
      };
      if constexpr (is_transposed) {
        if constexpr (is_const<decltype(n)> || is_pack<T>) {
          others([&](auto i) BS_LAMBDA { x -= conj_if<conjugates>(A(i, k)) * X(i, j); });
        } else {
          const Int first = is_upper ? 0 : k + 1, count = is_upper ? k : n - k - 1;
          x -= dot<conjugates>(A.column(k) + first, X.column(j) + first, count);
        }
      }
      if constexpr (!(KIND & UnitDiagonal)) x /= conj_if<conjugates>(A(k, k));
      X(k, j) = x;
      if constexpr (!is_transposed) {
        others([&](auto i) BS_LAMBDA { X(i, j) -= conj_if<conjugates>(A(i, k)) * x; });
      }
    };
    if constexpr (is_downward) loop(n, step);
    else loop_down(n, step);
  });
}

// Right-hand sides up to which a product with them is written out; BLAS is faster with more.
constexpr Int FEW_RIGHT_HAND_SIDES = 4;

// X ← op(A)⁻¹X of rows that lie one after the other: from those that follow, multiples are subtracted.
template <Triangle KIND, class T>
void substitute_rows(View<T> A, View<T> X) {
  constexpr int op = KIND & 12;
  constexpr bool is_transposed = op == Adjoint || op == Transpose, conjugates = op == Adjoint || op == Conjugate;
  constexpr bool is_downward = bool(KIND & Upper) == is_transposed;  // the first unknown is found first
  const auto factors = is_transposed ? A.t() : A;
  const Int n = X.m;
  const auto row = [&](Int i) { return X.data + i * X.down; };
  for (Int step = 0; step < n; ++step) {
    const Int k = is_downward ? step : n - 1 - step;
    if (!(KIND & UnitDiagonal)) {
      const T pivot = conj_if<conjugates>(A(k, k));
      for (Int j = 0; j < X.n; ++j) row(k)[j] /= pivot;
    }
    for (Int i = is_downward ? k + 1 : 0; i < (is_downward ? n : k); ++i)
      subtract_multiple(row(i), row(k), conj_if<conjugates>(factors(i, k)), X.n);
  }
}

// Whether `substitute_rows` is faster than BLAS and than substitution by columns, which are copied.
template <class T>
bool is_for_rows(View<T> X) {
  const Int n = X.m, k = X.n, most = k > FEW_RIGHT_HAND_SIDES ? 32 : 16;
  return k > 1 && X.t().has_packed_columns() && (n <= most || 2 * k >= n) && double(n) * double(n) * double(k) < 2e5;
}

// Entries of the right-hand sides up to which substitution is faster than to call BLAS.
constexpr Int MOST_OF_SUBSTITUTION = 32;

// A triangle whose columns, or whose rows, lie one after the other: the transpose is of the other kind.
template <class T>
struct PackedTriangle {
  Columns<T> columns;
  bool is_transposed;
};

// X ← L⁻¹X, or L⁻ᴴX, of a lower triangle.
template <bool ADJOINT, class T>
void solve_lower(PackedTriangle<T> L, Columns<T> X) {
  const bool is_small = X.m * X.n <= MOST_OF_SUBSTITUTION;
  if (!L.is_transposed) {
    if (is_small) substitute<ADJOINT ? Lower | Adjoint : Lower>(L.columns, X);
    else lapack::solve_triangle(ADJOINT ? "LLCN" : "LLNN", L.columns, X);
  } else if (!ADJOINT) {
    if (is_small) substitute<Upper | Transpose>(L.columns, X);
    else lapack::solve_triangle("LUTN", L.columns, X);
  } else if (is_small) {
    substitute<Upper | Conjugate>(L.columns, X);
  } else {
    conjugate(X);
    lapack::solve_triangle("LUNN", L.columns, X);
    conjugate(X);
  }
}

}  // namespace bs
